// Kernels of flambeau/ops/sorting.py. Orders are those of keys: unsigned integers whose order is that of the values, NaN
// last, both zeros equal.
#pragma once

#include "core/tensor.h"

namespace flambeau::kernels {

void sort(Tensor& values, Tensor& indices, const Tensor& input, bool stable, int64_t dim, bool descending);
void topk(Tensor& values, Tensor& indices, const Tensor& input, int64_t k, int64_t dim, bool largest, bool sorted);
void kthvalue(Tensor& values, Tensor& indices, const Tensor& input, int64_t k, int64_t dim, bool keepdim);
void mode(Tensor& values, Tensor& indices, const Tensor& input, int64_t dim, bool keepdim);
void median_dim(Tensor& values, Tensor& indices, const Tensor& input, int64_t dim, bool keepdim, bool skip_nan);
void searchsorted(Tensor& out, const Tensor& sequence, const Tensor& input, bool out_int32, bool right,
                  const std::optional<std::string>& side, const OptTensor& sorter);
Tensor bincount(const Tensor& input, const OptTensor& weights, int64_t minlength);
void histc(Tensor& out, const Tensor& input, int64_t bins, const Scalar& min, const Scalar& max);
std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& input, std::optional<int64_t> dim, bool sorted, bool inverse,
                                          bool counts);
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& input, std::optional<int64_t> dim, bool inverse,
                                                      bool counts);

}  // namespace flambeau::kernels
