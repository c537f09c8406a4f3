// LoopNest: the joint walk over tensors of one broadcast shape. Owns the order of dims (PyTorch's
// rule, so that results get the layout PyTorch gives them) and the merging of dims. Knows no
// element type and no operation.
#pragma once

#include "core/tensor.h"

namespace flambeau::kernels {

inline constexpr int kMaxOperands = 10, kMaxDims = 64;

struct LoopNest {
  int ndim = 0, operands = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxDims];                  // after order(): dim 0 is walked fastest
  int64_t strides[kMaxOperands][kMaxDims];  // in bytes; 0 where broadcast
  int dims[kMaxDims];                       // which dim of the shape each one is, until merge()

  explicit LoopNest(const Ints& shape);  // dims in reverse: the last of the shape is dim 0
  // Adds a tensor that broadcasts to the shape; before merge().
  void add(const Tensor& t) { add(t.sizes(), t.strides(), t.itemsize()); }
  void add(const Ints& sizes, const Ints& strides, int64_t itemsize);
  // Sorts dims by the operands' strides; earlier operands decide.
  void order();
  // Strides, by the shape's dims, of a dense tensor laid out in the nest's order.
  Ints dense_strides() const;
  // Joins neighbouring dims that every operand walks as one; drops dims of size 1.
  void merge();
  // Byte offset of operand k at position `index` of the dims [from, ndim), counted with `from`
  // fastest.
  int64_t offset(int k, int from, int64_t index) const {
    int64_t total = 0;
    for (int d = from; d < ndim && index; ++d) {
      int64_t next = index / sizes[d];
      total += (index - next * sizes[d]) * strides[k][d];
      index = next;
    }
    return total;
  }
};

// Shape that all broadcast to; Error(Runtime) as broadcast_shapes words it.
Ints broadcast_all(const Tensor* const* tensors, int count);

}  // namespace flambeau::kernels
