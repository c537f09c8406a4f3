// Kernels of flambeau/ops/upsample.py: interpolation as separable maps, and sampling at arbitrary points.
#pragma once

#include "core/tensor.h"
#include "kernels/resample.h"

namespace flambeau::kernels {

// Applies maps (one per spatial axis) to input (N, C, ...); out has the maps' sizes. Any float dtype and layout;
// integers round to nearest.
void apply_maps(Tensor& out, const Tensor& input, const std::vector<AxisMap>& maps);

void resample(Tensor& out, const Tensor& input, const Ints& size, const std::string& mode, bool align_corners,
              const std::vector<double>& scales);
void resample_transposed(Tensor& out, const Tensor& grad, const Ints& input_size, const std::string& mode,
                         bool align_corners, const std::vector<double>& scales);
void grid_sample(Tensor& out, const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                 bool align_corners);
void grid_sample_backward(Tensor& grad_input, Tensor& grad_grid, const Tensor& grad, const Tensor& input,
                          const Tensor& grid, int64_t mode, int64_t padding, bool align_corners);

}  // namespace flambeau::kernels
