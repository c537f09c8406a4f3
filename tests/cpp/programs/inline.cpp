// Functions of an extension module; what binds them is written by load_inline.
#include <optional>
torch::Tensor sigmoid_add(torch::Tensor x, torch::Tensor y) { return x.sigmoid() + y.sigmoid(); }
std::vector<torch::Tensor> both(torch::Tensor x, std::optional<torch::Tensor> y, int64_t n, double f) {
  return {x * n, y ? *y * f : torch::Tensor()};
}
torch::Tensor made(std::vector<int64_t> sizes, at::ScalarType type, torch::Device device) {
  return torch::full(sizes, 3, torch::dtype(type).device(device));
}
torch::Tensor shaped(torch::Tensor x, torch::IntArrayRef sizes, at::Scalar by) { return x.view(sizes) * by; }
torch::Tensor refused(torch::Tensor x, int64_t kind) {
  TORCH_CHECK(kind != 0, "refused: expected kind 1, got ", kind);
  TORCH_CHECK_INDEX(kind != 1, "no such index");
  TORCH_CHECK_VALUE(kind != 2);
  throw std::invalid_argument("of the standard library");
}
struct Cube : torch::autograd::Function<Cube> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x) {
    ctx->save_for_backward({x});
    return x.pow(3);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list g) {
    auto x = ctx->get_saved_variables()[0];
    return {g[0] * 3 * x * x};
  }
};
torch::Tensor cube(torch::Tensor x) { return Cube::apply(x); }
torch::Tensor call(torch::Tensor x, std::function<torch::Tensor(torch::Tensor)> f) { return f(x); }
at::ScalarType type_of(torch::Tensor x) { return x.scalar_type(); }
