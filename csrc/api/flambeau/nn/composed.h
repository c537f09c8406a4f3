// Layers that are made of others, or of functions: Upsample, AdaptiveLogSoftmaxWithLoss,
// TripletMarginWithDistanceLoss.
#pragma once

#include "flambeau/nn/layers.h"

namespace flambeau::nn {

// Sizes or factors of the spatial dims: one stands for all of them.
struct UpsampleOptions {
  TORCH_ARG(std::optional<std::vector<int64_t>>, size);
  TORCH_ARG(std::optional<std::vector<double>>, scale_factor);
  TORCH_ARG(Text, mode) = kNearest;
  TORCH_ARG(std::optional<bool>, align_corners);
};
struct UpsampleImpl : Cloneable<UpsampleImpl> {
  explicit UpsampleImpl(UpsampleOptions options_ = {}) : options(std::move(options_)) {}
  void reset() override {}
  void pretty_print(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  UpsampleOptions options;
};
TORCH_MODULE(Upsample);

namespace functional {
struct InterpolateFuncOptions {
  TORCH_ARG(std::optional<std::vector<int64_t>>, size);
  TORCH_ARG(std::optional<std::vector<double>>, scale_factor);
  TORCH_ARG(Text, mode) = kNearest;
  TORCH_ARG(std::optional<bool>, align_corners);
  TORCH_ARG(std::optional<bool>, recompute_scale_factor);
  TORCH_ARG(bool, antialias) = false;
};
Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options);
}  // namespace functional

struct TripletMarginWithDistanceLossOptions {
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  TORCH_ARG(std::optional<distance_function_t>, distance_function);  // none: PairwiseDistance
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(bool, swap) = false;
  TORCH_ARG(Text, reduction) = kMean;
};
struct TripletMarginWithDistanceLossImpl : Cloneable<TripletMarginWithDistanceLossImpl> {
  explicit TripletMarginWithDistanceLossImpl(TripletMarginWithDistanceLossOptions options_ = {})
      : options(std::move(options_)) {}
  void reset() override {}
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);
  TripletMarginWithDistanceLossOptions options;
};
TORCH_MODULE(TripletMarginWithDistanceLoss);

namespace functional {
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative,
                                         const TripletMarginWithDistanceLossOptions& options = {});
}  // namespace functional

struct ASMoutput {
  Tensor output;
  double loss;
  Tensor loss_tensor;  // which has derivatives
};
struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes,
                                    std::vector<int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  TORCH_ARG(int64_t, in_features);
  TORCH_ARG(int64_t, n_classes);
  TORCH_ARG(std::vector<int64_t>, cutoffs);
  TORCH_ARG(double, div_value) = 4.0;
  TORCH_ARG(bool, head_bias) = false;
};
// Softmax over very many classes by clusters of frequency (Grave et al., 2016).
struct AdaptiveLogSoftmaxWithLossImpl : Cloneable<AdaptiveLogSoftmaxWithLossImpl> {
  AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes,
                                 std::vector<int64_t> cutoffs)
      : AdaptiveLogSoftmaxWithLossImpl(
            AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, std::move(cutoffs))) {}
  explicit AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions options_);
  void reset() override;
  void reset_parameters();
  // Log-probability of each target, and minus their mean.
  ASMoutput forward(const Tensor& input, const Tensor& target);
  Tensor log_prob(const Tensor& input);
  Tensor predict(const Tensor& input);
  AdaptiveLogSoftmaxWithLossOptions options;
  std::vector<int64_t> cutoffs;
  int64_t shortlist_size = 0, n_clusters = 0, head_size = 0;
  Linear head{nullptr};
  ModuleList tail{nullptr};

 private:
  Tensor whole(const Tensor& input, const Tensor& head_output);
};
TORCH_MODULE(AdaptiveLogSoftmaxWithLoss);

}  // namespace flambeau::nn
