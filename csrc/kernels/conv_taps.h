// Convolution in one, two or three dimensions, as the native code sees it: geometry, and three
// linear maps over dense NCDHW arrays of one dtype (float, double, int64). Tensors, layouts and
// other dtypes are conv.cpp's business.
//
// Note [Convolution without patches]
// Input planes are copied once with their zero padding, split by residue of the stride. Then the
// input of output position q and kernel tap t is at planes + offset(t) + q, q counting positions
// with the planes' row pitch. So a register tile of outputs reads its operands straight from the
// planes by a table of offsets: no patch matrix exists. Positions that fall in the padding between
// rows are computed too and not written. The gradient of the input is the same product over the
// planes of the output's gradient, once per residue of the stride.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/isa.h"

namespace flambeau::kernels {

struct ConvGeometry {
  int64_t batch, groups, ci, co;  // channels are per group
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

FB_ISA_DECLARE(void conv_forward(DType d, const ConvGeometry& g, const void* x, const void* w,
                                 const void* bias, void* y);)
FB_ISA_DECLARE(void conv_input(DType d, const ConvGeometry& g, const void* gy, const void* w,
                               const void* bias, void* gx);)
FB_ISA_DECLARE(void conv_weight(DType d, const ConvGeometry& g, const void* gy, const void* x,
                                void* gw);)

}  // namespace flambeau::kernels
