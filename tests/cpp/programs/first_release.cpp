#include <torch/torch.h>
int main() {
  torch::manual_seed(0);
  torch::nn::Linear model(5, 1);
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.1);
  torch::Tensor prediction = model->forward(torch::randn({3, 5}));
  auto loss = torch::mse_loss(prediction, torch::ones({3, 1}));
  loss.backward();
  optimizer.step();
  std::cout << loss << '\n' << model->weight << '\n' << model->bias << '\n' << model << '\n';
}
