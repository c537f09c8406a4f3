// Element types: the enumeration, their C++ types, names, sizes, classes and promotion.
// The lists here are the only ones; `FB_FOR_EACH_DTYPE` generates everything that enumerates them.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <limits>
#include <ostream>
#include <type_traits>

#include "core/error.h"

namespace flambeau {

// IEEE half and bfloat16 are storage formats: arithmetic happens in float.
struct Half {
  uint16_t bits;
  Half() = default;
  Half(float x) {
    _Float16 h = static_cast<_Float16>(x);
    bits = std::bit_cast<uint16_t>(h);
  }
  operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
  Half& operator+=(float x) { return *this = Half(*this + x); }
  Half& operator-=(float x) { return *this = Half(*this - x); }
  Half& operator*=(float x) { return *this = Half(*this * x); }
  Half& operator/=(float x) { return *this = Half(*this / x); }
};

struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  BFloat16(float x) {
    uint32_t u = std::bit_cast<uint32_t>(x);
    uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;  // to nearest, ties to even
    bits = static_cast<uint16_t>(x != x ? 0x7fc0 : rounded);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  BFloat16& operator+=(float x) { return *this = BFloat16(*this + x); }
  BFloat16& operator-=(float x) { return *this = BFloat16(*this - x); }
  BFloat16& operator*=(float x) { return *this = BFloat16(*this * x); }
  BFloat16& operator/=(float x) { return *this = BFloat16(*this / x); }
};

// A truth value in memory: any byte but 0 is true. Memory that NumPy, a file or a view of bytes
// filled holds what it likes, where C++'s bool would be undefined.
struct Truth {
  uint8_t byte;
  Truth() = default;
  Truth(bool x) : byte(x) {}
  operator bool() const { return byte != 0; }
};

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

// X(enumerator, C++ type, public name). The order is that of promotion within a class.
#define FB_FOR_EACH_DTYPE(X)                       \
  X(Bool, ::flambeau::Truth, "bool")               \
  X(UInt8, uint8_t, "uint8")                       \
  X(Int8, int8_t, "int8")                          \
  X(Int16, int16_t, "int16")                       \
  X(Int32, int32_t, "int32")                       \
  X(Int64, int64_t, "int64")                       \
  X(UInt16, uint16_t, "uint16")                    \
  X(UInt32, uint32_t, "uint32")                    \
  X(UInt64, uint64_t, "uint64")                    \
  X(Float16, ::flambeau::Half, "float16")          \
  X(BFloat16, ::flambeau::BFloat16, "bfloat16")    \
  X(Float32, float, "float32")                     \
  X(Float64, double, "float64")                    \
  X(Complex64, ::flambeau::complex64, "complex64") \
  X(Complex128, ::flambeau::complex128, "complex128")

enum class DType : uint8_t {
#define X(name, type, text) name,
  FB_FOR_EACH_DTYPE(X)
#undef X
  // The names that programs in C++ know them by
  Byte = UInt8,
  Char = Int8,
  Short = Int16,
  Int = Int32,
  Long = Int64,
  Half = Float16,
  Float = Float32,
  Double = Float64,
  ComplexFloat = Complex64,
  ComplexDouble = Complex128
};
#define X(name, type, text) +1
inline constexpr int kDTypes = 0 FB_FOR_EACH_DTYPE(X);
#undef X

template <class T>
struct DTypeOf;
#define X(name, type, text)                     \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
FB_FOR_EACH_DTYPE(X)
#undef X
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;
template <class T>
inline constexpr bool is_truth = std::is_same_v<T, Truth>;
template <class T>
inline constexpr bool is_whole = std::is_integral_v<T> || is_truth<T>;
// What sums and products are made in: integers that get too large wrap.
template <class T>
using Wrapping = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

constexpr int64_t itemsize(DType d) {
  constexpr uint8_t sizes[] = {
#define X(name, type, text) sizeof(type),
      FB_FOR_EACH_DTYPE(X)
#undef X
  };
  return sizes[static_cast<int>(d)];
}
constexpr const char* dtype_name(DType d) {
  constexpr const char* names[] = {
#define X(name, type, text) text,
      FB_FOR_EACH_DTYPE(X)
#undef X
  };
  return names[static_cast<int>(d)];
}
// Name as error messages of kernels spell it ("Float", "Long", "Bool", ...).
const char* scalar_type_name(DType d);

inline std::ostream& operator<<(std::ostream& out, DType d) {
  return out << "torch." << dtype_name(d);
}

constexpr bool is_complex(DType d) {
  return d >= DType::Complex64;
}
constexpr bool is_floating_point(DType d) {
  return d >= DType::Float16 && d <= DType::Float64;
}
constexpr bool is_inexact(DType d) {
  return d >= DType::Float16;
}
constexpr bool is_integral(DType d, bool with_bool = false) {
  return d < DType::Float16 && (with_bool || d != DType::Bool);
}
constexpr bool is_signed(DType d) {
  return d != DType::Bool && d != DType::UInt8 && !(d >= DType::UInt16 && d <= DType::UInt64);
}
constexpr bool is_reduced_float(DType d) {
  return d == DType::Float16 || d == DType::BFloat16;
}
constexpr DType to_real(DType d) {
  return d == DType::Complex64 ? DType::Float32 : d == DType::Complex128 ? DType::Float64 : d;
}
constexpr DType to_complex(DType d) {
  return is_complex(d) ? d : d == DType::Float64 ? DType::Complex128 : DType::Complex64;
}
// Type of accumulation: half formats compute in float.
constexpr DType opmath(DType d) {
  return is_reduced_float(d) ? DType::Float32 : d;
}

// The lattice of array types (same class rules as NumPy's, floats win over integers).
DType promote(DType a, DType b);
DType default_dtype();
void set_default_dtype(DType d);

// Calls f with a value of the C++ type of d: visit(d, [&]<class T>(T) {...}) on all types.
template <class F>
decltype(auto) visit(DType d, F&& f) {
  switch (d) {
#define X(name, type, text) \
  case DType::name:         \
    return f.template operator()<type>();
    FB_FOR_EACH_DTYPE(X)
#undef X
  }
  __builtin_unreachable();
}

}  // namespace flambeau

template <>
struct std::numeric_limits<flambeau::Truth> : std::numeric_limits<bool> {};
