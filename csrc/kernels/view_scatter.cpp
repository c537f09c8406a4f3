// The transposes of views as operations of their own: a copy of a tensor in which what a view shows
// holds other values. Arguments have been checked by the entries (flambeau/ops/view_scatter.py).
#include <algorithm>

#include "gen/kernels.h"
#include "kernels/copy.h"

namespace flambeau::kernels {

namespace {
struct Place {
  Ints sizes, strides;
  int64_t offset;
  explicit Place(const Tensor& x) : sizes(x.sizes()), strides(x.strides()), offset(x.offset()) {}
  void drop(int64_t dim) {
    sizes.erase(&sizes[dim]);
    strides.erase(&strides[dim]);
  }
};

void put(Tensor& out, const Place& p, const Tensor& src) {
  copy(alias(out, p.sizes, p.strides, p.offset), src);
}

int64_t within(int64_t i, int64_t low, int64_t n) {
  return std::clamp<int64_t>(i < 0 ? i + n : i, low, n);
}
}  // namespace

void select_scatter(Tensor& out, const Tensor& input, const Tensor& src, int64_t dim,
                    int64_t index) {
  copy(out, input);
  Place p(out);
  int64_t d = wrap_dim(dim, out.dim());
  p.offset += (index < 0 ? index + p.sizes[d] : index) * p.strides[d];
  p.drop(d);
  put(out, p, src);
}

void slice_scatter(Tensor& out, const Tensor& input, const Tensor& src, int64_t dim,
                   std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  copy(out, input);
  Place p(out);
  int64_t d = wrap_dim(dim, out.dim()), n = p.sizes[d];
  int64_t first = within(start.value_or(0), 0, n), last = within(end.value_or(n), first, n);
  p.offset += first * p.strides[d];
  p.sizes[d] = (last - first + step - 1) / step;
  p.strides[d] *= step;
  put(out, p, src);
}

void diagonal_scatter(Tensor& out, const Tensor& input, const Tensor& src, int64_t offset,
                      int64_t dim1, int64_t dim2) {
  copy(out, input);
  if (src.numel() == 0) return;
  Place p(out);
  int64_t a = wrap_dim(dim1, out.dim()), b = wrap_dim(dim2, out.dim());
  p.offset += offset >= 0 ? offset * p.strides[b] : -offset * p.strides[a];
  int64_t step = p.strides[a] + p.strides[b];
  p.drop(std::max(a, b));
  p.drop(std::min(a, b));
  p.sizes.push_back(src.sizes().back());
  p.strides.push_back(step);
  put(out, p, src);
}

void as_strided_scatter(Tensor& out, const Tensor& input, const Tensor& src, const Ints& size,
                        const Ints& stride, std::optional<int64_t> storage_offset) {
  copy(out, input);
  Place p(out);
  p.offset += storage_offset.value_or(input.offset()) - input.offset();
  p.sizes = size;
  p.strides = stride;
  put(out, p, src);
}

}  // namespace flambeau::kernels
