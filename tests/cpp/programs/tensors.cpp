// Tensors as programs for PyTorch's C++ front end use them.
#include <torch/torch.h>

#include <complex>
#include <iostream>
using namespace torch::indexing;
template <class T>
void rows(torch::PackedTensorAccessor32<T, 2> a) {
  for (int i = 0; i < a.size(0); ++i) a[i][0] += 1;
}
static_assert(std::is_same<at::Tensor, torch::Tensor>::value);
int main() {
  torch::TensorOptions options =
      torch::TensorOptions().dtype(torch::kFloat32).layout(torch::kStrided).device(torch::kCPU).requires_grad(true);
  auto t = torch::full({3, 4}, 1.5, options);
  std::cout << t.options().dtype() << t.device() << t.requires_grad() << t.layout() << '\n';
  auto o2 = torch::dtype(torch::kInt64).device(torch::kCPU, 0);
  std::cout << torch::zeros({2}, torch::kInt32).dtype() << ' ' << torch::elementSize(torch::kFloat64) << '\n';
  auto x = torch::arange(24, torch::kFloat).reshape({2, 3, 4});
  std::cout << x.index({"...", 0}) << x.index({Ellipsis, Slice(None, None, 2)}).sizes() << x.index({None, 1}).sizes()
            << '\n';
  std::cout << x.index({torch::tensor({1, 0}), torch::tensor({0, 2})}) << x.index({x > 20}) << '\n';
  x.index_put_({Slice(), 1, Slice(1, 3)}, torch::zeros({2}));
  x.index_put_({x < 3}, 100.0);
  x.index({0, 0}) = torch::ones({4});
  x[0][0][0] = 5;
  std::cout << x << '\n';
  auto a = x.accessor<float, 3>();
  float sum = 0;
  for (int64_t i = 0; i < a.size(0); ++i)
    for (int64_t j = 0; j < a.size(1); ++j) {
      auto row = a[i][j];
      for (int64_t k = 0; k < row.size(0); ++k) sum += row[k];
    }
  std::cout << sum << ' ' << a.stride(0) << a.sizes() << '\n';
  auto m = torch::zeros({2, 2});
  rows<float>(m.packed_accessor32<float, 2>());
  auto p64 = m.packed_accessor64<float, 2, torch::RestrictPtrTraits>();
  std::cout << m << p64[1][0] << '\n';
  std::vector<float> data{1, 2, 3, 4};
  auto blob = torch::from_blob(data.data(), {2, 2}, torch::kFloat32);
  auto blob2 = torch::from_blob(data.data(), {2, 2}, {1, 2}, torch::TensorOptions().dtype(torch::kFloat));
  auto blob3 = torch::from_blob(data.data(), {4}, [](void*) { std::cout << "gone "; }, torch::kFloat);
  std::cout << blob << blob2 << '\n';
  std::vector<float> back(blob.data_ptr<float>(), blob.data_ptr<float>() + blob.numel());
  std::cout << back.size() << blob.const_data_ptr<float>()[1] << *blob.mutable_data_ptr<float>() << '\n';
  std::cout << torch::tensor({{1, 2}, {3, 4}}) << torch::tensor(std::vector<double>{1, 2}, torch::kFloat)
            << torch::tensor(3.5).item<float>() << torch::scalar_tensor(2) << '\n';
  std::cout << torch::tensor({true, false}) << '\n';
  c10::IntArrayRef s = x.sizes();
  std::cout << s.size() << s[0] << s.back() << s.slice(1) << (s == at::IntArrayRef({2, 3, 4})) << s.equals({2, 3, 4})
            << '\n';
  std::cout << x.sizes().vec().size() << x.strides() << x.is_contiguous() << x.dim() << x.ndimension()
            << x.element_size() << x.nbytes() << '\n';
  auto [vals, idx] = torch::sort(torch::tensor({3, 1, 2}), 0, true);
  std::cout << vals << idx << '\n';
  auto tk = torch::topk(torch::tensor({3., 1., 2.}), 2);
  std::cout << std::get<0>(tk) << std::get<1>(tk) << '\n';
  auto [u, sv, vh] = torch::linalg_svd(torch::eye(3));
  std::cout << sv << torch::linalg::det(torch::eye(2)).item<double>() << '\n';
  std::cout << torch::cat({torch::ones({1, 2}), torch::zeros({1, 2})}, 0)
            << torch::stack({torch::ones({2}), torch::ones({2})}).sizes() << '\n';
  for (auto& c : torch::chunk(torch::arange(6), 3)) std::cout << c;
  for (auto& c : torch::arange(5).split({2, 3})) std::cout << c.sizes();
  std::cout << '\n'
            << torch::where(torch::tensor({true, false}), 1.0, 0.0)
            << torch::where(torch::tensor({1, 0}).to(torch::kBool), torch::ones({2}), torch::zeros({2})) << '\n';
  std::cout << at::ones({2}, at::kFloat).add(1, 2) << (2 - torch::ones({2})) << -torch::ones({1})
            << (torch::ones({1}) / 2) << '\n';
  auto b = torch::ones({2}, torch::kBool);
  std::cout << (b & ~b) << (b | b) << (torch::ones({2}) == torch::ones({2})).all().item<bool>() << '\n';
  std::cout << torch::isfinite(torch::tensor({1.0, INFINITY})) << torch::nan_to_num(torch::tensor({NAN})) << '\n';
  std::cout << x.to(torch::kCPU, torch::kDouble).dtype() << x.to(torch::kHalf).scalar_type()
            << x.toType(torch::kInt).dtype() << x.type().toString() << c10::toString(x.scalar_type()) << '\n';
  at::Scalar sc = 3;
  std::cout << sc.to<int>() << '\n';
  auto gen = at::detail::createCPUGenerator(5);
  auto r1 = torch::rand({2}, gen), r2 = torch::randint(0, 5, {3}, gen);
  auto g2 = torch::make_generator<at::CPUGeneratorImpl>(5);
  std::cout << torch::equal(torch::rand({2}, g2), r1) << '\n';
  std::cout << torch::randint(10, {2, 2}).sizes() << torch::randperm(4).sizes() << torch::linspace(0, 1, 3)
            << torch::eye(2) << torch::empty({0}).numel() << '\n';
  torch::Device d("cpu");
  std::cout << d << d.is_cpu() << d.type() << (d == torch::kCPU) << d.has_index() << d.str() << '\n';
  torch::print(torch::ones({1}));
  x.print();
  std::cout << std::endl
            << x.toString() << x.use_count() << x.is_same(x) << x.storage_offset() << x.storage()->nbytes()
            << x.has_storage() << '\n';
  torch::Tensor undefined;
  std::cout << undefined.defined() << '\n';
  std::cout << undefined << '\n';
  try {
    auto bad = torch::ones({2, 3}).mm(torch::ones({2, 3}));
  } catch (const std::exception& e) {
    std::cout << "caught\n";
  }
  try {
    TORCH_CHECK(false, "a ", 1, ' ', 2.5);
  } catch (const c10::Error& e) {
    std::cout << e.what_without_backtrace() << '\n';
  }
  try {
    TORCH_CHECK_EQ(1, 2);
  } catch (const c10::Error& e) {
    std::cout << "eq\n";
  }
  try {
    TORCH_INTERNAL_ASSERT(1 == 2, "never");
  } catch (const c10::Error& e) {
    std::cout << "internal\n";
  }
  try {
    TORCH_CHECK_INDEX(false, "idx");
  } catch (const c10::IndexError& e) {
    std::cout << "index\n";
  }
  try {
    TORCH_CHECK_VALUE(false, "val");
  } catch (const c10::ValueError& e) {
    std::cout << "value\n";
  }
  try {
    TORCH_CHECK_TYPE(false, "typ");
  } catch (const c10::TypeError& e) {
    std::cout << "type\n";
  }
  try {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "ni");
  } catch (const c10::NotImplementedError& e) {
    std::cout << "ni\n";
  }
  try {
    C10_THROW_ERROR(ValueError, "thrown");
  } catch (const c10::Error& e) {
    std::cout << "thrown\n";
  }
  std::cerr.rdbuf(std::cout.rdbuf());
  for (int i = 0; i < 2; ++i) TORCH_WARN_ONCE("careful");
  std::cout << torch::cuda::is_available() << torch::cuda::device_count() << torch::hasCUDA() << '\n';
  auto f = torch::fft::rfft(torch::ones({4}));
  std::cout << torch::real(f) << torch::view_as_real(f).sizes() << f.is_complex() << '\n';
  std::cout << torch::special::erf(torch::zeros({1})) << '\n';
  auto w = x.clone();
  w.resize_({2});
  w.set_data(torch::ones({3}));
  std::cout << w.sizes() << x.unsqueeze(-1).squeeze(-1).transpose(0, 1).contiguous().flatten().sizes()
            << torch::nonzero(b) << '\n';
}
