#include "show.h"

struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* ctx, Tensor x, Tensor w, Tensor b = Tensor()) {
    ctx->save_for_backward({x, w, b});
    auto y = x.mm(w.t());
    return b.defined() ? y + b : y;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list g) {
    auto saved = ctx->get_saved_variables();
    Tensor db;
    if (saved[2].defined()) db = g[0].sum(0);
    return {g[0].mm(saved[1]), g[0].t().mm(saved[0]), db};
  }
};
struct Scale : torch::autograd::Function<Scale> {
  static variable_list forward(AutogradContext* ctx, Tensor x, int64_t n, double f, std::string s) {
    ctx->saved_data["n"] = n;
    ctx->saved_data["f"] = f;
    ctx->saved_data["s"] = s;
    ctx->saved_data["sizes"] = x.sizes().vec();
    auto whole = x.round();
    ctx->mark_non_differentiable({whole});
    return {x * n, x * f, whole};
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    SHOW(ctx->saved_data["s"].toStr() << ctx->saved_data["sizes"].toIntVector()[0] << g[1].sum().item<double>());
    return {g[0] * ctx->saved_data["n"].toInt() + g[1] * ctx->saved_data["f"].toDouble(), Tensor(), Tensor(), Tensor()};
  }
};
struct Inplace : torch::autograd::Function<Inplace> {
  static Tensor forward(AutogradContext* ctx, Tensor x) { x.mul_(3); ctx->mark_dirty({x}); return x; }
  static tensor_list backward(AutogradContext*, tensor_list g) { return {g[0] * 3}; }
};
struct Wrong : torch::autograd::Function<Wrong> {
  static Tensor forward(AutogradContext*, Tensor x, Tensor y) { return x + y; }
  static tensor_list backward(AutogradContext*, tensor_list g) { return {g[0]}; }
};
struct Many : torch::autograd::Function<Many> {
  static Tensor forward(AutogradContext* ctx, std::vector<Tensor> xs, int64_t skip) {
    ctx->saved_data["count"] = static_cast<int64_t>(xs.size());
    return torch::stack(xs).sum(0) + static_cast<double>(skip);
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list g) {
    tensor_list out;
    for (int64_t i = 0; i < ctx->saved_data["count"].toInt(); ++i) out.push_back(g[0] * static_cast<double>(i + 1));
    out.push_back(Tensor());
    return out;
  }
};
int main() {
  auto x = torch::arange(6., torch::kDouble).view({2, 3}).requires_grad_();
  auto w = torch::arange(12., torch::kDouble).view({4, 3}).requires_grad_();
  auto b = torch::ones({4}, torch::dtype(torch::kDouble).requires_grad(true));
  auto y = Linear::apply(x, w, b);
  SHOW(y.grad_fn()->name());
  y.sum().backward();
  SHOW(x.grad().view(-1) << w.grad().sum() << b.grad());
  auto v = torch::tensor({1.25, 2.5}, torch::requires_grad());
  auto parts = Scale::apply(v, 3, 0.5, "hello");
  SHOW(parts[0].requires_grad() << parts[2].requires_grad());
  parts[0].sum().backward();
  SHOW(v.grad());
  auto leaf = torch::ones({2}, torch::requires_grad());
  auto changed = Inplace::apply(leaf * 2);
  changed.sum().backward();
  SHOW(leaf.grad());
  fails([&] { Inplace::apply(leaf); });
  fails([&] { Wrong::apply(leaf, leaf).sum().backward(); });
  std::vector<Tensor> xs = {torch::ones({1}, torch::requires_grad()), torch::ones({1}), torch::ones({1}, torch::requires_grad())};
  auto total = Many::apply(xs, 2);
  total.backward();
  SHOW(total.item<double>() << xs[0].grad() << xs[2].grad() << xs[1].grad().defined());
  SHOW(torch::autograd::any_variable_requires_grad(xs));
  { torch::NoGradGuard off; SHOW(Linear::apply(x, w, Tensor()).requires_grad()); }
}
