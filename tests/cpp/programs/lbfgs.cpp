// L-BFGS beside Python's, saved in the middle; and tensors that change what they stand for.
#include <sstream>

#include "show.h"

template <class P>
void train(P options, int steps) {
  torch::manual_seed(5);
  torch::nn::Linear first(4, 8), second(8, 1);
  torch::nn::Sequential model(first, torch::nn::Tanh(), second);
  auto x = torch::randn({16, 4}), y = torch::randn({16, 1});
  torch::optim::LBFGS optimizer(model->parameters(), options);
  int calls = 0;
  const auto closure = [&] {
    ++calls;
    model->zero_grad();
    auto loss = torch::mse_loss(model->forward(x), y);
    loss.backward();
    return loss;
  };
  for (int i = 0; i < steps; ++i) std::cout << hexed(optimizer.step(closure)) << ' ';
  std::stringstream saved;
  torch::save(optimizer, saved);
  torch::optim::LBFGS other(model->parameters(), torch::optim::LBFGSOptions(0.5));
  torch::load(other, saved);
  for (int i = 0; i < steps; ++i) std::cout << hexed(other.step(closure)) << ' ';
  std::cout << calls;
  for (auto& p : model->parameters()) std::cout << ' ' << hexed(p);
  std::cout << std::endl;
}

int main() {
  using torch::optim::LBFGSOptions;
  train(LBFGSOptions(), 3);
  train(LBFGSOptions(0.5).max_iter(6).history_size(3), 4);
  train(LBFGSOptions(1).line_search_fn("strong_wolfe"), 3);
  train(LBFGSOptions(1).line_search_fn("strong_wolfe").max_iter(5).history_size(2), 5);
  auto p = torch::ones({2}, torch::requires_grad());
  torch::optim::LBFGS optimizer({p});
  fails([&] { optimizer.step(nullptr); });
  fails([&] { torch::optim::LBFGS({p}, LBFGSOptions(-1)); });
  fails([&] { torch::optim::LBFGS({p}, LBFGSOptions(1).line_search_fn("other")).step([&] { return p.sum(); }); });

  auto t = torch::arange(6, torch::kFloat).view({2, 1, 3});
  SHOW(t.squeeze_().sizes() << t.t_().sizes() << t.unsqueeze_(0).sizes() << t.transpose_(0, 2).sizes() << t.squeeze_(-1).sizes() << t);
  SHOW(t.resize_({2, 2}).sizes() << t.resize_as_(torch::ones({1, 4})).sizes() << t.as_strided_({2}, {2}, 1));
  auto x = torch::ones({2, 3}, torch::requires_grad());
  auto y = x * 2;
  y.t_();
  (y * torch::ones({3, 2})).sum().backward();
  SHOW(x.grad() << y.grad_fn()->name());
  auto z = torch::ones({3});
  SHOW(z.set_(t).is_alias_of(t) << z.sizes() << z.set_().numel());
  fails([&] { x.t_(); });
  fails([&] { x.resize_({6}); });
  fails([&] { z.set_(torch::ones({1}, torch::kLong)); });
  fails([&] { z.unsqueeze_(4); });
}
