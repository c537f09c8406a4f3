#include "show.h"

int main() {
  auto x = torch::ones({2, 3});
  fails([&] { x.view({4}); });
  fails([&] { x + torch::ones({4}); });
  fails([&] { x.data_ptr<double>(); });
  fails([&] { x.accessor<float, 3>(); });
  fails([&] { x.index({0, 0, 0}); });
  fails([&] { x[5]; });
  fails([&] { x.item(); });
  fails([&] { torch::tensor({1, 2})[0][0]; });
  fails([&] { torch::zeros({2}, torch::TensorOptions().pinned_memory(true)); });
  fails([&] { torch::zeros({2}, torch::Device("cpu:x")); });
  fails([&] { torch::from_blob(nullptr, {2}); });
  fails([&] { torch::from_blob(&x, {2, 2}, {1}); });
  fails([&] { torch::tensor({{1, 2}, {3}}); });
  fails([&] { torch::zeros({2}).remove_hook(123456); });
}
