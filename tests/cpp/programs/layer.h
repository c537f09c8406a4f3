// One layer run and shown: parameters, result, gradients, buffers, result of eval, printed form.
#pragma once

#include "show.h"

template <class M, class... Xs>
void layer(M m, Xs... xs) {
  for (auto& p : m->named_parameters()) std::cout << p.key() << ' ' << hexed(p.value()) << ' ';
  auto y = m->forward(xs...);
  std::cout << ' ' << hexed(y);
  if (y.requires_grad()) {
    y.pow(2).sum().backward();
    for (auto& p : m->parameters())
      if (p.grad().defined()) std::cout << ' ' << hexed(p.grad());
    auto first = [](auto& x, auto&...) { return x; }(xs...);
    if (first.grad().defined()) std::cout << ' ' << hexed(first.grad());
  }
  for (auto& b : m->buffers()) std::cout << ' ' << hexed(b);
  m->eval();
  std::cout << ' ' << hexed(m->forward(xs...)) << ' ' << printed(m) << std::endl;
}
