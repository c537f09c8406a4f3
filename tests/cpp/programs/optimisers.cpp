#include "show.h"

template <class O, class P>
void train(P options) {
  torch::manual_seed(5);
  // One after the other: the order of a call's arguments is the compiler's, and with it the draws.
  torch::nn::Linear first(4, 8), second(8, 1);
  torch::nn::Sequential model(first, torch::nn::Tanh(), second);
  auto x = torch::randn({16, 4}), y = torch::randn({16, 1});
  O optimizer(model->parameters(), options);
  torch::optim::StepLR schedule(optimizer, 20, 0.5);
  Tensor loss;
  for (int i = 0; i < 50; ++i) {
    optimizer.zero_grad();
    loss = torch::mse_loss(model->forward(x), y);
    loss.backward();
    optimizer.step();
    schedule.step();
  }
  std::cout << hexed(loss);
  for (auto& p : model->parameters()) std::cout << ' ' << hexed(p);
  std::cout << std::endl;
}
int main() {
  // RUNS
  auto p = torch::ones({1}, torch::requires_grad());
  fails([&] { torch::optim::SGD bad({p}, -1.0); });
  fails([&] { torch::optim::Adam bad({p, p}); });
  fails([&] { torch::optim::Adam bad(std::vector<Tensor>{p * 2}); });
  torch::optim::SGD groups(std::vector<torch::optim::OptimizerParamGroup>{{{p}}, {{torch::ones({1}, torch::requires_grad())}, std::make_unique<torch::optim::SGDOptions>(0.5)}}, 0.25);
  for (auto& g : groups.param_groups()) std::cout << g.options().get_lr() << ' ';
  auto loss = groups.step([&] { groups.zero_grad(); auto l = (p * p).sum(); l.backward(); return l; });
  SHOW(loss.item<double>() << ' ' << p.item<double>());
}
