// Scalar: a Python number (bool, int, float, complex) by value, and conversions between kinds.
#pragma once

#include <vector>

#include "core/dtype.h"

namespace flambeau {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, UInt, Float, Complex };

  Scalar() : Scalar(int64_t{0}) {}
  template <class T>
  requires(std::is_same_v<T, bool>) Scalar(T x) : kind_(Kind::Bool) {  // and of no pointer
    u_.i = x;
  }
  Scalar(Truth x) : Scalar(static_cast<bool>(x)) {}
  Scalar(std::vector<bool>::reference x) : Scalar(static_cast<bool>(x)) {}
  Scalar(int x) : Scalar(static_cast<int64_t>(x)) {}
  Scalar(int64_t x) : kind_(Kind::Int) { u_.i = x; }
  Scalar(long long x) : Scalar(static_cast<int64_t>(x)) {}
  Scalar(uint64_t x) : kind_(x >> 63 ? Kind::UInt : Kind::Int) { u_.i = static_cast<int64_t>(x); }
  Scalar(float x) : Scalar(static_cast<double>(x)) {}
  Scalar(double x) : kind_(Kind::Float) { u_.d[0] = x, u_.d[1] = 0; }
  Scalar(complex128 z) : kind_(Kind::Complex) { u_.d[0] = z.real(), u_.d[1] = z.imag(); }
  Scalar(complex64 z) : Scalar(complex128(z)) {}
  // Numbers of the other widths, which would be ambiguous
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Scalar(T x)
      : Scalar(static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(x)) {}
  Scalar(Half x) : Scalar(static_cast<double>(x)) {}
  Scalar(BFloat16 x) : Scalar(static_cast<double>(x)) {}

  Kind kind() const { return kind_; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_integral(bool with_bool = false) const {
    return kind_ == Kind::Int || kind_ == Kind::UInt || (with_bool && is_bool());
  }
  bool is_floating_point() const { return kind_ == Kind::Float; }
  bool is_complex() const { return kind_ == Kind::Complex; }

  // A number with an imaginary part is no real one: an error.
  double to_double() const {
    switch (kind_) {
      case Kind::Float:
        return u_.d[0];
      case Kind::Complex:
        if (u_.d[1] != 0) refuse(DType::Float64);
        return u_.d[0];
      case Kind::UInt:
        return static_cast<double>(static_cast<uint64_t>(u_.i));
      default:
        return static_cast<double>(u_.i);
    }
  }
  // Floats outside the range of int64 saturate, NaN gives the smallest: never undefined.
  int64_t to_int() const {
    if (kind_ != Kind::Float && kind_ != Kind::Complex) return u_.i;
    double d = to_double();
    return d >= 9.2233720368547758e18   ? INT64_MAX
           : d > -9.2233720368547758e18 ? static_cast<int64_t>(d)
                                        : INT64_MIN;
  }
  bool to_bool() const {
    return kind_ == Kind::Complex ? u_.d[0] != 0 || u_.d[1] != 0
           : kind_ == Kind::Float ? u_.d[0] != 0
                                  : u_.i != 0;
  }
  Scalar conj() const { return is_complex() ? Scalar(std::conj(to_complex())) : *this; }
  complex128 to_complex() const {
    return is_complex() ? complex128(u_.d[0], u_.d[1]) : complex128(to_double());
  }
#ifdef FLAMBEAU_API  // of programs in C++, see flambeau/flambeau.h
#include "api/scalar_members.h"
#endif
  bool fits(DType d) const;  // floating types infinities and NaN too; unsigned ones wrap, as in C

  // A number that does not fit is an error.
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, bool> || is_truth<T>)
      return to_bool();
    else if (!fits(dtype_of<T>))
      refuse(dtype_of<T>);
    else if (std::is_same_v<T, uint64_t> && kind_ == Kind::Float)
      return static_cast<T>(u_.d[0]);
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(to_int());
    else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>)
      return T(to_complex());
    else if constexpr (std::is_same_v<T, double>)
      return to_double();
    else
      return T(static_cast<float>(to_double()));
  }

  Scalar operator-() const {
    switch (kind_) {
      case Kind::Float:
        return -u_.d[0];
      case Kind::Complex:
        return -to_complex();
      default:
        return static_cast<int64_t>(0 - static_cast<uint64_t>(u_.i));
    }
  }
  bool equal(double x) const {
    return !is_complex() ? to_double() == x : to_complex() == complex128(x);
  }

  // The dtype that a tensor made from the scalar has.
  DType dtype() const {
    switch (kind_) {
      case Kind::Bool:
        return DType::Bool;
      case Kind::Int:
        return DType::Int64;
      case Kind::UInt:
        return DType::UInt64;
      case Kind::Float:
        return default_dtype();
      case Kind::Complex:
        return flambeau::to_complex(default_dtype());
    }
    __builtin_unreachable();
  }

 private:
  [[noreturn]] void refuse(DType d) const;

  Kind kind_;
  union {
    int64_t i;
    double d[2];
  } u_;
};

std::ostream& operator<<(std::ostream& out, const Scalar& x);

}  // namespace flambeau
