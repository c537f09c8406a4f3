// Transforms of examples and of batches.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "flambeau/flambeau.h"

namespace flambeau::data {

namespace example {
struct NoTarget {};
}  // namespace example

// A datum with its target; of NoTarget it is the datum alone.
template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data data, Target target) : data(std::move(data)), target(std::move(target)) {}
  Data data;
  Target target;
};
template <class Data>
struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;
  Example() = default;
  Example(Data data) : data(std::move(data)) {}
  operator Data&() { return data; }
  operator const Data&() const { return data; }
  Data data;
};
using TensorExample = Example<Tensor, example::NoTarget>;

namespace transforms {

// Makes one batch of another.
template <class InputBatch, class OutputBatch>
class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;
  virtual ~BatchTransform() = default;
  virtual OutputBatch apply_batch(InputBatch input_batch) = 0;
};
// The same, example by example.
template <class Input, class Output>
class Transform : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> input_batch) override {
    std::vector<Output> out;
    out.reserve(input_batch.size());
    for (Input& x : input_batch) out.push_back(apply(std::move(x)));
    return out;
  }
};
// Examples become one batch.
template <class Example, class Batch = std::vector<Example>>
using Collation = BatchTransform<Batch, Example>;

template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;
  explicit BatchLambda(FunctionType function) : function_(std::move(function)) {}
  Output apply_batch(Input input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};
template <class Example, class Batch = std::vector<Example>>
using Collate = BatchLambda<Batch, Example>;

template <class Input, class Output = Input>
class Lambda : public Transform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;
  explicit Lambda(FunctionType function) : function_(std::move(function)) {}
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

// Of the datum; the target stays.
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  using E = Example<Tensor, Target>;
  virtual Tensor operator()(Tensor input) = 0;
  E apply(E input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};
template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  using FunctionType = std::function<Tensor(Tensor)>;
  explicit TensorLambda(FunctionType function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

// (x - mean) / stddev; one number for all channels of (C, H, W), or one for each.
template <class Target = Tensor>
class Normalize : public TensorTransform<Target> {
 public:
  Normalize(ArrayRef<double> mean, ArrayRef<double> stddev)
      : mean(by_channel(mean)), stddev(by_channel(stddev)) {}
  Tensor operator()(Tensor input) override { return input.sub(mean).div(stddev); }
  Tensor mean, stddev;

 private:
  static Tensor by_channel(ArrayRef<double> xs) {
    return from_blob(const_cast<double*>(xs.data()), {static_cast<int64_t>(xs.size())}, kDouble)
        .to(kFloat)
        .view({-1, 1, 1});
  }
};

// A batch of tensors: a new first dim.
template <class E = Example<>>
class Stack : public Collation<E> {
 public:
  E apply_batch(std::vector<E> examples) override {
    std::vector<Tensor> data;
    for (E& e : examples) data.push_back(std::move(e.data));
    if constexpr (std::is_same_v<typename E::TargetType, example::NoTarget>) {
      return E(stack(data));
    } else {
      std::vector<Tensor> targets;
      for (E& e : examples) targets.push_back(std::move(e.target));
      return E(stack(data), stack(targets));
    }
  }
};

}  // namespace transforms
}  // namespace flambeau::data
