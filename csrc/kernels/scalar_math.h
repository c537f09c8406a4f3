// The scalar primitives of flambeau/ops/scalar.py as C++, for float, double, int64, uint64, bool
// and complex. Generated loops (and nothing else) call them by the primitive's name. Written
// without branches where loops are to be vectorised. Included by *.isa.cpp files only, see Note
// [One definition per set].
#pragma once

#include <limits>

#include "kernels/isa_types.h"
#include "kernels/scalar_exp.h"
#include "kernels/special.h"
#include "kernels/vector_math.h"

namespace flambeau::kernels::FB_ISA {

template <class T>
inline constexpr bool is_float_v = std::is_floating_point_v<T>;
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<Complex<T>> {
  using type = T;
};
template <class T>
using real_of = typename RealOf<T>::type;
template <class T>
using complex_of = Complex<real_of<T>>;

// Conversions between the types inside one loop: bool, real, complex.
template <class To, class From>
FB_INLINE To lift(From x) {
  if constexpr (std::is_same_v<To, From>)
    return x;
  else if constexpr (std::is_same_v<To, bool> && is_complex_v<From>)
    return (x.re != 0) | (x.im != 0);
  else if constexpr (std::is_same_v<To, bool>)
    return x != 0;
  else if constexpr (is_complex_v<To> && is_complex_v<From>)
    return {x.re, x.im};
  else if constexpr (is_complex_v<To>)
    return {static_cast<real_of<To>>(x), 0};
  else if constexpr (is_complex_v<From>)
    return static_cast<To>(x.re);
  else if constexpr (std::is_same_v<From, bool>)
    return x ? To{1} : To{0};  // GCC vectorises choices, but not conversions of a test's result
  else
    return static_cast<To>(x);
}
// Elements in memory: complex ones part by part, bools as bytes, as the vectoriser wants them and
// because a byte may be any, see Truth in core/dtype.h.
template <class T>
using memory_of = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
template <class To, class From>
FB_INLINE To read(const From* p) {
  if constexpr (is_complex_v<From>)
    return lift<To>(From{p->re, p->im});
  else if constexpr (std::is_same_v<From, uint8_t>)
    return lift<To>(*p != 0);
  else
    return lift<To>(*p);
}
template <class T>
FB_INLINE void write(T* p, T x) {
  if constexpr (is_complex_v<T>)
    p->re = x.re, p->im = x.im;
  else
    *p = x;
}

namespace s {

// Arithmetic
// ---------------------------------------------------------------------------------------------------------
// Whole numbers wrap around, as unsigned ones do.
template <class T>
FB_INLINE T add(T a, T b) {
  if constexpr (is_complex_v<T>)
    return {a.re + b.re, a.im + b.im};
  else if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class T>
FB_INLINE T sub(T a, T b) {
  if constexpr (is_complex_v<T>)
    return {a.re - b.re, a.im - b.im};
  else if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return a - b;
}
template <class T>
FB_INLINE T mul(T a, T b) {
  if constexpr (is_complex_v<T>)
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  else if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}
template <class T>
FB_INLINE T neg(T x) {
  if constexpr (is_complex_v<T>)
    return {-x.re, -x.im};
  else if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<T>(0 - static_cast<uint64_t>(x));
  else
    return -x;
}
// Smith's method: scaled by the larger part, so that it neither overflows nor underflows early.
template <class R>
FB_INLINE Complex<R> divide(Complex<R> a, Complex<R> b) {
  R x = b.re < 0 ? -b.re : b.re, y = b.im < 0 ? -b.im : b.im;
  if (x == 0 && y == 0) return {a.re / x, a.im / x};
  if (x >= y) {
    R r = b.im / b.re, d = b.re + b.im * r;
    return {(a.re + a.im * r) / d, (a.im - a.re * r) / d};
  }
  R r = b.re / b.im, d = b.re * r + b.im;
  return {(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}
template <class T>
FB_INLINE T div(T a, T b) {
  if constexpr (is_complex_v<T>)
    return divide(a, b);
  else
    return a / b;
}
template <class T>
FB_INLINE T reciprocal(T x) {
  if constexpr (is_complex_v<T>)
    return divide(T{1, 0}, x);
  else
    return T(1) / x;
}
template <class T>
FB_INLINE T square(T x) {
  return mul(x, x);
}

template <class T>
FB_INLINE T trunc_divide(T a, T b) {
  if constexpr (is_float_v<T>) {
    return __builtin_trunc(a / b);
  } else {
    if (b == 0) [[unlikely]]
      special::division_by_zero();
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return neg(a);
    return a / b;
  }
}
template <class T>
FB_INLINE T fmod(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_fmodf(a, b);
  else if constexpr (is_float_v<T>)
    return __builtin_fmod(a, b);
  else {
    if (b == 0) [[unlikely]]
      special::division_by_zero();
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return a % b;
  }
}
template <class T>
FB_INLINE T remainder(T a, T b) {
  T r = fmod(a, b);
  if constexpr (std::is_signed_v<T>)
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  else
    return r;
}
template <class T>
FB_INLINE T floor_divide(T a, T b) {
  if constexpr (is_float_v<T>) {
    if (b == 0) return a / b;
    T r = fmod(a, b), q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return __builtin_copysign(T(0), a / b);
    T whole = __builtin_floor(q);
    return q - whole > T(0.5) ? whole + 1 : whole;
  } else {
    T q = trunc_divide(a, b);
    if constexpr (std::is_signed_v<T>)
      return q - (mul(q, b) != a && (a < 0) != (b < 0));
    else
      return q;
  }
}

// Comparison and choice
// ----------------------------------------------------------------------------------------------
template <class T>
FB_INLINE bool eq(T a, T b) {
  if constexpr (is_complex_v<T>)
    return (a.re == b.re) & (a.im == b.im);
  else
    return a == b;
}
template <class T>
FB_INLINE bool ne(T a, T b) {
  return !eq(a, b);
}
template <class T>
FB_INLINE bool lt(T a, T b) {
  return a < b;
}
template <class T>
FB_INLINE bool le(T a, T b) {
  return a <= b;
}
template <class T>
FB_INLINE bool gt(T a, T b) {
  return a > b;
}
template <class T>
FB_INLINE bool ge(T a, T b) {
  return a >= b;
}
FB_INLINE bool logical_and(bool a, bool b) {
  return a & b;
}
FB_INLINE bool logical_or(bool a, bool b) {
  return a | b;
}
FB_INLINE bool logical_xor(bool a, bool b) {
  return a ^ b;
}
FB_INLINE bool logical_not(bool x) {
  return !x;
}
template <class T>
FB_INLINE T where(bool c, T a, T b) {
  if constexpr (is_complex_v<T>)
    return {c ? a.re : b.re, c ? a.im : b.im};
  else
    return c ? a : b;
}
template <class T>
FB_INLINE bool isnan(T x) {
  if constexpr (is_complex_v<T>)
    return (x.re != x.re) | (x.im != x.im);
  else
    return x != x;
}
template <class T>
FB_INLINE bool isinf(T x) {
  if constexpr (is_complex_v<T>)
    return isinf(x.re) | isinf(x.im);
  else if constexpr (is_float_v<T>)
    return (x < 0 ? -x : x) == std::numeric_limits<T>::infinity();
  else
    return false;
}
template <class T>
FB_INLINE bool isfinite(T x) {
  if constexpr (is_complex_v<T>)
    return isfinite(x.re) & isfinite(x.im);
  else if constexpr (is_float_v<T>)
    return (x < 0 ? -x : x) < std::numeric_limits<T>::infinity();
  else
    return true;
}
template <class T>
FB_INLINE bool signbit(T x) {
  if constexpr (std::is_same_v<T, float>)
    return bits_as<int32_t>(x) < 0;
  else if constexpr (std::is_same_v<T, double>)
    return bits_as<int64_t>(x) < 0;
  else
    return x < 0;
}
// NaN of either argument is the result of maximum and minimum; fmax and fmin pass it over.
template <class T>
FB_INLINE T maximum(T a, T b) {
  T m = a > b ? a : b;
  return a != a ? a : m;
}
template <class T>
FB_INLINE T minimum(T a, T b) {
  T m = a < b ? a : b;
  return a != a ? a : m;
}
template <class T>
FB_INLINE T fmax(T a, T b) {
  return (a >= b) | (b != b) ? a : b;
}
template <class T>
FB_INLINE T fmin(T a, T b) {
  return (a <= b) | (b != b) ? a : b;
}
template <class T>
FB_INLINE T heaviside(T x, T at_zero) {
  return x == 0 ? at_zero : T(x > 0) + (x != x ? x : T(0));
}
template <class T>
FB_INLINE T inf(T) {
  return std::numeric_limits<T>::infinity();
}
template <class T>
FB_INLINE T nan(T) {
  return std::numeric_limits<T>::quiet_NaN();
}

// Bits
// ---------------------------------------------------------------------------------------------------------------
template <class T>
FB_INLINE T bitwise_and(T a, T b) {
  return a & b;
}
template <class T>
FB_INLINE T bitwise_or(T a, T b) {
  return a | b;
}
template <class T>
FB_INLINE T bitwise_xor(T a, T b) {
  return a ^ b;
}
template <class T>
FB_INLINE T bitwise_not(T x) {
  if constexpr (std::is_same_v<T, bool>)
    return !x;
  else
    return ~x;
}
template <class T>
FB_INLINE T bitwise_left_shift(T a, T b) {
  return static_cast<uint64_t>(b) > 63 ? T(0)
                                       : static_cast<T>(static_cast<uint64_t>(a) << (b & 63));
}
template <class T>
FB_INLINE T bitwise_right_shift(T a, T b) {
  bool beyond = static_cast<uint64_t>(b) > 63;
  if constexpr (std::is_signed_v<T>)
    return a >> (beyond ? 63 : b & 63);
  else
    return beyond ? 0 : a >> (b & 63);
}
template <class T>
FB_INLINE T gcd(T x, T y) {
  uint64_t a = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  uint64_t b = y < 0 ? 0 - static_cast<uint64_t>(y) : static_cast<uint64_t>(y);
  while (b) {
    uint64_t r = a % b;
    a = b;
    b = r;
  }
  return static_cast<T>(a);
}
template <class T>
FB_INLINE T lcm(T a, T b) {
  T g = gcd(a, b);
  if (g == 0) return 0;
  T m = mul(static_cast<T>(a / g), b);
  return m < 0 ? neg(m) : m;
}

// Rounding, signs, parts
// ---------------------------------------------------------------------------------------------
template <class T>
FB_INLINE T floor(T x) {
  if constexpr (is_float_v<T>)
    return __builtin_floor(x);
  else
    return x;
}
template <class T>
FB_INLINE T ceil(T x) {
  if constexpr (is_float_v<T>)
    return __builtin_ceil(x);
  else
    return x;
}
template <class T>
FB_INLINE T trunc(T x) {
  if constexpr (is_float_v<T>)
    return __builtin_trunc(x);
  else
    return x;
}
template <class T>
FB_INLINE T round(T x) {
  if constexpr (is_float_v<T>)
    return __builtin_nearbyint(x);
  else
    return x;
}
template <class T>
FB_INLINE T hypot(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    double x = a, y = b, inf = __builtin_inf();
    double far = __builtin_sqrt(x * x + y * y);  // NaN beside an infinity is infinitely far too
    return static_cast<float>(__builtin_fabs(x) == inf || __builtin_fabs(y) == inf ? inf : far);
  } else {
    return __builtin_hypot(a, b);
  }
}
template <class T>
FB_INLINE real_of<T> abs(T x) {
  if constexpr (is_complex_v<T>)
    return hypot(x.re, x.im);
  else if constexpr (is_float_v<T>)
    return __builtin_fabs(x);
  else if constexpr (std::is_same_v<T, int64_t>)
    return x < 0 ? neg(x) : x;
  else
    return x;
}
template <class T>
FB_INLINE T sign(T x) {
  return static_cast<T>(static_cast<T>(x > 0) - static_cast<T>(x < 0));
}
template <class T>
FB_INLINE T sgn(T x) {
  if constexpr (is_complex_v<T>) {
    auto a = abs(x);
    return a == 0 ? T{0, 0} : T{x.re / a, x.im / a};
  } else {
    return sign(x);
  }
}
template <class T>
FB_INLINE T conj(T x) {
  if constexpr (is_complex_v<T>)
    return {x.re, -x.im};
  else
    return x;
}
template <class T>
FB_INLINE real_of<T> real(T x) {
  return lift<real_of<T>>(x);
}
template <class T>
FB_INLINE real_of<T> imag(T x) {
  if constexpr (is_complex_v<T>)
    return x.im;
  else
    return 0;
}
template <class R>
FB_INLINE Complex<R> complex(R a, R b) {
  return {a, b};
}
template <class T>
FB_INLINE T copysign(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_copysignf(a, b);
  else
    return __builtin_copysign(a, b);
}

// Elementary functions
// -----------------------------------------------------------------------------------------------
template <class T>
FB_INLINE T sqrt(T x);
template <>
FB_INLINE float sqrt(float x) {
  return __builtin_sqrtf(x);
}
template <>
FB_INLINE double sqrt(double x) {
  return __builtin_sqrt(x);
}

// Functions that float and double share with the C library, one scalar call each.
#define FB_LIBM(NAME)               \
  FB_INLINE float NAME(float x) {   \
    return __builtin_##NAME##f(x);  \
  }                                 \
  FB_INLINE double NAME(double x) { \
    return __builtin_##NAME(x);     \
  }                                 \
  static_assert(true)
FB_LIBM(asin);
FB_LIBM(acos);
FB_LIBM(atan);
FB_LIBM(sinh);
FB_LIBM(cosh);
FB_LIBM(asinh);
FB_LIBM(acosh);
FB_LIBM(atanh);
FB_LIBM(erfc);
#undef FB_LIBM
#define FB_VECTOR(NAME)             \
  FB_INLINE float NAME(float x) {   \
    return NAME##_of(x);            \
  }                                 \
  FB_INLINE double NAME(double x) { \
    return NAME##_of(x);            \
  }                                 \
  static_assert(true)
FB_VECTOR(exp2);
FB_VECTOR(expm1);
FB_VECTOR(log);
FB_VECTOR(log2);
FB_VECTOR(log10);
FB_VECTOR(log1p);
#undef FB_VECTOR
// float's by hand where the set has them, see kernels/vector_math.h
#define FB_BY_HAND(NAME)            \
  FB_INLINE float NAME(float x) {   \
    return by_hand::NAME(x);        \
  }                                 \
  FB_INLINE double NAME(double x) { \
    return NAME##_of(x);            \
  }                                 \
  static_assert(true)
FB_BY_HAND(exp);
FB_BY_HAND(tanh);
FB_BY_HAND(erf);
#undef FB_BY_HAND
template <class T>
FB_INLINE T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}
// Exact: any argument, by the C library; else |x| <= kTrigLimit.
#define FB_TRIG(NAME)                \
  template <bool Exact>              \
  FB_INLINE float NAME(float x) {    \
    if constexpr (Exact)             \
      return __builtin_##NAME##f(x); \
    else                             \
      return by_hand::NAME(x);       \
  }                                  \
  template <bool Exact>              \
  FB_INLINE double NAME(double x) {  \
    if constexpr (Exact)             \
      return __builtin_##NAME(x);    \
    else                             \
      return NAME##_of(x);           \
  }                                  \
  static_assert(true)
FB_TRIG(sin);
FB_TRIG(cos);
FB_TRIG(tan);
#undef FB_TRIG
template <class T>
FB_INLINE bool beyond_trig(T x) {
  if constexpr (is_float_v<T>)
    return !((x < 0 ? -x : x) <= FloatTraits<T>::kTrigLimit);
  else
    return false;
}
template <bool Exact, class T>
FB_INLINE T sinc(T x) {
  T p = x * T(3.14159265358979323846);
  return x == 0 ? T(1) : sin<Exact>(p) / p;
}
FB_INLINE float atan2(float a, float b) {
  return __builtin_atan2f(a, b);
}
FB_INLINE double atan2(double a, double b) {
  return __builtin_atan2(a, b);
}
FB_INLINE float nextafter(float a, float b) {
  return __builtin_nextafterf(a, b);
}
FB_INLINE double nextafter(double a, double b) {
  return __builtin_nextafter(a, b);
}
}  // namespace s
}  // namespace flambeau::kernels::FB_ISA

#include "kernels/scalar_complex.h"

namespace flambeau::kernels::FB_ISA::s {

template <class T>
FB_INLINE T rsqrt(T x) {
  return T(1) / sqrt(x);
}
FB_INLINE float logsigmoid(float x) {
  return (x < 0 ? x : 0.0f) - log1p(exp(x < 0 ? x : -x));
}
FB_INLINE double logsigmoid(double x) {
  return (x < 0 ? x : 0.0) - log1p(exp(x < 0 ? x : -x));
}

// Power: floats through double logarithms, with the signs of whole exponents; exact edges by the C
// library's rules.
FB_INLINE float pow(float a, float b) {
  constexpr float inf = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  float size = a < 0 ? -a : a, exponent = b < 0 ? -b : b;
  float r = static_cast<float>(
      exp_of<double>(static_cast<double>(b) * log_of<double>(static_cast<double>(size))));
  bool whole = __builtin_truncf(b) == b;
  bool odd = whole & (__builtin_truncf(b * 0.5f) * 2.0f != b) & (exponent < inf);
  float edge = b < 0 ? inf : 0.0f;  // of a zero base
  r = a == 0 ? edge : r;
  float signed_r = odd ? __builtin_copysignf(r, a) : r;
  signed_r = (a < 0) & !whole & (size < inf) ? nan : signed_r;
  signed_r = (size == 1.0f) & (exponent == inf) ? 1.0f : signed_r;
  signed_r = (a != a) | (b != b) ? nan : signed_r;
  return (b == 0) | (a == 1.0f) ? 1.0f : signed_r;
}
FB_INLINE double pow(double a, double b) {
  return __builtin_pow(a, b);
}
FB_INLINE int64_t pow(int64_t a, int64_t n) {
  if (n < 0) return a == 1 ? 1 : a == -1 ? (n & 1 ? -1 : 1) : 0;
  uint64_t r = 1, x = static_cast<uint64_t>(a);
  for (; n > 0; n >>= 1, x *= x)
    if (n & 1) r *= x;
  return static_cast<int64_t>(r);
}
FB_INLINE uint64_t pow(uint64_t x, uint64_t n) {
  uint64_t r = 1;
  for (; n > 0; n >>= 1, x *= x)
    if (n & 1) r *= x;
  return r;
}
template <class T>
FB_INLINE T ldexp(T a, T b) {
  return mul(a, exp2(b));
}
template <class T>
FB_INLINE T logaddexp(T a, T b) {
  T m = a > b ? a : b, d = a > b ? b - a : a - b;
  T y = m + log1p(exp(d));
  return a == b && isinf(a) ? a : a != a ? a : b != b ? b : y;
}
template <class T>
FB_INLINE T logaddexp2(T a, T b) {
  T m = a > b ? a : b, d = a > b ? b - a : a - b;
  T y = m + log1p(exp2(d)) * T(1.44269504088896340736);
  return a == b && isinf(a) ? a : a != a ? a : b != b ? b : y;
}
template <class T>
FB_INLINE T xlogy(T a, T b) {
  return b != b ? b : a == 0 ? T(0) : a * log(b);
}
template <class T>
FB_INLINE T xlog1py(T a, T b) {
  return b != b ? b : a == 0 ? T(0) : a * log1p(b);
}
template <class T>
FB_INLINE T entr(T x) {
  return x != x ? x : x > 0 ? -x * log(x) : x == 0 ? T(0) : -std::numeric_limits<T>::infinity();
}
template <class T>
FB_INLINE T angle(Complex<T> z) {
  return atan2(z.im, z.re);
}
template <class T>
FB_INLINE T angle(T x) {
  return x != x ? x : x < 0 ? T(3.14159265358979323846) : T(0);
}
template <class T>
FB_INLINE T ndtr(T x) {
  T a = x * T(0.70710678118654752440);
  return (a < 0 ? -a : a) < T(0.70710678118654752440) ? T(0.5) + T(0.5) * erf(a)
         : a > 0                                      ? T(1) - T(0.5) * erfc(a)
                                                      : T(0.5) * erfc(-a);
}

// Rare functions: in double, one call each.
#define FB_RARE(NAME, FUNCTION)                                       \
  template <class T>                                                  \
  FB_INLINE T NAME(T x) {                                             \
    return static_cast<T>(special::FUNCTION(static_cast<double>(x))); \
  }                                                                   \
  static_assert(true)
#define FB_RARE2(NAME, FUNCTION)                                                              \
  template <class T>                                                                          \
  FB_INLINE T NAME(T a, T b) {                                                                \
    return static_cast<T>(special::FUNCTION(static_cast<double>(a), static_cast<double>(b))); \
  }                                                                                           \
  static_assert(true)
FB_RARE(lgamma, lgamma);
FB_RARE(digamma, digamma);
FB_RARE2(polygamma, polygamma);
FB_RARE2(zeta, zeta);
FB_RARE2(igamma, igamma);
FB_RARE2(igammac, igammac);
FB_RARE(erfinv, erfinv);
FB_RARE(erfcx, erfcx);
FB_RARE(ndtri, ndtri);
FB_RARE(log_ndtr, log_ndtr);
FB_RARE(i0, i0);
FB_RARE(i0e, i0e);
FB_RARE(i1, i1);
FB_RARE(i1e, i1e);
FB_RARE(bessel_j0, j0);
FB_RARE(bessel_j1, j1);
FB_RARE(bessel_y0, y0);
FB_RARE(bessel_y1, y1);
FB_RARE(modified_bessel_i0, i0);
FB_RARE(modified_bessel_i1, i1);
FB_RARE(modified_bessel_k0, k0);
FB_RARE(modified_bessel_k1, k1);
FB_RARE(scaled_modified_bessel_k0, k0e);
FB_RARE(scaled_modified_bessel_k1, k1e);
FB_RARE(spherical_bessel_j0, spherical_j0);
FB_RARE(airy_ai, airy_ai);
FB_RARE2(chebyshev_polynomial_t, chebyshev_t);
FB_RARE2(chebyshev_polynomial_u, chebyshev_u);
FB_RARE2(chebyshev_polynomial_v, chebyshev_v);
FB_RARE2(chebyshev_polynomial_w, chebyshev_w);
FB_RARE2(hermite_polynomial_h, hermite_h);
FB_RARE2(hermite_polynomial_he, hermite_he);
FB_RARE2(laguerre_polynomial_l, laguerre_l);
FB_RARE2(legendre_polynomial_p, legendre_p);
#undef FB_RARE
#undef FB_RARE2
#define FB_SHIFTED(KIND)                                      \
  template <class T>                                          \
  FB_INLINE T shifted_chebyshev_polynomial_##KIND(T x, T n) { \
    return chebyshev_polynomial_##KIND(2 * x - 1, n);         \
  }                                                           \
  static_assert(true)
FB_SHIFTED(t);
FB_SHIFTED(u);
FB_SHIFTED(v);
FB_SHIFTED(w);
#undef FB_SHIFTED

}  // namespace flambeau::kernels::FB_ISA::s
