// What generated thunks use beside the conversions of argparse.h: letting the GIL go around large
// work, and turning C++ results into Python ones.
#pragma once

#include <initializer_list>
#include <tuple>

#include "python/argparse.h"

namespace flambeau::python {

// Work on this many elements is worth giving the GIL up (which costs about 50 ns).
inline constexpr int64_t kUnlockedElements = 1 << 16;

inline bool big(const Tensor& t) {
  return t.numel() > kUnlockedElements;
}
inline bool big(const OptTensor& t) {
  return t && big(*t);
}
inline bool big(const Tensors& ts) {
  int64_t n = 0;
  for (auto& t : ts) n += t.numel();
  return n > kUnlockedElements;
}
inline bool big(const Ints& sizes) {
  double n = 1;
  for (int64_t s : sizes) n *= static_cast<double>(s);
  return n > kUnlockedElements;
}

template <class F>
inline decltype(auto) unlocked(bool large, F&& f) {
  GilFree free(large);
  return f();
}

inline bool given(PyObject* o) {
  return o && o != Py_None;
}
Tensors to_outputs(PyObject* o, size_t count, const char* op);  // out=(a, b)

// Results
// ----------------------------------------------------------------------------------------------------------

// The type of a named result, such as torch.return_types.max; made when first used.
class ResultType {
 public:
  template <class... S>
  ResultType(const char* name, S... fields) : name_(name), fields_{fields...} {}
  PyObject* make(
      std::initializer_list<PyObject*> items);  // steals; null items mean an exception is set

 private:
  const char* name_;
  std::vector<const char*> fields_;
  PyTypeObject* type_ = nullptr;
};

inline PyObject* pack(Tensor&& t) {
  return wrap(std::move(t));
}
inline PyObject* pack(const Tensor& t) {
  return wrap(t);
}
inline PyObject* pack(const Tensors& ts) {
  return wrap_tuple(ts);
}
inline PyObject* pack(const OptTensor& t) {
  return wrap(t ? *t : Tensor());
}
PyObject* pack(const OptTensors& ts);
inline PyObject* pack(bool x) {
  return PyBool_FromLong(x);
}
inline PyObject* pack(int64_t x) {
  return PyLong_FromLongLong(x);
}
inline PyObject* pack(double x) {
  return PyFloat_FromDouble(x);
}
inline PyObject* pack(const Scalar& x) {
  return wrap_scalar(x);
}
inline PyObject* pack(const Ints& xs) {
  return wrap_ints(xs);
}
inline PyObject* pack(DType d) {
  return wrap_dtype(d);
}
PyObject* pack(const std::string& s);
PyObject* tuple_of(std::initializer_list<PyObject*> items);  // steals

template <class... T>
PyObject* pack(std::tuple<T...>&& t) {
  return std::apply([](auto&... x) { return tuple_of({pack(std::move(x))...}); }, t);
}
template <int n, class... T>
PyObject* pack(ResultType& type, std::tuple<T...>&& t) {
  static_assert(n == sizeof...(T));
  return std::apply([&](auto&... x) { return type.make({pack(std::move(x))...}); }, t);
}
// The results that were asked for: one of them as it is, several as a tuple. Steals.
PyObject* asked_of(std::initializer_list<PyObject*> items, std::initializer_list<bool> asked);
template <class... T>
PyObject* pack_asked(std::initializer_list<bool> asked, std::tuple<T...>&& t) {
  return std::apply([&](auto&... x) { return asked_of({pack(std::move(x))...}, asked); }, t);
}
// A factory's result: `extras` is the first of the slots layout, pin_memory, requires_grad.
PyObject* pack_factory(Tensor&& t, const Args& a, int extras);

}  // namespace flambeau::python
