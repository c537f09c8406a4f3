// What flambeau._C is put together from: method tables that other files (hand-written or generated)
// fill. All tables end with an empty entry.
#pragma once

#include <string>

#include "python/pybase.h"

namespace flambeau::python {

// Generated (gen/bindings.cpp): one function per table entry and namespace, and the methods.
struct Namespace {
  const char* name;  // "" is the module itself
  PyMethodDef* functions;
};
std::string module_of(const char* space);  // what its functions are imported from
extern Namespace generated_namespaces[];   // ends with a null name
extern PyMethodDef generated_methods[];
struct Binding;
struct NamedBinding {
  const char* name;
  const Binding* function;  // one of the two
  const Binding* method;
};
extern NamedBinding
    generated_bindings[];  // how operators and indexing find the operations they stand for
const Binding* find_method(const char* name);  // null when the table has none

// Hand-written methods and properties of Tensor, one table per file.
extern PyMethodDef tensor_methods[];        // tensor_methods.cpp
extern PyMethodDef conversion_methods[];    // conversions.cpp: to, float, numpy, ...
extern PyMethodDef factory_methods[];       // factories.cpp: new_tensor, new
extern PyMethodDef inplace_view_methods[];  // inplace_views.cpp: t_, unsqueeze_, ...
extern PyMethodDef number_methods[];        // number.cpp: the older names of division
extern PyMethodDef dlpack_methods[];        // dlpack.cpp
extern PyGetSetDef tensor_properties[];     // tensor_properties.cpp
// Autograd's, in autograd.cpp: backward, register_hook, requires_grad_, detach, retain_grad, ...;
// grad, grad_fn, ...
extern PyMethodDef autograd_methods[];
extern PyGetSetDef autograd_properties[];
extern PyMethodDef
    autograd_functions[];  // of the module: is_grad_enabled, set_grad_enabled, run_backward, ...
bool init_autograd(PyObject* module);  // types Node, ...

// Functions of the module, one table per file.
extern PyMethodDef factory_functions[];  // factories.cpp: tensor, as_tensor, from_numpy, ...
extern PyMethodDef
    config_functions[];  // config.cpp: threads, default dtype, seeds, memory, autocast
void init_config();
extern PyMethodDef dlpack_functions[];
extern PyMethodDef file_functions[];  // files.cpp: zip archives, checksums, pickles
extern PyMethodDef script_functions[];  // script.cpp: units of scripts
bool init_script(PyObject* module);
bool init_func(PyObject* module);  // func.cpp: levels of vmap
bool init_storage(PyObject* module);

// Slots of Tensor, one list per file, each ended by {0, nullptr}.
extern PyType_Slot number_slots[];    // number.cpp: arithmetic, comparison, conversion to numbers
extern PyType_Slot indexing_slots[];  // indexing.cpp: x[...], x[...] = v, len, iter, in

}  // namespace flambeau::python
