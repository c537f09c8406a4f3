#include "flambeau/nn/composed.h"

#include "api/nn/layers.h"

namespace flambeau::nn {

namespace functional {

Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& o) {
  std::optional<Ints> size;
  std::optional<std::vector<double>> scale = o.scale_factor();
  const auto dims = static_cast<size_t>(std::max<int64_t>(input.dim() - 2, 0));
  // One stands for all.
  if (o.size()) size = o.size()->size() == 1 ? Ints(dims, o.size()->front()) : Ints(*o.size());
  if (scale && scale->size() == 1) scale->assign(dims, scale->front());
  return ops::interpolate(input, size, scale, o.mode().str(), o.align_corners(),
                          o.recompute_scale_factor(), o.antialias());
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative,
                                         const TripletMarginWithDistanceLossOptions& o) {
  const std::string& reduction = o.reduction().str();
  FB_CHECK_VALUE(reduction == "none" || reduction == "mean" || reduction == "sum", reduction,
                 " is not a valid value for reduction");
  FB_CHECK_VALUE(o.margin() > 0, "margin must be greater than 0, got ", o.margin());
  FB_CHECK(anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
           "The anchor, positive, and negative tensors are expected to have the same number of "
           "dimensions, but got: anchor ",
           anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(),
           "D inputs");
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    if (o.distance_function()) return (*o.distance_function())(a, b);
    return ops::pairwise_distance(a, b, 2.0, 1e-6, false);
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (o.swap()) far = ops::minimum(far, distance(positive, negative));
  const Tensor loss = ops::clamp_min(ops::sub(ops::add(near, wrapped_number(o.margin())), far),
                                     wrapped_number(int64_t{0}));
  if (reduction == "none") return loss;
  return reduction == "mean" ? ops::mean(loss) : ops::sum(loss);
}

}  // namespace functional

Tensor UpsampleImpl::forward(const Tensor& input) {
  return functional::interpolate(input, functional::InterpolateFuncOptions()
                                            .size(options.size())
                                            .scale_factor(options.scale_factor())
                                            .mode(options.mode())
                                            .align_corners(options.align_corners()));
}
void UpsampleImpl::pretty_print(std::ostream& out) const {
  auto several = [&](const auto& xs) {
    if (xs.size() == 1) {
      out << shown(xs[0]);
      return;
    }
    out << '(';
    for (size_t i = 0; i < xs.size(); ++i) out << (i ? ", " : "") << shown(xs[i]);
    out << ')';
  };
  out << "Upsample(";
  if (options.scale_factor()) {
    out << "scale_factor=";
    several(*options.scale_factor());
  } else {
    out << "size=";
    if (options.size())
      several(*options.size());
    else
      out << "None";
  }
  out << ", mode='" << options.mode().str() << "')";
}

Tensor TripletMarginWithDistanceLossImpl::forward(const Tensor& anchor, const Tensor& positive,
                                                  const Tensor& negative) {
  return functional::triplet_margin_with_distance_loss(anchor, positive, negative, options);
}

AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(
    AdaptiveLogSoftmaxWithLossOptions options_)
    : options(std::move(options_)) {
  reset();
}
void AdaptiveLogSoftmaxWithLossImpl::reset() {
  const auto& o = options;
  FB_CHECK_VALUE(!o.cutoffs().empty(), "cutoffs should be a sequence of length larger than 0");
  int64_t before = 0;
  for (int64_t c : o.cutoffs()) {
    FB_CHECK_VALUE(c > before && c < o.n_classes(),
                   "cutoffs should be a sequence of unique, positive integers sorted in an "
                   "increasing order, where each value is between 1 and n_classes-1");
    before = c;
  }
  cutoffs = o.cutoffs();
  cutoffs.push_back(o.n_classes());
  shortlist_size = cutoffs[0];
  n_clusters = static_cast<int64_t>(cutoffs.size()) - 1;
  head_size = shortlist_size + n_clusters;
  head = register_module("head",
                         Linear(LinearOptions(o.in_features(), head_size).bias(o.head_bias())));
  tail = register_module("tail", ModuleList());
  double narrower = 1;
  for (int64_t i = 0; i < n_clusters; ++i) {
    narrower *= o.div_value();
    const auto width =
        static_cast<int64_t>(std::floor(static_cast<double>(o.in_features()) / narrower));
    Linear inner(LinearOptions(o.in_features(), width).bias(false));
    Linear outer(LinearOptions(width, cutoffs[i + 1] - cutoffs[i]).bias(false));
    tail->push_back(Sequential(inner, outer));
  }
}
void AdaptiveLogSoftmaxWithLossImpl::reset_parameters() {
  head->reset_parameters();
  for (const auto& pair : *tail)
    for (const auto& layer : pair->children()) layer->as<Linear>()->reset_parameters();
}

ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(const Tensor& input_, const Tensor& target_) {
  FB_CHECK(target_.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  FB_CHECK(input_.dim() == target_.dim() + 1, target_.dim(), "D target tensor expects ",
           target_.dim() + 1, "D input tensors, but found inputs with size ", input_.sizes());
  FB_CHECK(target_.dim() == 0 || input_.size(0) == target_.size(0),
           "Input and target should have the same size in the batch dimension.");
  const bool batched = target_.dim() > 0;
  const Tensor input = batched ? input_ : ops::unsqueeze(input_, 0);
  const Tensor target = batched ? target_ : ops::unsqueeze(target_, 0);
  if (target.numel()) {
    const auto low = ops::amin(target).item<int64_t>(), high = ops::amax(target).item<int64_t>();
    FB_CHECK(low >= 0 && high < options.n_classes(), "Target values should be in [0, ",
             options.n_classes() - 1, "], but values in range [", low, ", ", high,
             "] were found. ");
  }
  Tensor in_cluster = ops::zeros(Ints{target.size(0)}, input.dtype());
  Tensor head_index = target.clone();
  for (int64_t i = 0; i < n_clusters; ++i) {
    const int64_t low = cutoffs[i], high = cutoffs[i + 1];
    const Tensor inside = ops::bitwise_and(ops::ge(target, wrapped_number(low)),
                                           ops::lt(target, wrapped_number(high)));
    const Tensor rows = ops::squeeze(ops::nonzero(inside), Ints{1});
    if (rows.numel() == 0) continue;
    ops::index_fill_(head_index, 0, rows, Scalar(shortlist_size + i));
    const Tensor scores = tail->at<SequentialImpl>(i).forward(ops::index_select(input, 0, rows));
    const Tensor relative = ops::sub(ops::index_select(target, 0, rows), wrapped_number(low));
    const Tensor picked = ops::squeeze(
        ops::gather(ops::log_softmax(scores, 1), 1, ops::unsqueeze(relative, 1)), Ints{1});
    in_cluster = ops::index_copy(in_cluster, 0, rows, picked);
  }
  const Tensor of_head = ops::log_softmax(head(input), 1);
  const Tensor output = ops::add(
      in_cluster, ops::squeeze(ops::gather(of_head, 1, ops::unsqueeze(head_index, 1)), Ints{1}));
  const Tensor loss = ops::mean(ops::neg(output));
  return {batched ? output : ops::squeeze(output, Ints{0}), loss.item<double>(), loss};
}

Tensor AdaptiveLogSoftmaxWithLossImpl::whole(const Tensor& input, const Tensor& head_output) {
  const Tensor of_head = ops::log_softmax(head_output, 1);
  std::vector<Tensor> parts{of_head.slice(1, 0, shortlist_size)};
  for (int64_t i = 0; i < n_clusters; ++i) {
    const Tensor of_cluster = ops::unsqueeze(of_head.select(1, shortlist_size + i), 1);
    const Tensor scores = tail->at<SequentialImpl>(i).forward(input);
    parts.push_back(ops::add(ops::log_softmax(scores, 1), of_cluster));
  }
  return ops::cat(parts, 1);
}
Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const Tensor& input) {
  return whole(input, head(input));
}
Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const Tensor& input) {
  return ops::argmax(log_prob(input), 1);
}

}  // namespace flambeau::nn
