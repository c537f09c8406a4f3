// Operators of tensors: each is the operation of its name, with a number on either side.
#pragma once

#include "core/generator.h"
#include "core/tensor.h"
#include "gen/api/functions.h"

namespace flambeau {

#define FB_OPERATOR(op, name)                                   \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { \
    return flambeau::name(a, b);                                \
  }                                                             \
  inline Tensor operator op(const Tensor& a, const Scalar& b) { \
    return flambeau::name(a, b);                                \
  }
#define FB_BOTH_SIDES(op, name, reversed)                       \
  FB_OPERATOR(op, name)                                         \
  inline Tensor operator op(const Scalar& a, const Tensor& b) { \
    return flambeau::reversed;                                  \
  }
FB_BOTH_SIDES(+, add, add(b, a))
FB_BOTH_SIDES(-, sub, sub(a, b))
FB_BOTH_SIDES(*, mul, mul(b, a))
FB_BOTH_SIDES(/, div, div(a, b))
FB_BOTH_SIDES(%, remainder, remainder(a, b))
FB_BOTH_SIDES(&, bitwise_and, bitwise_and(b, a))
FB_BOTH_SIDES(|, bitwise_or, bitwise_or(b, a))
FB_BOTH_SIDES(^, bitwise_xor, bitwise_xor(b, a))
FB_OPERATOR(<<, bitwise_left_shift)
FB_OPERATOR(>>, bitwise_right_shift)
FB_BOTH_SIDES(<, lt, gt(b, a))
FB_BOTH_SIDES(<=, le, ge(b, a))
FB_BOTH_SIDES(>, gt, lt(b, a))
FB_BOTH_SIDES(>=, ge, le(b, a))
FB_BOTH_SIDES(==, eq, eq(b, a))
FB_BOTH_SIDES(!=, ne, ne(b, a))
#undef FB_BOTH_SIDES
#undef FB_OPERATOR

#define FB_COMPOUND(op, name)                              \
  inline Tensor& operator op(Tensor& a, const Tensor& b) { \
    return a.name(b);                                      \
  }                                                        \
  inline Tensor& operator op(Tensor& a, const Scalar& b) { \
    return a.name(b);                                      \
  }                                                        \
  inline Tensor operator op(Tensor&& a, const Tensor& b) { \
    return a.name(b);                                      \
  }                                                        \
  inline Tensor operator op(Tensor&& a, const Scalar& b) { \
    return a.name(b);                                      \
  }
FB_COMPOUND(+=, add_)
FB_COMPOUND(-=, sub_)
FB_COMPOUND(*=, mul_)
FB_COMPOUND(/=, div_)
FB_COMPOUND(%=, remainder_)
FB_COMPOUND(&=, bitwise_and_)
FB_COMPOUND(|=, bitwise_or_)
FB_COMPOUND(^=, bitwise_xor_)
#undef FB_COMPOUND

inline Tensor operator-(const Tensor& a) {
  return neg(a);
}
inline Tensor operator~(const Tensor& a) {
  return bitwise_not(a);
}
inline Tensor operator!(const Tensor& a) {
  return logical_not(a);
}

// The text that Python prints.
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace flambeau
