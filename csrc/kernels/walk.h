// Walks over index spaces: offsets of all positions of some dims, and a byte-wise element type,
// shared by kernels that move data without arithmetic.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace flambeau::kernels {

// Offsets (in elements) of every position of the dims [from, to), row-major.
inline std::vector<int64_t> offsets(const Ints& sizes, const Ints& strides, size_t from,
                                    size_t to) {
  std::vector<int64_t> out{0};
  for (size_t d = from; d < to; ++d) {
    std::vector<int64_t> next;
    next.reserve(out.size() * sizes[d]);
    for (int64_t base : out)
      for (int64_t i = 0; i < sizes[d]; ++i) next.push_back(base + i * strides[d]);
    out.swap(next);
  }
  return out;
}

struct Bytes16 {
  uint64_t lo, hi;
};

// Calls f.operator()<U>() with an unsigned type as wide as the elements of d.
template <class F>
decltype(auto) visit_bytes(DType d, F&& f) {
  switch (itemsize(d)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Bytes16>();
  }
}

// A tensor seen as A x n x B around dim `dim`: offsets before, the dim itself, offsets after.
struct Around {
  std::vector<int64_t> before, after;
  int64_t size, stride;
  Around(const Tensor& t, int64_t dim)
      : before(t.dim() ? offsets(t.sizes(), t.strides(), 0, dim) : std::vector<int64_t>{0}),
        after(t.dim() ? offsets(t.sizes(), t.strides(), dim + 1, t.dim())
                      : std::vector<int64_t>{0}),
        size(t.dim() ? t.sizes()[dim] : 1),
        stride(t.dim() ? t.strides()[dim] : 1) {}
};

}  // namespace flambeau::kernels
