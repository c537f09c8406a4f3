// Numbers and graphs by the names that programs know.
#include <torch/torch.h>

int main() {
  c10::Scalar whole(7), real(3.75), truth(true), pair(c10::complex128(1, 2));
  std::cout << whole.toLong() << ' ' << whole.toInt() << ' ' << real.toDouble() << ' ' << real.toFloat() << ' '
            << real.toInt() << ' ' << truth.toBool() << ' ' << pair.toComplexDouble() << '\n';
  for (const c10::Scalar& x : {whole, real, truth, pair})
    std::cout << x.isIntegral(false) << x.isIntegral(true) << x.isFloatingPoint() << x.isBoolean() << x.isComplex()
              << ' ' << c10::toString(x.type()) << '\n';
  for (auto f : {+[] { c10::Scalar(1e20).toInt(); }, +[] { c10::Scalar(300).toByte(); }}) try {
      f();
      std::cout << "fits\n";
    } catch (const std::exception&) {
      std::cout << "does not fit\n";
    }

  auto x = torch::ones({2}, torch::requires_grad());
  auto y = x * 2 + torch::ones({2});
  auto node = y.grad_fn();
  const torch::autograd::edge_list edges = node->next_edges();
  std::cout << node->name() << ' ' << node->num_inputs() << ' ' << node->num_outputs() << ' ' << edges.size() << '\n';
  std::cout << edges[0].function->name() << ' ' << edges[0].input_nr << ' ' << edges[1].is_valid() << '\n';
  std::cout << edges[0].function->next_edge(0).function->name() << '\n';
  try {
    node->next_edge(2);
  } catch (const c10::IndexError& e) {
    std::cout << e.what() << '\n';
  }
}
