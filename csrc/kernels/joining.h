// Kernels of flambeau/ops/joining.py: they move elements and do no arithmetic.
#pragma once

#include "core/tensor.h"

namespace flambeau::kernels {

void cat(Tensor& out, const Tensors& tensors, int64_t dim);
void flip(Tensor& out, const Tensor& input, const Ints& dims);
void roll(Tensor& out, const Tensor& input, const Ints& shifts, const Ints& dims);
void tril(Tensor& out, const Tensor& input, int64_t diagonal);
void triu(Tensor& out, const Tensor& input, int64_t diagonal);
Tensor repeat_indices(const Tensor& repeats, std::optional<int64_t> output_size);

}  // namespace flambeau::kernels
