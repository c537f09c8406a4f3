// A scripted model, loaded and trained without Python: net.pt, then inputs of the same seed.
#include <torch/script.h>

#include "show.h"

int main(int, char** argv) {
  const std::string folder = argv[1];
  torch::jit::script::Module net = torch::jit::load(folder + "/net.pt");
  for (auto& p : net.named_parameters()) std::cout << p.name << p.value.sizes() << ' ';
  for (auto& b : net.named_buffers()) std::cout << b.name << ' ';
  for (auto& c : net.named_children()) std::cout << c.name << ' ';
  SHOW(net.is_training() << net.attr("k") << net.attr("names") << net.hasattr("none"));
  torch::manual_seed(3);
  auto x = torch::randn({6, 3}), y = torch::randn({6, 2});
  auto out = net.forward({x});
  SHOW(hexed(out.toTuple()->elements()[0].toTensor()) << out.toTuple()->elements()[1].toInt());
  net.eval();
  SHOW(hexed(net.forward({x}).toTuple()->elements()[0].toTensor()) << net.is_training());
  net.train();
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int i = 0; i < 10; ++i) {
    optimizer.zero_grad();
    auto loss = torch::mse_loss(net.forward({x}).toTuple()->elements()[0].toTensor(), y);
    loss.backward();
    optimizer.step();
    std::cout << hexed(loss) << ' ';
  }
  std::cout << '\n';
  for (auto& p : net.named_parameters()) std::cout << p.name << ' ' << hexed(p.value) << '\n';
  SHOW(net.run_method("counted", 3).toInt() << net.get_method("counted")({}).toInt());
  SHOW(net.attr("seen").toIntVector().size());
  net.setattr("k", 5.0);
  SHOW(net.attr("k").toDouble() << net.child("fc").attr("weight").toTensor().sizes());

  auto function = torch::jit::load(folder + "/function.pt");
  SHOW(function.forward({torch::ones({2}), 3}).toTensor());

  fails([&] { net.get_method("nothing"); });
  fails([&] { net.attr("nothing"); });
  fails([&] { net.setattr("k", torch::ones({1})); });
  fails([&] { net.forward({}); });
  fails([&] { net.forward({1, 2, 3}); });
  fails([&] { net.forward({torch::ones({2, 5})}); });
  fails([&] { torch::jit::load(folder + "/missing.pt"); });
  fails([&] { torch::jit::load(folder + "/checkpoint.pt"); });
  fails([&] { torch::jit::load(folder + "/library.pt"); });
  fails([&] { torch::jit::load(folder + "/damaged.pt"); });
}
