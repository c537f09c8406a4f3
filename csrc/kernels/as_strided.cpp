// Cotangent of the input of as_strided. The view and the input are two geometries over one memory:
// what the view's elements received is summed per place in memory, and read back through the
// input's geometry. Elements of the input that share a place share its sum evenly.
#include <algorithm>
#include <vector>

#include "gen/kernels.h"
#include "kernels/copy.h"

namespace flambeau::kernels {

namespace {

// Calls f(position in memory, position in row-major order) for every element of a geometry.
template <class F>
void each(const Ints& sizes, const Ints& strides, int64_t offset, const F& f) {
  int64_t numel = 1;
  for (int64_t n : sizes) numel *= n;
  if (numel == 0) return;
  std::vector<int64_t> index(sizes.size(), 0);
  int64_t at = offset;
  for (int64_t k = 0; k < numel; ++k) {
    f(at, k);
    for (size_t d = sizes.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < sizes[d]) break;
      at -= strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

int64_t end_of(const Ints& sizes, const Ints& strides, int64_t offset) {
  int64_t last = offset;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return offset;
    last += (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}

// Surely no two elements in one place: sorted by stride, each dim starts where those before it end.
bool distinct(const Ints& sizes, const Ints& strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) dims.emplace_back(strides[d], sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 1;
  for (auto [stride, size] : dims) {
    if (stride < reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

template <class T>
void add_up(Tensor& out, const Tensor& g, const Ints& in_sizes, const Ints& in_strides,
            int64_t in_offset, const Ints& sizes, const Ints& strides, int64_t offset) {
  using Sum = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;
  int64_t from = std::min(in_offset, offset);
  int64_t to = std::max(end_of(in_sizes, in_strides, in_offset), end_of(sizes, strides, offset));
  std::vector<Sum> memory(to - from, Sum(0));
  const T* given = g.data<T>();
  each(sizes, strides, offset,
       [&](int64_t at, int64_t k) { memory[at - from] += static_cast<Sum>(given[k]); });
  std::vector<int64_t> sharers;
  if (!distinct(in_sizes, in_strides)) {
    sharers.assign(memory.size(), 0);
    each(in_sizes, in_strides, in_offset, [&](int64_t at, int64_t) { ++sharers[at - from]; });
  }
  T* result = out.data<T>();
  each(in_sizes, in_strides, in_offset, [&](int64_t at, int64_t k) {
    Sum sum = memory[at - from];
    if (!sharers.empty()) sum /= static_cast<Sum>(sharers[at - from]);
    result[k] = static_cast<T>(sum);
  });
}

}  // namespace

void as_strided_backward(Tensor& out, const Tensor& g, const Ints& input_size,
                         const Ints& input_stride, int64_t input_offset, const Ints& size,
                         const Ints& stride, int64_t offset) {
  bool inside = offset >= input_offset &&
                end_of(size, stride, offset) <= end_of(input_size, input_stride, input_offset);
  if (inside && out.is_contiguous() && input_stride == out.strides() && distinct(size, stride)) {
    fill_zero(out);
    if (g.numel()) copy(alias(out, size, stride, offset - input_offset), g);
    return;
  }
  Tensor dense = contiguous(g);
  visit(g.dtype(), [&]<class T>() {
    if constexpr (is_truth<T>)
      fail(ErrorKind::Runtime, "as_strided_backward: no gradients of bool");
    else
      add_up<T>(out, dense, input_size, input_stride, input_offset, size, stride, offset);
  });
}

}  // namespace flambeau::kernels
