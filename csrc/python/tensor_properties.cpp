// Properties of Tensor that are not autograd's: geometry, dtype, device, and the views T, mT, H,
// mH, real, imag, data.
#include "autograd/meta.h"
#include "core/warning.h"
#include "gen/ops.h"
#include "python/factories.h"
#include "python/module.h"
#include "python/trace_hook.h"
#include "python/types.h"

namespace flambeau::python {

namespace {
PyObject* shape(PyObject* o, void*) {
  return wrap_size(unwrap(o).sizes());
}
PyObject* dtype(PyObject* o, void*) {
  return wrap_dtype(unwrap(o).dtype());
}
PyObject* device(PyObject* o, void*) {
  return wrap_device(unwrap(o).device());
}
PyObject* layout(PyObject*, void*) {
  return wrap_layout(Layout::Strided);
}
PyObject* ndim(PyObject* o, void*) {
  return PyLong_FromLongLong(unwrap(o).dim());
}
PyObject* itemsize(PyObject* o, void*) {
  return PyLong_FromLongLong(unwrap(o).itemsize());
}
PyObject* nbytes(PyObject* o, void*) {
  return PyLong_FromLongLong(unwrap(o).numel() * unwrap(o).itemsize());
}
PyObject* names(PyObject*, void*) {
  Py_RETURN_NONE;
}
PyObject* no(PyObject*, void*) {
  Py_RETURN_FALSE;
}
PyObject* is_cpu(PyObject* o, void*) {
  return PyBool_FromLong(unwrap(o).device().type() == DeviceType::CPU);
}
PyObject* is_meta(PyObject* o, void*) {
  return PyBool_FromLong(unwrap(o).device().type() == DeviceType::Meta);
}

// What a tracer is told: the property's name travels as its closure.
void* view_name(const char* name) {
  return const_cast<char*>(name);
}

// A view through C++; instances of subclasses that follow __torch_function__ get one of their kind.
template <Tensor (*view)(const Tensor&)>
PyObject* view_of(PyObject* o, void* name) {
  try {
    if (tracer) [[unlikely]]
      return call_traced(static_cast<const char*>(name), {o});
    Tensor result = view(unwrap(o));
    if (is_exact_tensor(o) || !torch_function_enabled || !wants_torch_function(o)) [[likely]]
      return wrap(std::move(result));
    return wrap_as(Py_TYPE(o), std::move(result));
  } catch (...) {
    return raise_current();
  }
}

Tensor all_transposed(const Tensor& x) {
  if (x.dim() != 2 && x.dim() != 0)
    warn(
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
        "deprecated and it will throw an error in a future release. Consider `x.mT` to transpose "
        "batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the "
        "dimensions of a tensor.");
  Ints dims(x.dim());
  for (int64_t i = 0; i < x.dim(); ++i) dims[i] = x.dim() - 1 - i;
  return ops::permute(x, dims);
}
static void deprecated_without_dims(const char* name, const char* instead) {
  warn(std::string("Tensor.") + name + " is deprecated on 0-D tensors. " + instead);
}
Tensor matrix_transposed(const Tensor& x) {
  if (x.dim() == 0) {
    deprecated_without_dims("mT", "This function is the identity in these cases.");
    return x;
  }
  FB_CHECK(x.dim() >= 2, "tensor.mT is only supported on matrices or batches of matrices. Got ",
           x.dim(), "-D tensor.");
  return ops::transpose(x, -2, -1);
}
Tensor conjugated(const Tensor& x) {
  return x.is_complex() ? ops::conj(x) : x;
}
Tensor hermitian(const Tensor& x) {
  FB_CHECK(x.dim() == 2 || x.dim() == 0,
           "tensor.H is only supported on matrices (2-D tensors). Got ", x.dim(), "-D tensor.",
           x.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  return x.dim() == 0 ? conjugated(x) : conjugated(ops::transpose(x, 0, 1));
}
Tensor matrix_hermitian(const Tensor& x) {
  if (x.dim() == 0) {
    deprecated_without_dims("mH", "Consider using x.conj().");
    return conjugated(x);
  }
  FB_CHECK(x.dim() >= 2, "tensor.mH is only supported on matrices or batches of matrices. Got ",
           x.dim(), "-D tensor.");
  return conjugated(ops::transpose(x, -2, -1));
}
Tensor real_part(const Tensor& x) {
  return ops::real(x);
}
Tensor imaginary_part(const Tensor& x) {
  return ops::imag(x);
}

int set_part(PyObject* part, PyObject* value) {
  PyRef target = PyRef::steal(part);
  if (!target || !value) return -1;
  return PyObject_SetItem(target.get(), Py_Ellipsis, value);
}
int set_real(PyObject* o, PyObject* value, void*) {
  return set_part(view_of<real_part>(o, view_name("real")), value);
}
int set_imag(PyObject* o, PyObject* value, void*) {
  return set_part(view_of<imaginary_part>(o, view_name("imag")), value);
}
}  // namespace

PyGetSetDef tensor_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict,
     "Attributes that were set on it.", nullptr},
    {"shape", shape, nullptr, "Sizes of the dimensions.", nullptr},
    {"dtype", dtype, nullptr, "Type of the elements.", nullptr},
    {"device", device, nullptr, "Where the memory is.", nullptr},
    {"layout", layout, nullptr, "How the elements are stored.", nullptr},
    {"ndim", ndim, nullptr, "Number of dimensions.", nullptr},
    {"itemsize", itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"names", names, nullptr, "Always None: dimensions have no names.", nullptr},
    {"T", view_of<all_transposed>, nullptr, "View with the dimensions in reverse order.",
     view_name("T")},
    {"mT", view_of<matrix_transposed>, nullptr, "View with the last two dimensions exchanged.",
     view_name("mT")},
    {"H", view_of<hermitian>, nullptr, "Conjugate transpose of a matrix.", view_name("H")},
    {"mH", view_of<matrix_hermitian>, nullptr, "Conjugate transpose over the last two dimensions.",
     view_name("mH")},
    {"real", view_of<real_part>, set_real, "Real part, as a view.", view_name("real")},
    {"imag", view_of<imaginary_part>, set_imag, "Imaginary part, as a view.", view_name("imag")},
    {"is_cpu", is_cpu, nullptr, "Is it in main memory?", nullptr},
    {"is_meta", is_meta, nullptr, "Has it a shape but no data?", nullptr},
    {"is_cuda", no, nullptr, "Is it on a CUDA device?", nullptr},
    {"is_xpu", no, nullptr, "Always False.", nullptr},
    {"is_mps", no, nullptr, "Always False.", nullptr},
    {"is_sparse", no, nullptr, "Always False.", nullptr},
    {"is_sparse_csr", no, nullptr, "Always False.", nullptr},
    {"is_quantized", no, nullptr, "Always False.", nullptr},
    {"is_mkldnn", no, nullptr, "Always False.", nullptr},
    {"is_nested", no, nullptr, "Always False.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace flambeau::python
