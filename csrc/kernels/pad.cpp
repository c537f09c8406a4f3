// Padding and columns of windows. Everything here moves elements or adds them: no arithmetic
// besides sums.
#include <algorithm>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"
#include "kernels/walk.h"

namespace flambeau::kernels {
namespace {

// Counts (before, after) of dim i of a tensor with `ndim` dims; `pad` lists the last dim first.
std::pair<int64_t, int64_t> pad_of(const Ints& pad, int64_t ndim, int64_t i) {
  const size_t j = 2 * static_cast<size_t>(ndim - 1 - i);
  return j + 1 < pad.size() ? std::pair{pad[j], pad[j + 1]} : std::pair<int64_t, int64_t>{0, 0};
}

// Where along an axis each position of the padded tensor is read.
std::vector<int64_t> sources(int64_t in, int64_t before, int64_t out, const std::string& mode) {
  std::vector<int64_t> at(out);
  for (int64_t o = 0; o < out; ++o) {
    int64_t i = o - before;
    if (mode == "replicate")
      i = std::clamp<int64_t>(i, 0, in - 1);
    else if (mode == "circular")
      i = ((i % in) + in) % in;
    else
      i = i < 0 ? -i : i >= in ? 2 * (in - 1) - i : i;
    at[o] = std::clamp<int64_t>(i, 0, in - 1);
  }
  return at;
}

// The last three axes of a padded tensor, shorter ones filled with ones.
struct PadPlan {
  int64_t planes = 1, in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  std::vector<int64_t> at[3];
  PadPlan(const Ints& input, const Ints& output, const Ints& pad, const std::string& mode) {
    const int64_t n = static_cast<int64_t>(pad.size()) / 2,
                  ndim = static_cast<int64_t>(input.size());
    for (int64_t i = 0; i < ndim - n; ++i) planes *= input[i];
    for (int64_t a = 0; a < 3 - n; ++a) at[a] = {0};
    for (int64_t i = ndim - n; i < ndim; ++i) {
      const int64_t a = 3 - (ndim - i);
      in[a] = input[i], out[a] = output[i];
      at[a] = sources(in[a], pad_of(pad, ndim, i).first, out[a], mode);
    }
  }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
};

// Calls f(plane of the input, row of the input in it, row of the output) for every output row,
// planes in parallel.
template <class F>
void pad_rows(const PadPlan& p, const F& f) {
  parallel_for(0, p.planes, std::max<int64_t>(1, kGrain / (p.out_size() + 1)),
               [&](int64_t from, int64_t to) {
                 for (int64_t n = from; n < to; ++n)
                   for (int64_t z = 0; z < p.out[0]; ++z)
                     for (int64_t y = 0; y < p.out[1]; ++y)
                       f(n * p.in_size() + (p.at[0][z] * p.in[1] + p.at[1][y]) * p.in[2],
                         n * p.out_size() + (z * p.out[1] + y) * p.out[2]);
               });
}

// Geometry of im2col: positions of the windows.
struct Windows {
  int64_t channels, size[2], count[2], kernel[2], stride[2], pad[2], dilation[2];
  Windows(int64_t channels, const Ints& size_, const Ints& kernel_, const Ints& dilation_,
          const Ints& pad_, const Ints& stride_)
      : channels(channels) {
    for (int a = 0; a < 2; ++a) {
      size[a] = size_[a], kernel[a] = kernel_[a], stride[a] = stride_[a], pad[a] = pad_[a],
      dilation[a] = dilation_[a];
      count[a] = (size[a] + 2 * pad[a] - dilation[a] * (kernel[a] - 1) - 1) / stride[a] + 1;
    }
  }
  // Calls f(index in the columns, index in the image) for one channel of one image; -1 for the
  // padding.
  template <class F>
  void each(const F& f) const {
    int64_t column = 0;
    for (int64_t ky = 0; ky < kernel[0]; ++ky)
      for (int64_t kx = 0; kx < kernel[1]; ++kx)
        for (int64_t y = 0; y < count[0]; ++y)
          for (int64_t x = 0; x < count[1]; ++x, ++column) {
            const int64_t iy = y * stride[0] - pad[0] + ky * dilation[0],
                          ix = x * stride[1] - pad[1] + kx * dilation[1];
            f(column, iy >= 0 && iy < size[0] && ix >= 0 && ix < size[1] ? iy * size[1] + ix : -1);
          }
  }
  int64_t columns() const { return kernel[0] * kernel[1] * count[0] * count[1]; }
  int64_t pixels() const { return size[0] * size[1]; }
};

Tensor dense_or_new(const Tensor& out) {
  return out.is_contiguous() ? out : empty(out.sizes(), out.dtype());
}
void put_back(const Tensor& out, const Tensor& made) {
  if (!made.is_same(out)) copy(out, made);
}

}  // namespace

void constant_pad(Tensor& out, const Tensor& input, const Ints& pad, const Scalar& value) {
  Ints sizes = input.sizes();
  int64_t from = input.offset(), to = out.offset();
  bool whole = true;
  for (int64_t i = 0; i < input.dim(); ++i) {
    const auto [before, after] = pad_of(pad, input.dim(), i);
    if (before < 0)
      from -= before * input.strides()[i];
    else
      to += before * out.strides()[i];
    sizes[i] += std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    if (before > 0 || after > 0) whole = false;
    if (sizes[i] <= 0) return fill(out, value);
  }
  if (!whole) fill(out, value);
  if (out.numel() && input.numel())
    copy(alias(out, sizes, out.strides(), to), alias(input, sizes, input.strides(), from));
}

void index_pad(Tensor& out, const Tensor& input, const Ints& pad, const std::string& mode) {
  if (out.numel() == 0) return;
  const PadPlan p(input.sizes(), out.sizes(), pad, mode);
  const Tensor x = contiguous(input), y = dense_or_new(out);
  visit_bytes(out.dtype(), [&]<class U>() {
    const U* from = x.data<U>();
    U* to = y.data<U>();
    const int64_t* at = p.at[2].data();
    pad_rows(p, [&](int64_t in_row, int64_t out_row) {
      for (int64_t i = 0; i < p.out[2]; ++i) to[out_row + i] = from[in_row + at[i]];
    });
  });
  put_back(out, y);
}

void index_pad_backward(Tensor& out, const Tensor& grad, const Ints&, const Ints& pad,
                        const std::string& mode) {
  if (out.numel() == 0) return;
  const DType d = opmath(out.dtype());
  const PadPlan p(out.sizes(), grad.sizes(), pad, mode);
  const Tensor g = contiguous(to_dtype(grad, d));
  const bool direct = out.dtype() == d && out.is_contiguous();
  const Tensor y = direct ? out : empty(out.sizes(), d);
  fill_zero(y);
  visit(d, [&]<class T>() {
    const T* from = g.data<T>();
    T* to = y.data<T>();
    const int64_t* at = p.at[2].data();
    pad_rows(p, [&](int64_t in_row, int64_t out_row) {
      for (int64_t i = 0; i < p.out[2]; ++i)
        to[in_row + at[i]] = static_cast<T>(to[in_row + at[i]] + from[out_row + i]);
    });
  });
  if (!direct) copy(out, y);
}

void im2col(Tensor& out, const Tensor& input, const Ints& kernel, const Ints& dilation,
            const Ints& padding, const Ints& stride) {
  if (out.numel() == 0) return;
  const Windows w(input.sizes()[1], {input.sizes()[2], input.sizes()[3]}, kernel, dilation, padding,
                  stride);
  const Tensor x = contiguous(input), y = dense_or_new(out);
  visit(out.dtype(), [&]<class T>() {
    parallel_for(0, input.sizes()[0] * w.channels, std::max<int64_t>(1, kGrain / w.columns()),
                 [&](int64_t a, int64_t b) {
                   for (int64_t c = a; c < b; ++c) {
                     const T* from = x.data<T>() + c * w.pixels();
                     T* to = y.data<T>() + c * w.columns();
                     w.each([&](int64_t column, int64_t pixel) {
                       to[column] = pixel < 0 ? T() : from[pixel];
                     });
                   }
                 });
  });
  put_back(out, y);
}

void col2im(Tensor& out, const Tensor& input, const Ints& size, const Ints& kernel,
            const Ints& dilation, const Ints& padding, const Ints& stride) {
  if (out.numel() == 0) return;
  const Windows w(out.sizes()[1], size, kernel, dilation, padding, stride);
  const DType d = opmath(out.dtype());
  const Tensor x = contiguous(to_dtype(input, d));
  const bool direct = out.dtype() == d && out.is_contiguous();
  const Tensor y = direct ? out : empty(out.sizes(), d);
  fill_zero(y);
  visit(d, [&]<class T>() {
    parallel_for(0, out.sizes()[0] * w.channels, std::max<int64_t>(1, kGrain / w.columns()),
                 [&](int64_t a, int64_t b) {
                   for (int64_t c = a; c < b; ++c) {
                     const T* from = x.data<T>() + c * w.columns();
                     T* to = y.data<T>() + c * w.pixels();
                     w.each([&](int64_t column, int64_t pixel) {
                       if (pixel >= 0) to[pixel] = static_cast<T>(to[pixel] + from[column]);
                     });
                   }
                 });
  });
  if (!direct) copy(out, y);
}

}  // namespace flambeau::kernels
