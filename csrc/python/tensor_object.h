// The Python object of a tensor. One object per TensorImpl (identity is kept through
// `impl->pyobj`), and either side may outlive the other, see Note [Who owns whom]. Knows no
// operation.
//
// Note [Who owns whom]
// Normally the Python object owns its impl and `impl->pyobj` is borrowed. When the object's last
// Python reference goes while C++ still holds the impl, an ordinary object just dies (the next
// wrap() makes a new one), but one that carries state (a subclass, a non-empty __dict__, a weak
// reference) is kept: the impl then owns the object (kOwnsPython) and the object borrows the impl.
// The next wrap() turns this around again.
#pragma once

#include "core/tensor.h"
#include "python/pybase.h"

namespace flambeau::python {

struct TensorObject {
  PyObject_HEAD TensorImpl*
      impl;  // never null while the object is alive; owned or borrowed, see above
  PyObject* dict;
  PyObject* weakrefs;
};

extern PyTypeObject* TensorType;     // flambeau.Tensor
extern PyTypeObject* ParameterType;  // flambeau.nn.Parameter once defined, else TensorType

// A new reference to the object of `t`; None for an undefined tensor.
PyObject* wrap(Tensor&& t) noexcept;
inline PyObject* wrap(const Tensor& t) noexcept {
  return wrap(Tensor(t));
}
// The same for a tensor that has no object yet, as an instance of `type` (a subclass of Tensor).
PyObject* wrap_as(PyTypeObject* type, Tensor&& t) noexcept;
PyObject* wrap_list(const Tensors& ts);  // a list / a tuple of tensors
PyObject* wrap_tuple(const Tensors& ts);

inline bool is_exact_tensor(PyObject* o) noexcept {
  return Py_TYPE(o) == TensorType || Py_TYPE(o) == ParameterType;
}
inline bool is_tensor(PyObject* o) noexcept {
  return is_exact_tensor(o) || PyType_IsSubtype(Py_TYPE(o), TensorType);
}

// The tensor inside: a borrowed handle (no check). A Tensor is one pointer, which the object holds.
inline const Tensor& unwrap(PyObject* o) noexcept {
  static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
  return *reinterpret_cast<const Tensor*>(&reinterpret_cast<TensorObject*>(o)->impl);
}
// The same with a check: Error(Type) `op(): argument 'arg' must be Tensor, not X`.
const Tensor& expect_tensor(PyObject* o, const char* op, const char* arg);
// The argument of a function of one tensor, given by place or as `input`.
PyObject* only_argument(const char* op, PyObject* const* args, Py_ssize_t n, PyObject* names);

// Installed by autograd.cpp: visits the Python objects that a node, reached from one tensor only,
// keeps alive.
extern int (*traverse_node)(void* node, visitproc visit, void* arg);

// Tensor(...): the legacy constructor (factories.cpp).
PyObject* new_tensor_object(PyTypeObject* type, PyObject* args, PyObject* kwargs);
// repr(x), by flambeau/_tensor_str.py (tensor_methods.cpp).
PyObject* tensor_repr(PyObject* self);
// Builds the type and adds it to the module. Method tables come from module.h.
bool init_tensor_type(PyObject* module);

// __torch_function__
// ------------------------------------------------------------------------------------------------

// Does the object's type ask to see calls (a Tensor subclass that does not disable it, or a foreign
// class)? Exact tensors, parameters, numbers, lists and tuples do not, and are told apart first.
bool wants_torch_function(PyObject* o) noexcept;
// Calls the overrides of the arguments that have one, as `type.__torch_function__(func, types,
// args, kwargs)`.
PyObject* call_torch_function(PyObject* func, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames);
// The types among all arguments of a call that ask to see it.
PyRef overriding_types(PyObject* args, PyObject* kwargs);
extern thread_local constinit bool
    torch_function_enabled;  // off while the default implementation runs

}  // namespace flambeau::python
