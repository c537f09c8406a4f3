#include "show.h"

struct NetImpl : torch::nn::Module {
  NetImpl(int64_t in, int64_t out)
      : fc1(register_module("fc1", torch::nn::Linear(in, 8))),
        drop(torch::nn::DropoutOptions().p(0.5)) {
    fc2 = register_module("fc2", torch::nn::Linear(torch::nn::LinearOptions(8, out).bias(false)));
    register_module("drop", drop);
    scale = register_parameter("scale", torch::ones({1}));
    register_buffer("count", torch::zeros({1}, torch::kLong));
  }
  Tensor forward(Tensor x) { return fc2(drop(torch::relu(fc1->forward(x)))) * scale; }
  torch::nn::Linear fc1, fc2{nullptr};
  torch::nn::Dropout drop;
  Tensor scale;
};
TORCH_MODULE(Net);
int main() {
  torch::manual_seed(1);
  Net net(4, 2);
  std::cout << net << "\n";
  for (const auto& p : net->named_parameters()) std::cout << p.key() << p.value().sizes() << " ";
  for (const auto& b : net->named_buffers()) std::cout << b.key() << " ";
  std::cout << net->parameters().size() << net->modules().size() << net->children().size() << "\n";
  net->eval();
  std::cout << net->drop->is_training() << net->is_training() << "\n";
  auto x = torch::randn({3, 4});
  std::cout << torch::equal(net(x), net->forward(x)) << "\n";
  net->forward(x).sum().backward();
  std::cout << net->fc1->weight.grad().defined();
  net->zero_grad();
  std::cout << net->fc1->weight.grad().defined() << "\n";
  net->to(torch::kDouble);
  std::cout << net->fc1->weight.dtype() << net->named_buffers()["count"].dtype() << "\n";
  torch::nn::Sequential seq(torch::nn::Conv2d(1, 2, 3), torch::nn::BatchNorm2d(2), torch::nn::ReLU(), torch::nn::Flatten(), torch::nn::Functional(torch::tanh), torch::nn::Linear(18, 3));
  std::cout << seq << "\n" << seq->forward(torch::ones({1, 1, 5, 5})).sizes() << seq->size() << "\n";
  auto copy = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(seq->clone());
  seq->eval(); copy->eval();
  auto image = torch::rand({1, 1, 5, 5});
  std::cout << torch::equal(seq->forward(image), copy->forward(image));
  { torch::NoGradGuard off; copy->parameters()[0].zero_(); }
  std::cout << torch::equal(seq->forward(image), copy->forward(image)) << "\n";
  torch::nn::Sequential named({{"a", torch::nn::Linear(2, 2)}, {"b", torch::nn::Sigmoid()}});
  std::cout << named->named_parameters().keys()[1] << named->at<torch::nn::LinearImpl>(0).options.in_features() << "\n";
  torch::nn::ModuleList list;
  for (int i = 0; i < 3; ++i) list->push_back(torch::nn::Linear(i + 1, 1));
  for (auto& m : *list) std::cout << m->as<torch::nn::Linear>()->weight.size(1);
  torch::nn::ModuleDict dict;
  dict->insert("x", torch::nn::Linear(2, 3).ptr());
  std::cout << dict->contains("x") << dict->keys()[0] << dict->at<torch::nn::LinearImpl>("x").weight.size(0) << "\n";
  torch::nn::AnyModule any(torch::nn::Bilinear(2, 2, 1));
  std::cout << any.forward(torch::ones({1, 2}), torch::ones({1, 2})).sizes() << "\n";
  net->apply([](torch::nn::Module& m) { if (auto* l = m.as<torch::nn::Linear>()) torch::nn::init::constant_(l->weight, 0.5); });
  std::cout << net->fc2->weight.sum().item<double>() << "\n";
  namespace F = torch::nn::functional;
  std::cout << F::max_pool2d(image, F::MaxPool2dFuncOptions(2)).sizes() << F::leaky_relu(torch::tensor({-1.0}), F::LeakyReLUFuncOptions().negative_slope(0.5)) << F::mse_loss(torch::ones({2}), torch::zeros({2}), F::MSELossFuncOptions(torch::kSum)) << F::cross_entropy(torch::zeros({1, 4}), torch::tensor({1})).sizes() << "\n";
  fails([&] { net->register_module("fc1", torch::nn::Linear(1, 1)); });
  fails([&] { net->register_parameter("a.b", torch::ones({1})); });
  fails([&] { net->clone(); });
  fails([&] { torch::nn::Linear none{nullptr}; none->forward(torch::ones({1})); });
  fails([&] { torch::nn::Conv2d(3, 4, std::vector<int64_t>{1, 2, 3}); });
  fails([&] { torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).groups(2)); });
  fails([&] { torch::nn::Sequential()->forward(torch::ones({1})); });
  fails([&] { any.forward(torch::ones({1, 2})); });
}
