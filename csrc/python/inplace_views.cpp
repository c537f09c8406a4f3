// Methods that are views in place, see autograd/inplace_view.h.
#include <iterator>

#include "autograd/inplace_view.h"
#include "gen/ops.h"
#include "python/argparse.h"
#include "python/module.h"

namespace flambeau::python {

namespace {
#define FB_METHOD(name, ...)                                                                      \
  Signature name##_signatures[] = {__VA_ARGS__};                                                  \
  const Binding name##_binding = {#name, "", name##_signatures, std::size(name##_signatures),     \
                                  true};                                                          \
  PyObject* name##_method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) { \
    return call_binding(name##_binding, self, args, n, names);                                    \
  }

PyObject* become(PyObject* self, const char* op, Tensor (*view)(const Args&), const Args& a) {
  become_view(unwrap(self), op, [&](const Tensor&) { return view(a); });
  return Py_NewRef(self);
}

Param self_params[] = {{"self", Arg::Tensor}};
Param dims_params[] = {{"self", Arg::Tensor}, {"dim0", Arg::Int}, {"dim1", Arg::Int}};
Param axes_params[] = {{"self", Arg::Tensor}, {"axis0", Arg::Int}, {"axis1", Arg::Int}};
Param dim_params[] = {{"self", Arg::Tensor}, {"dim", Arg::Int}};
Param squeeze_params[] = {{"self", Arg::Tensor}, {"dim", Arg::Ints}};
Param strided_params[] = {{"self", Arg::Tensor},
                          {"size", Arg::Ints},
                          {"stride", Arg::Ints},
                          {"storage_offset", Arg::Int, true, false}};

Tensor transposed(const Args& a) {
  return ops::transpose(unwrap(a[0]), to_int(a[1]), to_int(a[2]));
}
PyObject* call_t_(const Args& a) {
  return become(
      a[0], "t_", [](const Args& v) { return ops::t(unwrap(v[0])); }, a);
}
PyObject* call_transpose_(const Args& a) {
  return become(a[0], "transpose_", transposed, a);
}
PyObject* call_unsqueeze_(const Args& a) {
  return become(
      a[0], "unsqueeze_", [](const Args& v) { return ops::unsqueeze(unwrap(v[0]), to_int(v[1])); },
      a);
}
PyObject* call_squeeze_all(const Args& a) {
  return become(
      a[0], "squeeze_", [](const Args& v) { return ops::squeeze(unwrap(v[0])); }, a);
}
PyObject* call_squeeze_dims(const Args& a) {
  return become(
      a[0], "squeeze_", [](const Args& v) { return ops::squeeze(unwrap(v[0]), to_ints(v[1])); }, a);
}
PyObject* call_as_strided_(const Args& a) {
  return become(
      a[0], "as_strided_",
      [](const Args& v) {
        return ops::as_strided(unwrap(v[0]), to_ints(v[1]), to_ints(v[2]), optional(v[3], to_int));
      },
      a);
}
FB_METHOD(t_, {self_params, 1, 1, "(Tensor self)", call_t_})
FB_METHOD(transpose_, {dims_params, 3, 3, "(Tensor self, int dim0, int dim1)", call_transpose_})
FB_METHOD(swapaxes_, {axes_params, 3, 3, "(Tensor self, int axis0, int axis1)", call_transpose_})
FB_METHOD(swapdims_, {dims_params, 3, 3, "(Tensor self, int dim0, int dim1)", call_transpose_})
FB_METHOD(unsqueeze_, {dim_params, 2, 2, "(Tensor self, int dim)", call_unsqueeze_})
FB_METHOD(squeeze_, {self_params, 1, 1, "(Tensor self)", call_squeeze_all},
          {squeeze_params, 2, 2, "(Tensor self, tuple of ints dim)", call_squeeze_dims})
FB_METHOD(as_strided_,
          {strided_params, 4, 4,
           "(Tensor self, tuple of ints size, tuple of ints stride, int storage_offset "
           "= None)",
           call_as_strided_})
}  // namespace

PyMethodDef inplace_view_methods[] = {
    {"t_", fast(t__method), kFast, "In-place form of t()."},
    {"transpose_", fast(transpose__method), kFast, "In-place form of transpose()."},
    {"swapaxes_", fast(swapaxes__method), kFast, "In-place form of swapaxes()."},
    {"swapdims_", fast(swapdims__method), kFast, "In-place form of swapdims()."},
    {"unsqueeze_", fast(unsqueeze__method), kFast, "In-place form of unsqueeze()."},
    {"squeeze_", fast(squeeze__method), kFast, "In-place form of squeeze()."},
    {"as_strided_", fast(as_strided__method), kFast, "In-place form of as_strided()."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
