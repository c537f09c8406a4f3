// Scripts of files, each a module that holds its arguments: what forward gives, and gradients.
#include <torch/script.h>

#include "show.h"

void collect(const torch::IValue& v, std::vector<Tensor>& out) {
  if (v.isTensor()) out.push_back(v.toTensor());
  else if (v.isTuple()) {
    auto t = v.toTuple();
    for (auto& x : t->elements()) collect(x, out);
  } else if (v.isList())
    for (auto& x : v.toListRef()) collect(x, out);
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    try {
      torch::jit::Module m = torch::jit::load(argv[i]);
      torch::manual_seed(1);
      std::vector<Tensor> made;
      collect(m.forward({}), made);
      std::string line = "values";
      for (auto& x : made) line += ' ' + hexed(x);
      Tensor loss;
      for (auto& x : made)
        if (x.requires_grad()) loss = loss.defined() ? loss + x.sum() : x.sum();
      if (loss.defined()) loss.backward();
      line += " gradients";
      for (auto& p : m.named_parameters())
        line += ' ' + (p.value.grad().defined() ? hexed(p.value.grad()) : "none");
      SHOW(line);
    } catch (const std::exception& e) {
      std::string text = e.what();
      SHOW("error " << text.substr(0, text.find('\n')));
    }
  }
}
