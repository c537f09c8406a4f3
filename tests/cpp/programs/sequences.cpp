// Sequences of several lengths, packed, through recurrent networks; gradients clipped; embeddings
// of a weight that is there.
#include "show.h"

namespace nn = torch::nn;
namespace rnn = torch::nn::utils::rnn;

template <class Net>
void run(Net net, const rnn::PackedSequence& packed) {
  auto [out, state] = net->forward_with_packed_input(packed);
  auto [padded, lengths] = rnn::pad_packed_sequence(out, true, -1.0, 6);
  SHOW(hexed(padded));
  SHOW(lengths.dtype() << lengths.sizes() << lengths[0].template item<int64_t>()
                       << lengths[2].template item<int64_t>());
  if constexpr (std::is_same_v<std::decay_t<decltype(state)>, Tensor>)
    SHOW(hexed(state));
  else
    SHOW(hexed(std::get<0>(state)) << hexed(std::get<1>(state)));
  net->zero_grad();
  padded.pow(2).sum().backward();
  SHOW(hexed(nn::utils::parameters_to_vector([&] {
    std::vector<Tensor> grads;
    for (auto& p : net->parameters()) grads.push_back(p.grad());
    return grads;
  }())));
  const double norm = nn::utils::clip_grad_norm_(net->parameters(), 0.5);
  SHOW(hexed(torch::tensor(norm, torch::kFloat)) << hexed(net->parameters()[0].grad()));
  nn::utils::clip_grad_value_(net->parameters(), 0.01);
  SHOW(hexed(net->parameters()[1].grad()));
}

int main() {
  torch::manual_seed(5);
  auto x = torch::randn({3, 5, 2});
  auto lengths = torch::tensor({3, 5, 2});
  auto packed = rnn::pack_padded_sequence(x, lengths, true, false);
  SHOW(hexed(packed.data()));
  run(nn::LSTM(nn::LSTMOptions(2, 3).num_layers(2).bidirectional(true)), packed);
  run(nn::GRU(nn::GRUOptions(2, 3)), packed);
  run(nn::RNN(nn::RNNOptions(2, 3).nonlinearity(torch::kReLU)), packed);

  auto padded = rnn::pad_sequence({torch::ones({2}), torch::zeros({3})}, true, 9);
  SHOW(padded);
  SHOW(rnn::pack_sequence({torch::ones({3}), torch::zeros({2})}).data());
  auto flat = torch::arange(5, torch::kFloat);
  auto a = torch::zeros({2}), b = torch::zeros({3, 1});
  nn::utils::vector_to_parameters(flat, {a, b});
  SHOW(a << b.sizes());
  fails([&] { nn::utils::vector_to_parameters(flat, {a}); });
  fails([&] { rnn::pack_padded_sequence(x, lengths, true); });
  fails([&] { rnn::pack_padded_sequence(x, torch::tensor({6, 1, 1}), true); });
  fails([&] { rnn::pack_padded_sequence(x, torch::tensor({2, 1, 0}), true); });
  fails([&] { nn::GRU(3, 3)->forward_with_packed_input(packed); });
  a.set_requires_grad(true);
  a.mutable_grad() = torch::full({2}, INFINITY);
  fails([&] { nn::utils::clip_grad_norm_(a, 1.0, 2.0, true); });

  auto weight = torch::tensor({{1., 2.}, {3., 4.}, {5., 6.}});
  auto state = torch::rand({1});
  torch::manual_seed(5);
  auto fixed = nn::Embedding::from_pretrained(weight);
  auto trained = nn::EmbeddingBag::from_pretrained(
      weight, nn::EmbeddingBagFromPretrainedOptions().freeze(false).mode(torch::kSum));
  auto again = torch::randn({3, 5, 2});
  SHOW(torch::equal(again, x) << fixed->weight.requires_grad() << trained->weight.requires_grad());
  SHOW(fixed(torch::tensor({2, 0})));
  SHOW(trained(torch::tensor({{0, 1}, {1, 2}})) << fixed);
  fails([&] { nn::Embedding::from_pretrained(torch::ones({2})); });
  fails([&] { nn::Embedding::from_pretrained(weight, nn::EmbeddingFromPretrainedOptions().padding_idx(3)); });
}
