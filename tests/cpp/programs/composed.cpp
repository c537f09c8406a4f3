// Attention, transformers, cells and layers that are made of others.
#include "show.h"

namespace nn = torch::nn;

void one(const Tensor& x) { std::cout << ' ' << (x.defined() ? hexed(x) : "none"); }
void one(const std::tuple<Tensor, Tensor>& xs) { one(std::get<0>(xs)); one(std::get<1>(xs)); }
Tensor total(const Tensor& x) { return x.pow(2).sum(); }
Tensor total(const std::tuple<Tensor, Tensor>& xs) { return total(std::get<0>(xs)); }

// Parameters before, the result, gradients, and how it prints.
template <class M, class Y>
void shown(M& m, const Y& y) {
  for (auto& p : m->named_parameters()) std::cout << p.key() << ' ';
  one(y);
  total(y).backward();
  for (auto& p : m->parameters()) one(p.grad());
  std::cout << ' ' << printed(m) << "\n==\n";
}

int main() {
  const auto causal = nn::Transformer()->generate_square_subsequent_mask(5);
  const auto hidden = torch::tensor({{false, false, false, false, true}, {false, false, false, true, true}});
  const auto faint = torch::zeros({2, 5}).masked_fill(hidden, -INFINITY);
  // RUNS
  // A clone computes the same and draws nothing.
  torch::manual_seed(3);
  nn::TransformerEncoder stack(nn::TransformerEncoderOptions(nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(8).dropout(0), 2).norm(nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({4})))));
  auto before = torch::rand({1});
  torch::manual_seed(3);
  nn::TransformerEncoder again(nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(8).dropout(0)), 2);
  again->clone();
  SHOW(torch::equal(before, torch::rand({1})));
  auto copy = std::dynamic_pointer_cast<nn::TransformerEncoderImpl>(stack->clone());
  auto x = torch::randn({3, 2, 4});
  { torch::NoGradGuard no_grad; stack->parameters().back().fill_(2); }
  SHOW(torch::equal(copy->forward(x), stack(x)) << copy->parameters().back().is_same(stack->parameters().back()));
  { torch::NoGradGuard no_grad; copy->parameters().back().fill_(2); }
  SHOW(torch::equal(copy->forward(x), stack(x)));
  nn::Transformer custom(nn::TransformerOptions(4, 2, 1, 1).dim_feedforward(8).dropout(0).custom_encoder(nn::AnyModule(stack)).activation([](const Tensor& t) { return torch::silu(t); }));
  SHOW(custom(x, x).sizes() << custom->encoder.ptr().get() << (custom->encoder.ptr().get() == stack.get()));
  // Pools give and take places.
  nn::MaxPool2d pool(2);
  auto image = torch::randn({1, 2, 5, 4});
  auto [best, places] = pool->forward_with_indices(image);
  SHOW(torch::equal(best, pool(image)) << nn::MaxUnpool2d(2)(best, places, std::vector<int64_t>{5, 4}).sizes() << nn::MaxUnpool2d(2)(best, places.clamp_max(15)).sizes());
  nn::ParameterDict dict;
  dict->insert("a", torch::ones({2}, torch::requires_grad()));
  SHOW(dict->size() << dict->contains("a") << dict["a"] << dict->pop("a").sizes() << dict->size());

  fails([&] { nn::MultiheadAttention(5, 2); });
  fails([&] { nn::MultiheadAttention m(4, 2); m(x, x.slice(1, 0, 1), x); });
  fails([&] { nn::MultiheadAttention m(4, 2); m->forward(x, x, x, {}, true, torch::zeros({2, 2})); });
  fails([&] { nn::Transformer t(nn::TransformerOptions(4, 2, 1, 1)); t(x, torch::ones({3, 1, 4})); });
  fails([&] { nn::TransformerEncoderLayerOptions(4, 2).activation(torch::kSame); });
  fails([&] { nn::AdaptiveLogSoftmaxWithLoss(4, 8, std::vector<int64_t>{3, 2}); });
  fails([&] { nn::AdaptiveLogSoftmaxWithLoss m(4, 8, std::vector<int64_t>{2}); m->forward(torch::ones({1, 4}), torch::tensor({9})); });
  fails([&] { nn::LSTMCell m(3, 4); m(torch::ones({1, 2, 3})); });
  fails([&] { nn::MaxUnpool2d(2)(best, places + 100); });
  fails([&] { nn::Upsample()(image); });
}
