// Pools: windows become axis maps (averages, see resample.h) or window axes (maxima, see
// max_pool.h).
#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/channels_last.h"
#include "kernels/copy.h"
#include "kernels/max_pool.h"
#include "kernels/upsample.h"

namespace flambeau::kernels {

WindowAxis regular_windows(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                           int64_t dilation) {
  WindowAxis a;
  a.in = in, a.out = out, a.step = dilation, a.stride = stride, a.pad = pad, a.size = kernel;
  for (int64_t o = 0; o < out; ++o) {
    int64_t from = o * stride - pad;
    const int64_t to = std::min(in, from + (kernel - 1) * dilation + 1);
    if (from < 0) from += (-from + dilation - 1) / dilation * dilation;
    a.from.push_back(from);
    a.to.push_back(to);
  }
  // The padded line must hold the last window that ceil_mode lets run over the end.
  a.pad = pad;
  return a;
}

WindowAxis adaptive_windows(int64_t in, int64_t out) {
  WindowAxis a;
  a.in = in, a.out = out;
  for (int64_t o = 0; o < out; ++o) {
    a.from.push_back(o * in / out);
    a.to.push_back(((o + 1) * in + out - 1) / out);
  }
  return a;
}

namespace {

struct Axes {
  WindowAxis a[3];
  int64_t count, planes = 1;
  Axes(const Ints& in, size_t axes) : count(static_cast<int64_t>(axes)) {
    for (WindowAxis& w : a) w.from = {0}, w.to = {1};
    for (size_t i = 0; i < in.size() - axes; ++i) planes *= in[i];
  }
};

Axes pool_axes(const Ints& in, const Ints& out, const Ints& kernel, const Ints& stride,
               const Ints& pad, const Ints& dilation) {
  const size_t n = kernel.size(), lead = in.size() - n;
  Axes axes(in, n);
  for (size_t i = 0; i < n; ++i)
    axes.a[3 - n + i] =
        regular_windows(in[lead + i], out[lead + i], kernel[i], stride[i], pad[i], dilation[i]);
  return axes;
}

Axes adaptive_axes(const Ints& in, const Ints& out, size_t n) {
  const size_t lead = in.size() - n;
  Axes axes(in, n);
  for (size_t i = 0; i < n; ++i) axes.a[3 - n + i] = adaptive_windows(in[lead + i], out[lead + i]);
  return axes;
}

DType pool_dtype(DType d) {
  return is_integral(d, true) ? DType::Int64 : d;
}

// Samples with their channels last, and enough channels to fill vectors; a volume without a
// dimension of samples has as many dimensions as an image with one.
bool is_last(const Tensor& x, int64_t axes) {
  return x.dim() == axes + 2 && is_channels_last(x) && x.sizes()[1] >= 8;
}

void run_max(Tensor* out, Tensor* indices, const Tensor& input, const Axes& axes) {
  const Tensor& any = out ? *out : *indices;
  if (any.numel() == 0) return;
  const DType d = pool_dtype(input.dtype());
  if (out && out->dtype() == d && input.dtype() == d && is_last(input, axes.count) &&
      is_last(*out, axes.count) && (!indices || is_last(*indices, axes.count)))
    return FB_ISA_DISPATCH(max_windows_last)(d, axes.a, input.sizes()[0], input.sizes()[1],
                                             input.data_ptr(), out->data_ptr(),
                                             indices ? indices->data<int64_t>() : nullptr);
  const Tensor x = contiguous(to_dtype(input, d));
  const bool direct = !out || (out->dtype() == d && out->is_contiguous());
  Tensor y;
  if (out) y = direct ? *out : empty(out->sizes(), d);
  Tensor at;
  if (indices) at = indices->is_contiguous() ? *indices : empty(indices->sizes(), DType::Int64);
  FB_ISA_DISPATCH(max_windows)
  (d, axes.a, axes.planes, x.data_ptr(), out ? y.data_ptr() : nullptr,
   indices ? at.data<int64_t>() : nullptr);
  if (!direct) copy(*out, y);
  if (indices && !at.is_same(*indices)) copy(*indices, at);
}

void run_max_backward(Tensor& out, const Tensor& grad, const Tensor& input, const Axes& axes) {
  if (out.numel() == 0) return;
  if (grad.numel() == 0) return fill_zero(out);
  const DType d = out.dtype();
  // Sums of many half-precision cotangents are made in float; the winners must be found in the
  // input's own dtype.
  const DType sum = is_reduced_float(d) ? DType::Float32 : pool_dtype(d);
  if (d == sum && input.dtype() == d && is_last(input, axes.count) && is_last(out, axes.count)) {
    const Tensor g = contiguous(grad, channels_last(out));
    fill_zero(out);
    return FB_ISA_DISPATCH(max_windows_last_backward)(d, axes.a, input.sizes()[0], input.sizes()[1],
                                                      input.data_ptr(), g.data_ptr(),
                                                      out.data_ptr());
  }
  const Tensor x = contiguous(to_dtype(input, sum)), g = contiguous(to_dtype(grad, sum));
  const bool direct = d == sum && out.is_contiguous();
  Tensor gx = direct ? out : empty(out.sizes(), sum);
  fill_zero(gx);
  FB_ISA_DISPATCH(max_windows_backward)
  (sum, axes.a, axes.planes, x.data_ptr(), g.data_ptr(), gx.data_ptr());
  if (!direct) copy(out, gx);
}

// One window of an average along an axis, and how many elements count in it.
struct Span {
  int64_t from, to, count;
  Span(int64_t o, int64_t in, int64_t kernel, int64_t stride, int64_t pad, bool count_pad) {
    const int64_t start = o * stride - pad, end = std::min(start + kernel, in + pad);
    from = std::max<int64_t>(0, start), to = std::min(end, in);
    count = count_pad ? end - start : to - from;
  }
};

// Average windows along one axis: 1 / (elements counted) each.
AxisMap average_map(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                    bool count_pad, bool plain) {
  std::vector<int64_t> first(out);
  std::vector<std::vector<double>> weights(out);
  for (int64_t o = 0; o < out; ++o) {
    const auto [from, to, count] = Span(o, in, kernel, stride, pad, count_pad);
    const double n = plain ? 1.0 : static_cast<double>(count);
    first[o] = std::clamp<int64_t>(from, 0, in - 1);
    weights[o].assign(std::max<int64_t>(1, to - from), to > from ? 1.0 / n : 0.0);
  }
  return make_axis_map(in, out, first, weights);
}

std::vector<AxisMap> average_maps(const Ints& in, const Ints& out, const Ints& kernel,
                                  const Ints& stride, const Ints& pad, bool count_pad,
                                  std::optional<int64_t> divisor) {
  std::vector<AxisMap> maps;
  const size_t n = kernel.size(), lead = in.size() - n;
  for (size_t i = 0; i < n; ++i)
    maps.push_back(average_map(in[lead + i], out[lead + i], kernel[i], stride[i], pad[i], count_pad,
                               divisor.has_value()));
  if (divisor) {
    maps.back().identity = false;
    for (double& w : maps.back().weights) w /= static_cast<double>(*divisor);
  }
  return maps;
}

// Averages of whole numbers: exact sums, each divided by its count and truncated.
void whole_averages(Tensor& out, const Tensor& input, const Ints& kernel, const Ints& stride,
                    const Ints& pad, bool count_pad, std::optional<int64_t> divisor) {
  Tensor sums = empty(out.sizes(), DType::Float64);
  apply_maps(sums, to_dtype(input, DType::Float64),
             average_maps(input.sizes(), out.sizes(), kernel, stride, pad, count_pad, 1));
  double* v = sums.data<double>();
  const int64_t n = static_cast<int64_t>(kernel.size()), lead = out.dim() - n;
  for (int64_t i = 0; i < sums.numel(); ++i) {
    int64_t count = 1;
    for (int64_t a = n - 1, left = i; a >= 0; --a) {
      const int64_t size = out.sizes()[lead + a], o = left % size;
      left /= size;
      count *= Span(o, input.sizes()[lead + a], kernel[a], stride[a], pad[a], count_pad).count;
    }
    v[i] = std::trunc(v[i] / static_cast<double>(divisor.value_or(count)));
  }
  copy(out, sums);
}

std::vector<AxisMap> adaptive_maps(const Ints& in, const Ints& out, int64_t n) {
  std::vector<AxisMap> maps;
  for (size_t i = in.size() - n; i < in.size(); ++i) {
    const WindowAxis a = adaptive_windows(in[i], out[i]);
    std::vector<std::vector<double>> weights;
    for (int64_t o = 0; o < a.out; ++o)
      weights.emplace_back(a.to[o] - a.from[o], 1.0 / static_cast<double>(a.to[o] - a.from[o]));
    maps.push_back(make_axis_map(in[i], out[i], a.from, weights));
  }
  return maps;
}

void apply_transposed(Tensor& out, const Tensor& grad, std::vector<AxisMap> maps) {
  if (out.numel() == 0) return;
  if (grad.numel() == 0) return fill_zero(out);
  for (AxisMap& m : maps) m = transposed(m);
  apply_maps(out, grad, maps);
}

}  // namespace

void max_pool(Tensor& out, const Tensor& input, const Ints& kernel, const Ints& stride,
              const Ints& pad, const Ints& dilation, bool) {
  run_max(&out, nullptr, input,
          pool_axes(input.sizes(), out.sizes(), kernel, stride, pad, dilation));
}

void max_pool_both(Tensor& out, Tensor& indices, const Tensor& input, const Ints& kernel,
                   const Ints& stride, const Ints& pad, const Ints& dilation, bool) {
  run_max(&out, &indices, input,
          pool_axes(input.sizes(), out.sizes(), kernel, stride, pad, dilation));
}

void max_pool_backward(Tensor& out, const Tensor& grad, const Tensor& input, const Ints& kernel,
                       const Ints& stride, const Ints& pad, const Ints& dilation, bool) {
  run_max_backward(out, grad, input,
                   pool_axes(input.sizes(), grad.sizes(), kernel, stride, pad, dilation));
}

void adaptive_max_both(Tensor& out, Tensor& indices, const Tensor& input, const Ints& size) {
  run_max(&out, &indices, input, adaptive_axes(input.sizes(), out.sizes(), size.size()));
}

namespace {

// Adds the gradients of image after image, whose channels lie last, at indices in the planes.
void scatter_last(Tensor& out, const Tensor& grad, const Tensor& at) {
  const int64_t images = out.sizes()[0], channels = out.sizes()[1];
  const int64_t size = out.numel() / images, n = grad.numel() / images;
  fill_zero(out);
  visit(out.dtype(), [&]<class T>() {
    parallel_for(0, images, std::max<int64_t>(1, kGrain / (n + 1)), [&](int64_t from, int64_t end) {
      for (int64_t p = from; p < end; ++p) {
        const int64_t* i = at.data<int64_t>() + p * n;
        const T* v = grad.data<T>() + p * n;
        T* image = out.data<T>() + p * size;
        for (int64_t first = 0; first < n; first += channels)
          for (int64_t c = 0; c < channels; ++c) {
            const int64_t place = i[first + c];
            FB_CHECK(place >= 0 && place * channels < size,
                     "max_unpool: Found an invalid max index: ", place,
                     " (output volumes are of size ", size / channels, ")");
            T& target = image[place * channels + c];
            target = static_cast<T>(static_cast<Wrapping<T>>(target) +
                                    static_cast<Wrapping<T>>(v[first + c]));
          }
      }
    });
  });
}

}  // namespace

void plane_scatter(Tensor& out, const Tensor& grad, const Tensor& at, const Ints&, int64_t axes) {
  if (out.numel() == 0) return;
  const DType d = opmath(out.dtype());
  if (out.dtype() == d && grad.dtype() == d && is_last(out, axes) && is_last(at, axes))
    return scatter_last(out, contiguous(grad, channels_last(out)), at);
  const bool direct = out.dtype() == d && out.is_contiguous();
  const Tensor to = direct ? out : empty(out.sizes(), d);
  fill_zero(to);
  int64_t planes = 1, size = 1;
  for (int64_t i = 0; i < out.dim(); ++i) (i < out.dim() - axes ? planes : size) *= out.sizes()[i];
  const int64_t n = planes ? grad.numel() / planes : 0;
  const Tensor g = contiguous(to_dtype(grad, d)), index = contiguous(at);
  visit(d, [&]<class T>() {
    parallel_for(0, planes, std::max<int64_t>(1, kGrain / (n + 1)), [&](int64_t from, int64_t end) {
      for (int64_t p = from; p < end; ++p) {
        const int64_t* i = index.data<int64_t>() + p * n;
        const T* v = g.data<T>() + p * n;
        T* plane = to.data<T>() + p * size;
        for (int64_t j = 0; j < n; ++j) {
          FB_CHECK(i[j] >= 0 && i[j] < size, "max_unpool: Found an invalid max index: ", i[j],
                   " (output volumes are of size ", size, ")");
          plane[i[j]] = static_cast<T>(plane[i[j]] + v[j]);
        }
      }
    });
  });
  if (!direct) copy(out, to);
}

void avg_pool(Tensor& out, const Tensor& input, const Ints& kernel, const Ints& stride,
              const Ints& pad, bool, bool count_include_pad, std::optional<int64_t> divisor) {
  if (out.numel() == 0) return;
  if (out.dtype() == DType::Int64)
    return whole_averages(out, input, kernel, stride, pad, count_include_pad, divisor);
  apply_maps(
      out, input,
      average_maps(input.sizes(), out.sizes(), kernel, stride, pad, count_include_pad, divisor));
}

void avg_pool_backward(Tensor& out, const Tensor& grad, const Ints&, const Ints& kernel,
                       const Ints& stride, const Ints& pad, bool, bool count_include_pad,
                       std::optional<int64_t> divisor) {
  if (out.numel() == 0 || grad.numel() == 0) return fill_zero(out);
  apply_transposed(
      out, grad,
      average_maps(out.sizes(), grad.sizes(), kernel, stride, pad, count_include_pad, divisor));
}

void adaptive_avg(Tensor& out, const Tensor& input, const Ints& size) {
  if (out.numel() == 0) return;
  apply_maps(out, input,
             adaptive_maps(input.sizes(), out.sizes(), static_cast<int64_t>(size.size())));
}

void adaptive_avg_backward(Tensor& out, const Tensor& grad, const Ints&, int64_t axes) {
  if (out.numel() == 0 || grad.numel() == 0) return fill_zero(out);
  apply_transposed(out, grad, adaptive_maps(out.sizes(), grad.sizes(), axes));
}

}  // namespace flambeau::kernels
