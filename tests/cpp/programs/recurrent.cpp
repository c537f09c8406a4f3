#include "show.h"

static std::vector<Tensor> states(const Tensor& h) { return {h}; }
static std::vector<Tensor> states(const std::tuple<Tensor, Tensor>& s) {
  return {std::get<0>(s), std::get<1>(s)};
}

template <class M, class Out>
void show(M& m, const Tensor& x, const Out& result) {
  const Tensor& out = std::get<0>(result);
  std::cout << hexed(out);
  for (const Tensor& s : states(std::get<1>(result))) std::cout << ' ' << hexed(s);
  out.pow(2).sum().backward();
  std::cout << ' ' << hexed(x.grad());
  for (auto& p : m->parameters()) std::cout << ' ' << hexed(p.grad());
  SHOW(' ' << printed(m));
}

int main() {
  // RUNS
  torch::nn::LSTM lstm(3, 4);
  torch::nn::GRU gru(3, 4);
  auto x = torch::ones({5, 2, 3});
  fails([&] { lstm(torch::ones({5, 2, 2})); });
  fails([&] { gru->forward(x, torch::ones({1, 4})); });
  fails([&] { gru->forward(x, torch::ones({1, 2, 5})); });
  fails([&] { torch::nn::RNN(3, 0); });
  auto [out, state] = lstm(x);
  auto again = lstm->forward(x, state);
  SHOW((std::get<0>(again).sizes() == out.sizes()));
}
