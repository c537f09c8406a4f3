// Errors: one exception class per Python exception class that the library raises. Messages read
// `op: expected X, got Y; hint`. The binding turns the kind into the Python class.
#pragma once

#include <initializer_list>
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
  LinAlg,
  Overflow,
  Assertion
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
  const char* what_without_backtrace() const noexcept { return what(); }
  std::string msg() const { return what(); }
  ErrorKind kind;
};

inline std::ostream& operator<<(std::ostream& out, const Ints& xs) {
  out << '[';
  for (size_t i = 0; i < xs.size(); ++i) out << (i ? ", " : "") << xs[i];
  return out << ']';
}

// A part of a message: something that can be written to a stream, without its type. Checks are in
// every function, with parts of all sorts; a template over all of them would be a sixth of the
// code.
class Part {
 public:
  template <class T>
  Part(const T& x) : object_(&x), write_(write_as<T>) {}
  Part(const char* text) : object_(text), write_(write_text) {}
  template <size_t N>
  Part(const char (&text)[N]) : Part(static_cast<const char*>(text)) {}

  void write(std::ostream& out) const { write_(out, object_); }

 private:
  template <class T>
  [[gnu::cold]] static void write_as(std::ostream& out, const void* object) {
    out << *static_cast<const T*>(object);
  }
  static void write_text(std::ostream& out, const void* text);

  const void* object_;
  void (*write_)(std::ostream&, const void*);
};

std::string join(std::initializer_list<Part> parts);
[[noreturn, gnu::cold]] void fail_with(ErrorKind kind, std::initializer_list<Part> parts);

#ifndef FLAMBEAU_API  // programs have the operation of this name
// Joins its arguments into one string.
template <class... Args>
[[gnu::always_inline]] inline std::string concat(const Args&... args) {
  return join({Part(args)...});
}
#endif

template <class... Args>
[[noreturn, gnu::always_inline]] inline void fail(ErrorKind kind, const Args&... args) {
  fail_with(kind, {Part(args)...});
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
