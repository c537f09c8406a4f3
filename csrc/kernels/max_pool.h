// Maxima over windows of planes, as the native code sees it: any dtype but complex, dense arrays. A
// position that wins is its flat index in the plane; the first of equal values wins, and NaN beats
// all.
#pragma once

#include <vector>

#include "core/dtype.h"
#include "kernels/isa.h"

namespace flambeau::kernels {

// Window o of an axis covers from[o], from[o] + step, … below to[o], all inside the axis.
struct WindowAxis {
  int64_t in = 1, out = 1, step = 1;
  std::vector<int64_t> from, to;
  int64_t stride = 0, pad = 0,
          size = 1;  // regular windows (stride > 0): start o * stride - pad, `size` taps
};
WindowAxis regular_windows(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                           int64_t dilation);
WindowAxis adaptive_windows(int64_t in, int64_t out);

// Maxima to y (may be null) and winners to indices (may be null).
FB_ISA_DECLARE(void max_windows(DType d, const WindowAxis* axes, int64_t planes, const void* x,
                                void* y, int64_t* indices);)
// gx += gy at the winners, which are found again; gx starts as zeros.
FB_ISA_DECLARE(void max_windows_backward(DType d, const WindowAxis* axes, int64_t planes,
                                         const void* x, const void* gy, void* gx);)
// The same two for images whose `channels` lie last, instead of planes; y is wanted always.
FB_ISA_DECLARE(void max_windows_last(DType d, const WindowAxis* axes, int64_t images,
                                     int64_t channels, const void* x, void* y, int64_t* indices);)
FB_ISA_DECLARE(void max_windows_last_backward(DType d, const WindowAxis* axes, int64_t images,
                                              int64_t channels, const void* x, const void* gy,
                                              void* gx);)

}  // namespace flambeau::kernels
