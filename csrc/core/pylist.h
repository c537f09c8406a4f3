// Python's meaning of numbers and lists, for code compiled from the Python subset: indices from the
// end, slices, floor division, concatenation. Pure helpers over the value types; knows no tensor.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/scalar.h"

namespace flambeau::py {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Numbers ----------------------------------------------------------------------------------------

// Whole numbers are Python's as long as they fit; a result that does not is an error, for sizes and
// bounds are made of them.
[[noreturn]] void fail_overflow(const char* op, int64_t a, int64_t b);

inline int64_t plus(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) [[unlikely]]
    fail_overflow("+", a, b);
  return r;
}
inline int64_t minus(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_sub_overflow(a, b, &r)) [[unlikely]]
    fail_overflow("-", a, b);
  return r;
}
inline int64_t times(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) [[unlikely]]
    fail_overflow("*", a, b);
  return r;
}
inline int64_t floordiv(int64_t a, int64_t b) {
  FB_CHECK(b != 0, "integer division or modulo by zero");
  if (b == -1) return minus(0, a);
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
inline double floordiv(double a, double b) {
  return std::floor(a / b);
}
inline int64_t mod(int64_t a, int64_t b) {
  return b == -1 ? 0 : a - floordiv(a, b) * b;
}
inline double mod(double a, double b) {
  double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
inline int64_t pow(int64_t a, int64_t n) {
  FB_CHECK_VALUE(n >= 0, "expected an exponent of 0 or more, got ", n);
  int64_t r = 1;
  for (;; a = times(a, a)) {
    if (n & 1) r = times(r, a);
    if ((n >>= 1) == 0) return r;
  }
}
inline double pow(double a, double b) {
  return std::pow(a, b);
}

inline bool both_integral(const Scalar& a, const Scalar& b) {
  return a.is_integral(true) && b.is_integral(true);
}
inline Scalar add(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return a.to_complex() + b.to_complex();
  if (both_integral(a, b)) return a.to_int() + b.to_int();
  return a.to_double() + b.to_double();
}
inline Scalar sub(const Scalar& a, const Scalar& b) {
  return add(a, -b);
}
inline Scalar mul(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return a.to_complex() * b.to_complex();
  if (both_integral(a, b)) return a.to_int() * b.to_int();
  return a.to_double() * b.to_double();
}
inline Scalar div(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return a.to_complex() / b.to_complex();
  return a.to_double() / b.to_double();
}

// Extremes of a floating or integral type, as finfo and iinfo report them.
inline double smallest(DType d) {
  return visit(d, []<class T>() -> double {
    if constexpr (std::is_same_v<T, Half>)
      return -65504.0;
    else if constexpr (std::is_same_v<T, BFloat16>)
      return -3.3895313892515355e38;
    else if constexpr (std::is_arithmetic_v<T> || is_truth<T>)
      return static_cast<double>(std::numeric_limits<T>::lowest());
    else
      return static_cast<double>(std::numeric_limits<typename T::value_type>::lowest());
  });
}
inline double largest(DType d) {
  return is_inexact(d) ? -smallest(d) : visit(d, []<class T>() -> double {
    if constexpr (is_whole<T>)
      return static_cast<double>(std::numeric_limits<T>::max());
    else
      return 0;
  });
}
inline double epsilon(DType d) {
  switch (to_real(d)) {
    case DType::Float16:
      return 0x1p-10;
    case DType::BFloat16:
      return 0x1p-7;
    case DType::Float32:
      return 0x1p-23;
    case DType::Float64:
      return 0x1p-52;
    default:
      return 0;
  }
}

// Lists ------------------------------------------------------------------------------------------

template <class List>
int64_t len(const List& xs) {
  return static_cast<int64_t>(xs.size());
}

template <class List>
size_t position(const List& xs, int64_t i) {
  int64_t n = len(xs);
  FB_CHECK_INDEX(-n <= i && i < n, "list index ", i, " is out of range for ", n, " items");
  return static_cast<size_t>(i < 0 ? i + n : i);
}
template <class T, unsigned N>
T at(const SmallVector<T, N>& xs, int64_t i) {
  return xs[position(xs, i)];
}
template <class T, unsigned N>
T& at(SmallVector<T, N>& xs, int64_t i) {
  return xs[position(xs, i)];
}
template <class T, unsigned N>
T at(SmallVector<T, N>&& xs, int64_t i) {
  return xs[position(xs, i)];
}
template <class T>
T at(std::vector<T>&& xs, int64_t i) {
  return std::move(xs[position(xs, i)]);
}
template <class T>
decltype(auto) at(const std::vector<T>& xs, int64_t i) {
  return xs[position(xs, i)];
}
template <class T>
decltype(auto) at(std::vector<T>& xs, int64_t i) {
  return xs[position(xs, i)];
}
inline std::string at(const std::string& xs, int64_t i) {
  return std::string(1, xs[position(xs, i)]);
}

using Bound = std::optional<int64_t>;

template <class List>
List slice(const List& xs, Bound from, Bound to) {
  int64_t n = len(xs);
  auto clamp = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  int64_t a = clamp(from.value_or(0)), b = clamp(to.value_or(n));
  return a < b ? List(xs.begin() + a, xs.begin() + b) : List();
}
template <class T, unsigned N>
void extend(SmallVector<T, N>& a, const SmallVector<T, N>& b) {
  if (&a == &b) return extend(a, SmallVector<T, N>(b));
  a.append(b.begin(), b.end());
}
template <class T>
void extend(std::vector<T>& a, const std::vector<T>& b) {
  if (&a == &b) return extend(a, std::vector<T>(b));
  a.insert(a.end(), b.begin(), b.end());
}
template <class List>
List concat(List a, const List& b) {
  extend(a, b);
  return a;
}
template <class T, unsigned N>
void insert(SmallVector<T, N>& xs, int64_t i, std::type_identity_t<T> x) {
  xs.insert(xs.begin() + std::clamp<int64_t>(i < 0 ? i + len(xs) : i, 0, len(xs)), x);
}
template <class T>
void insert(std::vector<T>& xs, int64_t i, std::type_identity_t<T> x) {
  xs.insert(xs.begin() + std::clamp<int64_t>(i < 0 ? i + len(xs) : i, 0, len(xs)), std::move(x));
}
template <class List>
auto pop(List& xs, int64_t i = -1) {
  size_t k = position(xs, i);
  auto x = xs[k];
  xs.erase(xs.begin() + static_cast<int64_t>(k));
  return x;
}
template <class List>
List repeat(const List& xs, int64_t n) {
  List out;
  for (int64_t i = 0; i < n; ++i) out = concat(std::move(out), xs);
  return out;
}
template <class List>
List reversed(List xs) {
  std::reverse(xs.begin(), xs.end());
  return xs;
}
template <class List>
List sorted(List xs) {
  std::sort(xs.begin(), xs.end());
  return xs;
}
template <class List, class T>
bool contains(const List& xs, const T& x) {
  return std::find(xs.begin(), xs.end(), x) != xs.end();
}
inline bool contains(const std::string& xs, const std::string& x) {
  return xs.find(x) != std::string::npos;
}
template <class List, class T>
int64_t index(const List& xs, const T& x) {
  auto it = std::find(xs.begin(), xs.end(), x);
  FB_CHECK_VALUE(it != xs.end(), x, " is not in list");
  return it - xs.begin();
}
template <class List>
auto sum(const List& xs) {
  return std::accumulate(xs.begin(), xs.end(), typename List::value_type(0));
}
inline int64_t prod(const Ints& xs) {
  return std::accumulate(xs.begin(), xs.end(), int64_t{1}, std::multiplies<int64_t>());
}
template <class List>
auto min(const List& xs) {
  FB_CHECK_VALUE(!xs.empty(), "min() arg is an empty sequence");
  return *std::min_element(xs.begin(), xs.end());
}
template <class List>
auto max(const List& xs) {
  FB_CHECK_VALUE(!xs.empty(), "max() arg is an empty sequence");
  return *std::max_element(xs.begin(), xs.end());
}
inline bool all(const std::vector<bool>& xs) {
  return std::find(xs.begin(), xs.end(), false) == xs.end();
}
inline bool any(const std::vector<bool>& xs) {
  return std::find(xs.begin(), xs.end(), true) != xs.end();
}
template <class List>
void expect_count(const List& xs, size_t n) {
  FB_CHECK_VALUE(xs.size() == n, "expected ", n, " values to unpack, got ", xs.size());
}

// Text -------------------------------------------------------------------------------------------

inline std::vector<std::string> chars(const std::string& text) {
  std::vector<std::string> out;
  for (char c : text) out.emplace_back(1, c);
  return out;
}
inline int64_t ord(const std::string& c) {
  FB_CHECK_TYPE(c.size() == 1, "ord: expected one character, got ", c.size());
  return static_cast<unsigned char>(c[0]);
}
inline int64_t find(const std::string& text, const std::string& part) {
  size_t i = text.find(part);
  return i == std::string::npos ? -1 : static_cast<int64_t>(i);
}
inline std::string replace(std::string text, const std::string& from, const std::string& to) {
  if (from.empty()) return text;
  for (size_t i = text.find(from); i != std::string::npos; i = text.find(from, i + to.size())) {
    text.replace(i, from.size(), to);
  }
  return text;
}

}  // namespace flambeau::py
