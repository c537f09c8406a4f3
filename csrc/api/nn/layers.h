// What the generated layers share: lists for operations, checks, texts of printed forms.
#pragma once

#include "flambeau/nn/layers.h"
#include "gen/ops.h"

namespace flambeau::nn {

inline OptTensor given(const Tensor& x) {
  return x.defined() ? OptTensor(x) : std::nullopt;
}
template <size_t D>
Ints list(const ExpandingArray<D>& xs) {
  return IntArrayRef(xs).ints();
}
inline Ints list(const std::vector<int64_t>& xs) {
  return Ints(xs);
}

// ", " between the parts of a printed form.
inline std::ostream& comma(std::ostream& out, bool& first) {
  if (!first) out << ", ";
  first = false;
  return out;
}
// One number where all are the same, as Python's layers print what they were given.
template <size_t D>
std::string one_or_all(const ExpandingArray<D>& xs) {
  return xs.uniform() ? shown(xs[0]) : shown(xs);
}
template <size_t D>
std::string pool_text(const ExpandingArray<D>& kernel, const ExpandingArray<D>& stride,
                      const ExpandingArray<D>& padding) {
  return "kernel_size=" + one_or_all(kernel) + ", stride=" + one_or_all(stride) +
         ", padding=" + one_or_all(padding);
}

inline void check_convolution(int64_t in, int64_t out, int64_t groups, const Text& mode) {
  FB_CHECK_VALUE(groups > 0, "groups must be a positive integer");
  FB_CHECK_VALUE(in % groups == 0, "in_channels must be divisible by groups");
  FB_CHECK_VALUE(out % groups == 0, "out_channels must be divisible by groups");
  const std::string& m = mode.str();
  FB_CHECK_VALUE(
      m == "zeros" || m == "reflect" || m == "replicate" || m == "circular",
      "padding_mode must be one of ('zeros', 'reflect', 'replicate', 'circular'), but got "
      "padding_mode='",
      m, "'");
}
template <size_t D>
Ints convolution_sizes(int64_t first, int64_t second, const ExpandingArray<D>& kernel) {
  Ints out{first, second};
  out.append(kernel.begin(), kernel.end());
  return out;
}
template <size_t D>
std::string padding_text(const ConvPadding<D>& p) {
  return p.is_text() ? p.text() : shown(p.sizes().vec());
}
template <size_t D>
std::string padding_text(const ExpandingArray<D>& p) {
  return shown(p);
}
// Two numbers, kernel and stride; the rest where it is not the usual.
template <class O>
std::string convolution_text(const O& o, bool transposed) {
  std::string out = shown(o.in_channels()) + ", " + shown(o.out_channels()) +
                    ", kernel_size=" + shown(o.kernel_size()) + ", stride=" + shown(o.stride());
  const std::string padding = padding_text(o.padding());
  const std::vector<int64_t> none(o.kernel_size().size(), 0), ones(o.kernel_size().size(), 1);
  if (padding != shown(none)) out += ", padding=" + padding;
  if (o.dilation().vec() != ones) out += ", dilation=" + shown(o.dilation());
  if constexpr (requires { o.output_padding(); })
    if (transposed && o.output_padding().vec() != none)
      out += ", output_padding=" + shown(o.output_padding());
  if (o.groups() != 1) out += ", groups=" + shown(o.groups());
  if (!o.bias()) out += ", bias=False";
  if (o.padding_mode().str() != "zeros") out += ", padding_mode=" + o.padding_mode().str();
  return out;
}
// What an asked size of the output leaves for output_padding.
template <size_t D>
Ints transposed_padding(const Tensor& input, const std::optional<std::vector<int64_t>>& size,
                        const ExpandingArray<D>& kernel, const ExpandingArray<D>& stride,
                        const ExpandingArray<D>& padding, const ExpandingArray<D>& dilation,
                        const ExpandingArray<D>& usual) {
  if (!size) return list(usual);
  const size_t n = size->size();
  const auto dims = static_cast<size_t>(input.dim());
  FB_CHECK_VALUE(n == D || n == dims, "ConvTranspose: for a ", dims,
                 "-dimensional input, output_size must have ", D, " or ", dims, " elements, got ",
                 n);
  Ints out;
  for (size_t d = 0; d < D; ++d) {
    const int64_t least = (input.size(static_cast<int64_t>(dims - D + d)) - 1) * stride[d] -
                          2 * padding[d] + dilation[d] * (kernel[d] - 1) + 1;
    const int64_t more = (*size)[n - D + d] - least;
    FB_CHECK_VALUE(more >= 0 && more < stride[d], "ConvTranspose: requested an output size of ",
                   (*size)[n - D + d], ", valid sizes range from ", least, " to ",
                   least + stride[d] - 1);
    out.push_back(more);
  }
  return out;
}

template <class O>
std::string batch_norm_text(const O& o, bool bias) {
  std::string momentum;
  if constexpr (std::is_same_v<std::decay_t<decltype(o.momentum())>, double>)
    momentum = shown(o.momentum());
  else
    momentum = o.momentum() ? shown(*o.momentum()) : "None";
  return shown(o.num_features()) + ", eps=" + shown(o.eps()) + ", momentum=" + momentum +
         ", affine=" + shown(o.affine()) + ", bias=" + shown(bias) +
         ", track_running_stats=" + shown(o.track_running_stats());
}
template <class O>
Tensor batch_normalized(const Tensor& input, const Module& module, const Tensor& mean,
                        const Tensor& var, const Tensor& batches, const Tensor& weight,
                        const Tensor& bias, const O& o) {
  double factor = o.momentum().value_or(0.0);
  const bool training = module.is_training();
  if (training && o.track_running_stats() && batches.defined()) {
    NoGradGuard no_grad;
    ops::add_(batches, wrapped_number(1));
    if (!o.momentum()) factor = 1.0 / batches.item<double>();
  }
  const bool batch = training || !mean.defined();
  const bool follow = !training || o.track_running_stats();
  return ops::batch_norm(input, follow ? given(mean) : std::nullopt,
                         follow ? given(var) : std::nullopt, given(weight), given(bias), batch,
                         factor, o.eps());
}

template <class O>
std::string embedding_text(const O& o) {
  std::string out = shown(o.num_embeddings()) + ", " + shown(o.embedding_dim());
  if (o.padding_idx()) out += ", padding_idx=" + shown(*o.padding_idx());
  if (o.max_norm()) out += ", max_norm=" + shown(*o.max_norm());
  if (o.norm_type() != 2) out += ", norm_type=" + shown(o.norm_type());
  if (o.scale_grad_by_freq()) out += ", scale_grad_by_freq=True";
  if (o.sparse()) out += ", sparse=True";
  return out;
}

}  // namespace flambeau::nn
