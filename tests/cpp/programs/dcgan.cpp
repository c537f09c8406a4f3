// Two networks against one another, written as programs for PyTorch's C++ front end are: argv[1] is
// the folder of the digits, argv[2] that of the checkpoints.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>

const int64_t kNoiseSize = 16, kBatchSize = 32, kNumberOfEpochs = 1, kCheckpointEvery = 8;

using namespace torch;

struct DCGANGeneratorImpl : nn::Module {
  DCGANGeneratorImpl(int kNoiseSize)
      : conv1(nn::ConvTranspose2dOptions(kNoiseSize, 32, 4).bias(false)),
        batch_norm1(32),
        conv2(nn::ConvTranspose2dOptions(32, 16, 3).stride(2).padding(1).bias(false)),
        batch_norm2(16),
        conv3(nn::ConvTranspose2dOptions(16, 8, 4).stride(2).padding(1).bias(false)),
        batch_norm3(8),
        conv4(nn::ConvTranspose2dOptions(8, 1, 4).stride(2).padding(1).bias(false)) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv3", conv3);
    register_module("conv4", conv4);
    register_module("batch_norm1", batch_norm1);
    register_module("batch_norm2", batch_norm2);
    register_module("batch_norm3", batch_norm3);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(batch_norm1(conv1(x)));
    x = torch::relu(batch_norm2(conv2(x)));
    x = torch::relu(batch_norm3(conv3(x)));
    return torch::tanh(conv4(x));
  }
  nn::ConvTranspose2d conv1;
  nn::BatchNorm2d batch_norm1;
  nn::ConvTranspose2d conv2;
  nn::BatchNorm2d batch_norm2;
  nn::ConvTranspose2d conv3;
  nn::BatchNorm2d batch_norm3;
  nn::ConvTranspose2d conv4;
};
TORCH_MODULE(DCGANGenerator);

int main(int, char** argv) {
  torch::manual_seed(1);
  const std::string out = argv[2];
  torch::Device device(torch::kCPU);
  if (torch::cuda::is_available()) device = torch::Device(torch::kCUDA);
  DCGANGenerator generator(kNoiseSize);
  generator->to(device);
  nn::Sequential discriminator(
      nn::Conv2d(nn::Conv2dOptions(1, 16, 4).stride(2).padding(1).bias(false)),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Conv2d(nn::Conv2dOptions(16, 32, 4).stride(2).padding(1).bias(false)),
      nn::BatchNorm2d(32), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Conv2d(nn::Conv2dOptions(32, 64, 4).stride(2).padding(1).bias(false)),
      nn::BatchNorm2d(64), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Conv2d(nn::Conv2dOptions(64, 1, 3).stride(1).padding(0).bias(false)), nn::Sigmoid());
  discriminator->to(device);

  auto dataset = torch::data::datasets::MNIST(argv[1]).map(torch::data::transforms::Normalize<>(0.5, 0.5)).map(torch::data::transforms::Stack<>());
  const int64_t batches_per_epoch = static_cast<int64_t>(std::ceil(dataset.size().value() / static_cast<double>(kBatchSize)));
  auto data_loader = torch::data::make_data_loader(std::move(dataset), torch::data::DataLoaderOptions().batch_size(kBatchSize).workers(2));
  torch::optim::Adam generator_optimizer(generator->parameters(), torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.5)));
  torch::optim::Adam discriminator_optimizer(discriminator->parameters(), torch::optim::AdamOptions(5e-4).betas(std::make_tuple(0.5, 0.5)));

  int64_t checkpoint_counter = 0;
  for (int64_t epoch = 1; epoch <= kNumberOfEpochs; ++epoch) {
    int64_t batch_index = 0;
    for (const torch::data::Example<>& batch : *data_loader) {
      discriminator->zero_grad();
      torch::Tensor real_images = batch.data.to(device);
      torch::Tensor real_labels = torch::empty(batch.data.size(0), device).uniform_(0.8, 1.0);
      torch::Tensor real_output = discriminator->forward(real_images).reshape(real_labels.sizes());
      torch::Tensor d_loss_real = torch::binary_cross_entropy(real_output, real_labels);
      d_loss_real.backward();

      torch::Tensor noise = torch::randn({batch.data.size(0), kNoiseSize, 1, 1}, device);
      torch::Tensor fake_images = generator->forward(noise);
      torch::Tensor fake_labels = torch::zeros(batch.data.size(0), device);
      torch::Tensor fake_output = discriminator->forward(fake_images.detach()).reshape(fake_labels.sizes());
      torch::Tensor d_loss_fake = torch::binary_cross_entropy(fake_output, fake_labels);
      d_loss_fake.backward();
      torch::Tensor d_loss = d_loss_real + d_loss_fake;
      discriminator_optimizer.step();

      generator->zero_grad();
      fake_labels.fill_(1);
      fake_output = discriminator->forward(fake_images).reshape(fake_labels.sizes());
      torch::Tensor g_loss = torch::binary_cross_entropy(fake_output, fake_labels);
      g_loss.backward();
      generator_optimizer.step();
      batch_index++;
      if (batch_index % kCheckpointEvery == 0) {
        std::printf("[%2ld/%2ld][%3ld/%3ld] D_loss: %.4f | G_loss: %.4f\n", epoch, kNumberOfEpochs, batch_index, batches_per_epoch, d_loss.item<float>(), g_loss.item<float>());
        torch::save(generator, out + "/generator-checkpoint.pt");
        torch::save(generator_optimizer, out + "/generator-optimizer-checkpoint.pt");
        torch::save(discriminator, out + "/discriminator-checkpoint.pt");
        torch::save(discriminator_optimizer, out + "/discriminator-optimizer-checkpoint.pt");
        torch::Tensor samples = generator->forward(torch::randn({8, kNoiseSize, 1, 1}, device));
        torch::save((samples + 1.0) / 2.0, torch::str(out, "/dcgan-sample-", ++checkpoint_counter, ".pt"));
      }
    }
  }
  DCGANGenerator again(kNoiseSize);
  torch::load(again, out + "/generator-checkpoint.pt");
  again->eval();
  std::cout << again->forward(torch::randn({1, kNoiseSize, 1, 1})).sizes() << std::endl;
}
