// Random kernels that draw until something is accepted: gamma, Dirichlet, Poisson and binomial
// numbers. Each element draws from the generator in turn, in logical order. Rates and shapes are
// taken in the precision in which PyTorch takes them, so that the same numbers are accepted.
// Sources: Marsaglia & Tsang, ACM TOMS 26 (2000); Knuth, TAOCP 2, 3.4.1; Hoermann, Insurance Math.
// and Economics 12 (1993) and J. Statist. Comput. Simul. 46 (1993).
#include <algorithm>
#include <cmath>
#include <limits>

#include "gen/kernels.h"
#include "kernels/copy.h"
#include "kernels/random_draws.h"

namespace flambeau::kernels {

namespace {
// A gamma number of shape `alpha` and rate one. Below one, the number of shape alpha + 1 times a
// power of a uniform number. `T` is the precision of the shape.
template <class T>
double gamma_draw(T alpha, GeneratorImpl& g) {
  double scale = 1;
  if (alpha < 1) {
    if (alpha == 0) return 0;
    scale = std::pow(1 - next_uniform53(g), static_cast<double>(1.0f / alpha));
    alpha += 1;
  }
  const double d = alpha - 1.0f / 3.0f, c = 1 / std::sqrt(9 * d);
  while (true) {
    double x, y;
    do {
      x = normal_double(g);
      y = 1 + c * x;
    } while (y <= 0);
    double v = y * y * y, u = 1 - next_uniform53(g), xx = x * x;
    if (u < 1 - 0.0331f * xx * xx) return scale * d * v;
    if (std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return scale * d * v;
    if (std::isnan(d)) return d;
  }
}

// What a draw for the dtype may at least be: its smallest normal number.
double least_draw(DType d) {
  return d == DType::Float16   ? 0x1p-14
         : d == DType::Float64 ? std::numeric_limits<double>::min()
                               : static_cast<double>(std::numeric_limits<float>::min());
}

// out[i] = f(shape i, i) over the elements of input, in double if that is its dtype, else in float.
template <class F>
void each_shape(const Tensor& input, const F& f) {
  bool wide = input.dtype() == DType::Float64;
  Tensor x = contiguous(to_dtype(input, wide ? DType::Float64 : DType::Float32));
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (wide)
      f(x.data<double>()[i], i);
    else
      f(x.data<float>()[i], i);
  }
}
}  // namespace

void standard_gamma(Tensor& out, const Tensor& input, const OptGenerator& generator) {
  Tensor result = empty(out.sizes(), DType::Float64);
  const double least = least_draw(out.dtype());
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  each_shape(input, [&](auto alpha, int64_t i) {
    double x = gamma_draw(alpha, g);
    result.data<double>()[i] = x < least ? least : x;
  });
  copy(out, result);
}

// Gamma numbers over their sum; kept inside (0, 1), whose ends have no density.
void sample_dirichlet(Tensor& out, const Tensor& input, const OptGenerator& generator) {
  Tensor shapes = contiguous(to_dtype(input, DType::Float64));
  Tensor result = empty(out.sizes(), DType::Float64);
  const double least = least_draw(out.dtype());
  const double most = static_cast<double>(std::nextafter(1.0f, 0.0f));
  const int64_t n = input.size(-1), rows = input.numel() / std::max<int64_t>(n, 1);
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  for (int64_t r = 0; r < rows; ++r) {
    const double* alpha = shapes.data<double>() + r * n;
    double* x = result.data<double>() + r * n;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i] = gamma_draw(alpha[i], g);
    for (int64_t i = 0; i < n; ++i) x[i] = std::clamp(x[i] / sum, least, most);
  }
  copy(out, result);
}

namespace {
// Knuth's product of uniforms for small rates, Hoermann's transformed rejection (PTRS) for large
// ones.
int64_t poisson_draw(double rate, GeneratorImpl& g) {
  if (!(rate >= 0)) return 0;
  if (rate == 0) return 0;
  if (rate < 10) {
    double floor = std::exp(-rate), product = 1;
    for (int64_t k = 0;; ++k) {
      product *= next_uniform53(g);
      if (!(product > floor)) return k;
    }
  }
  double slam = std::sqrt(rate), loglam = std::log(rate), b = 0.931 + 2.53 * slam,
         a = -0.059 + 0.02483 * b;
  double invalpha = 1.1239 + 1.1328 / (b - 3.4), vr = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    double u = next_uniform53(g) - 0.5, v = next_uniform53(g), us = 0.5 - std::fabs(u);
    double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= vr) return static_cast<int64_t>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(invalpha) - std::log(a / (us * us) + b) <=
        -rate + k * loglam - std::lgamma(k + 1))
      return static_cast<int64_t>(k);
  }
}
}  // namespace

void poisson(Tensor& out, const Tensor& input, const OptGenerator& generator) {
  Tensor rates = contiguous(to_dtype(input, DType::Float64));
  Tensor result = empty(out.sizes(), DType::Float64);
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  for (int64_t i = 0; i < rates.numel(); ++i) {
    double rate = rates.data<double>()[i];
    FB_CHECK(rate >= 0, "invalid Poisson rate, expected rate to be non-negative");
    result.data<double>()[i] = static_cast<double>(poisson_draw(rate, g));
  }
  copy(out, result);
}

namespace {
// Trials until each success are geometric: few successes are counted so.
template <class T>
T binomial_by_waiting(T count, T prob, GeneratorImpl& g) {
  const T slope = std::log1p(-prob);
  double trials = 0;
  for (T successes = 0;; successes += 1) {
    trials += std::ceil(std::log(next_uniform53(g)) / slope);
    if (trials > count) return successes;
  }
}

// log(k!) less Stirling's k log k - k + log(2 pi k) / 2, in the form of k + 1/2.
double stirling_tail(double k) {
  static constexpr double few[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                   0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                   0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                   0.00833056343336287};
  if (k <= 9) return few[static_cast<int>(k)];
  double next = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / next) / next) / (k + 1);
}

// Transformed rejection with squeeze (BTRS), for count * prob >= 10 and prob <= 1/2.
template <class T>
T binomial_by_rejection(T count, T prob, GeneratorImpl& g) {
  const T stddev = std::sqrt(count * prob * (1 - prob));
  const T b = 1.15 + 2.53 * stddev, a = -0.0873 + 0.0248 * b + 0.01 * prob, c = count * prob + 0.5;
  const T squeeze = 0.92 - 4.2 / b, odds = prob / (1 - prob), alpha = (2.83 + 5.1 / b) * stddev;
  const T mode = std::floor((count + 1) * prob);
  while (true) {
    T u = next_uniform53(g) - 0.5, v = next_uniform53(g);
    T us = 0.5 - std::fabs(u);
    T k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || k > count) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    T bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
              (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
              (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(mode) +
              stirling_tail(count - mode) - stirling_tail(k) - stirling_tail(count - k);
    if (v <= bound) return k;
  }
}

template <class T>
T binomial_draw(T count, T prob, GeneratorImpl& g) {
  if (count <= 0 || prob <= 0) return 0;
  if (prob >= 1) return count;
  if (std::isnan(count) || std::isnan(prob)) return std::numeric_limits<T>::quiet_NaN();
  const bool mirrored = prob > T(0.5);
  const T q = mirrored ? 1 - prob : prob;
  T k = count * q >= 10 ? binomial_by_rejection(count, q, g) : binomial_by_waiting(count, q, g);
  return mirrored ? count - k : k;
}
}  // namespace

void binomial(Tensor& out, const Tensor& count, const Tensor& prob, const OptGenerator& generator) {
  const bool wide = out.dtype() == DType::Float64;
  const DType d = wide ? DType::Float64 : DType::Float32;
  Tensor n = empty(out.sizes(), d), p = empty(out.sizes(), d), result = empty(out.sizes(), d);
  copy(n, count);
  copy(p, prob);
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  auto run = [&]<class T>() {
    for (int64_t i = 0; i < result.numel(); ++i)
      result.data<T>()[i] = binomial_draw(n.data<T>()[i], p.data<T>()[i], g);
  };
  if (wide)
    run.operator()<double>();
  else
    run.operator()<float>();
  copy(out, result);
}

}  // namespace flambeau::kernels
