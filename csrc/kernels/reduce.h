// Reductions over any dims of tensors: sums, products, extremes, moments, norms, logical ones. Owns accuracy (blocked
// pairwise sums, two-pass moments) and the split between threads. Below autograd and modes.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flambeau::kernels {

// Sums x over the dims that broadcasting from `shape` would have added or repeated; x itself when there are none.
Tensor sum_to(const Tensor& x, const Ints& shape);

}  // namespace flambeau::kernels
