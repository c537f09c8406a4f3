// Operators of Tensor: each slot stands for a method of the table, found by name once. Two tensors,
// or a tensor and a plain number, go straight to the method's thunk; everything else is sorted out
// in `unusual`.
#include <cstring>
#include <utility>

#include "core/warning.h"
#include "dispatch/modes.h"
#include "python/argparse.h"
#include "python/factories.h"
#include "python/module.h"
#include "python/trace_hook.h"

namespace flambeau::python {

namespace {
#define FB_OPERATORS(X)                                                                           \
  X(add)                                                                                          \
  X(sub)                                                                                          \
  X(mul) X(div) X(floor_divide) X(remainder) X(pow) X(matmul) X(bitwise_and) X(bitwise_or)        \
      X(bitwise_xor) X(bitwise_left_shift) X(bitwise_right_shift) X(add_) X(sub_) X(mul_) X(div_) \
          X(floor_divide_) X(remainder_) X(pow_) X(bitwise_and_) X(bitwise_or_) X(bitwise_xor_)   \
              X(bitwise_left_shift_) X(bitwise_right_shift_) X(neg) X(abs) X(bitwise_not) X(eq)   \
                  X(ne) X(lt) X(le) X(gt) X(ge)

enum Operator {
#define X(name) op_##name,
  FB_OPERATORS(X)
#undef X
      kOperators
};
constexpr const char* kNames[] = {
#define X(name) #name,
    FB_OPERATORS(X)
#undef X
};
const Binding* bindings[kOperators];
bool takes_number[kOperators];  // the first overload takes (Tensor, Tensor | Number)

bool is_ndarray(PyObject* o) {
  return std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0;
}

// Numbers and arrays as tensor objects; null (without an exception) for what is neither.
PyRef operand(PyObject* o) {
  if (is_number(o)) return checked(wrap(wrapped_number(to_number(o))));
  if (is_ndarray(o)) return checked(wrap(tensor_from_numpy(o, false)));
  return {};
}

[[gnu::noinline]] PyObject* unusual(const Binding& b, PyObject* x, PyObject* y) {
  PyRef left, right;
  if (!is_tensor(x) && !wants_torch_function(x)) {
    left = operand(x);
    if (!left) Py_RETURN_NOTIMPLEMENTED;
    x = left.get();
  }
  if (!is_tensor(y) && !is_number(y) && !wants_torch_function(y)) {
    right = operand(y);
    if (!right) Py_RETURN_NOTIMPLEMENTED;
    y = right.get();
  }
  if (!is_tensor(x)) {  // a foreign class on the left whose own operator declined
    PyRef method = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), b.name));
    PyObject* both[] = {x, y};
    return call_torch_function(method.get(), both, 2, nullptr);
  }
  return call_binding(b, x, &y, 1, nullptr);
}

template <Operator op>
PyObject* binary(PyObject* x, PyObject* y) noexcept {
  const Binding* b = bindings[op];
  if (!b) Py_RETURN_NOTIMPLEMENTED;
  if constexpr (op == op_add || op == op_mul)  // a number is the second operand
    if (!is_tensor(x) && is_number(x)) std::swap(x, y);
  try {
    bool plain = is_exact_tensor(x) &&
                 (is_exact_tensor(y) ||
                  (takes_number[op] && (PyFloat_CheckExact(y) || PyLong_CheckExact(y))));
    if (!plain || tracer) [[unlikely]]
      return unusual(*b, x, y);
    const Signature& s = b->signatures[0];
    Args a;
    a.slot[0] = x;
    a.slot[1] = y;
    for (int i = 2; i < s.count; ++i) a.slot[i] = nullptr;
    return s.call(a);
  } catch (...) {
    return raise_current();
  }
}
template <Operator op>
PyObject* power(PyObject* x, PyObject* y, PyObject*) noexcept {
  return binary<op>(x, y);
}
template <Operator op>
PyObject* unary(PyObject* x) noexcept {
  if (!bindings[op]) Py_RETURN_NOTIMPLEMENTED;
  return call_binding(*bindings[op], x, nullptr, 0, nullptr);
}
PyObject* positive(PyObject* x) {
  if (unwrap(x).dtype() != DType::Bool) return Py_NewRef(x);
  PyErr_SetString(PyExc_RuntimeError, "The `+` operator, on a bool tensor is not supported.");
  return nullptr;
}

PyObject* compare(PyObject* x, PyObject* y, int op) noexcept {
  switch (op) {
    case Py_EQ:
      return binary<op_eq>(x, y);
    case Py_NE:
      return binary<op_ne>(x, y);
    case Py_LT:
      return binary<op_lt>(x, y);
    case Py_LE:
      return binary<op_le>(x, y);
    case Py_GT:
      return binary<op_gt>(x, y);
    default:
      return binary<op_ge>(x, y);
  }
}
Py_hash_t hash(PyObject* x) {
  return _Py_HashPointer(x);
}

// Conversions to Python numbers
// ---------------------------------------------------------------------------------------

Scalar element(PyObject* x) {
  const Tensor& t = unwrap(x);
  FB_CHECK_VALUE(t.numel() == 1, "only one element tensors can be converted to Python scalars");
  return item_of(t);
}

int truth(PyObject* x) {
  try {
    const Tensor& t = unwrap(x);
    FB_CHECK(t.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
    FB_CHECK(t.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
    Scalar s = item_of(t);
    return s.is_complex()          ? s.to_complex() != complex128(0)
           : s.is_floating_point() ? s.to_double() != 0
                                   : s.to_int() != 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}

}  // namespace

void warn_of_number(const Tensor& x) {
  if (modes.grad && x.requires_grad()) [[unlikely]]
    warn(
        "A tensor that requires grad was made a number, which has no gradient: say so with "
        "tensor.detach() or tensor.item()");
}

namespace {
PyObject* to_python_float(PyObject* x) {
  try {
    warn_of_number(unwrap(x));
    return PyFloat_FromDouble(element(x).to_double());
  } catch (...) {
    return raise_current();
  }
}

PyObject* to_python_int(PyObject* x) {
  try {
    Scalar s = element(x);
    if (s.is_complex() || s.is_floating_point()) return PyLong_FromDouble(s.to_double());
    if (s.kind() == Scalar::Kind::Bool) return PyLong_FromLong(s.to_int() != 0);
    return wrap_scalar(s);
  } catch (...) {
    return raise_current();
  }
}

PyObject* to_python_index(PyObject* x) {
  const Tensor& t = unwrap(x);
  if (t.numel() != 1 || !t.is_integral(true)) {
    PyErr_SetString(PyExc_TypeError,
                    "only integer tensors of a single element can be converted to an index");
    return nullptr;
  }
  return to_python_int(x);
}
}  // namespace

Scalar item_of(const Tensor& t) {
  return t.item();
}

const Binding* find_method(const char* name) {
  for (auto* b = generated_bindings; b->name; ++b)
    if (b->method && std::strcmp(b->name, name) == 0) return b->method;
  return nullptr;
}

void init_operators() {
  for (int i = 0; i < kOperators; ++i) {
    bindings[i] = find_method(kNames[i]);
    if (!bindings[i]) continue;
    const Signature& s = bindings[i]->signatures[0];
    takes_number[i] = s.count > 1 && s.params[1].type == Arg::TensorOrNumber;
  }
}

PyObject* divide(PyObject* x, PyObject* y) {
  return binary<op_div>(x, y);
}
PyObject* divide_reflected(PyObject* x, PyObject* y) {
  return binary<op_div>(y, x);
}
PyObject* divide_inplace(PyObject* x, PyObject* y) {
  return binary<op_div_>(x, y);
}
PyMethodDef number_methods[] = {
    {"__div__", divide, METH_O, nullptr},
    {"__rdiv__", divide_reflected, METH_O, nullptr},
    {"__idiv__", divide_inplace, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

#define FB_SLOT(id, f) \
  { Py_##id, reinterpret_cast<void*>(f) }
PyType_Slot number_slots[] = {
    FB_SLOT(nb_add, binary<op_add>),
    FB_SLOT(nb_subtract, binary<op_sub>),
    FB_SLOT(nb_multiply, binary<op_mul>),
    FB_SLOT(nb_true_divide, binary<op_div>),
    FB_SLOT(nb_floor_divide, binary<op_floor_divide>),
    FB_SLOT(nb_remainder, binary<op_remainder>),
    FB_SLOT(nb_power, power<op_pow>),
    FB_SLOT(nb_matrix_multiply, binary<op_matmul>),
    FB_SLOT(nb_and, binary<op_bitwise_and>),
    FB_SLOT(nb_or, binary<op_bitwise_or>),
    FB_SLOT(nb_xor, binary<op_bitwise_xor>),
    FB_SLOT(nb_lshift, binary<op_bitwise_left_shift>),
    FB_SLOT(nb_rshift, binary<op_bitwise_right_shift>),
    FB_SLOT(nb_inplace_add, binary<op_add_>),
    FB_SLOT(nb_inplace_subtract, binary<op_sub_>),
    FB_SLOT(nb_inplace_multiply, binary<op_mul_>),
    FB_SLOT(nb_inplace_true_divide, binary<op_div_>),
    FB_SLOT(nb_inplace_floor_divide, binary<op_floor_divide_>),
    FB_SLOT(nb_inplace_remainder, binary<op_remainder_>),
    FB_SLOT(nb_inplace_power, power<op_pow_>),
    FB_SLOT(nb_inplace_and, binary<op_bitwise_and_>),
    FB_SLOT(nb_inplace_or, binary<op_bitwise_or_>),
    FB_SLOT(nb_inplace_xor, binary<op_bitwise_xor_>),
    FB_SLOT(nb_inplace_lshift, binary<op_bitwise_left_shift_>),
    FB_SLOT(nb_inplace_rshift, binary<op_bitwise_right_shift_>),
    FB_SLOT(nb_negative, unary<op_neg>),
    FB_SLOT(nb_positive, positive),
    FB_SLOT(nb_absolute, unary<op_abs>),
    FB_SLOT(nb_invert, unary<op_bitwise_not>),
    FB_SLOT(nb_bool, truth),
    FB_SLOT(nb_int, to_python_int),
    FB_SLOT(nb_float, to_python_float),
    FB_SLOT(nb_index, to_python_index),
    FB_SLOT(tp_richcompare, compare),
    FB_SLOT(tp_hash, hash),
    {0, nullptr},
};

}  // namespace flambeau::python
