// Errors: one exception class per Python exception class that the library raises. Messages read
// `op: expected X, got Y; hint`. The binding turns the kind into the Python class.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include "core/small_vector.h"

namespace flambeau {

enum class ErrorKind {
  Runtime,
  Value,
  Type,
  Index,
  NotImplemented,
  OutOfMemory,
  Attribute,
  Key,
  LinAlg
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
  ErrorKind kind;
};

inline std::ostream& operator<<(std::ostream& out, const Ints& xs) {
  out << '[';
  for (size_t i = 0; i < xs.size(); ++i) out << (i ? ", " : "") << xs[i];
  return out << ']';
}

// Joins its arguments into one string.
template <class... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  out << std::boolalpha;
  (out << ... << args);
  return out.str();
}

template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Args&... args) {
  throw Error(kind, concat(args...));
}

}  // namespace flambeau

#define FB_CHECK_AS(kind, cond, ...)                              \
  do {                                                            \
    if (!(cond)) [[unlikely]]                                     \
      ::flambeau::fail(::flambeau::ErrorKind::kind, __VA_ARGS__); \
  } while (0)
#define FB_CHECK(cond, ...) FB_CHECK_AS(Runtime, cond, __VA_ARGS__)
#define FB_CHECK_VALUE(cond, ...) FB_CHECK_AS(Value, cond, __VA_ARGS__)
#define FB_CHECK_TYPE(cond, ...) FB_CHECK_AS(Type, cond, __VA_ARGS__)
#define FB_CHECK_INDEX(cond, ...) FB_CHECK_AS(Index, cond, __VA_ARGS__)
#define FB_CHECK_IMPL(cond, ...) FB_CHECK_AS(NotImplemented, cond, __VA_ARGS__)
