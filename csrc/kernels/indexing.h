// Kernels of flambeau/ops/indexing.py. Every index is checked before it is used; an index outside is an IndexError (or
// RuntimeError, as PyTorch has it for gather and scatter) and leaves the output as it was or unspecified, never overrun.
#pragma once

#include "core/tensor.h"

namespace flambeau::kernels {

void index_block(Tensor& out, const Tensor& self, const Tensors& indices, int64_t start);
void index_block_put_(Tensor& self, const Tensors& indices, int64_t start, const Tensor& values, bool accumulate);
void gather(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index, bool sparse_grad);
void scatter(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src);
void scatter_value(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index, const Scalar& value);
void scatter_add(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src);
void scatter_reduce(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                    const std::string& reduce, bool include_self);
void index_select(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index);
void index_add(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
               const Scalar& alpha);
void index_copy(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source);
void index_fill(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index, const Scalar& value);
void index_fill_tensor(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& value);
Tensor masked_select(const Tensor& input, const Tensor& mask);
void masked_scatter(Tensor& out, const Tensor& input, const Tensor& mask, const Tensor& source);
void take(Tensor& out, const Tensor& input, const Tensor& index);
void put(Tensor& out, const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate);
Tensor nonzero(const Tensor& input);

}  // namespace flambeau::kernels
