// Sets of examples: the base classes, tensors, MNIST, and sets whose examples are transformed.
#pragma once

#include <optional>
#include <string>

#include "flambeau/data/transforms.h"

namespace flambeau::data::datasets {

template <class S, class T>
class MapDataset;

// Gives batches: BatchRequest says which examples, or how many.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  static constexpr bool is_stateful = false;

  virtual ~BatchDataset() = default;
  virtual Batch get_batch(BatchRequest request) = 0;
  virtual std::optional<size_t> size() const = 0;  // none: it is not known
  template <class TransformType>
  MapDataset<Self, TransformType> map(TransformType transform) & {
    return {static_cast<Self&>(*this), std::move(transform)};
  }
  template <class TransformType>
  MapDataset<Self, TransformType> map(TransformType transform) && {
    return {std::move(static_cast<Self&>(*this)), std::move(transform)};
  }
};
// Gives examples by number. Loaders with threads give each a copy of the set.
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(size_t index) = 0;
  std::vector<ExampleType> get_batch(ArrayRef<size_t> indices) override {
    std::vector<ExampleType> out;
    out.reserve(indices.size());
    for (const size_t i : indices) out.push_back(get(i));
    return out;
  }
};
// Gives the next so many examples.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, size_t>;

template <class SourceDataset, class AppliedTransform>
class MapDataset : public BatchDataset<MapDataset<SourceDataset, AppliedTransform>,
                                       typename AppliedTransform::OutputBatchType,
                                       typename SourceDataset::BatchRequestType> {
 public:
  using DatasetType = SourceDataset;
  using TransformType = AppliedTransform;
  using BatchRequestType = typename SourceDataset::BatchRequestType;
  using OutputBatchType = typename AppliedTransform::OutputBatchType;
  MapDataset(SourceDataset dataset, AppliedTransform transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}
  OutputBatchType get_batch(BatchRequestType request) override {
    return transform_.apply_batch(dataset_.get_batch(std::move(request)));
  }
  std::optional<size_t> size() const noexcept override { return dataset_.size(); }
  const SourceDataset& dataset() noexcept { return dataset_; }
  const AppliedTransform& transform() noexcept { return transform_; }

 private:
  SourceDataset dataset_;
  AppliedTransform transform_;
};

// One set that its copies share, for sets that cost much to copy: threads that load call it at the
// same time.
template <class UnderlyingDataset>
class SharedBatchDataset : public BatchDataset<SharedBatchDataset<UnderlyingDataset>,
                                               typename UnderlyingDataset::BatchType,
                                               typename UnderlyingDataset::BatchRequestType> {
 public:
  using BatchType = typename UnderlyingDataset::BatchType;
  using BatchRequestType = typename UnderlyingDataset::BatchRequestType;
  SharedBatchDataset(std::shared_ptr<UnderlyingDataset> set) : set_(std::move(set)) {}
  BatchType get_batch(BatchRequestType request) override {
    return set_->get_batch(std::move(request));
  }
  std::optional<size_t> size() const override { return set_->size(); }
  UnderlyingDataset& operator*() { return *set_; }
  const UnderlyingDataset& operator*() const { return *set_; }
  UnderlyingDataset* operator->() { return set_.get(); }
  const UnderlyingDataset* operator->() const { return set_.get(); }
  void reset() {}

 private:
  std::shared_ptr<UnderlyingDataset> set_;
};
template <class UnderlyingDataset, class... Args>
SharedBatchDataset<UnderlyingDataset> make_shared_dataset(Args&&... args) {
  return std::make_shared<UnderlyingDataset>(std::forward<Args>(args)...);
}

// The entries of a tensor along its first dim.
struct TensorDataset : public Dataset<TensorDataset, TensorExample> {
  explicit TensorDataset(Tensor tensor) : tensor(std::move(tensor)) {}
  explicit TensorDataset(const std::vector<Tensor>& tensors) : tensor(stack(tensors)) {}
  TensorExample get(size_t index) override { return tensor[static_cast<int64_t>(index)]; }
  std::optional<size_t> size() const override { return static_cast<size_t>(tensor.size(0)); }
  Tensor tensor;
};

// Handwritten digits, from the four files of the set, unpacked, in one folder. Images are
// (1, 28, 28) of float between 0 and 1, targets int64. Error(Runtime) for files that are missing,
// of another kind or cut off.
class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override;
  bool is_train() const noexcept { return train_; }
  const Tensor& images() const { return images_; }    // (N, 1, 28, 28)
  const Tensor& targets() const { return targets_; }  // (N)

 private:
  bool train_;
  Tensor images_, targets_;
};

// Not here: sets that keep state between batches.
template <class... T>
class ChunkDataset {
  static_assert(sizeof...(T) < 0, "ChunkDataset is not in Flambeau; derive from StreamDataset");
};
template <class... T>
class StatefulDataset {
  static_assert(sizeof...(T) < 0, "StatefulDataset is not in Flambeau; derive from StreamDataset");
};

}  // namespace flambeau::data::datasets
