#include "gen/kernels.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "kernels/copy.h"
#include "kernels/walk.h"

namespace flambeau::kernels {

void cat(Tensor& out, const Tensors& tensors, int64_t dim) {
  int64_t d = wrap_dim(dim, out.dim()), at = 0;
  for (const Tensor& t : tensors) {
    if (t.dim() == 1 && t.size(0) == 0) continue;
    if (t.numel()) {
      Tensor part = alias(out, t.sizes(), out.strides(), out.offset() + at * out.strides()[d]);
      copy(part, t);
    }
    at += t.sizes()[d];
  }
}

// Reversal is a copy from a place with negative strides: line by line, the last dim inside.
void flip(Tensor& out, const Tensor& input, const Ints& dims) {
  int64_t n = input.dim();
  if (n == 0 || input.numel() == 0) return copy(out, input);
  Ints strides = input.strides();
  int64_t start = 0;
  for (int64_t d : wrap_dims(dims, n)) {
    start += (input.sizes()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  auto from = offsets(input.sizes(), strides, 0, n - 1),
       to = offsets(out.sizes(), out.strides(), 0, n - 1);
  int64_t len = input.sizes()[n - 1], si = strides[n - 1], so = out.strides()[n - 1];
  visit_bytes(input.dtype(), [&]<class U>() {
    const U* in = input.data<U>() + start;
    U* o = out.data<U>();
    parallel_for(0, static_cast<int64_t>(from.size()), std::max<int64_t>(1, kGrain / len),
                 [&](int64_t a, int64_t b) {
                   for (int64_t r = a; r < b; ++r) {
                     const U* x = in + from[r];
                     U* y = o + to[r];
                     if (si == 1 && so == 1)
                       std::memcpy(static_cast<void*>(y), x, len * sizeof(U));
                     else if (si == -1 && so == 1)
                       for (int64_t i = 0; i < len; ++i) y[i] = x[-i];
                     else
                       for (int64_t i = 0; i < len; ++i) y[i * so] = x[i * si];
                   }
                 });
  });
}

// Each rolled dim cuts the tensor in two parts that change places.
void roll(Tensor& out, const Tensor& input, const Ints& shifts, const std::optional<Ints>& along) {
  if (input.numel() == 0) return;
  const Ints dims = along.value_or(Ints{});
  if (dims.empty()) {
    Tensor flat = contiguous(input);
    int64_t n = input.numel();
    Tensor line = alias(flat, {n}, {1}, flat.offset());
    Tensor rows = out.is_contiguous() ? out : empty(out.sizes(), out.dtype());
    Tensor target = alias(rows, {n}, {1}, rows.offset());
    roll(target, line, shifts, Ints{0});
    if (!rows.is_same(out)) copy(out, rows);
    return;
  }
  Tensor from = input;
  for (size_t k = 0; k < dims.size(); ++k) {
    int64_t d = wrap_dim(dims[k], input.dim());
    Tensor to = k + 1 == dims.size() ? out : empty(input.sizes(), input.dtype());
    if (input.dim() == 0) {
      copy(to, from);
    } else {
      int64_t n = input.sizes()[d], s = ((shifts[k] % n) + n) % n;
      auto move = [&](int64_t source, int64_t target, int64_t count) {
        if (!count) return;
        Ints sizes = input.sizes();
        sizes[d] = count;
        Tensor x = alias(from, sizes, from.strides(), from.offset() + source * from.strides()[d]);
        Tensor y = alias(to, sizes, to.strides(), to.offset() + target * to.strides()[d]);
        copy(y, x);
      };
      move(0, s, n - s);
      move(n - s, 0, s);
    }
    from = to;
  }
}

namespace {
// Keeps the columns [first(row), last(row)) of each row and clears the others.
template <class Keep>
void triangle(Tensor& out, const Tensor& input, const Keep& keep) {
  if (input.numel() == 0) return;
  int64_t n = input.dim(), rows = input.sizes()[n - 2], cols = input.sizes()[n - 1];
  auto from = offsets(input.sizes(), input.strides(), 0, n - 1),
       to = offsets(out.sizes(), out.strides(), 0, n - 1);
  int64_t si = input.strides()[n - 1], so = out.strides()[n - 1];
  visit_bytes(input.dtype(), [&]<class U>() {
    const U* in = input.data<U>();
    U* o = out.data<U>();
    parallel_for(0, static_cast<int64_t>(from.size()), std::max<int64_t>(1, kGrain / cols),
                 [&](int64_t a, int64_t b) {
                   for (int64_t r = a; r < b; ++r) {
                     auto [first, last] = keep(r % rows, cols);
                     const U* x = in + from[r];
                     U* y = o + to[r];
                     for (int64_t j = 0; j < first; ++j) y[j * so] = U{};
                     for (int64_t j = first; j < last; ++j) y[j * so] = x[j * si];
                     for (int64_t j = last; j < cols; ++j) y[j * so] = U{};
                   }
                 });
  });
}
int64_t clamped(int64_t row, int64_t shift, int64_t cols) {
  int64_t j;
  if (__builtin_add_overflow(row, shift, &j)) j = shift > 0 ? cols : 0;
  return std::clamp<int64_t>(j, 0, cols);
}
}  // namespace

void tril(Tensor& out, const Tensor& input, int64_t diagonal) {
  triangle(out, input, [=](int64_t row, int64_t cols) {
    return std::pair(int64_t{0}, clamped(row + 1, diagonal, cols));
  });
}

void triu(Tensor& out, const Tensor& input, int64_t diagonal) {
  triangle(out, input, [=](int64_t row, int64_t cols) {
    return std::pair(clamped(row, diagonal, cols), cols);
  });
}

Tensor repeat_indices(const Tensor& repeats, std::optional<int64_t> output_size) {
  Tensor counts = contiguous(to_dtype(repeats, DType::Int64));
  const int64_t* c = counts.data<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    FB_CHECK(c[i] >= 0, "repeats can not be negative");
    FB_CHECK(!__builtin_add_overflow(total, c[i], &total),
             "repeat_interleave: the sum of repeats overflows");
  }
  FB_CHECK(!output_size || *output_size == total,
           "repeat_interleave: allocated size does not match required size: output_size is ",
           output_size.value_or(0), ", repeats sum to ", total);
  Tensor out = empty({total}, DType::Int64);
  int64_t* o = out.data<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i) o = std::fill_n(o, c[i], i);
  return out;
}

}  // namespace flambeau::kernels
