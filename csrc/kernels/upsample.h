// Applying axis maps to tensors, for pools and interpolation.
#pragma once

#include "core/tensor.h"
#include "kernels/resample.h"

namespace flambeau::kernels {

// Applies maps (one per spatial axis) to input (N, C, ...); out has the maps' sizes. Any float
// dtype and layout; integers round to nearest.
void apply_maps(Tensor& out, const Tensor& input, const std::vector<AxisMap>& maps);

}  // namespace flambeau::kernels
