// Extension modules for Python, with pybind11: tensors are arguments and results of functions, and
// errors of the library are the exceptions that Python code raises.
#pragma once

#include <Python.h>

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "torch/all.h"

#include "flambeau/python_api.h"

namespace py = pybind11;

// What code that was written to Python's own interface calls.
inline bool THPVariable_Check(PyObject* o) {
  return o && flambeau::python_api().is_tensor(o);
}
inline const flambeau::Tensor& THPVariable_Unpack(PyObject* o) {
  return *flambeau::python_api().unwrap(o);
}
inline PyObject* THPVariable_Wrap(const flambeau::Tensor& x) {
  return flambeau::python_api().wrap(x);
}

namespace pybind11::detail {

template <>
struct type_caster<flambeau::Tensor> {
  PYBIND11_TYPE_CASTER(flambeau::Tensor, const_name("torch.Tensor"));
  bool load(handle src, bool) {
    const auto& api = flambeau::python_api();
    if (!api.is_tensor(src.ptr())) return false;
    value = *api.unwrap(src.ptr());
    return true;
  }
  static handle cast(const flambeau::Tensor& x, return_value_policy, handle) {
    return flambeau::python_api().wrap(x);
  }
};

template <>
struct type_caster<flambeau::DType> {
  PYBIND11_TYPE_CASTER(flambeau::DType, const_name("torch.dtype"));
  bool load(handle src, bool) { return flambeau::python_api().to_dtype(src.ptr(), &value); }
  static handle cast(flambeau::DType d, return_value_policy, handle) {
    return flambeau::python_api().wrap_dtype(d);
  }
};

template <>
struct type_caster<flambeau::Device> {
  PYBIND11_TYPE_CASTER(flambeau::Device, const_name("torch.device"));
  bool load(handle src, bool) { return flambeau::python_api().to_device(src.ptr(), &value); }
  static handle cast(flambeau::Device d, return_value_policy, handle) {
    return flambeau::python_api().wrap_device(d);
  }
};

template <>
struct type_caster<flambeau::Scalar> {
  PYBIND11_TYPE_CASTER(flambeau::Scalar, const_name("Union[Number, bool]"));
  bool load(handle src, bool) {
    PyObject* o = src.ptr();
    if (PyBool_Check(o)) return value = flambeau::Scalar(o == Py_True), true;
    if (PyLong_Check(o)) return value = flambeau::Scalar(PyLong_AsLongLong(o)), !failed();
    if (PyFloat_Check(o)) return value = flambeau::Scalar(PyFloat_AsDouble(o)), true;
    if (!PyComplex_Check(o)) return false;
    value = flambeau::Scalar(
        flambeau::complex128(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
    return true;
  }
  static handle cast(const flambeau::Scalar& x, return_value_policy, handle) {
    if (x.is_bool()) return PyBool_FromLong(x.to_bool());
    if (x.is_integral()) return PyLong_FromLongLong(x.to_int());
    if (x.is_complex()) return PyComplex_FromDoubles(x.to_complex().real(), x.to_complex().imag());
    return PyFloat_FromDouble(x.to_double());
  }

 private:
  static bool failed() {
    if (!PyErr_Occurred()) return false;
    PyErr_Clear();
    return true;
  }
};

// A list of whole numbers: the caster holds what the reference refers to.
template <>
struct type_caster<flambeau::IntArrayRef> {
  static constexpr auto name = const_name("List[int]");
  bool load(handle src, bool) {
    if (PyLong_Check(src.ptr())) {
      held_ = {PyLong_AsLongLong(src.ptr())};
    } else {
      if (!PyTuple_Check(src.ptr()) && !PyList_Check(src.ptr())) return false;
      for (auto item : reinterpret_borrow<sequence>(src)) {
        if (!PyLong_Check(item.ptr())) return false;
        held_.push_back(PyLong_AsLongLong(item.ptr()));
      }
    }
    if (PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    value_ = flambeau::IntArrayRef(held_);
    return true;
  }
  static handle cast(flambeau::IntArrayRef xs, return_value_policy, handle) {
    return pybind11::cast(xs.vec()).release();
  }
  template <class>
  using cast_op_type = flambeau::IntArrayRef;
  operator flambeau::IntArrayRef() { return value_; }

 private:
  std::vector<int64_t> held_;
  flambeau::IntArrayRef value_;
};

}  // namespace pybind11::detail

namespace flambeau::api {
// When the module is loaded.
static const bool errors_are_translated = [] {
  py::register_local_exception_translator([](std::exception_ptr p) {
    if (!p) return;
    try {
      std::rethrow_exception(p);
    } catch (const Error&) {
      python_api().raise();
    }
  });
  return true;
}();
}  // namespace flambeau::api
