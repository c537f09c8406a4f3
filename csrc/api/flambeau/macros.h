// Checks and choices by dtype, by the names that extensions know them by.
#pragma once

// Of the standard library, what PyTorch's headers bring and extensions forget to name.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "flambeau/flambeau.h"

// Behind it, for it says that this is a program.
#include "core/error_classes.h"
#include "core/parallel.h"
#include "flambeau/guards.h"

namespace flambeau {

// All of them as one text.
template <class... Args>
std::string str(const Args&... args) {
  return join({Part(args)...});
}

// The type in which a number of a dtype is computed with: float for the half formats.
template <class T>
struct OpMathType {
  using type = T;
};
template <>
struct OpMathType<Half> {
  using type = float;
};
template <>
struct OpMathType<BFloat16> {
  using type = float;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;

// In which sums are made.
template <class T, bool on_device = false>
struct AccumulateType {
  using type = std::conditional_t<
      std::is_same_v<opmath_type<T>, float>, std::conditional_t<on_device, float, double>,
      std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int64_t, T>>;
};
template <>
struct AccumulateType<Half, false> {
  using type = float;
};
template <>
struct AccumulateType<BFloat16, false> {
  using type = float;
};
template <>
struct AccumulateType<complex64, false> {
  using type = complex128;
};
template <class T, bool on_device = false>
using acc_type = typename AccumulateType<T, on_device>::type;

// The C++ type of the elements of a dtype; truth values are bool.
template <DType D>
struct CppTypeOf;
#define X(name, type, text)                                   \
  template <>                                                 \
  struct CppTypeOf<DType::name> {                             \
    using T = std::conditional_t<is_truth<type>, bool, type>; \
  };
FB_FOR_EACH_DTYPE(X)
#undef X
template <class T>
struct CppTypeToScalarType {
  static constexpr DType value = dtype_of<std::conditional_t<std::is_same_v<T, bool>, Truth, T>>;
};

namespace internal {
inline constexpr int64_t GRAIN_SIZE = kGrain;
}

inline DType typeMetaToScalarType(DType d) {
  return d;
}
inline DType scalarTypeToTypeMeta(DType d) {
  return d;
}

// What `each(begin, end, start)` gives of the parts, put together by `join`.
template <class T, class F, class Join>
T parallel_reduce(int64_t begin, int64_t end, int64_t grain, const T& start, const F& each,
                  const Join& join) {
  std::map<int64_t, T> parts;  // joined in order, for sums round by it
  std::mutex lock;
  parallel_for(begin, end, grain, [&](int64_t from, int64_t to) {
    T part = each(from, to, start);
    std::lock_guard guard(lock);
    parts.emplace(from, std::move(part));
  });
  T out = start;
  for (auto& [from, part] : parts) out = join(out, part);
  return out;
}
inline bool in_parallel_region() {
  return in_parallel();
}
int get_thread_num();
constexpr int64_t divup(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}
inline int64_t maybe_wrap_dim(int64_t dim, int64_t ndim) {
  return wrap_dim(dim, ndim);
}
template <class Container>
int64_t multiply_integers(const Container& xs) {
  return std::accumulate(xs.begin(), xs.end(), int64_t{1}, std::multiplies<int64_t>());
}
inline std::vector<int64_t> infer_size(IntArrayRef a, IntArrayRef b) {
  return broadcast_shapes(a.ints(), b.ints()).vec();
}

}  // namespace flambeau

template <>
struct std::numeric_limits<flambeau::Half> {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false,
                        is_exact = false, has_infinity = true, has_quiet_NaN = true;
  static constexpr flambeau::Half from(uint16_t bits) {
    return std::bit_cast<flambeau::Half>(bits);
  }
  static constexpr flambeau::Half lowest() { return from(0xFBFF); }
  static constexpr flambeau::Half max() { return from(0x7BFF); }
  static constexpr flambeau::Half min() { return from(0x0400); }
  static constexpr flambeau::Half epsilon() { return from(0x1400); }
  static constexpr flambeau::Half infinity() { return from(0x7C00); }
  static constexpr flambeau::Half quiet_NaN() { return from(0x7E00); }
};
template <>
struct std::numeric_limits<flambeau::BFloat16> {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false,
                        is_exact = false, has_infinity = true, has_quiet_NaN = true;
  static constexpr flambeau::BFloat16 from(uint16_t bits) {
    return std::bit_cast<flambeau::BFloat16>(bits);
  }
  static constexpr flambeau::BFloat16 lowest() { return from(0xFF7F); }
  static constexpr flambeau::BFloat16 max() { return from(0x7F7F); }
  static constexpr flambeau::BFloat16 min() { return from(0x0080); }
  static constexpr flambeau::BFloat16 epsilon() { return from(0x3C00); }
  static constexpr flambeau::BFloat16 infinity() { return from(0x7F80); }
  static constexpr flambeau::BFloat16 quiet_NaN() { return from(0x7FC0); }
};

#define FB_FAIL_IF_NOT(kind, cond, ...)                                                \
  do {                                                                                 \
    if (!(cond)) [[unlikely]]                                                          \
      ::flambeau::fail(::flambeau::ErrorKind::kind,                                    \
                       ::flambeau::api::said("Expected " #cond " to be true, but got " \
                                             "false." __VA_OPT__(, ) __VA_ARGS__));    \
  } while (0)
namespace flambeau::api {
inline std::string said(const char* usual) {
  return usual;
}
template <class... Parts>
std::string said(const char*, const Parts&... parts) {
  return join({Part(parts)...});
}
}  // namespace flambeau::api

#define TORCH_CHECK(cond, ...) FB_FAIL_IF_NOT(Runtime, cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) FB_FAIL_IF_NOT(Value, cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) FB_FAIL_IF_NOT(Type, cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_INDEX(cond, ...) FB_FAIL_IF_NOT(Index, cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) \
  FB_FAIL_IF_NOT(NotImplemented, cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(cond, ...) TORCH_CHECK(cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(cond, ...) TORCH_CHECK(cond __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERT(cond, ...) TORCH_CHECK(cond __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond __VA_OPT__(, ) __VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_WARN(...) \
  (std::cerr << ::flambeau::api::said("warning" __VA_OPT__(, ) __VA_ARGS__) << '\n')
// Once for each place of the source.
#define TORCH_WARN_ONCE(...)                                                        \
  do {                                                                              \
    [[maybe_unused]] static const bool fb_warned = (TORCH_WARN(__VA_ARGS__), true); \
  } while (0)
#define TORCH_WARN_DEPRECATION(...) TORCH_WARN(__VA_ARGS__)
#define AT_WARN(...) TORCH_WARN(__VA_ARGS__)
#define TORCH_CHECK_WITH(kind, cond, ...)                  \
  do {                                                     \
    if (!(cond)) [[unlikely]]                              \
      C10_THROW_ERROR(kind, ::flambeau::str(__VA_ARGS__)); \
  } while (0)
#define C10_THROW_ERROR(kind, message) throw ::flambeau::kind(message)
#define TORCH_CHECK_LINALG(cond, ...) FB_FAIL_IF_NOT(LinAlg, cond __VA_OPT__(, ) __VA_ARGS__)
// a op b, with both values in the message.
#define FB_COMPARE(a, op, b) \
  TORCH_CHECK((a)op(b), "Check failed: " #a " " #op " " #b " (", a, " vs. ", b, ")")
#define TORCH_CHECK_EQ(a, b) FB_COMPARE(a, ==, b)
#define TORCH_CHECK_NE(a, b) FB_COMPARE(a, !=, b)
#define TORCH_CHECK_LT(a, b) FB_COMPARE(a, <, b)
#define TORCH_CHECK_LE(a, b) FB_COMPARE(a, <=, b)
#define TORCH_CHECK_GT(a, b) FB_COMPARE(a, >, b)
#define TORCH_CHECK_GE(a, b) FB_COMPARE(a, >=, b)
#define TORCH_API
#define TORCH_EXPORT
#define C10_EXPORT
#define C10_API
#define C10_IMPORT
#define C10_HOST
#define C10_DEVICE
#define C10_HOST_DEVICE
#define C10_UNUSED [[maybe_unused]]
#define C10_NODISCARD [[nodiscard]]
#define C10_NOINLINE [[gnu::noinline]]
#define C10_ALWAYS_INLINE [[gnu::always_inline]] inline
#define C10_RESTRICT __restrict
#define C10_LIKELY(x) (__builtin_expect(static_cast<bool>(x), 1))
#define C10_UNLIKELY(x) (__builtin_expect(static_cast<bool>(x), 0))

#define FB_CASE_AS(dtype, Name, ...)                                        \
  case dtype: {                                                             \
    using Name [[maybe_unused]] = typename ::flambeau::CppTypeOf<dtype>::T; \
    return __VA_ARGS__();                                                   \
  }
#define AT_DISPATCH_CASE(dtype, ...) FB_CASE_AS(dtype, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(type, name, ...)                                                        \
  [&] {                                                                                            \
    const ::flambeau::DType fb_dtype = type;                                                       \
    switch (fb_dtype) {                                                                            \
      __VA_ARGS__                                                                                  \
      default:                                                                                     \
        ::flambeau::fail(::flambeau::ErrorKind::NotImplemented, '"', name,                         \
                         "\" not implemented for '", ::flambeau::scalar_type_name(fb_dtype), "'"); \
    }                                                                                              \
  }()
#define AT_DISPATCH_CASE_FLOATING_TYPES(...)                \
  AT_DISPATCH_CASE(::flambeau::DType::Float64, __VA_ARGS__) \
  AT_DISPATCH_CASE(::flambeau::DType::Float32, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...)                    \
  AT_DISPATCH_CASE(::flambeau::DType::Complex128, __VA_ARGS__) \
  AT_DISPATCH_CASE(::flambeau::DType::Complex64, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)              \
  AT_DISPATCH_CASE(::flambeau::DType::UInt8, __VA_ARGS__) \
  AT_DISPATCH_CASE(::flambeau::DType::Int8, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::flambeau::DType::Int16, __VA_ARGS__) \
  AT_DISPATCH_CASE(::flambeau::DType::Int32, __VA_ARGS__) \
  AT_DISPATCH_CASE(::flambeau::DType::Int64, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(a, type, name, ...) \
  AT_DISPATCH_SWITCH(                                      \
      type, name, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(a, b, type, name, ...)                                     \
  AT_DISPATCH_SWITCH(type, name,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                         AT_DISPATCH_CASE(b, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND3(a, b, c, type, name, ...)                                  \
  AT_DISPATCH_SWITCH(type, name,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                         AT_DISPATCH_CASE(b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND4(a, b, c, d, type, name, ...)                               \
  AT_DISPATCH_SWITCH(type, name,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                         AT_DISPATCH_CASE(b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__)         \
                             AT_DISPATCH_CASE(d, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND5(a, b, c, d, e, type, name, ...)                            \
  AT_DISPATCH_SWITCH(type, name,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                         AT_DISPATCH_CASE(b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__)         \
                             AT_DISPATCH_CASE(d, __VA_ARGS__) AT_DISPATCH_CASE(e, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(type, name, ...)   \
  AT_DISPATCH_SWITCH(type, name,                                  \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
                         AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(a, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name,                                        \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)       \
                         AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)    \
                             AT_DISPATCH_CASE(a, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(a, b, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name,                                           \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)          \
                         AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)       \
                             AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND3(a, b, c, type, name, ...)                  \
  AT_DISPATCH_SWITCH(type, name,                                                               \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                              \
                         AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)                           \
                             AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__) \
                                 AT_DISPATCH_CASE(c, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND4(a, b, c, d, type, name, ...)               \
  AT_DISPATCH_SWITCH(                                                                          \
      type, name,                                                                              \
      AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__) \
          AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__)                    \
              AT_DISPATCH_CASE(c, __VA_ARGS__) AT_DISPATCH_CASE(d, __VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES_AND(a, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name,                          \
                     AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND(a, type, name, ...) \
  AT_DISPATCH_SWITCH(                                      \
      type, name, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(a, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name,                      \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(a, b, type, name, ...)                                     \
  AT_DISPATCH_SWITCH(type, name,                                                              \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                         AT_DISPATCH_CASE(b, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(a, b, c, type, name, ...)                                  \
  AT_DISPATCH_SWITCH(type, name,                                                              \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                         AT_DISPATCH_CASE(b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND4(a, b, c, d, type, name, ...)                               \
  AT_DISPATCH_SWITCH(type, name,                                                              \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                         AT_DISPATCH_CASE(b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__)    \
                             AT_DISPATCH_CASE(d, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND5(a, b, c, d, e, type, name, ...)                            \
  AT_DISPATCH_SWITCH(type, name,                                                              \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                         AT_DISPATCH_CASE(b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__)    \
                             AT_DISPATCH_CASE(d, __VA_ARGS__) AT_DISPATCH_CASE(e, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(type, name, ...)   \
  AT_DISPATCH_SWITCH(type, name,                             \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) \
                         AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(a, type, name, ...)    \
  AT_DISPATCH_SWITCH(type, name,                                     \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)         \
                         AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__) \
                             AT_DISPATCH_CASE(a, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(a, b, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name,                                      \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)          \
                         AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)  \
                             AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(a, b, c, type, name, ...)                       \
  AT_DISPATCH_SWITCH(type, name,                                                               \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                   \
                         AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)                           \
                             AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__) \
                                 AT_DISPATCH_CASE(c, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(a, b, c, d, type, name, ...)               \
  AT_DISPATCH_SWITCH(                                                                     \
      type, name,                                                                         \
      AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__) \
          AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__)               \
              AT_DISPATCH_CASE(c, __VA_ARGS__) AT_DISPATCH_CASE(d, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND5(a, b, c, d, e, type, name, ...)                     \
  AT_DISPATCH_SWITCH(type, name,                                                                   \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                       \
                         AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)                               \
                             AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__)     \
                                 AT_DISPATCH_CASE(c, __VA_ARGS__) AT_DISPATCH_CASE(d, __VA_ARGS__) \
                                     AT_DISPATCH_CASE(e, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(type, name, ...)                    \
  AT_DISPATCH_SWITCH(type, name,                                               \
                     AT_DISPATCH_CASE(::flambeau::DType::Float16, __VA_ARGS__) \
                         AT_DISPATCH_CASE(::flambeau::DType::BFloat16, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(type, name, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(::flambeau::DType::Float16, type, name, __VA_ARGS__)
// The C++ type of indices, as `index_t`.
#define AT_DISPATCH_INDEX_TYPES(type, name, ...)                                \
  AT_DISPATCH_SWITCH(type, name,                                                \
                     FB_CASE_AS(::flambeau::DType::Int32, index_t, __VA_ARGS__) \
                         FB_CASE_AS(::flambeau::DType::Int64, index_t, __VA_ARGS__))
