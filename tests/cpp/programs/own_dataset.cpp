// Data sets of the program's own.
#include <torch/torch.h>

#include <iostream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

class CustomDataset : public torch::data::datasets::Dataset<CustomDataset> {
  using Example = torch::data::Example<>;
  std::vector<std::tuple<std::string, int64_t>> csv_;

 public:
  explicit CustomDataset(int n) {
    for (int i = 0; i < n; ++i) csv_.emplace_back("file" + std::to_string(i), i % 3);
  }
  Example get(size_t index) override {
    int64_t label = std::get<1>(csv_[index]);
    torch::Tensor img_tensor = torch::full({4, 4, 3}, (int)index, torch::kByte).clone();
    img_tensor = img_tensor.permute({2, 0, 1});
    torch::Tensor label_tensor = torch::full({1}, label);
    return {img_tensor, label_tensor};
  }
  torch::optional<size_t> size() const override { return csv_.size(); }
};

// A dataset of batches of its own kind
struct Whole : torch::data::datasets::BatchDataset<Whole, std::vector<int>> {
  std::vector<int> get_batch(c10::ArrayRef<size_t> request) override {
    std::vector<int> out;
    for (auto i : request) out.push_back((int)i * 2);
    return out;
  }
  std::optional<size_t> size() const override { return 7; }
};

struct Scale : torch::data::transforms::TensorTransform<> {
  double by;
  explicit Scale(double b) : by(b) {}
  torch::Tensor operator()(torch::Tensor x) override { return x.to(torch::kFloat32).div_(by); }
};

int main() {
  torch::manual_seed(3);
  auto custom_dataset = CustomDataset(20).map(Scale(255)).map(torch::data::transforms::Stack<>());
  auto size = custom_dataset.size().value();
  auto data_loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(custom_dataset), torch::data::DataLoaderOptions().batch_size(8).workers(2).drop_last(true));
  int n = 0;
  for (auto& batch : *data_loader) {
    auto data = batch.data;
    auto labels = batch.target.squeeze();
    std::cout << data.sizes() << labels.sizes() << data.dtype() << '\n';
    ++n;
  }
  std::cout << size << ' ' << n << '\n';
  auto whole = torch::data::make_data_loader(Whole(), torch::data::DataLoaderOptions(3));
  for (auto it = whole->begin(); it != whole->end(); ++it) {
    int total = 0;
    for (int v : *it) total += v;
    std::cout << it->size() << ' ' << (total > 0) << '\n';
  }
  std::vector<torch::data::Example<>> examples;
  auto set = CustomDataset(6).map(torch::data::transforms::Lambda<torch::data::Example<>>(
      [](torch::data::Example<> e) { return torch::data::Example<>(e.data.to(torch::kFloat), e.target + 1); }));
  auto loader = torch::data::make_data_loader(std::move(set), torch::data::samplers::SequentialSampler(6), 4);
  for (auto& batch : *loader)
    for (auto& e : batch) std::cout << e.target.item<int64_t>();
  std::cout << '\n';
  auto tensors =
      torch::data::datasets::TensorDataset(std::vector<torch::Tensor>{torch::ones({2}), torch::zeros({2})});
  std::cout << tensors.size().value() << tensors.get(0).data << '\n';
  torch::data::samplers::DistributedRandomSampler ds(10, 2, 0, false);
  std::cout << ds.next(3).value().size() << '\n';
  auto shared = torch::data::datasets::make_shared_dataset<CustomDataset>(9);
  std::cout << shared.size().value() << '\n';
}
