// A network that learns digits, written as programs for PyTorch's C++ front end are: argv[1] is the
// folder of the files.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>

struct Net : torch::nn::Module {
  Net() : conv1(torch::nn::Conv2dOptions(1, 8, 5)), conv2(torch::nn::Conv2dOptions(8, 16, 5)), fc1(256, 32), fc2(32, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("drop", drop);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(drop->forward(conv2->forward(x)), 2));
    x = torch::relu(fc1->forward(x.view({-1, 256})));
    x = torch::dropout(x, 0.1, is_training());
    return torch::log_softmax(fc2->forward(x), 1);
  }
  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Dropout2d drop{torch::nn::Dropout2dOptions(0.1)};
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};

template <typename DataLoader>
void train(size_t epoch, Net& model, torch::Device device, DataLoader& loader, torch::optim::Optimizer& optimizer, size_t size) {
  model.train();
  size_t index = 0;
  for (auto& batch : loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    optimizer.zero_grad();
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets);
    AT_ASSERT(!std::isnan(loss.template item<float>()));
    loss.backward();
    optimizer.step();
    if (index++ % 8 == 0)
      std::printf("epoch %ld [%5ld/%5ld] loss %.3f\n", epoch, index * batch.data.size(0), size, loss.template item<float>());
  }
}

template <typename DataLoader>
double test(Net& model, torch::Device device, DataLoader& loader, size_t size) {
  torch::NoGradGuard no_grad;
  model.eval();
  double loss = 0;
  int64_t correct = 0;
  for (const auto& batch : loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto output = model.forward(data);
    loss += torch::nll_loss(output, targets, {}, torch::Reduction::Sum).template item<float>();
    correct += output.argmax(1).eq(targets).sum().template item<int64_t>();
  }
  std::printf("test: loss %.4f\n", loss / static_cast<double>(size));
  return static_cast<double>(correct) / static_cast<double>(size);
}

int main(int, char** argv) {
  torch::manual_seed(1);
  torch::DeviceType device_type = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  torch::Device device(device_type);
  Net model;
  model.to(device);
  auto train_set = torch::data::datasets::MNIST(argv[1]).map(torch::data::transforms::Normalize<>(0.1307, 0.3081)).map(torch::data::transforms::Stack<>());
  const size_t train_size = train_set.size().value();
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(train_set), 32);
  auto test_set = torch::data::datasets::MNIST(argv[1], torch::data::datasets::MNIST::Mode::kTest).map(torch::data::transforms::Normalize<>(0.1307, 0.3081)).map(torch::data::transforms::Stack<>());
  const size_t test_size = test_set.size().value();
  auto test_loader = torch::data::make_data_loader(std::move(test_set), torch::data::DataLoaderOptions().batch_size(50).workers(2));
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));
  double right = 0;
  for (size_t epoch = 1; epoch <= 3; ++epoch) {
    train(epoch, model, device, *train_loader, optimizer, train_size);
    right = test(model, device, *test_loader, test_size);
  }
  std::printf("right: %d\n", right > 0.9);
}
