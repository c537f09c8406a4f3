// Methods: recurrences with asymptotic series (gamma family), Euler-Maclaurin (zeta), series and
// continued fractions (incomplete gamma, erfcx), Newton's method on good starts (inverse error
// functions), power series, asymptotic series and the trapezoidal rule (Bessel functions). Sources:
// NIST Digital Library of Mathematical Functions.
#include "kernels/special.h"

#include <cmath>
#include <limits>

#include "core/error.h"

namespace flambeau::special {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr double kPi = 3.14159265358979323846;
constexpr double kSqrt2 = 1.41421356237309504880, kSqrtPi = 1.77245385090551602730;

// B(2k) / (2k)!, of the Euler-Maclaurin formula.
constexpr double kBernoulli[] = {
    8.333333333333333e-2,  -1.388888888888889e-3,  3.306878306878307e-5,  -8.267195767195768e-7,
    2.08767569878681e-8,   -5.284190138687493e-10, 1.338253653068468e-11, -3.389680296322583e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.50900282836023e-18,  -1.395446468581252e-19};

template <class F>
double horner(double x, const F& c) {
  double y = 0;
  for (double k : c) y = y * x + k;
  return y;
}

}  // namespace

void division_by_zero() {
  fail(ErrorKind::Runtime, "ZeroDivisionError");
}

// Gamma family
// -------------------------------------------------------------------------------------------------------

double lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNan;
    double whole;
    double f = std::modf(x, &whole);
    return digamma(1 - x) - kPi / std::tan(kPi * f);
  }
  double shift = 0;
  for (; x < 10; x += 1) shift += 1 / x;
  double z = 1 / (x * x);
  // sum of B(2k) / (2k x^2k)
  double tail =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 -
                                z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return std::log(x) - 0.5 / x - tail - shift;
}

double zeta(double s, double q) {
  if (s == 1) return kInf;
  if (!(s > 1)) return kNan;
  if (q == kInf) return 0;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (s != std::floor(s)) return kNan;
  }
  double sum = 0;
  double a = q;
  for (int i = 0; i < 12 || a <= 12; ++i, a += 1) {
    double term = std::pow(a, -s);
    sum += term;
    if (std::fabs(term) < kEps * 1e-2 * std::fabs(sum) && a > 1) return sum;
  }
  double last = std::pow(a, -s);
  sum += last * a / (s - 1) + 0.5 * last;
  double factor = s * last / a;
  for (int k = 0; k < 12; ++k) {
    double term = kBernoulli[k] * factor;
    sum += term;
    if (std::fabs(term) < kEps * std::fabs(sum)) break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (a * a);
  }
  return sum;
}

double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::exp(lgamma(n + 1)) * zeta(n + 1, x);
}

namespace {
// x^a e^-x / gamma(a)
double gamma_density(double a, double x) {
  return std::exp(a * std::log(x) - x - lgamma(a));
}

double lower_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (double k = a + 1; std::fabs(term) > kEps * std::fabs(sum) && k < a + 100000; k += 1) {
    term *= x / k;
    sum += term;
  }
  return sum * gamma_density(a, x);
}
double upper_fraction(double a, double x) {  // Lentz's method
  constexpr double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / (b == 0 ? tiny : b), h = d;
  for (int i = 1; i < 100000; ++i) {
    double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (std::fabs(d) < tiny) d = tiny;
    c = b + an / c;
    if (std::fabs(c) < tiny) c = tiny;
    d = 1 / d;
    double step = d * c;
    h *= step;
    if (std::fabs(step - 1) < kEps) break;
  }
  return h * gamma_density(a, x);
}
}  // namespace

double igamma(double a, double x) {
  if (x < 0 || a < 0 || std::isnan(a) || std::isnan(x)) return kNan;
  if (a == 0) return x > 0 ? 1 : kNan;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 0;
  if (std::isinf(x)) return 1;
  return x > 1 && x > a ? 1 - upper_fraction(a, x) : lower_series(a, x);
}

double igammac(double a, double x) {
  if (x < 0 || a < 0 || std::isnan(a) || std::isnan(x)) return kNan;
  if (a == 0) return x > 0 ? 0 : kNan;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 1;
  if (std::isinf(x)) return 0;
  return x > 1 && x > a ? upper_fraction(a, x) : 1 - lower_series(a, x);
}

// Error functions
// ------------------------------------------------------------------------------------------------------

double erfcx(double x) {
  if (x < 0) return x < -26.7 ? kInf : 2 * std::exp(x * x) - erfcx(-x);
  if (x < 4) return std::exp(x * x) * std::erfc(x);
  if (x > 1e8) return 1 / (kSqrtPi * x);
  double h = x;  // continued fraction, from its end
  for (int k = 60; k > 0; --k) h = x + 0.5 * k / h;
  return 1 / (kSqrtPi * h);
}

namespace {
// Quantile of the normal distribution for p <= 1/2: a rational start (relative error 1e-9), one
// step of Halley's method.
double lower_quantile(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                          6.680131188771972e+01,  -1.328068155288572e+01, 1};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00, 1};
  double x;
  if (p < 0.02425) {
    double q = std::sqrt(-2 * std::log(p));
    x = horner(q, c) / horner(q, d);
  } else {
    double q = p - 0.5, r = q * q;
    x = horner(r, a) * q / horner(r, b);
  }
  for (int i = 0; i < 2; ++i) {
    // (Phi(x) - p) / phi(x), by erfcx where Phi is small
    double e =
        x < -1 ? std::sqrt(kPi / 2) * (erfcx(-x / kSqrt2) - 2 * p * std::exp(0.5 * x * x))
               : (0.5 * std::erfc(-x / kSqrt2) - p) * std::sqrt(2 * kPi) * std::exp(0.5 * x * x);
    if (!std::isfinite(e)) break;
    x -= e / (1 + 0.5 * x * e);
  }
  return x;
}
}  // namespace

double ndtri(double p) {
  if (std::isnan(p) || p < 0 || p > 1) return kNan;
  if (p == 0) return -kInf;
  if (p == 1) return kInf;
  return p > 0.5 ? -lower_quantile(1 - p) : lower_quantile(p);
}

double erfinv(double y) {
  if (std::isnan(y) || y < -1 || y > 1) return kNan;
  if (y == 1 || y == -1) return y * kInf;
  double a = std::fabs(y);
  if (a > 0.5) return std::copysign(-lower_quantile(0.5 * (1 - a)) / kSqrt2, y);
  // Newton's method from the first terms of the series.
  double x = 0.5 * kSqrtPi * y * (1 + kPi / 12 * y * y * (1 + 7 * kPi / 40 * y * y));
  for (int i = 0; i < 3; ++i) {
    double e = (std::erf(x) - y) * 0.5 * kSqrtPi * std::exp(x * x);
    x -= e / (1 + x * e);
  }
  return x;
}

double log_ndtr(double x) {
  double t = x / kSqrt2;
  return x < -1 ? std::log(0.5 * erfcx(-t)) - t * t : std::log1p(-0.5 * std::erfc(t));
}

// Bessel functions
// -----------------------------------------------------------------------------------------------------

namespace {
// exp(-|x|) I_v(x) for whole v in {0, 1}: power series of positive terms, asymptotic series beyond.
double scaled_i(int v, double x) {
  double a = std::fabs(x);
  double y;
  if (std::isinf(a)) {
    y = 0;
  } else if (a <= 20) {
    double z = 0.25 * a * a, term = v ? 0.5 * a : 1, sum = term;
    for (int k = 1; k < 200 && term > kEps * 0.1 * sum; ++k) {
      term *= z / (static_cast<double>(k) * (k + v));
      sum += term;
    }
    y = sum * std::exp(-a);
  } else {
    double mu = 4.0 * v * v, term = 1, sum = 1;
    for (int k = 1; k < 40; ++k) {
      double odd = 2 * k - 1, next = -term * (mu - odd * odd) / (8 * a * k);
      if (std::fabs(next) >= std::fabs(term) || std::fabs(next) < kEps * std::fabs(sum)) break;
      sum += term = next;
    }
    y = sum / (std::sqrt(2 * kPi) * std::sqrt(a));
  }
  return v && x < 0 ? -y : y;
}

// exp(x) K_v(x) = int_0^inf exp(x (1 - cosh t)) cosh(v t) dt: the trapezoidal rule converges
// geometrically in 1/h. Near 0 the integrand is about exp(-x t^2 / 2), for which the rule's error
// is exp(-2 pi^2 / (x h^2)).
double scaled_k(double v, double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return kInf;
  if (std::isinf(x)) return 0;
  const double h = std::min(0.125, 0.7 / std::sqrt(x));
  double sum = 0.5;
  for (int k = 1; k < 8000; ++k) {
    double t = k * h, s = std::sinh(0.5 * t);
    double term = std::exp(-2 * s * (s * x)) * std::cosh(v * t);
    sum += term;
    if (term < kEps * 0.01 * sum) break;
  }
  return sum * h;
}
}  // namespace

double i0e(double x) {
  return scaled_i(0, x);
}
double i1e(double x) {
  return scaled_i(1, x);
}
double i0(double x) {
  return std::fabs(x) > 700 ? std::exp(std::fabs(x) + std::log(scaled_i(0, x)))
                            : scaled_i(0, x) * std::exp(std::fabs(x));
}
double i1(double x) {
  double a = std::fabs(x);
  return a > 700 ? std::copysign(std::exp(a + std::log(scaled_i(1, a))), x)
                 : scaled_i(1, x) * std::exp(a);
}
double k0(double x) {
  return scaled_k(0, x) * std::exp(-x);
}
double k0e(double x) {
  return scaled_k(0, x);
}
double k1(double x) {
  return scaled_k(1, x) * std::exp(-x);
}
double k1e(double x) {
  return scaled_k(1, x);
}
double j0(double x) {
  return ::j0(x);
}
double j1(double x) {
  return ::j1(x);
}
double y0(double x) {
  return x == 0 ? -kInf : x < 0 ? kNan : ::y0(x);
}
double y1(double x) {
  return x == 0 ? -kInf : x < 0 ? kNan : ::y1(x);
}

double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  if (std::fabs(x) < 0.5) {
    double z = x * x;
    return 1 - z / 6 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72 * (1 - z / 110 * (1 - z / 156)))));
  }
  return std::sin(x) / x;
}

double airy_ai(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 0 : kNan;
  if (x > 1) {
    double z = 2.0 / 3 * x * std::sqrt(x);
    return std::sqrt(x / 3) / kPi * scaled_k(1.0 / 3, z) * std::exp(-z);
  }
  if (x > -8) {  // Maclaurin series; extended precision pays for its cancellation
    long double f = 1, g = x, tf = 1, tg = x, cube = static_cast<long double>(x) * x * x;
    for (int k = 1; k < 100; ++k) {
      tf *= cube / ((3.0L * k - 1) * (3.0L * k));
      tg *= cube / ((3.0L * k) * (3.0L * k + 1));
      f += tf;
      g += tg;
      if (std::fabs(tf) < 1e-22L && std::fabs(tg) < 1e-22L) break;
    }
    return static_cast<double>(0.355028053887817239260L * f - 0.258819403792806798405L * g);
  }
  double a = -x, z = 2.0 / 3 * a * std::sqrt(a), even = 1, odd = 0, term = 1;
  for (int k = 1; k < 24; ++k) {
    double next =
        term * (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2 * k - 1)) / z;
    if (next > term) break;
    term = next;
    double sign = (k / 2) % 2 ? -1 : 1;
    (k % 2 ? odd : even) += sign * term;
  }
  return (std::cos(z - kPi / 4) * even + std::sin(z - kPi / 4) * odd) /
         (kSqrtPi * std::sqrt(std::sqrt(a)));
}

// Orthogonal polynomials: their recurrences p[k+1] = step(k, p[k], p[k-1])
// -----------------------------------------------

namespace {
// Degrees beyond this take longer than anybody waits: where values do not soon grow past all
// numbers, they are not known: NaN.
constexpr double kHighest = 1 << 22, kSoon = 1 << 17;

template <class F>
double recur(double n, double p0, double p1, const F& step) {
  if (std::isnan(n)) return kNan;
  double whole = std::trunc(n);
  if (whole < 0) return 0;
  if (whole < 1) return p0;
  const double last = whole > kHighest ? kSoon : kHighest;
  for (double k = 1; k < whole && (std::isfinite(p1) || k < 64); k += 1) {
    if (k > last) return kNan;
    double next = step(k, p1, p0);
    p0 = p1;
    p1 = next;
  }
  return p1;
}
// Chebyshev polynomials differ in p1 alone; inside (-1, 1) high orders are trigonometric, at the
// ends p[k] is linear in k but for its sign.
template <class F>
double chebyshev(double x, double n, double p1, const F& trigonometric) {
  if (n > 6 && std::fabs(x) < 1) return trigonometric(std::floor(n), std::acos(x));
  if (n > 6 && std::fabs(x) == 1) {
    double k = std::floor(n), size = 1 + k * (x * p1 - 1);
    return x < 0 && std::fmod(k, 2) == 1 ? -size : size;
  }
  return recur(n, 1, p1, [x](double, double a, double b) { return 2 * x * a - b; });
}
}  // namespace

double chebyshev_t(double x, double n) {
  return chebyshev(x, n, x, [](double k, double t) { return std::cos(k * t); });
}
double chebyshev_u(double x, double n) {
  return chebyshev(x, n, 2 * x,
                   [](double k, double t) { return std::sin((k + 1) * t) / std::sin(t); });
}
double chebyshev_v(double x, double n) {
  return chebyshev(x, n, 2 * x - 1,
                   [](double k, double t) { return std::cos((k + 0.5) * t) / std::cos(0.5 * t); });
}
double chebyshev_w(double x, double n) {
  return chebyshev(x, n, 2 * x + 1,
                   [](double k, double t) { return std::sin((k + 0.5) * t) / std::sin(0.5 * t); });
}
double hermite_h(double x, double n) {
  return recur(n, 1, 2 * x, [x](double k, double a, double b) { return 2 * (x * a - k * b); });
}
double hermite_he(double x, double n) {
  return recur(n, 1, x, [x](double k, double a, double b) { return x * a - k * b; });
}
double laguerre_l(double x, double n) {
  return recur(n, 1, 1 - x, [x](double k, double a, double b) {
    return ((2 * k + 1 - x) * a - k * b) / (k + 1);
  });
}
double legendre_p(double x, double n) {
  return recur(n, 1, x, [x](double k, double a, double b) {
    return ((2 * k + 1) * x * a - k * b) / (k + 1);
  });
}

}  // namespace flambeau::special
