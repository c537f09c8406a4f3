// Kernels of flambeau/ops/conv.py. The three maps of a convolution, each linear in both tensors, for one to three
// dimensions, any groups, dtypes and layouts.
#pragma once

#include "core/tensor.h"

namespace flambeau::kernels {

void conv_product(Tensor& out, const Tensor& input, const Tensor& weight, const OptTensor& bias, const Ints& stride,
                  const Ints& padding, const Ints& dilation, int64_t groups);
void conv_input_product(Tensor& out, const Tensor& grad, const Tensor& weight, const OptTensor& bias,
                        const Ints& input_size, const Ints& stride, const Ints& padding, const Ints& dilation,
                        int64_t groups);
void conv_weight_product(Tensor& out, const Tensor& grad, const Tensor& input, const Ints& weight_size,
                         const Ints& stride, const Ints& padding, const Ints& dilation, int64_t groups);

}  // namespace flambeau::kernels
