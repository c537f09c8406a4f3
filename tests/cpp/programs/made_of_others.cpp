// Layers that are made of others, or of functions.
#include "show.h"

namespace nn = torch::nn;

int main() {
  torch::manual_seed(5);
  nn::AdaptiveLogSoftmaxWithLoss m(nn::AdaptiveLogSoftmaxWithLossOptions(4, 12, {3, 7}).div_value(2.0).head_bias(true));
  auto x = torch::randn({6, 4}), target = torch::tensor({0, 5, 11, 2, 8, 3});
  auto result = m->forward(x, target);
  result.loss_tensor.backward();
  SHOW(hexed(result.output) << ' ' << hexed(result.loss_tensor) << ' ' << hexed(m->log_prob(x)) << ' ' << hexed(m->predict(x)) << ' ' << hexed(m->head->weight.grad()) << m << "\n==");
  auto image = torch::randn({1, 2, 3, 4}), a = torch::randn({3, 4}), b = torch::randn({3, 4}), c = torch::randn({3, 4});
  for (auto& u : {nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2})),
                  nn::Upsample(nn::UpsampleOptions().size(std::vector<int64_t>{5, 7}).mode(torch::kBilinear)),
                  nn::Upsample(nn::UpsampleOptions().size(std::vector<int64_t>{5, 7}).mode(torch::kBicubic).align_corners(true))})
    SHOW(hexed(u(image)) << u);
  SHOW("==");
  nn::TripletMarginWithDistanceLoss plain(nn::TripletMarginWithDistanceLossOptions().swap(true));
  SHOW(hexed(plain(a, b, c)));
  nn::TripletMarginWithDistanceLoss own(nn::TripletMarginWithDistanceLossOptions().margin(0.5).reduction(torch::kNone).distance_function([](const Tensor& p, const Tensor& q) { return (p - q).abs().sum(1); }));
  SHOW(hexed(own(a, b, c)));
}
