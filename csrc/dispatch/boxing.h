// Boxing: C++ arguments and results to `Value`s and back. `box` and `unbox` are inverse for every
// type that an operation can have; an absent optional is the value None.
#pragma once

#include <tuple>
#include <utility>

#include "dispatch/op.h"

namespace flambeau {

template <class T>
Value box(T x) {
  return Value(std::move(x));
}
template <class T>
Value box(std::optional<T> x) {
  return x ? box(*std::move(x)) : Value();
}

template <class T>
struct Unbox {
  static const T& from(const Value& v) { return v.get<T>(); }
};
template <class T>
struct Unbox<std::optional<T>> {
  static std::optional<T> from(const Value& v) {
    if (v.is_none()) return std::nullopt;
    return Unbox<T>::from(v);
  }
};
template <>
struct Unbox<Scalar> {
  static Scalar from(const Value& v) { return v.number(); }
};
// An interceptor may hand back an undefined tensor as nothing, and a list with holes as one
// without.
template <>
struct Unbox<Tensor> {
  static const Tensor& from(const Value& v);
};
template <>
struct Unbox<OptTensors> {
  static OptTensors from(const Value& v);
};

template <class T>
decltype(auto) unbox(const Value& v) {
  return Unbox<T>::from(v);
}

template <class... Args>
Values box_all(const Args&... args) {
  Values out;
  out.reserve(sizeof...(args));
  (out.push_back(box(args)), ...);
  return out;
}

// Results: one Value each.
Values single(Value x);
template <class T>
Values box_results(const T& x) {
  return single(box(x));
}
template <class... T>
Values box_results(const std::tuple<T...>& xs) {
  return std::apply([](const auto&... x) { return box_all(x...); }, xs);
}

// The same, put where the caller of a descriptor wants them.
template <class T>
void put_results(Value* results, T x) {
  *results = box(std::move(x));
}
template <class... T>
void put_results(Value* results, std::tuple<T...> xs) {
  std::apply([&](auto&... x) { ((*results++ = box(std::move(x))), ...); }, xs);
}

template <class T>
struct Results {
  static T from(const Values& vs) { return unbox<T>(vs[0]); }
};
template <class... T>
struct Results<std::tuple<T...>> {
  static std::tuple<T...> from(const Values& vs) {
    return from(vs, std::index_sequence_for<T...>());
  }
  template <size_t... I>
  static std::tuple<T...> from(const Values& vs, std::index_sequence<I...>) {
    return {unbox<T>(vs[I])...};
  }
};

// One call through the slow path, typed.
template <class Result, class... Args>
[[gnu::noinline]] Result call_boxed(const OpDesc& op, const Args&... args) {
  if constexpr (std::is_void_v<Result>)
    dispatch_boxed(op, box_all(args...));
  else
    return Results<Result>::from(dispatch_boxed(op, box_all(args...)));
}

}  // namespace flambeau
