#include "gen/kernels.h"

#include "core/parallel.h"
#include "kernels/channels_last.h"
#include "kernels/conv_taps.h"
#include "kernels/copy.h"
#include "kernels/providers/blas.h"
#include "kernels/providers/onednn.h"
#include "kernels/winograd.h"

namespace flambeau::kernels {
namespace {

ConvGeometry geometry(const Ints& input, const Ints& weight, const Ints& output, const Ints& stride,
                      const Ints& padding, const Ints& dilation, int64_t groups) {
  ConvGeometry g{};
  g.batch = input[0], g.groups = groups, g.ci = input[1] / groups, g.co = output[1] / groups;
  const int64_t axes = static_cast<int64_t>(input.size()) - 2, lead = 3 - axes;
  for (int64_t a = 0; a < 3; ++a) {
    const bool real = a >= lead;
    const int64_t i = a - lead;
    g.in[a] = real ? input[i + 2] : 1;
    g.out[a] = real ? output[i + 2] : 1;
    g.kernel[a] = real ? weight[i + 2] : 1;
    g.stride[a] = real ? stride[i] : 1;
    g.pad[a] = real ? padding[i] : 0;
    g.dilation[a] = real ? dilation[i] : 1;
  }
  return g;
}

// The dtype that computes for d.
DType working_dtype(DType d) {
  return is_reduced_float(d) ? DType::Float32 : is_integral(d, true) ? DType::Int64 : d;
}

Tensor real_part(const Tensor& x, int part) {
  const DType real = to_real(x.dtype());
  Ints strides = x.strides();
  for (int64_t& s : strides) s *= 2;
  return contiguous(alias_as(x, real, x.sizes(), strides, 2 * x.offset() + part));
}

// out = map(a, b), for a bilinear map of dense tensors of a working dtype.
template <class F>
void bilinear(Tensor& out, const Tensor& a, const Tensor& b, const OptTensor& bias, const F& map) {
  const DType d = working_dtype(out.dtype());
  if (!is_complex(d)) {
    const Tensor x = contiguous(to_dtype(a, d)), y = contiguous(to_dtype(b, d));
    Tensor shift;
    if (bias) shift = contiguous(to_dtype(*bias, d));
    const bool direct = out.dtype() == d && out.is_contiguous();
    Tensor to = direct ? out : empty(out.sizes(), d);
    map(d, to, x, y, bias ? shift.data_ptr() : nullptr);
    if (!direct) copy(out, to);
    return;
  }
  const DType real = to_real(d);
  for (int part = 0; part < 2; ++part) {
    // re = re re - im im, im = re im + im re; the second product is added by hand.
    Tensor first = empty(out.sizes(), real), second = empty(out.sizes(), real);
    Tensor shift;
    if (bias) shift = real_part(*bias, part);
    map(real, first, real_part(a, 0), real_part(b, part), bias ? shift.data_ptr() : nullptr);
    map(real, second, real_part(a, 1), real_part(b, 1 - part), nullptr);
    visit(real, [&]<class T>() {
      if constexpr (std::is_floating_point_v<T>) {
        T* x = first.data<T>();
        const T* y = second.data<T>();
        for (int64_t i = 0; i < first.numel(); ++i) x[i] = part ? x[i] + y[i] : x[i] - y[i];
      }
    });
    Ints strides = out.strides();
    for (int64_t& s : strides) s *= 2;
    copy(alias_as(out, real, out.sizes(), strides, 2 * out.offset() + part), first);
  }
}

// Where oneDNN is faster than the loops of our own (docs/design/performance.md): over many
// channels, and wherever channels lie last, which our own loops do not know.
bool provider_pays(const ConvGeometry& g, bool last) {
  const double work = static_cast<double>(g.batch * g.groups * g.ci * g.co) *
                      static_cast<double>(g.taps() * g.out_size());
  if (last) return work >= (1 << 18);
  const bool image =
      g.groups == 1 && g.taps() > 1 && g.co >= 16;  // of few channels, as first layers take
  return work >= (1 << 21) && ((g.ci >= 8 && g.co >= 8) || image);
}

// The gradient of a weight as one product of matrices, over patches of the input. Right where there
// are few positions: oneDNN has little to share among threads then, and moves the weight about.
bool weight_by_patches(Tensor& out, const Tensor& grad, const Tensor& input, const Ints& stride,
                       const Ints& padding, const Ints& dilation, const ConvGeometry& g) {
  if (input.dim() != 4 || g.groups != 1 || g.out_size() > 16 || g.co < 64 || g.ci * g.taps() < 256)
    return false;
  const int64_t places = g.batch * g.out_size(), row = g.ci * g.taps();
  const Tensor y = contiguous(grad, MemoryFormat::ChannelsLast);
  const Tensor patches = empty({places, row}, DType::Float32);
  const float* x = input.data<float>();
  float* p = patches.data<float>();
  const Ints at = input.strides();
  parallel_for(0, places, std::max<int64_t>(1, kGrain / row), [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const int64_t n = i / g.out_size(), oy = i % g.out_size() / g.out[2], ox = i % g.out[2];
      for (int64_t ky = 0; ky < g.kernel[1]; ++ky)
        for (int64_t kx = 0; kx < g.kernel[2]; ++kx) {
          const int64_t iy = oy * stride[0] - padding[0] + ky * dilation[0];
          const int64_t ix = ox * stride[1] - padding[1] + kx * dilation[1];
          const bool inside = iy >= 0 && iy < g.in[1] && ix >= 0 && ix < g.in[2];
          const float* source = x + n * at[0] + iy * at[2] + ix * at[3];
          float* target = p + i * row + ky * g.kernel[2] + kx;
          for (int64_t c = 0; c < g.ci; ++c) target[c * g.taps()] = inside ? source[c * at[1]] : 0;
        }
    }
  });
  Gemm product{};
  product.dtype = DType::Float32;
  product.m = g.co, product.n = row, product.k = places;
  product.a = {y.data_ptr(), 1, g.co}, product.b = {patches.data_ptr(), row, 1};
  product.c = out.data_ptr(), product.c_rs = row;
  gemm(product);
  return true;
}

// Adds a vector over the channels to floats that are dense in either layout.
void add_per_channel(Tensor& out, const Tensor& shift) {
  const int64_t channels = shift.numel(), inner = is_channels_last(out) ? 1 : out.strides()[1];
  const int64_t rows = out.numel() / (channels * inner);
  const float* b = shift.data<float>();
  float* y = out.data<float>();
  parallel_for(0, rows, std::max<int64_t>(1, kGrain / (channels * inner)),
               [&](int64_t from, int64_t to) {
                 for (int64_t r = from; r < to; ++r)
                   for (int64_t c = 0; c < channels; ++c) {
                     float* place = y + (r * channels + c) * inner;
                     for (int64_t i = 0; i < inner; ++i) place[i] += b[c];
                   }
               });
}

// Whether tiles of 2 x 2 results (Note [Winograd]) take less time than the direct way: enough of
// them for the windows' transform, and not too many positions computed in vain.
bool tiles_pay(int what, const ConvGeometry& g) {
  const auto in_blocks = [](int64_t channels) { return channels % kWinogradBlock == 0; };
  if (g.groups != 1 || g.in[0] != 1 || g.out[0] != 1 || g.kernel[0] != 1 || g.pad[0] != 0 ||
      !in_blocks(g.ci) || !in_blocks(g.co))
    return false;
  for (int a = 1; a < 3; ++a)
    if (g.kernel[a] != 3 || g.stride[a] != 1 || g.dilation[a] != 1 || g.pad[a] > 2) return false;
  const int64_t* size = what == 1 ? g.in : g.out;
  const int64_t tiles = (size[1] + 1) / 2 * ((size[2] + 1) / 2);
  return 20 * tiles <= 9 * size[1] * size[2] && g.batch * tiles >= (what == 2 ? 16 : 4);
}

bool all_floats(const Tensor& a, const Tensor& b, const Tensor& c) {
  return a.dtype() == DType::Float32 && b.dtype() == DType::Float32 && c.dtype() == DType::Float32;
}
// In one of the layouts that the kernels of floats take.
bool is_dense(const Tensor& t) {
  return t.is_contiguous() || is_channels_last(t);
}
Tensor dense(const Tensor& t) {
  return is_dense(t) ? t : contiguous(t);
}

// The maps of floats by tiles. `what` as in providers/onednn.h; an input, a weight and an output
// of the convolution: one of them is the result.
bool by_tiles(int what, const ConvGeometry& g, Tensor& out, const Tensor& a, const Tensor& b,
              const OptTensor& bias) {
  if (!all_floats(out, a, b) || !is_dense(out) || !tiles_pay(what, g)) return false;
  const Tensor first = dense(a), second = dense(b);
  const Tensor &from = what == 2 ? second : first, &to = what == 2 ? first : out;
  const Ints& w = (what == 2 ? out : second).strides();
  WinogradCall call{.batch = g.batch, .ci = g.ci, .co = g.co};
  for (int i = 0; i < 2; ++i)
    call.in[i] = g.in[i + 1], call.out[i] = g.out[i + 1], call.pad[i] = g.pad[i + 1];
  call.x_last = is_channels_last(from), call.y_last = is_channels_last(to);
  call.w_out = w[0], call.w_in = w[1], call.w_tap = w[3];
  if (what == 2)
    return FB_ISA_DISPATCH(winograd_weight)(call, first.data<float>(), second.data<float>(),
                                            out.data<float>());
  if (what == 1) {
    std::swap(call.ci, call.co), std::swap(call.in, call.out), std::swap(call.w_out, call.w_in);
    for (int64_t& p : call.pad) p = 2 - p;
    call.turned = true;
  }
  Tensor shift;
  if (bias) shift = contiguous(*bias);
  return FB_ISA_DISPATCH(winograd_product)(call, first.data<float>(), second.data<float>(),
                                           bias ? shift.data<float>() : nullptr, out.data<float>());
}

// The same by oneDNN; x, w and y are an input, a weight and an output of the convolution.
bool by_provider(int what, const ConvGeometry& g, Tensor& out, const Tensor& a, const Tensor& b,
                 const OptTensor& bias) {
  if (!all_floats(out, a, b) || !is_dense(out)) return false;
  const Tensor &x = what == 0 ? a : what == 1 ? out : b, &y = what == 0 ? out : a;
  const bool last = is_channels_last(x) || is_channels_last(y);
  if (!provider_pays(g, last) || !onednn().convolution) return false;
  const Tensor first = dense(a), second = dense(b);
  Tensor shift;
  if (bias) shift = contiguous(*bias);
  const bool later = what == 1 && bias;  // oneDNN's gradients add none
  // Arrays of which either may be said are what the others are.
  const auto says = [&](const Tensor& t) {
    return is_channels_last(t) || (last && t.is_contiguous(channels_last(t)));
  };
  const Tensor &from = what == 0   ? first
                       : what == 1 ? out
                                   : second,
               &to = what == 0 ? out : first, &weight = what == 2 ? out : second;
  const ChannelsLast layouts{says(from), is_channels_last(weight), says(to)};
  const bool done = onednn().convolution(
      what, &g, layouts, first.data<float>(), second.data<float>(),
      bias && !later ? shift.data<float>() : nullptr, out.data<float>(), onednn_take, onednn_give);
  if (done && later) add_per_channel(out, shift);
  return done;
}

// Nothing to sum over: the result is the bias.
void only_bias(Tensor& out, const OptTensor& bias) {
  if (!bias) return fill_zero(out);
  Ints sizes(out.dim(), 1), strides(out.dim(), 0);
  sizes[1] = bias->numel(), strides[1] = bias->strides()[0];
  copy(out, alias(*bias, sizes, strides, bias->offset()));
}

}  // namespace

void conv_product(Tensor& out, const Tensor& input, const Tensor& weight, const OptTensor& bias,
                  const Ints& stride, const Ints& padding, const Ints& dilation, int64_t groups) {
  if (out.numel() == 0) return;
  if (weight.numel() == 0 || input.numel() == 0) return only_bias(out, bias);
  const ConvGeometry g =
      geometry(input.sizes(), weight.sizes(), out.sizes(), stride, padding, dilation, groups);
  if (by_tiles(0, g, out, input, weight, bias)) return;
  if (by_provider(0, g, out, input, weight, bias)) return;
  bilinear(out, input, weight, bias,
           [&](DType d, Tensor& y, const Tensor& x, const Tensor& w, const void* shift) {
             FB_ISA_DISPATCH(conv_forward)(d, g, x.data_ptr(), w.data_ptr(), shift, y.data_ptr());
           });
}

void conv_input_product(Tensor& out, const Tensor& grad, const Tensor& weight,
                        const OptTensor& bias, const Ints&, const Ints& stride, const Ints& padding,
                        const Ints& dilation, int64_t groups) {
  if (out.numel() == 0) return;
  if (weight.numel() == 0 || grad.numel() == 0) return only_bias(out, bias);
  const ConvGeometry g =
      geometry(out.sizes(), weight.sizes(), grad.sizes(), stride, padding, dilation, groups);
  if (by_tiles(1, g, out, grad, weight, bias)) return;
  if (by_provider(1, g, out, grad, weight, bias)) return;
  bilinear(out, grad, weight, bias,
           [&](DType d, Tensor& gx, const Tensor& gy, const Tensor& w, const void* shift) {
             FB_ISA_DISPATCH(conv_input)(d, g, gy.data_ptr(), w.data_ptr(), shift, gx.data_ptr());
           });
}

void conv_weight_product(Tensor& out, const Tensor& grad, const Tensor& input, const Ints&,
                         const Ints& stride, const Ints& padding, const Ints& dilation,
                         int64_t groups) {
  if (out.numel() == 0) return;
  if (grad.numel() == 0 || input.numel() == 0) return fill_zero(out);
  const ConvGeometry g =
      geometry(input.sizes(), out.sizes(), grad.sizes(), stride, padding, dilation, groups);
  if (by_tiles(2, g, out, grad, input, {})) return;
  const bool floats = out.dtype() == DType::Float32 && out.is_contiguous();
  if (floats && weight_by_patches(out, grad, input, stride, padding, dilation, g)) return;
  if (by_provider(2, g, out, grad, input, {})) return;
  bilinear(out, grad, input, {},
           [&](DType d, Tensor& gw, const Tensor& gy, const Tensor& x, const void*) {
             FB_ISA_DISPATCH(conv_weight)(d, g, gy.data_ptr(), x.data_ptr(), gw.data_ptr());
           });
}

}  // namespace flambeau::kernels
