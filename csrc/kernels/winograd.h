// Convolutions of 3 x 3 with stride 1 over float planes, by tiles of 2 x 2 results.
//
// Note [Winograd]
// A tile of 4 x 4 inputs and the window, each transformed to 16 numbers, are multiplied number by
// number and summed over channels; a last transform makes 2 x 2 results of the sums (Winograd's
// F(2 x 2, 3 x 3); Lavin & Gray 2016, "Fast algorithms for convolutional neural networks"): 16
// multiplications instead of 36. The gradient of the input is the same with the window turned and
// the channels exchanged, that of the weight the transpose of the whole map in the weight. The
// error is that of the direct sums because no sum runs over more than 32 products: sums of 32 are
// added to each other (docs/design/performance.md has the measurements). An element's error is
// relative to the largest of its tile, not of its window, and what is not finite reaches the whole
// tile: so the functions say whether their results are finite throughout, and callers compute
// directly where not.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

inline constexpr int64_t kWinogradBlock = 32;  // channels of both sides are multiples

struct WinogradCall {
  int64_t batch = 0, ci = 0, co = 0;
  int64_t in[2] = {}, out[2] = {}, pad[2] = {};  // pad up to 2
  bool x_last = false, y_last = false;           // channels last, else row-major; all dense
  // Strides of the weight for output channel, input channel and tap; it is row-major or has its
  // channels last, with these two perhaps exchanged.
  int64_t w_out = 0, w_in = 0, w_tap = 0;
  bool turned = false;  // the window is read from its end
};

// y = x convolved by w, plus one number per channel if there is a bias. False when some result is
// not finite.
FB_ISA_DECLARE(bool winograd_product(const WinogradCall& call, const float* x, const float* w,
                                     const float* bias, float* y);)
// gw = gradient of the weight, from the gradient of y.
FB_ISA_DECLARE(bool winograd_weight(const WinogradCall& call, const float* gy, const float* x,
                                    float* gw);)

}  // namespace flambeau::kernels
