// Numbers of scripts: Python's arithmetic, comparisons and conversions, on values whose types may
// be less than what the text says. Whole numbers that do not fit in 64 bits are errors.
#include <cmath>

#include "core/error.h"
#include "core/pylist.h"
#include "script/core_ops.h"
#include "script/core_table.h"
#include "script/values.h"

namespace flambeau::script {

namespace {

using Tag = ValueTag;
using Args = const Value* const*;

bool is_whole(const Value& v) {
  return v.is<int64_t>() || v.is<bool>();
}
int64_t whole(const Value& v) {
  if (const bool* b = v.get_if<bool>()) return *b;
  return v.get<int64_t>();
}
bool is_real(const Value& v) {
  return is_whole(v) || v.is<double>() || v.tag() == Tag::UInt;
}
double real(const Value& v) {
  if (const double* x = v.get_if<double>()) return *x;
  return v.number().to_double();
}
bool is_complex(const Value& v) {
  return v.is<complex128>();
}
[[noreturn]] void zero_division(const char* message) {
  raise("ZeroDivisionError", message);
}

// a op b for whole numbers, floats, or complex ones, whichever both are.
template <class I, class F, class C>
Value binary(const Value& a, const Value& b, I whole_op, F real_op, C complex_op) {
  if (is_whole(a) && is_whole(b)) return Value(whole_op(whole(a), whole(b)));
  if (is_complex(a) || is_complex(b))
    return Value(complex_op(a.number().to_complex(), b.number().to_complex()));
  if (!is_real(a)) wrong_value("a number", a);
  if (!is_real(b)) wrong_value("a number", b);
  return Value(real_op(real(a), real(b)));
}
complex128 no_complex(complex128, complex128) {
  fail(ErrorKind::Type, "complex numbers cannot be divided with remainder");
}

double float_mod(double a, double b) {
  if (b == 0) zero_division("float modulo");
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (b < 0) != (r < 0) ? r + b : r;
}
double float_floordiv(double a, double b) {
  if (b == 0) zero_division("float floor division by zero");
  double r = std::fmod(a, b), q = (a - r) / b;
  if (r != 0 && (b < 0) != (r < 0)) q -= 1;
  if (q == 0) return std::copysign(0.0, a / b);
  double low = std::floor(q);
  return q - low > 0.5 ? low + 1 : low;
}

int64_t to_whole(double x) {
  if (std::isnan(x)) fail(ErrorKind::Value, "cannot convert float NaN to integer");
  if (std::isinf(x)) fail(ErrorKind::Overflow, "cannot convert float infinity to integer");
  FB_CHECK_AS(Overflow, std::abs(x) < 9.2e18, "the float ", show_float(x),
              " does not fit in 64 bits as a whole number");
  return static_cast<int64_t>(x);
}

void truediv(Args a, size_t, Value* out) {
  *out = binary(
      *a[0], *a[1],
      [](int64_t x, int64_t y) {
        if (y == 0) zero_division("division by zero");
        return static_cast<double>(static_cast<long double>(x) / static_cast<long double>(y));
      },
      [](double x, double y) {
        if (y == 0) zero_division("float division by zero");
        return x / y;
      },
      [](complex128 x, complex128 y) {
        if (y == complex128(0)) zero_division("complex division by zero");
        return x / y;
      });
}

void pow(Args a, size_t, Value* out) {
  if (is_whole(*a[0]) && is_whole(*a[1]) && whole(*a[1]) >= 0) {
    *out = Value(py::pow(whole(*a[0]), whole(*a[1])));
    return;
  }
  if (is_complex(*a[0]) || is_complex(*a[1])) {
    *out = Value(std::pow(a[0]->number().to_complex(), a[1]->number().to_complex()));
    return;
  }
  double x = real(*a[0]), y = real(*a[1]);
  if (x == 0 && y < 0) zero_division("0.0 cannot be raised to a negative power");
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::floor(y)) {
    *out = Value(std::pow(complex128(x), complex128(y)));
    return;
  }
  double r = std::pow(x, y);
  if (std::isinf(r) && std::isfinite(x) && std::isfinite(y))
    fail(ErrorKind::Overflow, "(34, 'Numerical result out of range')");
  *out = Value(r);
}

template <bool left>
void shift(Args a, size_t, Value* out) {
  int64_t x = whole(*a[0]), n = whole(*a[1]);
  if (n < 0) fail(ErrorKind::Value, "negative shift count");
  if (!left) {
    *out = Value(x >> std::min<int64_t>(n, 63));
  } else {
    if (x != 0 && (n > 62 || ((x << n) >> n) != x)) py::fail_overflow("<<", x, n);
    *out = Value(x == 0 ? int64_t{0} : x << n);
  }
}

void neg(Args a, size_t, Value* out) {
  const Value& x = *a[0];
  if (is_whole(x))
    *out = Value(py::minus(0, whole(x)));
  else if (is_complex(x))
    *out = Value(-x.get<complex128>());
  else
    *out = Value(-real(x));
}
void invert(Args a, size_t, Value* out) {
  *out = Value(~whole(*a[0]));
}
void absolute(Args a, size_t, Value* out) {
  const Value& x = *a[0];
  if (is_whole(x))
    *out = Value(whole(x) < 0 ? py::minus(0, whole(x)) : whole(x));
  else if (is_complex(x))
    *out = Value(std::abs(x.get<complex128>()));
  else
    *out = Value(std::abs(real(x)));
}
void divmod(Args a, size_t n, Value* out) {
  if (is_whole(*a[0]) && is_whole(*a[1]) && whole(*a[1]) == 0)
    zero_division("integer division or modulo by zero");
  Value q, r;
  if (!(is_whole(*a[0]) && is_whole(*a[1])) && real(*a[1]) == 0) zero_division("float divmod()");
  core_floordiv(a, n, &q);
  core_mod(a, n, &r);
  Values both;
  both.push_back(std::move(q));
  both.push_back(std::move(r));
  *out = make_box<Tuple>(std::move(both));
}

void eq(Args a, size_t, Value* out) {
  out->put(equal(*a[0], *a[1]));
}
void ne(Args a, size_t, Value* out) {
  out->put(!equal(*a[0], *a[1]));
}
bool ordered(const Value& a, const Value& b) {
  return !(a.is<double>() && std::isnan(*a.get_if<double>())) &&
         !(b.is<double>() && std::isnan(*b.get_if<double>()));
}
void lt(Args a, size_t, Value* out) {
  out->put(less(*a[0], *a[1]));
}
void gt(Args a, size_t, Value* out) {
  out->put(less(*a[1], *a[0]));
}
void le(Args a, size_t, Value* out) {
  out->put(ordered(*a[0], *a[1]) && !less(*a[1], *a[0]));
}
void ge(Args a, size_t, Value* out) {
  out->put(ordered(*a[0], *a[1]) && !less(*a[0], *a[1]));
}
bool identical(const Value& a, const Value& b) {
  auto *x = box_of<Instance>(a), *y = box_of<Instance>(b);
  return x && y ? x->same(*y) : a.same_as(b);
}
void is(Args a, size_t, Value* out) {
  out->put(identical(*a[0], *a[1]));
}
void is_not(Args a, size_t, Value* out) {
  out->put(!identical(*a[0], *a[1]));
}

// -- conversions

void to_float(Args a, size_t, Value* out) {
  const Value& x = *a[0];
  if (x.is<Tensor>()) {
    const Tensor& t = defined_tensor(x);
    FB_CHECK_VALUE(t.numel() == 1, "only one element tensors can be converted to Python scalars");
    FB_CHECK_TYPE(!t.item().is_complex(), "can't convert complex to float");
    out->put(t.item().to_double());
    return;
  }
  *out = Value(is_complex(x) ? fail(ErrorKind::Type, "can't convert complex to float"), 0.0
                             : real(x));
}
void to_int(Args a, size_t, Value* out) {
  const Value& x = *a[0];
  if (x.is<Tensor>()) {
    const Tensor& t = defined_tensor(x);
    FB_CHECK_VALUE(t.numel() == 1, "only one element tensors can be converted to Python scalars");
    Scalar s = t.item();
    *out = Value(s.is_complex() || s.is_floating_point() ? to_whole(s.to_double()) : s.to_int());
    return;
  }
  *out = Value(x.is<double>() ? to_whole(real(x)) : whole(x));
}
void to_bool(Args a, size_t, Value* out) {
  out->put(truth(*a[0]));
}
void to_complex(Args a, size_t n, Value* out) {
  complex128 z = a[0]->number().to_complex();
  if (n == 2) z += complex128(0, 1) * a[1]->number().to_complex();
  *out = Value(z);
}
void wrap(Args a, size_t, Value* out) {
  *out = Value(wrapped_number(a[0]->number()));
}
void str(Args a, size_t, Value* out) {
  *out = Value(to_text(*a[0]));
}
void real_part(Args a, size_t, Value* out) {
  *out = Value(a[0]->number().to_complex().real());
}
void imag_part(Args a, size_t, Value* out) {
  *out = Value(a[0]->number().to_complex().imag());
}

void round(Args a, size_t, Value* out) {
  const Value& x = *a[0];
  *out = Value(is_whole(x) ? whole(x) : to_whole(std::nearbyint(real(x))));
}
template <bool most>
void extreme(Args a, size_t n, Value* out) {
  const Value* best = a[0];
  for (size_t i = 1; i < n; ++i)
    if (most ? less(*best, *a[i]) : less(*a[i], *best)) best = a[i];
  *out = Value(*best);
}

// -- math

template <double (*f)(double)>
void math(Args a, size_t, Value* out) {
  double x = real(*a[0]), y = f(x);
  if (std::isnan(y) && !std::isnan(x)) fail(ErrorKind::Value, "math domain error");
  if (std::isinf(y) && std::isfinite(x)) {
    // A pole is outside of what a function is defined on; else the result is too large.
    if (f == static_cast<double (*)(double)>(std::exp) ||
        f == static_cast<double (*)(double)>(std::sinh) ||
        f == static_cast<double (*)(double)>(std::cosh))
      fail(ErrorKind::Overflow, "math range error");
    fail(ErrorKind::Value, "math domain error");
  }
  *out = Value(y);
}
template <double (*f)(double)>
void math_whole(Args a, size_t, Value* out) {
  *out = Value(to_whole(f(real(*a[0]))));
}
void math_isnan(Args a, size_t, Value* out) {
  out->put(std::isnan(real(*a[0])));
}
void math_isinf(Args a, size_t, Value* out) {
  out->put(std::isinf(real(*a[0])));
}
void math_isfinite(Args a, size_t, Value* out) {
  out->put(std::isfinite(real(*a[0])));
}

constexpr CoreRow kRows[] = {
    {"add", "NN", core_add}, {"sub", "NN", core_sub}, {"mul", "NN", core_mul},
    {"number_add", "NN", core_add}, {"number_sub", "NN", core_sub}, {"number_mul", "NN", core_mul},
    {"number_div", "NN", truediv}, {"truediv", "NN", truediv}, {"floordiv", "##", core_floordiv},
    {"mod", "##", core_mod}, {"pow", "##", pow}, {"pow", "NN", pow}, {"and_", "BB", core_and},
    {"or_", "BB", core_or}, {"xor", "BB", core_xor}, {"lshift", "BB", shift<true>},
    {"rshift", "BB", shift<false>}, {"neg", "N", neg}, {"invert", "B", invert},
    {"abs", "N", absolute}, {"divmod", "##", divmod}, {"eq", "@@", eq}, {"ne", "@@", ne},
    {"lt", "##", lt}, {"le", "##", le}, {"gt", "##", gt}, {"ge", "##", ge}, {"lt", "ss", lt},
    {"le", "ss", le}, {"gt", "ss", gt}, {"ge", "ss", ge}, {"is_", "&&", is},
    {"is_not", "&&", is_not},
    {"float", "#", to_float}, {"int", "#", to_int}, {"bool", "#", to_bool},
    {"complex", "N", to_complex}, {"complex", "NN", to_complex}, {"float_of", "#", to_float},
    {"float_of", "n", to_float}, {"float_of", "t", to_float},
    {"int_of", "#", to_int}, {"int_of", "n", to_int}, {"int_of", "t", to_int},
    {"bool_of", "N", to_bool}, {"bool_of", "s", to_bool}, {"bool_of", "t", to_bool},
    {"bool_of", "l", to_bool}, {"bool_of", "d", to_bool}, {"truth_of", "t", to_bool},
    {"truth_of", "N", to_bool}, {"complex_of", "N", to_complex}, {"wrap", "N", wrap},
    {"str", "#", str}, {"str", "s", str}, {"attr_real", "c", real_part},
    {"attr_imag", "c", imag_part}, {"round", "#", round}, {"min", "##", extreme<false>},
    {"max", "##", extreme<true>}, {"min", "###", extreme<false>}, {"max", "###", extreme<true>},
    {"math_sqrt", "#", math<std::sqrt>}, {"math_exp", "#", math<std::exp>},
    {"math_sin", "#", math<std::sin>}, {"math_cos", "#", math<std::cos>},
    {"math_tan", "#", math<std::tan>}, {"math_tanh", "#", math<std::tanh>},
    {"math_sinh", "#", math<std::sinh>}, {"math_cosh", "#", math<std::cosh>},
    {"math_log", "#", math<std::log>}, {"math_log2", "#", math<std::log2>},
    {"math_log10", "#", math<std::log10>}, {"math_log1p", "#", math<std::log1p>},
    {"math_fabs", "#", math<std::fabs>}, {"math_floor", "#", math_whole<std::floor>},
    {"math_ceil", "#", math_whole<std::ceil>}, {"math_trunc", "#", math_whole<std::trunc>},
    {"math_isnan", "#", math_isnan}, {"math_isinf", "#", math_isinf},
    {"math_isfinite", "#", math_isfinite},
};

}  // namespace

std::span<const CoreRow> number_rows() {
  return kRows;
}

void core_add(Args a, size_t, Value* out) {
  *out = binary(*a[0], *a[1], py::plus, std::plus<double>(), std::plus<complex128>());
}
void core_sub(Args a, size_t, Value* out) {
  *out = binary(*a[0], *a[1], py::minus, std::minus<double>(), std::minus<complex128>());
}
void core_mul(Args a, size_t, Value* out) {
  *out = binary(*a[0], *a[1], py::times, std::multiplies<double>(), std::multiplies<complex128>());
}
void core_floordiv(Args a, size_t, Value* out) {
  *out = binary(
      *a[0], *a[1],
      [](int64_t x, int64_t y) {
        if (y == 0) zero_division("integer division or modulo by zero");
        return py::floordiv(x, y);
      },
      float_floordiv, no_complex);
}
void core_mod(Args a, size_t, Value* out) {
  *out = binary(
      *a[0], *a[1],
      [](int64_t x, int64_t y) {
        if (y == 0) zero_division("integer modulo by zero");
        return py::mod(x, y);
      },
      float_mod, no_complex);
}

namespace {
template <class F>
void bits(Args a, Value* out, F f) {
  int64_t r = f(whole(*a[0]), whole(*a[1]));
  if (a[0]->is<bool>() && a[1]->is<bool>())
    *out = Value(r != 0);
  else
    *out = Value(r);
}
}  // namespace

void core_and(Args a, size_t, Value* out) {
  bits(a, out, std::bit_and<int64_t>());
}
void core_or(Args a, size_t, Value* out) {
  bits(a, out, std::bit_or<int64_t>());
}
void core_xor(Args a, size_t, Value* out) {
  bits(a, out, std::bit_xor<int64_t>());
}

}  // namespace flambeau::script
