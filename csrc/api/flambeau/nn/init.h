// Starting values of weights. Each function fills its tensor in place, without recording, and gives
// it back; draws are in the order of Python's, so that one seed gives the same weights.
#pragma once

#include "flambeau/flambeau.h"

namespace flambeau::nn::init {

// Words: "linear", "relu", "tanh", "leaky_relu", … also torch::kReLU.
double calculate_gain(const Text& nonlinearity, double param = 0.01);
std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor);

Tensor constant_(Tensor tensor, const Scalar& value);
Tensor ones_(Tensor tensor);
Tensor zeros_(Tensor tensor);
Tensor eye_(Tensor matrix);
Tensor dirac_(Tensor tensor);
Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
Tensor trunc_normal_(Tensor tensor, double mean = 0, double std = 1, double a = -2, double b = 2);
Tensor xavier_uniform_(Tensor tensor, double gain = 1.0);
Tensor xavier_normal_(Tensor tensor, double gain = 1.0);
Tensor kaiming_uniform_(Tensor tensor, double a = 0, const Text& mode = kFanIn,
                        const Text& nonlinearity = kLeakyReLU);
Tensor kaiming_normal_(Tensor tensor, double a = 0, const Text& mode = kFanIn,
                       const Text& nonlinearity = kLeakyReLU);
Tensor orthogonal_(Tensor tensor, double gain = 1.0);
Tensor sparse_(Tensor tensor, double sparsity, double std = 0.01);

}  // namespace flambeau::nn::init
