// Types of results by PyTorch's rule. Tensors fall into three ranks: with dimensions, 0-d, and
// Python scalars. A lower rank changes the result only when its class (bool, integer, float,
// complex) is above that of the ranks before it.
#pragma once

#include "core/tensor.h"

namespace flambeau {

// Collects operands one by one.
class ResultType {
 public:
  void add(const Tensor& x);
  void add(const Scalar& x);
  DType get() const;

 private:
  void note(int rank, DType d);
  bool seen_[3] = {false, false, false};
  DType best_[3] = {DType::Bool, DType::Bool, DType::Bool};  // with dimensions, 0-d, Python scalars
};

template <class A, class B>
DType result_type(const A& a, const B& b) {
  ResultType t;
  t.add(a);
  t.add(b);
  return t.get();
}
DType result_type(const Tensors& xs);

// May values of one type be stored in another in place? Not to a lower class (float to int, int to
// bool).
bool can_cast(DType from, DType to);

}  // namespace flambeau
