// Functions with options that no layer has, fractional pooling, the dtype of a sampler's order.
#include "show.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

int main() {
  torch::manual_seed(3);
  auto image = torch::randn({2, 3, 9, 8}, torch::requires_grad()), volume = torch::randn({2, 6, 7, 5});
  nn::FractionalMaxPool2d flat(nn::FractionalMaxPool2dOptions(3).output_size(4));
  nn::FractionalMaxPool3d deep(nn::FractionalMaxPool3dOptions({2, 3, 2}).output_ratio(nn::ExpandingArray<3, double>({0.5, 0.4, 0.7})));
  auto [best, places] = flat->forward_with_indices(image);
  best.pow(2).sum().backward();
  SHOW(hexed(best) << ' ' << hexed(places) << ' ' << hexed(image.grad()) << ' ' << hexed(deep(volume)) << flat);
  auto x = image.detach(), samples = torch::rand({2, 3, 2});
  SHOW(hexed(F::fractional_max_pool2d(x, F::FractionalMaxPool2dFuncOptions(2).output_size(torch::nn::ExpandingArray<2>({3, 5}))._random_samples(samples))));
  SHOW(hexed(F::pad(x, F::PadFuncOptions({1, 2, 0, 1}).value(1.5))) << ' ' << hexed(F::pad(x, F::PadFuncOptions({1, 2, 0, 1}).mode(torch::kCircular))) << ' ' << hexed(F::pad(x, {1, 2})));
  auto out = torch::empty({2, 3, 9, 8});
  F::normalize(x, F::NormalizeFuncOptions().p(3).dim(-1).out(out));
  SHOW(hexed(F::normalize(x, F::NormalizeFuncOptions().p(3).dim(-1))) << ' ' << hexed(out) << ' ' << hexed(F::normalize(x)));
  auto grid = torch::rand({2, 4, 5, 2}) * 2.4 - 1.2;
  SHOW(hexed(F::grid_sample(x, grid, F::GridSampleFuncOptions().mode(torch::kNearest).padding_mode(torch::kBorder).align_corners(true))));
  SHOW("==");
  fails([&] { F::fractional_max_pool2d(x, F::FractionalMaxPool2dFuncOptions(3)); });
  fails([&] { F::fractional_max_pool2d(x, F::FractionalMaxPool2dFuncOptions(3).output_size(8)); });
  fails([&] { nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(3).output_ratio(1.5)); });
  fails([&] { nn::FractionalMaxPool3d(nn::FractionalMaxPool3dOptions(0).output_size(2)); });
  fails([&] { torch::data::samplers::RandomSampler(300, torch::kInt8); });
  fails([&] { torch::data::samplers::RandomSampler(3, torch::kFloat); });
  torch::manual_seed(0);
  torch::data::samplers::RandomSampler few(5, torch::kInt8);
  const auto order = few.next(5).value();
  for (size_t i : order) std::cout << i << " ";
  SHOW("");
}
