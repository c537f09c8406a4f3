#include "kernels/strided.h"

#include <limits>
#include <utility>

namespace flambeau::kernels {

LoopNest::LoopNest(const Ints& shape) {
  FB_CHECK(shape.size() <= size_t{kMaxDims}, "only tensors with up to ", kMaxDims,
           " dims are supported, got ", shape.size());
  ndim = static_cast<int>(shape.size());
  for (int d = 0; d < ndim; ++d) {
    sizes[d] = shape[ndim - 1 - d];
    dims[d] = ndim - 1 - d;
  }
  numel = checked_numel(shape);
}

void LoopNest::add(const Ints& own, const Ints& own_strides, int64_t itemsize) {
  int64_t* out = strides[operands++];
  int n = static_cast<int>(own.size());
  for (int d = 0; d < ndim; ++d) {
    int at = dims[d] - (ndim - n);
    bool walked = at >= 0 && (own[at] != 1 ||
                              sizes[d] == 1);  // the stride of a size-1 dim still tells its place
    if (!walked)
      out[d] = 0;
    else if (__builtin_mul_overflow(own_strides[at], itemsize, &out[d]))
      out[d] = std::numeric_limits<int64_t>::max();  // a dim of one entry, whose stride may be any
  }
}

namespace {
// Which of the dims a, b is to be walked faster: < 0: a, > 0: b, 0: no operand tells.
int compare(const LoopNest& nest, int a, int b) {
  for (int k = 0; k < nest.operands; ++k) {
    int64_t sa = nest.strides[k][a], sb = nest.strides[k][b];
    if (sa == 0 || sb == 0) continue;
    if (sa != sb) return sa < sb ? -1 : 1;
    if (nest.sizes[a] > nest.sizes[b]) return 1;
  }
  return 0;
}

void exchange(LoopNest& nest, int a, int b) {
  std::swap(nest.sizes[a], nest.sizes[b]);
  std::swap(nest.dims[a], nest.dims[b]);
  for (int k = 0; k < nest.operands; ++k) std::swap(nest.strides[k][a], nest.strides[k][b]);
}
}  // namespace

// Insertion sort: the relation is not transitive (broadcast dims compare equal to all), so the
// method is part of the rule. A dim moves past those that no operand can tell from it only to go
// before one that is slower.
void LoopNest::order() {
  for (int i = 1; i < ndim; ++i) {
    int moving = i;
    for (int j = i - 1; j >= 0; --j) {
      int c = compare(*this, j, moving);
      if (c < 0) break;
      if (c > 0) {
        exchange(*this, j, moving);
        moving = j;
      }
    }
  }
}

Ints LoopNest::dense_strides() const {
  Ints out(ndim);
  int64_t step = 1;
  for (int d = 0; d < ndim; ++d) {
    out[dims[d]] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return out;
}

void LoopNest::merge() {
  int kept = 0;
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == 1) continue;
    if (kept > 0) {
      bool joins = true;
      for (int k = 0; k < operands && joins; ++k)
        joins = strides[k][d] == strides[k][kept - 1] * sizes[kept - 1];
      if (joins) {
        sizes[kept - 1] *= sizes[d];
        continue;
      }
    }
    sizes[kept] = sizes[d];
    for (int k = 0; k < operands; ++k) strides[k][kept] = strides[k][d];
    ++kept;
  }
  if (kept == 0) {
    sizes[0] = 1;
    for (int k = 0; k < operands; ++k) strides[k][0] = 0;
    kept = 1;
  }
  ndim = kept;
}

Ints broadcast_all(const Tensor* const* tensors, int count) {
  Ints shape = tensors[0]->sizes();
  for (int i = 1; i < count; ++i)
    if (shape != tensors[i]->sizes()) shape = broadcast_shapes(shape, tensors[i]->sizes());
  return shape;
}

}  // namespace flambeau::kernels
