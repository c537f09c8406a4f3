// Kernels of flambeau/ops/matmul.py: from tensors to the calls of providers/blas.h.
#pragma once

#include "core/tensor.h"

namespace flambeau::kernels {

void mm(Tensor& out, const Tensor& input, const Tensor& mat2);
void bmm(Tensor& out, const Tensor& input, const Tensor& mat2);
void mv(Tensor& out, const Tensor& input, const Tensor& vec);
void dot(Tensor& out, const Tensor& input, const Tensor& tensor);
void addmm(Tensor& out, const Tensor& input, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
           const Scalar& alpha);
void addmv(Tensor& out, const Tensor& input, const Tensor& mat, const Tensor& vec, const Scalar& beta,
           const Scalar& alpha);
void addr(Tensor& out, const Tensor& input, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
          const Scalar& alpha);
void baddbmm(Tensor& out, const Tensor& input, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
             const Scalar& alpha);
void addbmm(Tensor& out, const Tensor& input, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
            const Scalar& alpha);
void outer(Tensor& out, const Tensor& input, const Tensor& vec2);
void linear_product(Tensor& out, const Tensor& input, const Tensor& weight, const OptTensor& bias);

}  // namespace flambeau::kernels
