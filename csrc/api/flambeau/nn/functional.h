// Functions of nn::functional with options that no layer has, and fractional pooling.
#pragma once

#include "flambeau/nn/layers.h"

namespace flambeau::nn {

// Maximum over windows at pseudo-random steps (Graham, 2014): the size of the output, or its share
// of the input's.
template <size_t D>
struct FractionalMaxPoolOptions {
  using ratio_t = std::optional<ExpandingArray<D, double>>;
  FractionalMaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(std::optional<ExpandingArray<D>>, output_size);
  TORCH_ARG(ratio_t, output_ratio);
  TORCH_ARG(Tensor, _random_samples);
};
using FractionalMaxPool2dOptions = FractionalMaxPoolOptions<2>;
using FractionalMaxPool3dOptions = FractionalMaxPoolOptions<3>;

#define FB_FRACTIONAL(D)                                                                     \
  struct FractionalMaxPool##D##dImpl : Cloneable<FractionalMaxPool##D##dImpl> {              \
    FractionalMaxPool##D##dImpl(ExpandingArray<D> kernel_size)                               \
        : FractionalMaxPool##D##dImpl(FractionalMaxPool##D##dOptions(kernel_size)) {}        \
    explicit FractionalMaxPool##D##dImpl(FractionalMaxPool##D##dOptions options_);           \
    void reset() override;                                                                   \
    void pretty_print(std::ostream& out) const override;                                     \
    Tensor forward(const Tensor& input);                                                     \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);                    \
    FractionalMaxPool##D##dOptions options;                                                  \
    Tensor _random_samples;                                                                  \
  };                                                                                         \
  TORCH_MODULE(FractionalMaxPool##D##d);                                                     \
  namespace functional {                                                                     \
  using FractionalMaxPool##D##dFuncOptions = FractionalMaxPool##D##dOptions;                 \
  Tensor fractional_max_pool##D##d(const Tensor& input,                                      \
                                   const FractionalMaxPool##D##dOptions& options);           \
  std::tuple<Tensor, Tensor> fractional_max_pool##D##d_with_indices(                         \
      const Tensor& input, const FractionalMaxPool##D##dOptions& options);                   \
  }
FB_FRACTIONAL(2)
FB_FRACTIONAL(3)
#undef FB_FRACTIONAL

namespace functional {

// Beside the forms of the table, which take the same as arguments.
struct PadFuncOptions {
  explicit PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}
  TORCH_ARG(std::vector<int64_t>, pad);  // before and behind the last dim, then the one before it
  TORCH_ARG(Text, mode) = kConstant;
  TORCH_ARG(double, value) = 0;
};
Tensor pad(const Tensor& input, const PadFuncOptions& options);

struct NormalizeFuncOptions {
  TORCH_ARG(double, p) = 2.0;
  TORCH_ARG(double, eps) = 1e-12;
  TORCH_ARG(int64_t, dim) = 1;
  TORCH_ARG(std::optional<Tensor>, out);
};
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options);

struct GridSampleFuncOptions {
  TORCH_ARG(Text, mode) = kBilinear;
  TORCH_ARG(Text, padding_mode) = kZeros;
  TORCH_ARG(std::optional<bool>, align_corners);
};
Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& options);

}  // namespace functional
}  // namespace flambeau::nn
