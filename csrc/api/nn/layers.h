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

// p-norms of windows; the sign passes through the root.
template <size_t D>
Tensor lp_pooled(const Tensor& input, double p, const ExpandingArray<D>& kernel,
                 const ExpandingArray<D>& stride, bool ceil_mode) {
  const Tensor powers = ops::pow(input, wrapped_number(p));
  const Ints k = list(kernel), s = list(stride), none(D, 0);
  Tensor mean;
  int64_t count = 1;
  for (int64_t n : k) count *= n;
  if constexpr (D == 1) mean = ops::avg_pool1d(powers, k, s, none, ceil_mode, true);
  if constexpr (D == 2) mean = ops::avg_pool2d(powers, k, s, none, ceil_mode, true, std::nullopt);
  if constexpr (D == 3) mean = ops::avg_pool3d(powers, k, s, none, ceil_mode, true, std::nullopt);
  const Tensor sized = ops::mul(ops::sign(mean), ops::relu(ops::abs(mean)));
  return ops::pow(ops::mul(sized, wrapped_number(count)), wrapped_number(1.0 / p));
}

// Pooled maxima put back to their places, zeros elsewhere.
template <size_t D>
Tensor max_unpooled(const Tensor& input, const Tensor& indices, const ExpandingArray<D>& kernel,
                    const ExpandingArray<D>& stride, const ExpandingArray<D>& padding,
                    const std::optional<std::vector<int64_t>>& wanted) {
  const auto d = static_cast<int64_t>(D);
  FB_CHECK(indices.dtype() == DType::Int64, "max_unpool", d,
           "d: elements in indices should be type int64 but got: ", indices.dtype());
  FB_CHECK(indices.sizes() == input.sizes(), "max_unpool", d,
           "d: Expected shape of indices to be same as that of the input tensor (", input.sizes(),
           ") but got indices tensor with shape: ", indices.sizes());
  FB_CHECK(input.dim() == d + 1 || input.dim() == d + 2, "max_unpool", d,
           "d: expected an input of ", d + 1, " or ", d + 2, " dims, got ", input.dim());
  Ints sizes, lead;
  int64_t total = 1;
  for (int64_t i = 0; i < input.dim() - d; ++i) lead.push_back(input.size(i));
  for (size_t i = 0; i < D; ++i) {
    const int64_t n = input.size(input.dim() - d + static_cast<int64_t>(i));
    int64_t size = (n - 1) * stride[i] + kernel[i] - 2 * padding[i];
    if (wanted) {
      FB_CHECK_VALUE(wanted->size() >= D && wanted->size() <= D + 2,
                     "max_unpool: output_size should be a sequence containing ", d, " or ", d + 2,
                     " elements, but it has a length of '", wanted->size(), "'");
      const int64_t asked = (*wanted)[wanted->size() - D + i];
      FB_CHECK_VALUE(asked > size - stride[i] && asked < size + stride[i],
                     "max_unpool: invalid output_size (dim ", i, " must be between ",
                     size - stride[i], " and ", size + stride[i], "), got ", asked);
      size = asked;
    }
    sizes.push_back(size);
    total *= size;
  }
  if (input.numel()) {
    const auto low = ops::amin(indices).item<int64_t>(), high = ops::amax(indices).item<int64_t>();
    FB_CHECK(low >= 0 && high < total, "max_unpool", d,
             "d: Found an invalid max index: ", low < 0 ? low : high,
             " (output volumes are of size ", sizes, ")");
  }
  Ints flat = lead, whole = lead, out = lead;
  flat.push_back(-1);
  whole.push_back(total);
  out.append(sizes.begin(), sizes.end());
  const Tensor made = ops::scatter(ops::zeros(whole, input.dtype()), -1,
                                   ops::reshape(indices, flat), ops::reshape(input, flat));
  return ops::reshape(made, out);
}

// The original layer's window, which never takes the first channel out of its running sum.
template <class O>
Tensor cross_map_normalized(const Tensor& input, const O& o) {
  FB_CHECK_VALUE(input.dim() == 4, "CrossMapLRN2d: Expected input to be 4D, got ", input.dim(),
                 "D instead.");
  const Tensor square = ops::mul(input, input);
  const int64_t half = (o.size() - 1) / 2, kept = half + 1, channels = input.size(1);
  const Tensor padded = ops::pad(square, Ints{0, 0, 0, 0, half, half}, "constant", std::nullopt);
  Tensor window = ops::sum(ops::unfold(padded, 1, 2 * half + 1, 1), Ints{-1});
  if (kept < channels) {
    const Tensor extra = ops::expand(square.slice(1, 0, 1), Ints{-1, channels - kept, -1, -1});
    window = ops::cat({window.slice(1, 0, kept), ops::add(window.slice(1, kept), extra)}, 1);
  }
  const Tensor scale =
      ops::add(ops::mul(window, wrapped_number(o.alpha() / static_cast<double>(o.size()))),
               wrapped_number(o.k()));
  return ops::mul(input, ops::pow(scale, wrapped_number(-o.beta())));
}

template <class O>
std::string embedding_bag_text(const O& o) {
  std::string out = shown(o.num_embeddings()) + ", " + shown(o.embedding_dim());
  if (o.max_norm()) out += ", max_norm=" + shown(*o.max_norm());
  if (o.norm_type() != 2) out += ", norm_type=" + shown(o.norm_type());
  if (o.scale_grad_by_freq()) out += ", scale_grad_by_freq=True";
  out += ", mode='" + o.mode().str() + "'";
  if (o.padding_idx()) out += ", padding_idx=" + shown(*o.padding_idx());
  return out;
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
