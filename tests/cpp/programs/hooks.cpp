#include "show.h"

#include <thread>
int main() {
  auto x = torch::ones({2}, torch::requires_grad());
  auto y = x * 3;
  y.retain_grad();
  unsigned twice = y.register_hook([](Tensor g) { return g * 2; });
  y.register_hook([](Tensor g) { SHOW("seen " << g); });
  y.sum().backward({}, true);
  SHOW(x.grad() << y.grad() << y.retains_grad());
  y.remove_hook(twice);
  x.mutable_grad().reset();
  y.sum().backward();
  SHOW(x.grad());
  {
    torch::autograd::DetectAnomalyGuard anomaly;
    auto z = torch::zeros({1}, torch::requires_grad());
    std::fclose(stderr);  // where the report of the node goes
    fails([&] { (z.sqrt() * 0).backward(); });
  }
  auto level = torch::autograd::forward_ad::enter_dual_level();
  auto dual = torch::autograd::forward_ad::make_dual(torch::tensor({2.0}), torch::tensor({1.0}));
  auto [value, tangent] = torch::autograd::forward_ad::unpack_dual(dual * dual);
  SHOW(value << tangent);
  torch::autograd::forward_ad::exit_dual_level(level);
  torch::InferenceMode guard;
  SHOW(torch::ones({1}).is_inference());
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t) threads.emplace_back([&, t] {
    auto a = torch::full({4}, t, torch::dtype(torch::kDouble).requires_grad(true));
    for (int i = 0; i < 50; ++i) { a.mutable_grad().reset(); (a * a).sum().backward(); }
    right += a.grad().eq(2.0 * t).all().item<bool>();
  });
  for (auto& t : threads) t.join();
  SHOW(right);
}
