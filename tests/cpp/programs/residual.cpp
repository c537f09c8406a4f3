// A residual network and what programs ask of modules.
#include <torch/torch.h>

#include <iostream>
namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct BlockImpl : nn::Module {
  explicit BlockImpl(int64_t inplanes, int64_t planes, int64_t stride = 1,
                     nn::Sequential downsample = nn::Sequential())
      : conv1(nn::Conv2dOptions(inplanes, planes, 3).stride(stride).padding(1).bias(false)),
        bn1(planes),
        downsample(downsample) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    if (!this->downsample->is_empty()) register_module("downsample", this->downsample);
  }
  torch::Tensor forward(torch::Tensor x) {
    at::Tensor residual(x.clone());
    x = torch::relu(bn1->forward(conv1->forward(x)));
    if (!downsample->is_empty()) residual = downsample->forward(residual);
    x += residual;
    return torch::relu(x);
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Sequential downsample;
};
TORCH_MODULE(Block);

template <class B>
struct ResNetImpl : nn::Module {
  int64_t inplanes = 4;
  nn::Conv2d conv1{nullptr};
  nn::Sequential layer1{nullptr}, layer2{nullptr};
  nn::Linear fc{nullptr};
  ResNetImpl(std::vector<int64_t> layers, int64_t classes) {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(1)));
    layer1 = register_module("layer1", make(4, layers[0], 1));
    layer2 = register_module("layer2", make(8, layers[1], 2));
    fc = register_module("fc", nn::Linear(8, classes));
    for (auto m : this->modules(false)) {
      if (m->name() == "torch::nn::Conv2dImpl") {
        for (auto p : m->named_parameters()) nn::init::kaiming_normal_(p.value(), 0.0, torch::kFanOut, torch::kReLU);
      } else if (auto* bn = m->as<nn::BatchNorm2d>()) {
        nn::init::constant_(bn->weight, 1);
        nn::init::constant_(bn->bias, 0);
      }
    }
  }
  nn::Sequential make(int64_t planes, int64_t n, int64_t stride) {
    nn::Sequential down;
    if (stride != 1 || inplanes != planes)
      down =
          nn::Sequential(nn::Conv2d(nn::Conv2dOptions(inplanes, planes, 1).stride(stride)), nn::BatchNorm2d(planes));
    nn::Sequential layers;
    layers->push_back(B(inplanes, planes, stride, down));
    inplanes = planes;
    for (int64_t i = 1; i < n; ++i) layers->push_back(B(inplanes, planes));
    return layers;
  }
  torch::Tensor forward(torch::Tensor x) {
    x = layer2->forward(layer1->forward(torch::relu(conv1->forward(x))));
    x = torch::adaptive_avg_pool2d(x, {1, 1});
    return fc->forward(x.view({x.size(0), -1}));
  }
};
TORCH_MODULE_IMPL(ResNet, ResNetImpl<Block>);

struct M : nn::Cloneable<M> {
  M(int n) : n(n) { reset(); }
  void reset() override {
    weight = register_parameter("weight", torch::full({n}, 2.0f));
    running = register_buffer("running", torch::zeros({n}));
    linear = register_module("linear", nn::Linear(n, n));
  }
  void pretty_print(std::ostream& s) const override { s << "M(n=" << n << ')'; }
  torch::Tensor forward(const torch::Tensor& x) { return linear->forward(x) * weight + running; }
  int n;
  torch::Tensor weight, running;
  nn::Linear linear{nullptr};
};

int main() {
  torch::manual_seed(0);
  ResNet net(std::vector<int64_t>{2, 2}, 5);
  auto y = net->forward(torch::rand({2, 3, 8, 8}));
  std::cout << y.sizes() << ' ' << net->parameters().size() << '\n';
  for (const auto& pair : net->named_parameters()) std::cout << pair.key() << ": " << pair.value().sizes() << '\n';
  for (const auto& b : net->named_buffers()) std::cout << b.key() << ' ';
  std::cout << '\n';
  nn::Sequential named(
      {{"first", nn::Linear(3, 4)}, {"act", nn::ReLU(nn::ReLUOptions(true))}, {"last", nn::Linear(4, 1)}});
  named->push_back("sig", nn::Sigmoid());
  named->push_back(nn::Functional(torch::relu));
  named->push_back(nn::Functional(torch::leaky_relu, 0.2));
  std::cout << named << '\n';
  for (const auto& c : named->named_children()) std::cout << c.key() << ' ';
  std::cout << named->size() << ' ' << named[0]->as<nn::Linear>()->options.in_features() << '\n';
  std::cout << named->forward(torch::ones({2, 3})).sizes() << '\n';
  auto first = named->ptr<nn::LinearImpl>(0);
  std::cout << named->at<nn::LinearImpl>(0).weight.sizes() << (first->bias.defined()) << '\n';
  for (auto& any : *named) (void)any.ptr();
  auto m = std::make_shared<M>(3);
  auto copy = std::dynamic_pointer_cast<M>(m->clone());
  {
    torch::NoGradGuard g;
    copy->weight.fill_(7);
  }
  std::cout << m->weight[0].item<float>() << copy->weight[0].item<float>() << *m << '\n';
  m->to(torch::kFloat64);
  std::cout << m->weight.dtype() << m->linear->weight.scalar_type() << '\n';
  m->apply([](nn::Module& module) {
    torch::NoGradGuard no_grad;
    if (auto* linear = module.as<nn::Linear>()) linear->weight.normal_(0.0, 0.02);
  });
  m->apply([](const std::string& name, nn::Module& module) { std::cout << '[' << name << ']'; }, "root");
  std::cout << '\n';
  m->zero_grad();
  m->eval();
  std::cout << m->is_training() << m->linear->is_training() << '\n';
  auto params = m->named_parameters(true);
  std::cout << params.contains("linear.weight") << params["linear.weight"].sizes() << params.keys().size() << '\n';
  auto* found = params.find("nothing");
  std::cout << (found == nullptr) << '\n';
  nn::ModuleList list(nn::Linear(2, 2), nn::ReLU());
  list->push_back(nn::Linear(2, 3));
  auto x = torch::ones({1, 2});
  for (const auto& mod : *list) {
    if (auto l = mod->as<nn::Linear>())
      x = l->forward(x);
    else
      x = mod->as<nn::ReLU>()->forward(x);
  }
  std::cout << x.sizes() << '\n';
  nn::ModuleDict dict;
  torch::OrderedDict<std::string, std::shared_ptr<nn::Module>> od;
  od.insert("a", nn::Linear(1, 2).ptr());
  dict->update(od);
  std::cout << dict->contains("a") << dict->keys().size() << '\n';
  nn::AnyModule any(nn::Linear(3, 2));
  std::cout << any.forward(torch::ones({1, 3})).sizes() << any.get<nn::Linear>()->options.out_features() << '\n';
  auto e = nn::Embedding(nn::EmbeddingOptions(10, 3).padding_idx(0));
  auto ep = nn::Embedding::from_pretrained(torch::rand({4, 2}));
  std::cout << e(torch::tensor({0, 2})).sizes() << ep->weight.requires_grad() << '\n';
  nn::LSTM lstm(nn::LSTMOptions(3, 4).num_layers(2).batch_first(true).bidirectional(true));
  auto [out, state] = lstm->forward(torch::rand({2, 5, 3}));
  std::cout << out.sizes() << std::get<0>(state).sizes() << '\n';
  auto packed = nn::utils::rnn::pack_padded_sequence(torch::rand({2, 5, 3}), torch::tensor({5, 3}), true);
  auto [po, ps] = lstm->forward_with_packed_input(packed);
  auto [padded, lengths] = nn::utils::rnn::pad_packed_sequence(po, true);
  std::cout << padded.sizes() << lengths << '\n';
  auto total = nn::utils::clip_grad_norm_(net->parameters(), 1.0);
  nn::utils::clip_grad_value_(net->parameters(), 1.0);
  auto vec = nn::utils::parameters_to_vector(lstm->parameters());
  nn::utils::vector_to_parameters(vec, lstm->parameters());
  std::cout << total << ' ' << vec.numel() << '\n';
  std::cout
      << F::interpolate(
             torch::rand({1, 1, 4, 4}),
             F::InterpolateFuncOptions().size(std::vector<int64_t>{8, 8}).mode(torch::kBilinear).align_corners(false))
             .sizes()
      << '\n';
  std::cout << F::pad(torch::rand({1, 1, 2, 2}), F::PadFuncOptions({1, 1, 0, 0}).mode(torch::kReflect)).sizes()
            << '\n';
  std::cout << F::one_hot(torch::tensor({0, 2}), 3)
            << F::cross_entropy(torch::zeros({2, 3}), torch::tensor({0, 1}),
                                F::CrossEntropyFuncOptions().reduction(torch::kSum).label_smoothing(0.1))
            << '\n';
  auto grid = F::affine_grid(torch::eye(2, 3).unsqueeze(0), {1, 1, 4, 4}, false);
  std::cout << F::grid_sample(
                   torch::rand({1, 1, 4, 4}), grid,
                   F::GridSampleFuncOptions().mode(torch::kBilinear).padding_mode(torch::kZeros).align_corners(false))
                   .sizes()
            << '\n';
}
