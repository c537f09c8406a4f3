#include "show.h"

int main() {
  auto x = torch::ones({2, 2}, torch::requires_grad());
  auto y = x + 2;
  SHOW(y.grad_fn()->name() << " " << y.requires_grad() << x.is_leaf() << y.is_leaf());
  auto z = y * y * 3;
  auto out = z.mean();
  SHOW(z.grad_fn()->name() << " " << out.grad_fn()->name());
  out.backward();
  SHOW(x.grad());
  auto a = torch::full({2, 2}, 0.5);
  a = ((a * 3) / (a - 1));
  SHOW(a.requires_grad());
  a.requires_grad_(true);
  SHOW((a * a).sum().grad_fn()->name());
  auto v = torch::tensor({0.1, 1.0}, torch::kDouble);
  auto w = torch::tensor({1.0, 2.0}, torch::dtype(torch::kDouble).requires_grad(true));
  auto u = w * 2;
  while (u.norm().item<double>() < 100) u = u * 2;
  u.backward(v);
  SHOW(w.grad());
  {
    torch::NoGradGuard no_grad;
    SHOW((x * x).requires_grad() << torch::GradMode::is_enabled());
    torch::AutoGradMode on(true);
    SHOW((x * x).requires_grad());
  }
  SHOW(x.detach().requires_grad() << x.eq(x.detach()).all().item<bool>());
  fails([&] { x.backward(); });
  fails([&] { x.detach().sum().backward(); });
  auto once = (x * x).sum();
  once.backward();
  fails([&] { once.backward(); });
  fails([&] { torch::autograd::grad({(x * x).sum()}, {torch::ones({1}, torch::requires_grad())}); });
  SHOW(torch::autograd::grad({(x * x).sum()}, {x, w}, {}, {}, false, true)[1].defined());
}
