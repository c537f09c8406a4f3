// Kernels of flambeau/ops/creation.py.
#pragma once

#include "core/tensor.h"

namespace flambeau::kernels {

using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;
using OptFormat = std::optional<MemoryFormat>;

template <class... Args>
void nothing(Tensor&, const Args&...) {}
template <class... Args>
void nothing_like(Tensor&, const Args&...) {}
void fill_value(Tensor& out, const Ints&, const Scalar& value, OptDType, OptDevice);
void fill_zeros(Tensor& out, const Ints&, OptDType, OptDevice);
void arange(Tensor& out, const Scalar& start, const Scalar& end, const Scalar& step, OptDType, OptDevice);
void linspace(Tensor& out, const Scalar& start, const Scalar& end, int64_t steps, OptDType, OptDevice);
void logspace(Tensor& out, const Scalar& start, const Scalar& end, int64_t steps, double base, OptDType, OptDevice);
void eye(Tensor& out, int64_t n, std::optional<int64_t> m, OptDType, OptDevice);
void tril_indices(Tensor& out, int64_t row, int64_t col, int64_t offset, OptDType, OptDevice);
void triu_indices(Tensor& out, int64_t row, int64_t col, int64_t offset, OptDType, OptDevice);

}  // namespace flambeau::kernels
