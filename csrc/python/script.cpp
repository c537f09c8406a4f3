// Scripts for Python: the text of a unit as the library reads it.
#include "python/argparse.h"
#include "python/module.h"
#include "script/text.h"

namespace flambeau::python {

namespace {

// _script_text(text): the unit of a text, checked, written again.
PyObject* script_text(PyObject*, PyObject* text) {
  return guarded([&] {
    const std::string given = to_str(text);
    script::Unit unit = script::read(given);
    script::check(unit);
    std::string made = script::write(unit);
    return PyUnicode_DecodeUTF8(made.data(), static_cast<Py_ssize_t>(made.size()), nullptr);
  });
}

}  // namespace

PyMethodDef script_functions[] = {
    {"_script_text", script_text, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace flambeau::python
