// Moving elements: copies between any layouts and dtypes, fills, conversions. The one place that
// converts between element types; every kernel that wants contiguous operands or another dtype asks
// here. Below autograd and modes. Invariant: sources are only read; a destination may share memory
// with its source only when both are the same view.
#pragma once

#include "core/tensor.h"

namespace flambeau::kernels {

// dst[...] = src[...], src broadcast to dst's shape and converted to its dtype. Error(Runtime) when
// it does not fit.
void copy(const Tensor& dst, const Tensor& src);
extern const char* const kOverlap;  // what is said of an out= that lies over an input
// Sets every element; the number is converted to x's dtype as PyTorch's fill_ does.
void fill(const Tensor& x, const Scalar& value);
void fill_zero(const Tensor& x);

// x itself when it is laid out so already, else a copy.
Tensor contiguous(const Tensor& x, MemoryFormat format = MemoryFormat::Contiguous);
// x itself when it has the dtype, else a converted copy that keeps x's layout.
Tensor to_dtype(const Tensor& x, DType dtype);
// A number as an element of that dtype has it.
double held(DType dtype, double x);
// Always a copy; Preserve keeps x's layout when it is dense.
Tensor clone(const Tensor& x, MemoryFormat format = MemoryFormat::Preserve);

// Contiguous runs
// ------------------------------------------------------------------------------------------------

// Converts n elements in the calling thread; source and destination do not overlap (or are equal,
// of equal itemsize).
void convert(DType from, const void* src, DType to, void* dst, int64_t n);
// Copies bytes with all threads, past the caches when there are many.
void copy_bytes(void* dst, const void* src, int64_t bytes);
void zero_bytes(void* dst, int64_t bytes);
// Copies bytes in the calling thread with stores that bypass the caches.
void stream_bytes(void* dst, const void* src, int64_t bytes);
// Results larger than this are better written past the caches (half of the last-level cache).
int64_t streaming_threshold();

}  // namespace flambeau::kernels
