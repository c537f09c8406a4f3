// Exponential, trigonometric and error functions of float and double, without branches, so that
// loops over them are vectorised by the compiler. Polynomials are minimax fits (Remez) on the
// reduced ranges, errors about one unit in the last place; reductions are those of Cody and Waite.
// Included by *.isa.cpp files only.
#pragma once

#include <cmath>

#include "kernels/isa_types.h"

namespace flambeau::kernels::FB_ISA {

template <class T>
struct FloatTraits;
template <>
struct FloatTraits<float> {
  using Int = int32_t;
  using Bits = uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
  static constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  static constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.4286068203094173e-6f;
  static constexpr float kLog2e = 1.44269504088896340736f;
  static constexpr float kExpMin = -104.0f, kExpMax = 89.0f;
  static constexpr float kExpm1Min = -20.0f, kExpm1Max = 88.9f;
  static constexpr Int kSqrtHalf = 0x3f3504f3;
  static constexpr float kTiny = 1.17549435e-38f, kTinyScale = 33554432.0f, kTinyShift = 25.0f;
  static constexpr float kTrigLimit = 1e6f;
  // high parts of few bits: products with the upper half of a number are exact
  static constexpr Int kLowHalf = 0xfff;
  static constexpr float kLog10Of2High = 3.0102920532e-01f, kLog10Of2Low = 7.9034151668e-07f;
  static constexpr float kLog10OfEHigh = 4.3432617188e-01f, kLog10OfELow = -3.1689971365e-05f;
};
template <>
struct FloatTraits<double> {
  using Int = int64_t;
  using Bits = uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double kLn2High = 6.93147180369123816490e-01,
                          kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kLog2e = 1.44269504088896340736;
  static constexpr double kExpMin = -746.0, kExpMax = 710.0;
  static constexpr double kExpm1Min = -40.0, kExpm1Max = 709.9;
  static constexpr Int kSqrtHalf = 0x3fe6a09e667f3bcd;
  static constexpr double kTiny = 2.2250738585072014e-308, kTinyScale = 18014398509481984.0,
                          kTinyShift = 54.0;
  static constexpr double kTrigLimit = 1e6;
  static constexpr Int kLowHalf = 0xffffffff;
  static constexpr double kLog10Of2High = 3.01029995663611771306e-01,
                          kLog10Of2Low = 3.69423907715893078616e-13;
  static constexpr double kLog10OfEHigh = 4.34294481878168880939e-01,
                          kLog10OfELow = 2.50829467116452752298e-11;
};

// c0 + c1 x + c2 x^2 + ...; x is a number or a vector of them. In Estrin's order, halves joined by
// a power of x: a processor looks ahead a few elements only, so a long chain of dependent
// operations takes longer than the operations do.
template <int N, class T, class C>
FB_INLINE T poly_part(const T* powers, const C* c) {
  if constexpr (N == 1) {
    return T{} + c[0];
  } else if constexpr (N == 2) {
    return c[0] + powers[0] * c[1];
  } else {
    constexpr int level = N > 16 ? 4 : N > 8 ? 3 : N > 4 ? 2 : 1, half = 1 << level;
    return poly_part<half>(powers, c) + powers[level] * poly_part<N - half>(powers, c + half);
  }
}
template <class T, class C, class... Rest>
FB_INLINE T poly(T x, C first, Rest... rest) {
  const C c[] = {first, static_cast<C>(rest)...};
  const T x2 = x * x, x4 = x2 * x2, x8 = x4 * x4, powers[] = {x, x2, x4, x8, x8 * x8};
  return poly_part<1 + static_cast<int>(sizeof...(rest))>(powers, c);
}

template <class T>
FB_INLINE T clamp_to(T x, T low, T high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

// 2^n for an integer n given as the low bits of (n + kRounder); n must be a normal exponent.
template <class T>
FB_INLINE T power_of_two(typename FloatTraits<T>::Int n) {
  using F = FloatTraits<T>;
  return bits_as<T>((n + F::kBias) << F::kMantissa);
}

// Polynomials of float take a float or a vector of them (kernels/vector_math.h).

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2.
template <class T>
FB_INLINE T exp_tail(T r) {
  return poly<T>(r, 0.5000000013f, 0.1666666676f, 0.04166646489f, 0.008333286061f, 0.001393365301f,
                 0.0001990754839f);
}
template <>
FB_INLINE double exp_tail(double r) {
  return poly<double>(r, 0.5, 0.1666666666666667099, 0.04166666666666668382, 0.00833333333332613452,
                      0.001388888888887439381, 0.0001984126987482220602, 0.00002480158734734332479,
                      2.755725539854807839e-6, 2.755725291294100586e-7, 2.51052176097365477e-8,
                      2.09215879483897696e-9);
}

// x = n ln(2) + r; gives r and n.
template <class T>
struct ExpParts {
  T r;
  typename FloatTraits<T>::Int n;
};
template <class T>
FB_INLINE ExpParts<T> exp_parts(T x) {
  using F = FloatTraits<T>;
  using I = typename F::Int;
  T shifted = x * F::kLog2e + F::kRounder;
  T n = shifted - F::kRounder;
  T r = (x - n * F::kLn2High) - n * F::kLn2Low;
  return {r, static_cast<I>(bits_as<I>(shifted) - bits_as<I>(F::kRounder))};
}

template <class T>
FB_INLINE T exp_of(T x) {
  using F = FloatTraits<T>;
  auto [r, n] = exp_parts<T>(clamp_to(x, F::kExpMin, F::kExpMax));
  T y = (exp_tail(r) * r) * r + r + T(1);
  auto half = n >> 1;  // in two steps: 2^n may be beyond the normal range
  return y * power_of_two<T>(half) * power_of_two<T>(n - half);
}

template <class T>
FB_INLINE T expm1_of(T x) {
  using F = FloatTraits<T>;
  auto [r, n] = exp_parts<T>(clamp_to(x, F::kExpm1Min, F::kExpm1Max));
  T p = (exp_tail(r) * r) * r + r;
  T scale = power_of_two<T>(n - 1);
  T y = (scale * p + (scale - T(0.5))) * T(2);
  return x == 0 ? x : n == 0 ? p : y;  // with the sign of a zero
}

template <class T>
FB_INLINE T exp2_of(T x) {
  using F = FloatTraits<T>;
  using I = typename F::Int;
  x = clamp_to(x, T(F::kExpMin * F::kLog2e), T(F::kExpMax * F::kLog2e));
  T shifted = x + F::kRounder;
  T f = x - (shifted - F::kRounder);
  I n = static_cast<I>(bits_as<I>(shifted) - bits_as<I>(F::kRounder));
  T r = f * T(0.69314718055994530942);
  T y = (exp_tail(r) * r) * r + r + T(1);
  I half = n >> 1;
  return y * power_of_two<T>(half) * power_of_two<T>(n - half);
}

FB_INLINE float log_tail(float z) {
  return z * poly<float>(z, 0.6666666655f, 0.400001248f, 0.2855050626f, 0.2333863229f);
}
FB_INLINE double log_tail(double z) {
  return z * poly<double>(z, 0.6666666666666669849, 0.3999999999989504037, 0.2857142862793677812,
                          0.2222221082298138558, 0.1818291134362284891, 0.1533099700673452015,
                          0.1462525882485936284);
}

// log(x + c) for a positive normal x and a tiny c: exponent and log of the mantissa, by its atanh
// series.
template <class T>
struct LogParts {
  T exponent, f, tail;  // log(x) = exponent ln(2) + (f - tail)
};
template <class T>
FB_INLINE LogParts<T> log_parts(T x) {
  using F = FloatTraits<T>;
  using I = typename F::Int;
  bool tiny = x < F::kTiny;
  x = tiny ? x * F::kTinyScale : x;
  using U = typename F::Bits;  // which wraps, for what is no positive number
  U bits = bits_as<U>(x);
  I e = static_cast<I>(bits - static_cast<U>(F::kSqrtHalf)) >> F::kMantissa;
  T f = bits_as<T>(static_cast<I>(bits - static_cast<U>(e << F::kMantissa))) - T(1);
  T s = f / (T(2) + f);
  T half = T(0.5) * f * f;
  return {static_cast<T>(e) - (tiny ? F::kTinyShift : T(0)), f,
          half - s * (half + log_tail(s * s))};
}
// NaN, infinities and zero around `y`, the logarithm of a positive finite x.
template <class T>
FB_INLINE T log_edges(T x, T y) {
  constexpr T inf = std::numeric_limits<T>::infinity();
  y = x == inf ? inf : y;
  y = x == T(0) ? -inf : y;
  y = x < T(0) ? std::numeric_limits<T>::quiet_NaN() : y;
  return x != x ? x : y;
}

template <class T>
FB_INLINE T log_of(T x) {
  using F = FloatTraits<T>;
  auto [k, f, tail] = log_parts<T>(x);
  return log_edges(x, k * F::kLn2High - ((tail - k * F::kLn2Low) - f));
}
template <class T>
FB_INLINE T log2_of(T x) {
  auto [k, f, tail] = log_parts<T>(x);
  T m = f - tail;
  return log_edges(x, k + m * T(1.44269504088896340736));
}
template <class T>
FB_INLINE T log10_of(T x) {
  auto [k, f, tail] = log_parts<T>(x);
  // Both products in two parts, the first exact, so that powers of ten give whole numbers.
  using F = FloatTraits<T>;
  T high = bits_as<T>(bits_as<typename F::Int>(f - tail) & ~F::kLowHalf), low = (f - high) - tail;
  T small = k * F::kLog10Of2Low + (low + high) * F::kLog10OfELow + low * F::kLog10OfEHigh;
  return log_edges(x, (small + high * F::kLog10OfEHigh) + k * F::kLog10Of2High);
}
template <class T>
FB_INLINE T log1p_of(T x) {
  using F = FloatTraits<T>;
  T u = T(1) + x;
  T lost = x >= T(1) ? T(1) - (u - x) : x - (u - T(1));
  auto [k, f, tail] = log_parts<T>(u);
  T y = k * F::kLn2High - ((tail - (k * F::kLn2Low + lost / u)) - f);
  y = u == T(1) ? x : y;
  return log_edges(u, y);
}

template <class T>
FB_INLINE T tanh_of(T x) {
  T a = x < T(0) ? -x : x;
  T e = expm1_of<T>(T(2) * (a > T(22) ? T(22) : a));
  T y = e / (e + T(2));
  y = a != a ? x : y;
  return __builtin_copysign(y, x);
}
template <>
FB_INLINE float tanh_of<float>(float x) {
  float a = x < 0 ? -x : x;
  float e = expm1_of<float>(2.0f * (a > 10.0f ? 10.0f : a));
  float y = e / (e + 2.0f);
  y = a != a ? x : y;
  return __builtin_copysignf(y, x);
}

// Sine and cosine
// --------------------------------------------------------------------------------------------------
// For |x| <= kTrigLimit; loops that meet larger arguments run their exact form, see
// emit_kernels.py.

template <class T>
FB_INLINE T sin_poly(T r) {
  T z = r * r;
  return r +
         r * z * poly<T>(z, -0.1666666666f, 0.008333331868f, -0.0001984008272f, 2.724939007e-6f);
}
template <>
FB_INLINE double sin_poly(double r) {
  double z = r * r;
  return r + r * z *
                 poly<double>(z, -0.1666666666666666667, 0.008333333333333331471,
                              -0.0001984126984126501941, 2.755731921930354644e-6,
                              -2.505210622002826286e-8, 1.605852964501921994e-10,
                              -7.586580507545644099e-13);
}
template <class T>
FB_INLINE T cos_poly(T r) {
  T z = r * r;
  return 1.0f - 0.5f * z + z * z * poly<T>(z, 0.04166666465f, -0.001388830132f, 2.454753719e-5f);
}
template <>
FB_INLINE double cos_poly(double r) {
  double z = r * r, half = 0.5 * z, w = 1.0 - half;
  return w +
         (((1.0 - w) - half) + z * z *
                                   poly<double>(z, 0.04166666666666666667, -0.001388888888888888785,
                                                0.00002480158730158462098, -2.755731922138293048e-7,
                                                2.087675578414743736e-9, -1.147045978607721151e-11,
                                                4.745806850628593015e-14));
}

template <class T>
struct Quadrant {
  T r;                             // in [-pi/4, pi/4]
  typename FloatTraits<T>::Int q;  // low two bits: the quadrant
};
FB_INLINE Quadrant<double> quadrant(double x) {
  constexpr double rounder = FloatTraits<double>::kRounder;
  double shifted = x * 0.63661977236758134308 + rounder, n = shifted - rounder;
  return {(x - n * 1.57079632673412561417e+00) - n * 6.07710050650619224932e-11,
          bits_as<int64_t>(shifted)};
}
FB_INLINE Quadrant<float> quadrant(float x) {
  auto [r, q] = quadrant(static_cast<double>(x));
  return {static_cast<float>(r), static_cast<int32_t>(q)};
}

template <class T>
FB_INLINE T sin_of(T x) {
  auto [r, q] = quadrant(x);
  T y = q & 1 ? cos_poly(r) : sin_poly(r);
  return q & 2 ? -y : y;
}
template <class T>
FB_INLINE T cos_of(T x) {
  auto [r, q] = quadrant(x);
  T y = q & 1 ? sin_poly(r) : cos_poly(r);
  return (q + 1) & 2 ? -y : y;
}
template <class T>
FB_INLINE T tan_of(T x) {
  auto [r, q] = quadrant(x);
  T s = sin_poly(r), c = cos_poly(r);
  return q & 1 ? -c / s : s / c;
}

// Error function
// -----------------------------------------------------------------------------------------------------

// erf(x) for |x| <= 1: x added last, 2 / sqrt(pi) as a float would be too coarse.
template <class T>
FB_INLINE T erf_near(T x) {
  return x + x * poly<T>(x * x, 0.1283791661f, -0.3761262714f, 0.1128360017f, -0.02685444424f,
                         0.005189534593f, -0.0008020834299f, 7.88909551e-5f);
}
// log(1 - erf(a)) for 1 <= a <= 4.
template <class T>
FB_INLINE T log_erfc(T a) {
  return -poly<T>(a, -0.0001880294075f, 1.129578374f, 0.6332199895f, 0.1084184756f, -0.02520819351f,
                  0.004204538775f, -0.0004413317854f, 2.168646698e-5f);
}
FB_INLINE float erf_of(float x) {
  float a = x < 0 ? -x : x, near = erf_near(x);
  float far = 1.0f - exp_of<float>(log_erfc(a > 4.0f ? 4.0f : a));
  return a <= 1.0f ? near : a != a ? x : __builtin_copysignf(far, x);
}
FB_INLINE double erf_of(double x) {
  double a = x < 0 ? -x : x, z = x * x;
  double near =
      x * poly<double>(z, 1.128379167095512574, -0.3761263890318374818, 0.1128379167095488446,
                       -0.02686617064507787397, 0.005223977624828429581, -0.0008548326981425996339,
                       0.0001205533113298864549, -0.00001492559577330565675,
                       1.646100850046362513e-6, -1.635039650490322632e-7, 1.466033085878754786e-8,
                       -1.137496477419525488e-9, 5.960701739558499383e-11);
  double b = a > 6.0 ? 6.0 : a;
  double far =
      1.0 - exp_of<double>(-poly<double>(
                b, 2.940011218865686626e-8, 1.128378899355985552, 0.6366208125477359182,
                0.1027705825547119021, -0.01912756151047453649, -0.0002030457090593431899,
                0.001675836780660229539, -0.0005531649570986977828, -0.00002141731102821555475,
                0.0001104350496438204419, -0.00006459508297366971321, 0.00002421642462414556257,
                -6.76442077385188606e-6, 1.464847964822135364e-6, -2.471999939848986623e-7,
                3.205545190949985934e-8, -3.092903348316959019e-9, 2.093597558413606251e-10,
                -8.873508913786455318e-12, 1.771628403214633852e-13));
  return a <= 1.0 ? near : a != a ? x : __builtin_copysign(far, x);
}

}  // namespace flambeau::kernels::FB_ISA
