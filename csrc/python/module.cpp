// The module flambeau._C, put together from the tables of module.h.
#include "python/module.h"

#include <algorithm>
#include <cstring>

#include "core/warning.h"
#include "python/added_ops.h"
#include "python/argparse.h"
#include "python/compiled_function.h"
#include "python/custom_object.h"
#include "python/distributed.h"
#include "python/factories.h"
#include "python/frame_eval.h"
#include "python/guards.h"
#include "python/library.h"
#include "python/profiler.h"
#include "python/torch_function.h"
#include "python/trace_hook.h"
#include "python/types.h"
#include "python/user_warning.h"

namespace flambeau::python {

std::string module_of(const char* space) {
  if (std::strncmp(space, "_C.", 3) == 0) space += 3;
  std::string name = space;
  std::replace(name.begin(), name.end(), '.', '_');
  return name.empty() ? "flambeau._C" : "flambeau._C." + name;
}

bool init_c_api(PyObject* module);  // c_api.cpp

namespace {

// Functions of other namespaces than the top are in modules of their own, which can be imported
// (flambeau._C.nn_functional) and bear the name under which the package shows them.
bool add_generated(PyObject* module) {
  PyObject* imported = PyImport_GetModuleDict();
  for (Namespace* n = generated_namespaces; n->name; ++n) {
    if (!*n->name) {
      if (PyModule_AddFunctions(module, n->functions) < 0) return false;
      continue;
    }
    PyRef space = PyRef::steal(PyModule_New(concat("flambeau.", n->name).c_str()));
    if (!space || PyModule_AddFunctions(space.get(), n->functions) < 0) return false;
    if (PyDict_SetItemString(imported, module_of(n->name).c_str(), space.get()) < 0) return false;
    bool own = std::strncmp(n->name, "_C.", 3) == 0;
    if (own && PyModule_AddObjectRef(module, n->name + 3, space.get()) < 0) return false;
  }
  return true;
}

#ifdef _OPENMP
constexpr bool kOpenMP = true;
#else
constexpr bool kOpenMP = false;
#endif

bool add_all(PyObject* module) {
  show_warning = warn_user;
  // Generated functions first: hand-written ones of the same name replace them.
  if (!add_generated(module)) return false;
  for (auto* table : {factory_functions, config_functions, dlpack_functions, autograd_functions,
                      torch_function_functions, trace_functions, entry_functions, indexing_functions, file_functions,
                      script_functions, added_op_functions, custom_functions, profiler_functions})
    if (PyModule_AddFunctions(module, table) < 0) return false;
  if (!init_types(module) || !init_torch_function(module) || !init_storage(module)) return false;
  if (!init_tensor_type(module) || !init_autograd(module) || !init_func(module)) return false;
  if (!init_guards(module) || !init_frame_eval(module)) return false;
  if (!init_library(module) || !init_program(module) || !init_compiled_function(module))
    return false;
  if (!init_script(module) || !init_distributed(module) || !init_c_api(module)) return false;
  init_operators();
  init_config();
  PyRef generator = PyRef::steal(wrap_generator(default_generator()));
  PyRef priority =
      PyRef::steal(PyLong_FromLong(1000));  // NumPy leaves operators between both kinds to tensors
  return generator && priority &&
         PyModule_AddObjectRef(module, "_LinAlgError", linalg_error()) == 0 &&
         PyModule_AddObjectRef(module, "default_generator", generator.get()) == 0 &&
         PyModule_AddObjectRef(module, "has_lapack", Py_True) == 0 &&  // or routines of our own
         PyModule_AddObjectRef(module, "has_mkl", Py_False) == 0 &&
         PyModule_AddObjectRef(module, "has_openmp", kOpenMP ? Py_True : Py_False) == 0 &&
         PyObject_SetAttrString(reinterpret_cast<PyObject*>(TensorType), "__array_priority__",
                                priority.get()) == 0;
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "flambeau._C",
                          "The compiled core of flambeau.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace flambeau::python

PyMODINIT_FUNC PyInit__C() {
  using namespace flambeau::python;
  PyObject* module = PyModule_Create(&definition);
  if (!module) return nullptr;
  if (add_all(module)) return module;
  Py_DECREF(module);
  return nullptr;
}
