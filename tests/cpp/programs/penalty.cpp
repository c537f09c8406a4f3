#include "show.h"

int main() {
  torch::manual_seed(3);
  auto w = torch::randn({3, 4}, torch::dtype(torch::kDouble).requires_grad(true));
  auto x = torch::randn({5, 4}, torch::dtype(torch::kDouble).requires_grad(true));
  auto y = torch::tanh(x.matmul(w.t()));
  auto g = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
  auto penalty = torch::pow(g.norm(2, 1) - 1, 2).mean();
  (y.pow(2).mean() + penalty).backward();
  std::cout.precision(17);
  for (int64_t i = 0; i < 12; ++i) SHOW(w.grad().view(-1)[i].item<double>());
}
