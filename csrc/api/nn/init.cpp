#include "flambeau/nn/init.h"

namespace flambeau::nn::init {

double calculate_gain(const Text& nonlinearity, double param) {
  const std::string& f = nonlinearity.str();
  if (f == "linear" || f == "sigmoid" || f.starts_with("conv")) return 1;
  if (f == "tanh") return 5.0 / 3;
  if (f == "relu") return std::sqrt(2.0);
  if (f == "selu") return 3.0 / 4;
  FB_CHECK_VALUE(f == "leaky_relu", "calculate_gain: unsupported nonlinearity '", f, "'");
  return std::sqrt(2.0 / (1 + param * param));
}

std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  FB_CHECK_VALUE(tensor.dim() >= 2,
                 "fan in and fan out need a tensor of at least 2 dimensions, got ", tensor.dim());
  int64_t field = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) field *= tensor.size(d);
  return {tensor.size(1) * field, tensor.size(0) * field};
}

Tensor constant_(Tensor tensor, const Scalar& value) {
  NoGradGuard no_grad;
  return tensor.fill_(value);
}
Tensor ones_(Tensor tensor) {
  return constant_(std::move(tensor), 1.0);
}
Tensor zeros_(Tensor tensor) {
  NoGradGuard no_grad;
  return tensor.zero_();
}
Tensor uniform_(Tensor tensor, double low, double high) {
  NoGradGuard no_grad;
  return tensor.uniform_(low, high);
}
Tensor normal_(Tensor tensor, double mean, double std) {
  NoGradGuard no_grad;
  return tensor.normal_(mean, std);
}
Tensor eye_(Tensor matrix) {
  NoGradGuard no_grad;
  FB_CHECK_VALUE(matrix.dim() == 2, "eye_: expected a tensor of 2 dimensions, got ", matrix.dim());
  return matrix.copy_(eye(matrix.size(0), matrix.size(1), matrix.options()));
}
Tensor dirac_(Tensor tensor) {
  NoGradGuard no_grad;
  FB_CHECK_VALUE(tensor.dim() >= 3 && tensor.dim() <= 5,
                 "dirac_: expected a tensor of 3, 4 or 5 dimensions, got ", tensor.dim());
  tensor.zero_();
  for (int64_t c = 0; c < std::min(tensor.size(0), tensor.size(1)); ++c) {
    Tensor at = tensor[c][c];
    while (at.dim()) at = at[at.size(0) / 2];
    at.fill_(1);
  }
  return tensor;
}

// Draws again what lies outside, or where little lies inside: of an even distribution, as often as
// the density says.
Tensor trunc_normal_(Tensor tensor, double mean, double std, double a, double b) {
  NoGradGuard no_grad;
  auto below = [&](double edge) {
    return 0.5 * (1.0 + std::erf((edge - mean) / (std * std::sqrt(2.0))));
  };
  Tensor values;
  if (below(b) - below(a) > 0.3) {
    auto held = [&](double edge) { return full({}, edge, tensor.options().device(kCPU)).item(); };
    const Scalar low = held(a), high = held(b);
    values = tensor.normal_(mean, std);
    for (;;) {
      Tensor outside = (values < low) | (values > high);
      if (!outside.any().item<bool>()) break;
      values = where(outside, empty_like(values).normal_(mean, std), values);
    }
  } else {
    const double peak = (std::clamp(mean, a, b) - mean) / std, log_peak = -0.5 * (peak * peak);
    auto rejected = [&](const Tensor& x) {
      Tensor density = x.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak);
      return empty_like(x).uniform_().log_().gt(density);
    };
    values = tensor.uniform_(a, b);
    Tensor pending = rejected(values);
    while (pending.any().item<bool>()) {
      Tensor proposal = empty_like(values).uniform_(a, b);
      values = where(pending, proposal, values);
      pending = pending & rejected(proposal);
    }
  }
  return values.is_same(tensor) ? tensor : tensor.copy_(values);
}

static double xavier_std(const Tensor& tensor, double gain) {
  auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(in + out));
}
Tensor xavier_uniform_(Tensor tensor, double gain) {
  const double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return uniform_(std::move(tensor), -bound, bound);
}
Tensor xavier_normal_(Tensor tensor, double gain) {
  const double std = xavier_std(tensor, gain);
  return normal_(std::move(tensor), 0, std);
}

static double kaiming_std(const Tensor& tensor, double a, const Text& mode,
                          const Text& nonlinearity) {
  FB_CHECK_VALUE(mode.str() == "fan_in" || mode.str() == "fan_out",
                 "mode: expected one of ['fan_in', 'fan_out'], got '", mode.str(), "'");
  auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  return calculate_gain(nonlinearity, a) /
         std::sqrt(static_cast<double>(mode.str() == "fan_in" ? in : out));
}
Tensor kaiming_uniform_(Tensor tensor, double a, const Text& mode, const Text& nonlinearity) {
  if (tensor.numel() == 0) return tensor;
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return uniform_(std::move(tensor), -bound, bound);
}
Tensor kaiming_normal_(Tensor tensor, double a, const Text& mode, const Text& nonlinearity) {
  if (tensor.numel() == 0) return tensor;
  const double std = kaiming_std(tensor, a, mode, nonlinearity);
  return normal_(std::move(tensor), 0, std);
}

Tensor orthogonal_(Tensor tensor, double gain) {
  NoGradGuard no_grad;
  FB_CHECK_VALUE(tensor.dim() >= 2, "orthogonal_: expected a tensor of 2 or more dimensions, got ",
                 tensor.dim());
  if (tensor.numel() == 0) return tensor;
  const int64_t rows = tensor.size(0), columns = tensor.numel() / rows;
  Tensor draws = empty({rows, columns}, tensor.options()).normal_(0, 1);
  auto [q, r] = linalg::qr(rows < columns ? draws.t() : draws);
  // Signs of R's diagonal make the factor unique, hence uniformly distributed.
  q = q * diag(r).sign();
  if (rows < columns) q = q.t();
  tensor.view_as(q).copy_(q);
  return tensor.mul_(gain);
}

Tensor sparse_(Tensor tensor, double sparsity, double std) {
  NoGradGuard no_grad;
  FB_CHECK_VALUE(tensor.dim() == 2, "sparse_: expected a tensor of 2 dimensions, got ",
                 tensor.dim());
  const int64_t rows = tensor.size(0);
  const auto zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  tensor.normal_(0, std);
  for (int64_t c = 0; c < tensor.size(1); ++c)
    tensor.index_put_({randperm(rows).slice(0, 0, zeros), c}, 0);
  return tensor;
}

}  // namespace flambeau::nn::init
