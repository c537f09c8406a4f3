// Derivatives of gamma and beta numbers by their shapes, for pathwise gradients: a number x drawn
// from a distribution function F(x; a) moves by dx/da = -(dF/da) / (dF/dx) (implicit
// reparameterisation, Figurnov, Mohamed & Mnih, 2018). F and dF/da come from one evaluation of a
// series or continued fraction over dual numbers; the powers and gamma functions in front of it
// cancel against the density, so nothing over- or underflows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"
#include "kernels/special.h"

namespace flambeau::kernels {
namespace {

constexpr double kPrecision = 1e-15;
constexpr int kTerms = 200000;

// A value and its derivative.
struct Dual {
  double v, d = 0;
};
Dual operator+(Dual x, Dual y) {
  return {x.v + y.v, x.d + y.d};
}
Dual operator-(Dual x, Dual y) {
  return {x.v - y.v, x.d - y.d};
}
Dual operator*(Dual x, Dual y) {
  return {x.v * y.v, x.d * y.v + x.v * y.d};
}
Dual operator/(Dual x, Dual y) {
  double q = x.v / y.v;
  return {q, (x.d - q * y.d) / y.v};
}
Dual nonzero(Dual x) {
  return std::fabs(x.v) < 1e-300 ? Dual{1e-300, x.d} : x;
}

// One step of the modified Lentz recurrence for a continued fraction: f times (b + a * 1/c ...).
// True once neither value nor derivative changes.
struct Fraction {
  Dual f, c, d{0};
  bool step(Dual a, Dual b) {
    d = Dual{1} / nonzero(b + a * d);
    c = nonzero(b + a / c);
    Dual factor = c * d, before = f;
    f = f * factor;
    return std::fabs(factor.v - 1) < kPrecision &&
           std::fabs(f.d - before.d) <= kPrecision * (std::fabs(f.d) + std::fabs(f.v));
  }
};

// Cornish-Fisher: x = a + z sqrt(a) + (z^2 - 1) / 3 + (z^3 - 7 z) / (36 sqrt(a)) for the z of x.
double gamma_slope_large(double a, double x) {
  double root = std::sqrt(a), z = (x - a) / root;
  for (int i = 0; i < 6; ++i) {
    double y = a + z * root + (z * z - 1) / 3 + (z * z * z - 7 * z) / (36 * root);
    z -= (y - x) / (root + 2 * z / 3 + (3 * z * z - 7) / (36 * root));
  }
  return 1 + z / (2 * root) - (z * z * z - 7 * z) / (72 * a * root);
}

// dx/da of a gamma number of shape a.
double gamma_slope(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  if (a > 1e6 && std::fabs(x - a) < 12 * std::sqrt(a)) return gamma_slope_large(a, x);
  if (x <= a + 1) {  // P = x^a e^-x / gamma(a + 1) * (1 + x / (a + 1) + ...)
    Dual term{1}, sum{1};
    for (int n = 1; n < kTerms; ++n) {
      term = term * (Dual{x} / Dual{a + n, 1});
      sum = sum + term;
      if (term.v < kPrecision * sum.v && std::fabs(term.d) <= kPrecision * std::fabs(sum.d)) break;
    }
    return -x / a * (sum.v * (std::log(x) - special::digamma(a + 1)) + sum.d);
  }
  // 1 - P = x^a e^-x / gamma(a) * 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...))
  Dual b{x + 1 - a, -1};
  Fraction q{nonzero(b), nonzero(b)};
  for (int n = 1; n < kTerms; ++n)
    if (q.step(Dual{-n * (n - a), static_cast<double>(n)}, Dual{x + 1 - a + 2.0 * n, -1})) break;
  Dual tail = Dual{1} / q.f;
  return x * (tail.v * (std::log(x) - special::digamma(a)) + tail.d);
}

// The continued fraction of the incomplete beta function (DLMF 8.17.22), which stands behind
// x^a (1 - x)^b / (a B(a, b)).
Dual beta_fraction(double x, Dual a, Dual b) {
  Dual one{1}, whole = a + b;
  Fraction q{one, one};
  for (int m = 0; m < kTerms; ++m) {
    Dual n{static_cast<double>(m)}, at = a + n + n;
    Dual odd = Dual{-x} * (a + n) * (whole + n) / (at * (at + one));
    if (m > 0) {
      Dual even = Dual{x} * n * (b - n) / ((at - one) * at);
      q.step(even, one);
    }
    if (q.step(odd, one)) break;
  }
  return one / q.f;
}

// dx/da of a beta number of shapes a and b, over 1 - x.
double beta_slope(double x, double a, double b) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1))
    return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || x == 1) return 0;
  const double total = a + b, y = 1 - x;
  if (total > 1e8) {  // a gamma number over about the total, or nearly normal
    if (a < 1e4) return gamma_slope(a, x * (b + (a - 1) / 2)) / (b + (a - 1) / 2) / y;
    if (b < 1e4) return 1 / (a + (b - 1) / 2);
    double mean = a / total, spread = 0.5 * (1 / a - 2 / total - 1 / (total + 1));
    return (b / (total * total) + (x - mean) * spread) / y;
  }
  const double front = std::log(x) - special::digamma(a) + special::digamma(total);
  if (x <= (a + 1) / (total + 2)) {
    Dual f = beta_fraction(x, Dual{a, 1}, Dual{b}) / Dual{a, 1};
    return -x * (f.v * front + f.d);
  }
  Dual f = beta_fraction(y, Dual{b}, Dual{a, 1}) / Dual{b};
  return x * (f.v * front + f.d);
}

}  // namespace

void standard_gamma_grad(Tensor& out, const Tensor& input, const Tensor& output) {
  Tensor a = contiguous(to_dtype(input, DType::Float64));
  Tensor x = contiguous(to_dtype(output, DType::Float64));
  Tensor result = empty(out.sizes(), DType::Float64);
  parallel_for(0, a.numel(), 256, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i)
      result.data<double>()[i] = gamma_slope(a.data<double>()[i], x.data<double>()[i]);
  });
  copy(out, result);
}

void dirichlet_grad(Tensor& out, const Tensor& x, const Tensor& alpha, const Tensor& total) {
  Tensor at = contiguous(to_dtype(x, DType::Float64));
  Tensor a = contiguous(to_dtype(alpha, DType::Float64));
  Tensor t = contiguous(to_dtype(total, DType::Float64));
  Tensor result = empty(out.sizes(), DType::Float64);
  parallel_for(0, a.numel(), 256, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      double shape = a.data<double>()[i];
      result.data<double>()[i] =
          beta_slope(at.data<double>()[i], shape, t.data<double>()[i] - shape);
    }
  });
  copy(out, result);
}

}  // namespace flambeau::kernels
