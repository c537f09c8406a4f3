#include "flambeau/nn/functional.h"

#include "api/nn/layers.h"

namespace flambeau::nn {
namespace {

// First positions of the windows along one axis, (..., out) from samples (...).
Tensor starts(const Tensor& samples, int64_t size, int64_t out, int64_t kernel) {
  const Tensor last = full_like(samples.unsqueeze(-1), size - kernel, kLong);
  if (out == 1) return last;
  const double alpha = static_cast<double>(size - kernel) / static_cast<double>(out - 1);
  const Tensor u = samples.unsqueeze(-1);
  const Tensor i = arange(out - 1, samples.dtype());
  const Tensor first = ((i + u) * alpha).to(kLong) - (u * alpha).to(kLong);
  return cat({first, last}, -1);
}

// Values and their places in the flattened planes; as Python's, step by step.
template <size_t D>
std::tuple<Tensor, Tensor> fractional(const Tensor& input, const FractionalMaxPoolOptions<D>& o,
                                      Tensor samples) {
  constexpr auto axes = static_cast<int64_t>(D);
  const std::string name = "fractional_max_pool" + std::to_string(D) + "d";
  FB_CHECK_VALUE(o.output_size() || o.output_ratio(), name,
                 " requires specifying either an output_size or an output_ratio");
  FB_CHECK(input.dim() == axes + 1 || input.dim() == axes + 2, name, ": Expected ", axes + 1,
           "D or ", axes + 2, "D tensor, but got: ", IntArrayRef(input.sizes()));
  std::vector<int64_t> spatial, out;
  for (int64_t a = 0; a < axes; ++a) {
    const int64_t n = input.size(input.dim() - axes + a), k = o.kernel_size()[a];
    const double ratio = o.output_ratio() ? (*o.output_ratio())[a] : 0;
    const int64_t m = o.output_size() ? (*o.output_size())[a]
                                      : static_cast<int64_t>(static_cast<double>(n) * ratio);
    FB_CHECK(m >= 1 && m + k - 1 <= n, name, ": pool size ", k,
             " too large relative to input of size ", n, ", output ", m);
    spatial.push_back(n);
    out.push_back(m);
  }
  const Tensor x = input.dim() == axes + 2 ? input : input.unsqueeze(0);
  const int64_t N = x.size(0), C = x.size(1);
  if (!samples.defined()) samples = rand({N, C, axes}, x.dtype());
  samples = samples.narrow(0, 0, N);
  Tensor index = zeros({N, C, 1, 1}, kLong);
  for (int64_t a = 0; a < axes; ++a) {
    // Samples of images list the last axis first, those of volumes the first.
    const int64_t k = o.kernel_size()[a];
    const Tensor first = starts(samples.select(-1, D == 2 ? 1 - a : a), spatial[a], out[a], k);
    const Tensor at = first.unsqueeze(-1) + arange(k, kLong);
    const int64_t windows = index.size(2), taps = index.size(3);
    index = index.reshape({N, C, windows, 1, taps, 1}) * spatial[a];
    index = index + at.reshape({N, C, 1, out[a], 1, k});
    index = index.reshape({N, C, windows * out[a], taps * k});
  }
  const Tensor values = x.flatten(2).gather(2, index.flatten(2)).reshape(index.sizes());
  const auto [best, which] = values.max(3);
  const Tensor places = index.gather(3, which.unsqueeze(-1)).squeeze(-1);
  std::vector<int64_t> shape(input.sizes().begin(), input.sizes().end() - axes);
  shape.insert(shape.end(), out.begin(), out.end());
  return {best.reshape(shape), places.reshape(shape)};
}

template <size_t D>
void check(const FractionalMaxPoolOptions<D>& o) {
  for (int64_t k : o.kernel_size())
    FB_CHECK_VALUE(k > 0, "kernel_size must be greater than zero, but got ", k);
  FB_CHECK_VALUE(o.output_size() || o.output_ratio(), "FractionalMaxPool", D,
                 "d requires specifying either an output size, or a pooling ratio");
  FB_CHECK_VALUE(!(o.output_size() && o.output_ratio()),
                 "only one of output_size and output_ratio may be specified");
  for (size_t i = 0; i < D && o.output_ratio(); ++i) {
    const double r = (*o.output_ratio())[i];
    FB_CHECK_VALUE(0 < r && r < 1, "output_ratio must be between 0 and 1 (got ", r, ")");
  }
}

}  // namespace

#define FB_FRACTIONAL(D)                                                                          \
  FractionalMaxPool##D##dImpl::FractionalMaxPool##D##dImpl(                                       \
      FractionalMaxPool##D##dOptions options_)                                                    \
      : options(std::move(options_)) {                                                            \
    reset();                                                                                      \
  }                                                                                               \
  void FractionalMaxPool##D##dImpl::reset() {                                                     \
    check<D>(options);                                                                            \
    _random_samples = register_buffer("_random_samples", options._random_samples());              \
  }                                                                                               \
  void FractionalMaxPool##D##dImpl::pretty_print(std::ostream& out) const {                       \
    out << "FractionalMaxPool" #D "d()";                                                          \
  }                                                                                               \
  std::tuple<Tensor, Tensor> FractionalMaxPool##D##dImpl::forward_with_indices(                   \
      const Tensor& input) {                                                                      \
    return fractional<D>(input, options, _random_samples);                                        \
  }                                                                                               \
  Tensor FractionalMaxPool##D##dImpl::forward(const Tensor& input) {                              \
    return std::get<0>(forward_with_indices(input));                                              \
  }                                                                                               \
  namespace functional {                                                                          \
  std::tuple<Tensor, Tensor> fractional_max_pool##D##d_with_indices(                              \
      const Tensor& input, const FractionalMaxPool##D##dOptions& options) {                       \
    return fractional<D>(input, options, options._random_samples());                              \
  }                                                                                               \
  Tensor fractional_max_pool##D##d(const Tensor& input,                                           \
                                   const FractionalMaxPool##D##dOptions& options) {               \
    return std::get<0>(fractional_max_pool##D##d_with_indices(input, options));                   \
  }                                                                                               \
  }
FB_FRACTIONAL(2)
FB_FRACTIONAL(3)

namespace functional {

Tensor pad(const Tensor& input, const PadFuncOptions& o) {
  // Modes other than this one take no value.
  const bool constant = o.mode().str() == "constant";
  return ops::pad(input, IntArrayRef(o.pad()).ints(), o.mode().str(),
                  constant ? std::optional<Scalar>(o.value()) : std::nullopt);
}
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& o) {
  if (!o.out()) return ops::normalize(input, o.p(), o.dim(), o.eps());
  Tensor out = *o.out();
  const Tensor length = input.norm(Scalar(o.p()), {o.dim()}, true).clamp_min(o.eps());
  return div_out(out, input, length.expand_as(input));
}
Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& o) {
  return ops::grid_sample(input, grid, o.mode().str(), o.padding_mode().str(), o.align_corners());
}

}  // namespace functional
}  // namespace flambeau::nn
