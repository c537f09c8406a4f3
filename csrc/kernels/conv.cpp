#include "gen/kernels.h"

#include "kernels/conv_taps.h"
#include "kernels/copy.h"
#include "kernels/providers/onednn.h"

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

// Windows of several taps over many channels: there oneDNN's layouts win
// (docs/design/performance.md).
bool by_provider(int what, DType d, const ConvGeometry& g, const void* a, const void* b,
                 const void* bias, void* out) {
  const double work = static_cast<double>(g.batch * g.groups * g.ci * g.co) *
                      static_cast<double>(g.taps() * g.out_size());
  if (d != DType::Float32 || g.taps() == 1 || g.ci < 8 || g.co < 8 || work < (1 << 21))
    return false;
  const auto convolution = onednn().convolution;
  return convolution && convolution(what, &g, static_cast<const float*>(a),
                                    static_cast<const float*>(b), static_cast<const float*>(bias),
                                    static_cast<float*>(out), onednn_take, onednn_give);
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
  bilinear(out, input, weight, bias,
           [&](DType d, Tensor& y, const Tensor& x, const Tensor& w, const void* shift) {
             if (by_provider(0, d, g, x.data_ptr(), w.data_ptr(), shift, y.data_ptr())) return;
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
  bilinear(out, grad, weight, bias,
           [&](DType d, Tensor& gx, const Tensor& gy, const Tensor& w, const void* shift) {
             if (by_provider(1, d, g, gy.data_ptr(), w.data_ptr(), shift, gx.data_ptr())) return;
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
  bilinear(out, grad, input, {},
           [&](DType d, Tensor& gw, const Tensor& gy, const Tensor& x, const void*) {
             if (by_provider(2, d, g, gy.data_ptr(), x.data_ptr(), nullptr, gw.data_ptr())) return;
             FB_ISA_DISPATCH(conv_weight)(d, g, gy.data_ptr(), x.data_ptr(), gw.data_ptr());
           });
}

}  // namespace flambeau::kernels
