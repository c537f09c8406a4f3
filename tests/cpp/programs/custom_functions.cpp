// Functions with derivatives, as the tutorials write them.
#include <torch/torch.h>

#include <iostream>
using namespace torch::autograd;

class LinearFunction : public Function<LinearFunction> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor input, torch::Tensor weight,
                               torch::Tensor bias = torch::Tensor()) {
    ctx->save_for_backward({input, weight, bias});
    auto output = input.mm(weight.t());
    if (bias.defined()) output += bias.unsqueeze(0).expand_as(output);
    return output;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    auto saved = ctx->get_saved_variables();
    auto input = saved[0];
    auto weight = saved[1];
    auto bias = saved[2];
    auto grad_output = grad_outputs[0];
    auto grad_input = grad_output.mm(weight);
    auto grad_weight = grad_output.t().mm(input);
    auto grad_bias = torch::Tensor();
    if (bias.defined()) grad_bias = grad_output.sum(0);
    return {grad_input, grad_weight, grad_bias};
  }
};
class MulConstant : public Function<MulConstant> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor tensor, double constant) {
    ctx->saved_data["constant"] = constant;
    ctx->saved_data["name"] = std::string("mul");
    ctx->saved_data["flag"] = true;
    ctx->saved_data["sizes"] = tensor.sizes().vec();
    ctx->saved_data["list"] = std::vector<int64_t>{1, 2};
    ctx->saved_data["t"] = tensor;
    return tensor * constant;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    TORCH_CHECK(ctx->saved_data["flag"].toBool() && ctx->saved_data["sizes"].toIntVector().size() == 1, "flag");
    TORCH_CHECK(ctx->saved_data["name"].toStringRef() == "mul");
    TORCH_CHECK(ctx->saved_data["list"].toIntList().size() == 2);
    TORCH_CHECK(ctx->saved_data["t"].toTensor().defined());
    return {grad_outputs[0] * ctx->saved_data["constant"].toDouble(), torch::Tensor()};
  }
};
struct Two : Function<Two> {
  static variable_list forward(AutogradContext* ctx, const Variable& x, const Variable& y, std::vector<int64_t> dims,
                               c10::optional<double> p) {
    auto idx = x.argmax();
    ctx->mark_non_differentiable({idx});
    ctx->save_for_backward({x, y});
    ctx->set_materialize_grads(false);
    return {x * y, x + y, idx};
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    auto s = ctx->get_saved_variables();
    Variable gx, gy;
    if (g[0].defined()) gx = g[0] * s[1], gy = g[0] * s[0];
    if (g[1].defined()) {
      gx = gx.defined() ? gx + g[1] : g[1];
      gy = gy.defined() ? gy + g[1] : g[1];
    }
    TORCH_CHECK(ctx->needs_input_grad(0));
    return {gx, gy, Variable(), Variable()};
  }
};
struct Inplace : Function<Inplace> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x) {
    at::AutoDispatchBelowADInplaceOrView g;
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 2}; }
};
struct Id : Function<Id> {
  static std::vector<at::Tensor> forward(AutogradContext* ctx, at::TensorList xs) {
    at::AutoDispatchBelowAutograd mode;
    return {xs[0] * 1};
  }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0]}; }
};
int main() {
  auto x = torch::randn({2, 3}).requires_grad_();
  auto weight = torch::randn({4, 3}).requires_grad_();
  auto y = LinearFunction::apply(x, weight);
  y.sum().backward();
  std::cout << torch::allclose(x.grad(), torch::ones({2, 4}).mm(weight)) << '\n';
  auto v = torch::randn({2}).requires_grad_();
  MulConstant::apply(v, 5.5).sum().backward();
  std::cout << v.grad() << '\n';
  auto a = torch::tensor({1.0, 2.0}, torch::requires_grad()), b = torch::tensor({3.0, 4.0}, torch::requires_grad());
  auto out = Two::apply(a, b, std::vector<int64_t>{1}, c10::nullopt);
  std::cout << out[2].requires_grad() << out[0].requires_grad() << '\n';
  out[0].sum().backward();
  std::cout << a.grad() << b.grad() << '\n';
  auto c = (a * 1);
  auto d = Inplace::apply(c);
  a.mutable_grad() = torch::Tensor();
  d.sum().backward();
  std::cout << a.grad() << '\n';
  auto gradient_penalty = [&] {
    auto in = torch::randn({3, 4}, torch::dtype(torch::kFloat64).requires_grad(true));
    auto o = torch::nn::Linear(4, 3);
    o->to(torch::kFloat64);
    auto z = o(in).pow(2);
    auto g = torch::autograd::grad({z}, {in}, /*grad_outputs=*/{torch::ones_like(z)}, /*retain_graph=*/true,
                                   /*create_graph=*/true, /*allow_unused=*/false)[0];
    auto gp = torch::pow(g.norm(2, /*dim=*/1) - 1, 2).mean();
    gp.backward();
    return o->weight.grad().defined();
  };
  std::cout << gradient_penalty() << '\n';
  auto h = a.register_hook([](torch::Tensor grad) { return grad * 2; });
  a.mutable_grad().zero_();
  (a * 3).sum().backward();
  std::cout << a.grad() << '\n';
  a.remove_hook(h);
  std::cout << a.grad_fn() << ' ' << a.is_leaf() << ' ' << y.grad_fn()->name() << '\n';
  torch::autograd::backward({(a * b).sum()}, {});
  const auto& g1 = a.grad();
  std::cout << g1.sum().item<double>() << '\n';
  std::cout << GradMode::is_enabled() << at::GradMode::is_enabled() << c10::GradMode::is_enabled() << '\n';
  {
    torch::AutoGradMode enable(false);
    std::cout << (a * 2).requires_grad() << '\n';
  }
  a.detach_();
  a.set_requires_grad(true);
  std::cout << a.requires_grad() << a.data().requires_grad() << a.variable_data().requires_grad() << a.output_nr()
            << a._version() << '\n';
}
