// Reductions over any dims of tensors: sums, products, extremes, moments, norms, logical ones. Owns
// accuracy (blocks in the element's precision, blocks joined in a wider one; two-pass moments) and
// the split between threads. Below autograd and modes.
#pragma once

#include "core/tensor.h"
#include "kernels/reduce_loops.h"

namespace flambeau::kernels {

// Reduces x over dims (none given: all), converted to `computed` first, into `out` of the reduced
// shape and any dtype. `p`: order of NormP, correction of Moments. Moments write variance and mean,
// positions (ArgMax, ArgMin) value and index, to out and out2. Positions count along the only
// reduced dim, or over a contiguous x.
void reduce(Reduction op, DType computed, const Tensor& x, const Ints& dims, bool keepdim, double p,
            const Tensor& out, const Tensor& out2 = Tensor());

// Sums x over the dims that broadcasting from `shape` would have added or repeated; x itself when
// there are none.
Tensor sum_to(const Tensor& x, const Ints& shape);

}  // namespace flambeau::kernels
