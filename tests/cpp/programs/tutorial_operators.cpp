#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/extension.h>
#include <torch/library.h>

#include <vector>
// As the tutorial of custom operators in C++ writes it
namespace extension_cpp {
at::Tensor mymuladd_cpu(const at::Tensor& a, const at::Tensor& b, double c) {
  TORCH_CHECK(a.sizes() == b.sizes());
  TORCH_CHECK(a.dtype() == at::kFloat);
  TORCH_CHECK(b.dtype() == at::kFloat);
  TORCH_INTERNAL_ASSERT(a.device().type() == at::DeviceType::CPU);
  TORCH_INTERNAL_ASSERT(b.device().type() == at::DeviceType::CPU);
  at::Tensor a_contig = a.contiguous();
  at::Tensor b_contig = b.contiguous();
  at::Tensor result = torch::empty(a_contig.sizes(), a_contig.options());
  const float* a_ptr = a_contig.data_ptr<float>();
  const float* b_ptr = b_contig.data_ptr<float>();
  float* result_ptr = result.data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); i++) result_ptr[i] = a_ptr[i] * b_ptr[i] + c;
  return result;
}
void myadd_out_cpu(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  TORCH_CHECK(out.is_contiguous());
  const float* a_ptr = a.contiguous().data_ptr<float>();
  const float* b_ptr = b.contiguous().data_ptr<float>();
  float* result_ptr = out.data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); i++) result_ptr[i] = a_ptr[i] + b_ptr[i];
}
TORCH_LIBRARY(extension_cpp, m) {
  m.def("mymuladd(Tensor a, Tensor b, float c) -> Tensor");
  m.def("myadd_out(Tensor a, Tensor b, Tensor(a!) out) -> ()");
  m.def(
      "many(Tensor[] xs, int[] dims, Tensor? w, int? n=None, str mode=\"sum\", bool flag=False, float[2] f=[1., 2.]) "
      "-> (Tensor, Tensor[])");
  m.def("scalar(Tensor x, Scalar s, ScalarType? dtype=None) -> Tensor");
}
std::tuple<at::Tensor, std::vector<at::Tensor>> many(at::TensorList xs, at::IntArrayRef dims,
                                                     const c10::optional<at::Tensor>& w, c10::optional<int64_t> n,
                                                     c10::string_view mode, bool flag, at::ArrayRef<double> f) {
  at::Tensor out = xs[0].sum(dims);
  if (w.has_value() && w->defined()) out = out * *w;
  if (n) out = out + *n;
  if (mode == "mean") out = out / 2;
  return {out, xs.vec()};
}
at::Tensor scalar(const at::Tensor& x, const at::Scalar& s, c10::optional<at::ScalarType> dtype) { return x * s; }
TORCH_LIBRARY_IMPL(extension_cpp, CPU, m) {
  m.impl("mymuladd", &mymuladd_cpu);
  m.impl("myadd_out", &myadd_out_cpu);
  m.impl("many", TORCH_FN(many));
}
TORCH_LIBRARY_IMPL(extension_cpp, CompositeExplicitAutograd, m) { m.impl("scalar", scalar); }
at::Tensor via(const at::Tensor& a, const at::Tensor& b) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("extension_cpp::mymuladd", "")
                       .typed<at::Tensor(const at::Tensor&, const at::Tensor&, double)>();
  return op.call(a, b, 1.0);
}
at::Tensor missing(const at::Tensor& x) {
  c10::Dispatcher::singleton().findSchemaOrThrow("extension_cpp::nothing", "");
  return x;
}
at::Tensor misread(const at::Tensor& x) {
  c10::Dispatcher::singleton()
      .findSchemaOrThrow("extension_cpp::mymuladd", "")
      .typed<at::Tensor(const at::Tensor&, double)>();
  return x;
}
// An operation with a kernel for `Autograd` that calls it again below
at::Tensor doubled_cpu(const at::Tensor& x) { return at::tensor({2}, x.options()) * x.detach(); }
at::Tensor doubled(const at::Tensor& x) {
  static auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("extension_cpp::doubled", "").typed<decltype(doubled)>();
  return op.call(x);
}
struct Doubled : torch::autograd::Function<Doubled> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    at::AutoDispatchBelowADInplaceOrView below;
    return doubled(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list g) {
    return {g[0] * 2};
  }
};
at::Tensor doubled_autograd(const at::Tensor& x) { return Doubled::apply(x); }
TORCH_LIBRARY_IMPL(extension_cpp, CPU, m) { m.impl("doubled", doubled_cpu); }
TORCH_LIBRARY_IMPL(extension_cpp, Autograd, m) { m.impl("doubled", doubled_autograd); }
TORCH_LIBRARY_FRAGMENT(extension_cpp, m) {
  m.def("doubled(Tensor x) -> Tensor");
  m.def("missing", &missing);
  m.def("misread", &misread);
  m.def("via(Tensor a, Tensor b) -> Tensor", &via);
  m.def("short", [](const at::Tensor& x, int64_t n) { return x + n; });
}
}  // namespace extension_cpp
std::vector<torch::Tensor> lltm_forward(torch::Tensor input, torch::Tensor weights, torch::Tensor bias,
                                        torch::Tensor old_h, torch::Tensor old_cell) {
  auto X = torch::cat({old_h, input}, /*dim=*/1);
  auto gate_weights = torch::addmm(bias, X, weights.transpose(0, 1));
  auto gates = gate_weights.chunk(3, /*dim=*/1);
  auto input_gate = torch::sigmoid(gates[0]);
  auto output_gate = torch::sigmoid(gates[1]);
  auto candidate_cell = torch::elu(gates[2], /*alpha=*/1.0);
  auto new_cell = old_cell + candidate_cell * input_gate;
  auto new_h = torch::tanh(new_cell) * output_gate;
  return {new_h, new_cell, input_gate, output_gate, candidate_cell, X, gate_weights};
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &lltm_forward, "LLTM forward");
  m.def(
      "opt", [](c10::optional<torch::Tensor> t, py::kwargs kw) { return t.has_value(); }, py::arg("t") = py::none());
  m.def("dev", [](torch::Device d, torch::ScalarType s) {
    return torch::ones({1}, torch::TensorOptions().device(d).dtype(s));
  });
  m.def("obj", [](py::object o) {
    return THPVariable_Check(o.ptr()) ? THPVariable_Unpack(o.ptr()).sizes().vec() : std::vector<int64_t>();
  });
  m.def("wrap", [](torch::Tensor t) { return py::reinterpret_steal<py::object>(THPVariable_Wrap(t)); });
  m.def("nogil", [](torch::Tensor t) {
    pybind11::gil_scoped_release no_gil;
    return t + 1;
  });
}
