#include "python/tree.h"

#include "python/argparse.h"

namespace flambeau::python {

static Value leaf_of(PyObject* o) {
  if (o == Py_None) return {};
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_CheckExact(o) || PyFloat_Check(o) || PyComplex_Check(o)) return to_number(o);
  if (PyUnicode_Check(o)) return to_str(o);
  if (is_tensor(o)) return unwrap(o);
  if (is_dtype(o)) return to_dtype(o);
  if (is_device(o)) return to_device(o);
  if (Py_TYPE(o) == &LayoutType) return to_layout(o);
  if (Py_TYPE(o) == &MemoryFormatType) return to_memory_format(o);
  if (Py_TYPE(o) == &GeneratorType) return to_generator(o);
  if (PyIndex_Check(o)) return to_number(checked(PyNumber_Index(o)).get());
  fail(ErrorKind::Type, "a description of native code: expected plain data, got ",
       Py_TYPE(o)->tp_name);
}

runtime::Tree tree_of(PyObject* o) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return runtime::Tree(leaf_of(o));
  std::vector<runtime::Tree> items;
  items.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(o)));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    items.push_back(tree_of(PySequence_Fast_GET_ITEM(o, i)));
  return runtime::Tree(std::move(items));
}

}  // namespace flambeau::python
