// Functions that Python has by hand, because of their arguments: einsum, meshgrid, adaptive pools.
#pragma once

#include "core/tensor.h"

namespace flambeau {

// Sum of products by Einstein's notation: einsum("ij,jk->ik", {a, b}).
Tensor einsum(const std::string& equation, TensorList operands);
// Sum of products over pairs of dims.
Tensor tensordot(const Tensor& a, const Tensor& b, IntArrayRef dims_a, IntArrayRef dims_b);
std::vector<Tensor> meshgrid(TensorList tensors, const Text& indexing = Text("ij"));

Tensor adaptive_avg_pool2d(const Tensor& input, IntArrayRef output_size);
Tensor adaptive_avg_pool3d(const Tensor& input, IntArrayRef output_size);
// The maxima and where they are.
std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& input, IntArrayRef output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& input, IntArrayRef output_size);

// The distinct values, sorted; places of the values among them; how often each is there.
std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& input, bool sorted = true,
                                            bool return_inverse = false,
                                            bool return_counts = false);
std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& input, int64_t dim, bool sorted = true,
                                              bool return_inverse = false,
                                              bool return_counts = false);
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& input,
                                                      bool return_inverse = false,
                                                      bool return_counts = false,
                                                      std::optional<int64_t> dim = std::nullopt);

Tensor norm(const Tensor& input, const std::optional<Scalar>& p = Scalar(2),
            OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
            std::optional<DType> dtype = std::nullopt);
Tensor scalar_tensor(const Scalar& x, const TensorOptions& options = {});
bool is_nonzero(const Tensor& input);
inline int64_t numel(const Tensor& input) {
  return input.numel();
}
DType result_type(const Tensor& a, const Tensor& b);
inline DType promote_types(DType a, DType b) {
  return promote(a, b);
}

}  // namespace flambeau
