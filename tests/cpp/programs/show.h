// What the programs of the tests share: showing values, and the texts of errors.
#pragma once

#include <torch/torch.h>
#define SHOW(...) std::cout << __VA_ARGS__ << std::endl
template <class F> void fails(F f) {
  try { f(); SHOW("no error"); } catch (const std::exception& e) { SHOW(e.what()); }
}
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

inline std::string hexed(Tensor x) {
  x = x.detach().contiguous();
  auto* p = static_cast<const unsigned char*>(x.data_ptr());
  std::string out;
  for (size_t i = 0; i < x.nbytes(); ++i)
    for (int digit : {p[i] >> 4, p[i] & 15}) out += "0123456789abcdef"[digit];
  return out;
}
template <class M>
std::string printed(const M& m) {
  std::ostringstream out;
  out << m;
  return out.str();
}
