// Separable linear maps: average pools and every mode of interpolation are, along each axis,
// weighted sums of a few neighbours. An axis map lists for every output its first input and its
// weights; the transposed map (the derivative) has the same form.
#pragma once

#include <vector>

#include "core/dtype.h"
#include "kernels/isa.h"

namespace flambeau::kernels {

struct AxisMap {
  int64_t in = 1, out = 1,
          width = 1;  // out[o] = sum over j < width of weights[j * out + o] * in[start[o] + j]
  std::vector<int32_t> start;  // start + width <= in
  std::vector<double> weights;
  bool identity = true;
};

// Builds a map from (first, weights) per output; the firsts and the lasts must not decrease.
AxisMap make_axis_map(int64_t in, int64_t out, const std::vector<int64_t>& first,
                      const std::vector<std::vector<double>>& weights);
AxisMap transposed(const AxisMap& m);

// y = maps of x over planes of in[0] x in[1] x in[2]; float or double, dense.
FB_ISA_DECLARE(void apply_axis_maps(DType d, const AxisMap* maps, int64_t planes, const void* x,
                                    void* y);)

}  // namespace flambeau::kernels
