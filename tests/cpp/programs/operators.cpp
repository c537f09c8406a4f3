// Operators of a library: kernels, a derivative, the older way to register.
#include <torch/script.h>

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor scaled(const Tensor& x, double by) {
  TORCH_CHECK(x.is_floating_point(), "scaled: expected a floating tensor, got ", x.scalar_type());
  Tensor out = torch::empty_like(x.contiguous());
  AT_DISPATCH_FLOATING_TYPES_AND(at::ScalarType::Half, x.scalar_type(), "scaled", [&] {
    auto from = x.contiguous();
    const scalar_t* a = from.const_data_ptr<scalar_t>();
    scalar_t* b = out.data_ptr<scalar_t>();
    using opmath_t = at::opmath_type<scalar_t>;
    at::parallel_for(0, x.numel(), at::internal::GRAIN_SIZE, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        b[i] = static_cast<scalar_t>(static_cast<opmath_t>(a[i]) * static_cast<opmath_t>(by));
    });
  });
  return out;
}

struct Scaled : torch::autograd::Function<Scaled> {
  static Tensor forward(AutogradContext* ctx, Tensor x, double by) {
    ctx->saved_data["by"] = by;
    return scaled(x, by);
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return {g[0] * ctx->saved_data["by"].toDouble(), Tensor()};
  }
};
Tensor scaled_autograd(const Tensor& x, double by) {
  return Scaled::apply(x, by);
}

std::tuple<Tensor, int64_t, std::string> parts(torch::TensorList xs, at::IntArrayRef sizes,
                                               c10::optional<Tensor> extra, std::string word,
                                               bool flag, c10::optional<int64_t> n) {
  Tensor sum = xs[0];
  for (size_t i = 1; i < xs.size(); ++i) sum = sum + xs[i];
  if (extra.has_value()) sum = sum + extra.value();
  return {sum.view(sizes), n.value_or(flag ? 1 : 0), word + "!"};
}

TORCH_LIBRARY(cpptest, m) {
  m.def("scaled(Tensor x, float by=2.) -> Tensor");
  m.def("parts", &parts);
  m.def("square", [](const Tensor& x) { return x * x; });
  m.def("add_one_(Tensor(a!) x) -> Tensor(a!)");
}
TORCH_LIBRARY_IMPL(cpptest, CPU, m) {
  m.impl("scaled", &scaled);
  m.impl("add_one_", [](Tensor x) { return x.add_(1); });
}
TORCH_LIBRARY_IMPL(cpptest, Autograd, m) { m.impl("scaled", TORCH_FN(scaled_autograd)); }

static auto older = torch::RegisterOperators()
                        .op("cpptest_old::negate", [](const Tensor& x) { return -x; })
                        .op("cpptest_old::twice(Tensor x) -> Tensor", [](Tensor x) { return x * 2; });
