#include "kernels/upsample.h"

#include <cmath>

#include "gen/kernels.h"
#include "kernels/copy.h"

namespace flambeau::kernels {

AxisMap make_axis_map(int64_t in, int64_t out, const std::vector<int64_t>& first,
                      const std::vector<std::vector<double>>& weights) {
  AxisMap m;
  m.in = in, m.out = out, m.width = 1, m.identity = in == out;
  for (const auto& w : weights)
    m.width = std::max<int64_t>(m.width, static_cast<int64_t>(w.size()));
  m.start.resize(out);
  m.weights.assign(m.width * out, 0.0);
  for (int64_t o = 0; o < out; ++o) {
    const int64_t start = std::min(first[o], in - m.width);
    m.start[o] = static_cast<int32_t>(start);
    for (size_t j = 0; j < weights[o].size(); ++j)
      m.weights[(first[o] - start + j) * out + o] = weights[o][j];
    if (first[o] != o || weights[o].size() != 1 || weights[o][0] != 1) m.identity = false;
  }
  return m;
}

AxisMap transposed(const AxisMap& m) {
  std::vector<int64_t> first(m.in, -1);
  std::vector<std::vector<double>> weights(m.in);
  for (int64_t o = 0; o < m.out; ++o)
    for (int64_t j = 0; j < m.width; ++j) {
      const double w = m.weights[j * m.out + o];
      const int64_t i = m.start[o] + j;
      if (w == 0) continue;
      if (first[i] < 0) first[i] = o;
      weights[i].resize(o - first[i] + 1, 0.0);
      weights[i].back() += w;
    }
  for (int64_t i = 0; i < m.in; ++i)
    if (first[i] < 0) first[i] = 0, weights[i] = {0.0};
  return make_axis_map(m.out, m.in, first, weights);
}

void apply_maps(Tensor& out, const Tensor& input, const std::vector<AxisMap>& maps) {
  if (out.numel() == 0) return;
  AxisMap all[3];
  for (int a = 0; a < 3; ++a) all[a].start = {0}, all[a].weights = {1.0};
  int64_t planes = 1;
  const size_t lead = input.dim() - maps.size();
  for (size_t i = 0; i < lead; ++i) planes *= input.sizes()[i];
  for (size_t i = 0; i < maps.size(); ++i) all[3 - maps.size() + i] = maps[i];
  const DType d = out.dtype() == DType::Float64 || is_integral(out.dtype(), true) ? DType::Float64
                                                                                  : DType::Float32;
  const Tensor x = contiguous(to_dtype(input, d));
  const bool direct = out.dtype() == d && out.is_contiguous();
  Tensor y = direct ? out : empty(out.sizes(), d);
  FB_ISA_DISPATCH(apply_axis_maps)(d, all, planes, x.data_ptr(), y.data_ptr());
  if (direct) return;
  if (is_integral(out.dtype(), true)) {
    const double top = out.dtype() == DType::UInt8 ? 255.0 : 9e18;
    double* v = y.data<double>();
    for (int64_t i = 0; i < y.numel(); ++i)
      v[i] = std::clamp(std::nearbyint(v[i]), out.dtype() == DType::UInt8 ? 0.0 : -top, top);
  }
  copy(out, y);
}

namespace {

// Weight of a neighbour at distance x: the triangle, and Keys's cubic (1981) with parameter a.
double triangle(double x) {
  return std::max(0.0, 1 - std::abs(x));
}
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Inputs per output along the axis: from the user's scale factor if there is one, else from the
// sizes.
double axis_scale(int64_t in, int64_t out, bool align_corners, double factor) {
  if (align_corners)
    return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
  return factor > 0 ? 1.0 / factor : static_cast<double>(in) / static_cast<double>(out);
}

using Rows = std::vector<std::vector<double>>;

AxisMap nearest_map(int64_t in, int64_t out, bool exact, double factor) {
  std::vector<int64_t> first(out);
  const Rows ones(out, std::vector<double>{1.0});
  // In float, as the reference semantics has it: which neighbour wins depends on it.
  const float scale = static_cast<float>(axis_scale(in, out, false, factor));
  for (int64_t o = 0; o < out; ++o) {
    const float at = exact ? (static_cast<float>(o) + 0.5f) * scale : static_cast<float>(o) * scale;
    int64_t i = static_cast<int64_t>(std::floor(at));
    if (!exact && out == in)
      i = o;
    else if (!exact && out == 2 * in)
      i = o / 2;
    first[o] = std::clamp<int64_t>(i, 0, in - 1);
  }
  return make_axis_map(in, out, first, ones);
}

// Two or four neighbours around the point, those outside clamped to the edge.
AxisMap smooth_map(int64_t in, int64_t out, bool is_cubic, bool align_corners, double factor) {
  std::vector<int64_t> first(out);
  Rows weights(out);
  const double scale = axis_scale(in, out, align_corners, factor);
  for (int64_t o = 0; o < out; ++o) {
    double at = align_corners ? scale * static_cast<double>(o)
                              : scale * (static_cast<double>(o) + 0.5) - 0.5;
    if (!is_cubic) at = std::max(at, 0.0);
    const double base = std::floor(at);
    const int from = is_cubic ? -1 : 0, to = is_cubic ? 2 : 1;
    const int64_t low = std::clamp<int64_t>(static_cast<int64_t>(base) + from, 0, in - 1);
    const int64_t high = std::clamp<int64_t>(static_cast<int64_t>(base) + to, 0, in - 1);
    first[o] = low;
    weights[o].assign(high - low + 1, 0.0);
    for (int j = from; j <= to; ++j) {
      const double distance = at - base - j;
      const double w = is_cubic ? cubic(distance, -0.75) : triangle(distance);
      weights[o][std::clamp<int64_t>(static_cast<int64_t>(base) + j, low, high) - low] += w;
    }
  }
  return make_axis_map(in, out, first, weights);
}

// The kernel widened by the scale when shrinking, weights normalised.
AxisMap antialias_map(int64_t in, int64_t out, bool is_cubic, bool align_corners, double factor) {
  std::vector<int64_t> first(out);
  Rows weights(out);
  const double scale = axis_scale(in, out, align_corners, factor);
  const double wide = std::max(scale, 1.0), reach = (is_cubic ? 2.0 : 1.0) * wide;
  for (int64_t o = 0; o < out; ++o) {
    const double centre = scale * (static_cast<double>(o) + 0.5);
    const int64_t low = std::max<int64_t>(0, static_cast<int64_t>(centre - reach + 0.5));
    const int64_t high = std::min<int64_t>(in, static_cast<int64_t>(centre + reach + 0.5));
    double total = 0;
    first[o] = std::min(low, in - 1);
    for (int64_t i = low; i < high; ++i) {
      const double x = (static_cast<double>(i) - centre + 0.5) / wide;
      const double w = is_cubic ? cubic(x, -0.5) : triangle(x);
      weights[o].push_back(w);
      total += w;
    }
    if (weights[o].empty()) weights[o] = {0.0};
    if (total != 0)
      for (double& w : weights[o]) w /= total;
  }
  return make_axis_map(in, out, first, weights);
}

std::vector<AxisMap> maps_for(const Ints& in, const Ints& out, const std::string& mode, bool align,
                              const std::vector<double>& scales) {
  std::vector<AxisMap> maps;
  for (size_t i = 2; i < in.size(); ++i) {
    const double factor = scales.empty() ? 0.0 : scales[i - 2];
    const bool antialias = mode == "linear-aa" || mode == "cubic-aa";
    if (antialias && in[i] == out[i])  // nothing to smooth, whatever the factor says
      maps.push_back(nearest_map(in[i], out[i], false, 0.0));
    else if (mode == "nearest" || mode == "nearest-exact")
      maps.push_back(nearest_map(in[i], out[i], mode == "nearest-exact", factor));
    else if (antialias)
      maps.push_back(antialias_map(in[i], out[i], mode == "cubic-aa", align, factor));
    else
      maps.push_back(smooth_map(in[i], out[i], mode == "cubic", align, factor));
  }
  return maps;
}

}  // namespace

void resample(Tensor& out, const Tensor& input, const Ints&, const std::string& mode,
              bool align_corners, const std::vector<double>& scales) {
  if (out.numel() == 0) return;
  apply_maps(out, input, maps_for(input.sizes(), out.sizes(), mode, align_corners, scales));
}

void resample_transposed(Tensor& out, const Tensor& grad, const Ints&, const std::string& mode,
                         bool align_corners, const std::vector<double>& scales) {
  if (out.numel() == 0) return;
  if (grad.numel() == 0) return fill_zero(out);
  std::vector<AxisMap> maps = maps_for(out.sizes(), grad.sizes(), mode, align_corners, scales);
  for (AxisMap& m : maps) m = transposed(m);
  apply_maps(out, grad, maps);
}

}  // namespace flambeau::kernels
