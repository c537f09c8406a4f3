// Kernels over elements: dispatch by dtype, parallel loops, checks, what headers of ATen and c10 have.
#include <ATen/ATen.h>
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/NativeFunctions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorUtils.h>
#include <c10/core/ScalarType.h>
#include <c10/macros/Macros.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>
#include <c10/util/Optional.h>
#include <c10/util/SmallVector.h>
#include <c10/util/irange.h>
#include <torch/torch.h>

#include <atomic>
#include <iostream>
#define CHECK_CPU(x) TORCH_CHECK(x.device().is_cpu(), #x " must be a CPU tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
template <typename scalar_t>
C10_HOST_DEVICE scalar_t twice(scalar_t v) {
  return v + v;
}
at::Tensor run(const at::Tensor& x) {
  CHECK_CPU(x);
  CHECK_CONTIGUOUS(x);
  auto out = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "run", [&] {
    auto* p = x.data_ptr<scalar_t>();
    auto* q = out.data_ptr<scalar_t>();
    at::parallel_for(0, x.numel(), 100, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) q[i] = twice(p[i]);
    });
  });
  return out;
}
int main() {
  std::cout << run(torch::arange(1000, torch::kDouble)).sum().item<double>() << '\n';
  try {
    run(torch::arange(3));
  } catch (const std::exception& e) {
    std::cout << "refused\n";
  }
  for (auto t :
       {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kBool, at::kByte, at::kComplexFloat}) {
    auto x = torch::ones({2}, t);
    int64_t size = 0;
    AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(at::ScalarType::Half, at::ScalarType::BFloat16, at::ScalarType::Bool, t,
                                           "a", ([&] { size = sizeof(scalar_t); }));
    std::cout << size << ' ';
  }
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(at::kHalf, "b", [&] {
    using acc = at::acc_type<scalar_t, false>;
    std::cout << sizeof(acc);
  });
  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, at::kBFloat16, "b", [&] {
    using acc = at::opmath_type<scalar_t>;
    std::cout << sizeof(acc);
  });
  AT_DISPATCH_INTEGRAL_TYPES(at::kInt, "c", [&] { std::cout << sizeof(scalar_t); });
  AT_DISPATCH_ALL_TYPES(at::kInt, "c", [&] { std::cout << sizeof(scalar_t); });
  AT_DISPATCH_ALL_TYPES_AND(at::kBool, at::kBool, "c", [&] { std::cout << sizeof(scalar_t); });
  AT_DISPATCH_COMPLEX_TYPES(at::kComplexDouble, "c", [&] { std::cout << sizeof(scalar_t); });
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(at::kDouble, "c", [&] { std::cout << sizeof(scalar_t); });
  AT_DISPATCH_INDEX_TYPES(at::kLong, "i", [&] { std::cout << sizeof(index_t); });
  AT_DISPATCH_SWITCH(at::kFloat, "s", AT_DISPATCH_CASE(at::kFloat, [&] {
                       std::cout << 'f';
                     }) AT_DISPATCH_CASE_INTEGRAL_TYPES([&] { std::cout << 'i'; }));
  std::cout << '\n';
  auto total = at::parallel_reduce(
      0, 100, 10, int64_t{0},
      [](int64_t b, int64_t e, int64_t v) {
        for (auto i : c10::irange(b, e)) v += i;
        return v;
      },
      [](int64_t a, int64_t b) { return a + b; });
  std::cout << total << at::in_parallel_region() << '\n';
  for (const auto i : c10::irange(3)) std::cout << i;
  c10::SmallVector<int64_t, 4> v{1, 2};
  v.push_back(3);
  std::cout << torch::zeros(v).sizes() << c10::IntArrayRef(v) << '\n';
  c10::optional<int> o = c10::nullopt;
  c10::optional<at::Tensor> ot = c10::make_optional(torch::ones({1}));
  std::cout << o.value_or(3) << ot.has_value() << ot->sizes() << '\n';
  c10::Half h = 1.5f;
  c10::BFloat16 bf(2.5f);
  float hf = h;
  std::cout << hf + static_cast<float>(bf) << h * h << std::numeric_limits<c10::Half>::max() << '\n';
  c10::Half z = h + 1;
  z += h;
  z = std::max(z, h);
  std::cout << z << (h < z) << '\n';
  std::cout << c10::isFloatingType(at::kHalf) << at::isIntegralType(at::kInt, false)
            << c10::promoteTypes(at::kInt, at::kHalf)
            << at::result_type(torch::ones({1}), torch::ones({1}, at::kDouble))
            << c10::CppTypeToScalarType<float>::value << at::typeMetaToScalarType(torch::ones({1}).dtype())
            << torch::get_default_dtype() << '\n';
  at::checkDim("f", at::TensorArg(torch::ones({1}), "x", 1), 1);
  at::checkAllSameType("f", {at::TensorArg(torch::ones({1}), "x", 1), at::TensorArg(torch::ones({1}), "y", 2)});
  auto cl = torch::rand({1, 2, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  std::cout << cl.suggest_memory_format() << cl.is_contiguous(torch::MemoryFormat::ChannelsLast)
            << cl.is_non_overlapping_and_dense() << '\n';
  c10::InferenceMode g;
  std::cout << torch::ones({1}).is_inference() << '\n';
  at::NoGradGuard ng;
  std::vector<at::Tensor> ts{torch::ones({1}), torch::ones({2})};
  at::TensorList tl = ts;
  at::ITensorListRef il = ts;
  std::cout << tl.size() << at::cat(tl).sizes() << '\n';
  std::cout << c10::str("a", 1, 'b') << C10_LIKELY(1) << '\n';
  std::cout << at::globalContext().hasCUDA() << '\n';
  auto dev = at::device_of(ts[0]);
  std::cout << dev.has_value() << '\n';
  c10::DeviceGuard guard(c10::Device(c10::kCPU));
  at::OptionalDeviceGuard og(dev);
  auto mb = c10::MaybeOwned<at::Tensor>::borrowed(ts[0]);
  std::cout << mb->sizes() << (*mb).dim() << '\n';
  std::cout << ts[0].expect_contiguous()->sizes() << '\n';
}
