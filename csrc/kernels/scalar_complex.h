// Elementary functions of complex numbers, by the C library. Part of scalar_math.h.
#pragma once

namespace flambeau::kernels::FB_ISA::s {

// The compiler's own complex type, to call the C library without std::complex (see Note [One
// definition per set]).
using LibC64 = __complex__ float;
using LibC128 = __complex__ double;
template <class L, class R>
FB_INLINE L to_c(Complex<R> z) {
  L w;
  __real__ w = z.re;
  __imag__ w = z.im;
  return w;
}
FB_INLINE C64 from_c(LibC64 w) {
  return {__real__ w, __imag__ w};
}
FB_INLINE C128 from_c(LibC128 w) {
  return {__real__ w, __imag__ w};
}
#define FB_COMPLEX(NAME, FUNCTION)                            \
  FB_INLINE C64 NAME(C64 z) {                                 \
    return from_c(__builtin_c##FUNCTION##f(to_c<LibC64>(z))); \
  }                                                           \
  FB_INLINE C128 NAME(C128 z) {                               \
    return from_c(__builtin_c##FUNCTION(to_c<LibC128>(z)));   \
  }
FB_COMPLEX(exp, exp)
FB_COMPLEX(log, log)
FB_COMPLEX(sqrt_z, sqrt) FB_COMPLEX(asin, asin) FB_COMPLEX(acos, acos) FB_COMPLEX(atan, atan)
    FB_COMPLEX(sinh, sinh) FB_COMPLEX(cosh, cosh) FB_COMPLEX(tanh, tanh) FB_COMPLEX(asinh, asinh)
        FB_COMPLEX(acosh, acosh) FB_COMPLEX(atanh, atanh) FB_COMPLEX(sin_z, sin)
            FB_COMPLEX(cos_z, cos) FB_COMPLEX(tan_z, tan)
#undef FB_COMPLEX

                template <>
                FB_INLINE C64 sqrt(C64 z) {
  return sqrt_z(z);
}
template <>
FB_INLINE C128 sqrt(C128 z) {
  return sqrt_z(z);
}
template <bool Exact, class R>
FB_INLINE Complex<R> sin(Complex<R> z) {
  return sin_z(z);
}
template <bool Exact, class R>
FB_INLINE Complex<R> cos(Complex<R> z) {
  return cos_z(z);
}
template <bool Exact, class R>
FB_INLINE Complex<R> tan(Complex<R> z) {
  return tan_z(z);
}
template <class R>
FB_INLINE Complex<R> scale(Complex<R> z, R k) {
  return {z.re * k, z.im * k};
}
template <class R>
FB_INLINE Complex<R> exp2(Complex<R> z) {
  return exp(scale(z, R(0.69314718055994530942)));
}
template <class R>
FB_INLINE Complex<R> expm1(Complex<R> z) {
  // exp(x) cos(y) - 1 without cancellation: expm1(x) cos(y) - 2 sin(y / 2)^2
  R e = expm1(z.re), h = s::sin<true>(z.im * R(0.5));
  return {e * s::cos<true>(z.im) - 2 * h * h, (e + 1) * s::sin<true>(z.im)};
}
template <class R>
FB_INLINE Complex<R> log2(Complex<R> z) {
  return scale(log(z), R(1.44269504088896340736));
}
template <class R>
FB_INLINE Complex<R> log10(Complex<R> z) {
  return scale(log(z), R(0.43429448190325182765));
}
template <class R>
FB_INLINE Complex<R> log1p(Complex<R> z) {
  R x = z.re, y = z.im;
  R real = R(0.5) * log1p(x * (x + 2) + y * y);
  R size = abs(z);
  return {size < R(0.5) ? real : log(hypot(1 + x, y)), atan2(y, 1 + x)};
}
template <class R>
FB_INLINE Complex<R> rsqrt(Complex<R> z) {
  return reciprocal(sqrt(z));
}
template <class R>
FB_INLINE Complex<R> sigmoid(Complex<R> z) {
  return reciprocal(add(Complex<R>{1, 0}, exp(neg(z))));
}
template <bool Exact, class R>
FB_INLINE Complex<R> sinc(Complex<R> z) {
  auto p = scale(z, R(3.14159265358979323846));
  return z.re == 0 && z.im == 0 ? Complex<R>{1, 0} : divide(sin_z(p), p);
}
template <class R>
FB_INLINE Complex<R> pow(Complex<R> a, Complex<R> b) {
  if (b.re == 0 && b.im == 0) return {1, 0};
  if (a.re == 0 && a.im == 0)
    return b.re > 0 ? Complex<R>{0, 0}
                    : Complex<R>{std::numeric_limits<R>::quiet_NaN(),
                                 std::numeric_limits<R>::quiet_NaN()};
  if (b.im == 0 && b.re == 2) return mul(a, a);
  if (b.im == 0 && b.re == 1) return a;
  return exp(mul(b, log(a)));
}
template <class R>
FB_INLINE Complex<R> xlogy(Complex<R> a, Complex<R> b) {
  return a.re == 0 && a.im == 0 && !isnan(b) ? Complex<R>{0, 0} : mul(a, log(b));
}
template <class R>
FB_INLINE Complex<R> logaddexp(Complex<R> a, Complex<R> b) {
  constexpr R infinity = std::numeric_limits<R>::infinity();
  bool first = a.re >= b.re;
  auto m = first ? a : b, l = first ? b : a;
  if (isnan(a) || isnan(b))
    return {std::numeric_limits<R>::quiet_NaN(), std::numeric_limits<R>::quiet_NaN()};
  if (a.re == b.re && (a.re == infinity || a.re == -infinity))
    return a.re < 0 ? l : log(add(exp(m), exp(l)));
  return add(m, log1p(exp(sub(l, m))));
}

}  // namespace flambeau::kernels::FB_ISA::s
