// State of the process and of the thread as Python sees it: default dtype, threads, memory, seeds,
// autocast; and questions about dtypes and objects that are no operations.
#include <cstring>
#include <iterator>

#include "core/allocator.h"
#include "core/caching.h"
#include "core/parallel.h"
#include "core/thread_budget.h"
#include "core/promotion.h"
#include "dispatch/autocast.h"
#include "kernels/isa.h"
#include "kernels/providers/lapack_library.h"
#include "kernels/providers/onednn.h"
#include "python/argparse.h"
#include "python/factories.h"
#include "python/module.h"
#include "python/thunks.h"

namespace flambeau::python {

namespace {
// f() as a Python function: exceptions of C++ become Python's.
PyObject* none() {
  return Py_NewRef(Py_None);
}

PyObject* get_default_device(PyObject*, PyObject*) {
  return wrap_device(modes.device);
}
PyObject* py_set_default_device(PyObject*, PyObject* o) {
  return guarded([&] {
    modes.device = o == Py_None ? Device{} : to_usable_device(o);
    return none();
  });
}

// All implementations of attention, preferred first; ~n stands for an n that is not allowed.
PyObject* attention_backends(PyObject*, PyObject*) {
  return guarded([&] {
    const auto& places = modes.attention.places;
    PyRef out = checked(PyTuple_New(std::ssize(places)));
    for (int n = 0; n < static_cast<int>(places.size()); ++n) {
      int place = places[static_cast<size_t>(n)];
      bool allowed = place >= 0;
      PyTuple_SET_ITEM(out.get(), allowed ? place : ~place,
                       checked(PyLong_FromLong(allowed ? n : ~n)).release());
    }
    return out.release();
  });
}
PyObject* set_attention_backends(PyObject*, PyObject* o) {
  return guarded([&] {
    AttentionBackends wanted;
    const auto size = static_cast<int8_t>(wanted.places.size());
    FB_CHECK_TYPE(PyTuple_Check(o) && PyTuple_GET_SIZE(o) == size,
                  "_set_attention_backends: expected a tuple of ", int{size}, " numbers");
    wanted.places.fill(size);
    for (int8_t place = 0; place < size; ++place) {
      int64_t given = to_int(PyTuple_GET_ITEM(o, place));
      int64_t n = given >= 0 ? given : ~given;
      FB_CHECK(n < size && wanted.place(n) == size,
               "_set_attention_backends: expected each number once, got ", n);
      wanted.places[static_cast<size_t>(n)] = given >= 0 ? place : static_cast<int8_t>(~place);
    }
    modes.attention = wanted;
    return none();
  });
}

DType dtype_argument(PyObject* o, const char* op) {
  if (is_dtype(o)) return to_dtype(o);
  fail(ErrorKind::Type, op, "(): argument 'dtype' must be torch.dtype, not ", Py_TYPE(o)->tp_name);
}
int positive(PyObject* o, const char* op) {
  FB_CHECK_TYPE(PyLong_Check(o) && !PyBool_Check(o), op, " expects an int, but got ",
                Py_TYPE(o)->tp_name);
  int64_t n = to_int(o);
  FB_CHECK(n > 0 && n < 1 << 16, op, " expects a positive integer");
  return static_cast<int>(n);
}

// Default dtype, threads, memory
// --------------------------------------------------------------------------------------

PyObject* get_default_dtype(PyObject*, PyObject*) {
  return wrap_dtype(default_dtype());
}
PyObject* py_set_default_dtype(PyObject*, PyObject* o) {
  return guarded([&] {
    FB_CHECK_TYPE(
        is_dtype(o),
        "invalid dtype object: only floating-point types are supported as the default type");
    FB_CHECK_TYPE(is_floating_point(to_dtype(o)),
                  "only floating-point types are supported as the default type");
    set_default_dtype(to_dtype(o));
    return none();
  });
}
PyObject* get_num_threads(PyObject*, PyObject*) {
  return PyLong_FromLong(num_threads());
}
PyObject* py_set_num_threads(PyObject*, PyObject* o) {
  return guarded([&] { return set_num_threads(positive(o, "set_num_threads")), none(); });
}
PyObject* get_num_interop_threads(PyObject*, PyObject*) {
  return PyLong_FromLong(num_interop_threads());
}
PyObject* set_num_interop_threads(PyObject*, PyObject* o) {
  return guarded([&] {
    flambeau::set_num_interop_threads(static_cast<int>(positive(o, "set_num_interop_threads")));
    return none();
  });
}
PyObject* py_memory_stats(PyObject*, PyObject*) {
  MemoryStats s = memory_stats();
  return Py_BuildValue("{sKsKsKsKsKsK}", "live_bytes", s.live_bytes, "cached_bytes", s.cached_bytes,
                       "peak_bytes", s.peak_bytes, "allocations", s.allocations, "cache_hits",
                       s.cache_hits, "trims", s.trims);
}
PyObject* reset_peak(PyObject*, PyObject*) {
  return reset_peak_memory_stats(), none();
}
PyObject* log_api_usage_once(PyObject*, PyObject*) {
  return none();
}
PyObject* set_fills_new_memory(PyObject*, PyObject* o) {
  return guarded([&] { return asked.fills_new_memory = o == Py_True, none(); });
}
PyObject* py_empty_cache(PyObject*, PyObject*) {
  return empty_cache(), none();
}
PyObject* build_info(PyObject*, PyObject*) {
#ifdef _OPENMP
  const bool openmp = true;
#else
  const bool openmp = false;
#endif
  const bool onednn = kernels::onednn().convolution != nullptr;
  auto truth = [](bool x) { return x ? Py_True : Py_False; };
  return Py_BuildValue("{sOsOsOss}", "onednn", truth(onednn), "openmp", truth(openmp),
                       "memory_cache", truth(kCaching), "isa", kernels::isa_name());
}

// See Note [Where LAPACK is found].
std::string find_openblas() {
  GilHeld gil;
  PyRef module = PyRef::steal(import_module("flambeau._openblas"));
  PyRef path = module ? PyRef::steal(PyObject_CallMethod(module.get(), "path", nullptr)) : PyRef();
  const char* text = path ? PyUnicode_AsUTF8(path.get()) : nullptr;
  if (text) return text;
  PyErr_WriteUnraisable(module.get());
  return "";
}
PyObject* lapack_library(PyObject*, PyObject*) {
  return guarded([&] {
    const kernels::lapack::Library& found = kernels::lapack::library();
    return found.handle ? PyUnicode_DecodeFSDefault(found.path.c_str()) : none();
  });
}

// Seeds
// ---------------------------------------------------------------------------------------------------------------

PyObject* py_default_generator() {
  return wrap_generator(default_generator());
}
PyObject* manual_seed(PyObject*, PyObject* seed) {
  PyRef number = PyRef::steal(PyNumber_Long(seed));
  PyRef generator = number ? PyRef::steal(py_default_generator()) : PyRef();
  return generator ? PyObject_CallMethod(generator.get(), "manual_seed", "O", number.get())
                   : nullptr;
}
PyObject* on_default_generator(const char* method) {
  PyRef generator = PyRef::steal(py_default_generator());
  return generator ? PyObject_CallMethod(generator.get(), method, nullptr) : nullptr;
}
PyObject* seed(PyObject*, PyObject*) {
  return on_default_generator("seed");
}
PyObject* initial_seed(PyObject*, PyObject*) {
  return on_default_generator("initial_seed");
}
PyObject* get_rng_state(PyObject*, PyObject*) {
  return on_default_generator("get_state");
}
PyObject* set_rng_state(PyObject*, PyObject* state) {
  PyRef generator = PyRef::steal(py_default_generator());
  PyRef done = generator
                   ? PyRef::steal(PyObject_CallMethod(generator.get(), "set_state", "O", state))
                   : PyRef();
  return done ? none() : nullptr;
}

// Autocast state of the thread
// ----------------------------------------------------------------------------------------

bool is_cpu(PyObject* device_type) {
  return PyUnicode_Check(device_type) && PyUnicode_CompareWithASCIIString(device_type, "cpu") == 0;
}
PyObject* is_autocast_enabled(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return PyBool_FromLong(n > 0 && is_cpu(args[0]) && autocast_enabled());
}
PyObject* is_autocast_cpu_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(autocast_enabled());
}
PyObject* py_set_autocast_enabled(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2 && PyUnicode_Check(args[0]),
                  "set_autocast_enabled() expects a device type and a bool");
    if (is_cpu(args[0])) set_autocast_enabled(to_bool(args[1]));
    return none();
  });
}
// Without devices other than the CPU, theirs is what they start with.
PyObject* get_autocast_dtype(PyObject*, PyObject* device_type) {
  return wrap_dtype(is_cpu(device_type) ? modes.autocast_dtype : DType::Float16);
}
PyObject* get_autocast_cpu_dtype(PyObject*, PyObject*) {
  return wrap_dtype(modes.autocast_dtype);
}
PyObject* set_autocast_dtype(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2 && PyUnicode_Check(args[0]),
                  "set_autocast_dtype() expects a device type and a dtype");
    if (to_str(args[0]) == "cpu")
      modes.autocast_dtype = dtype_argument(args[1], "set_autocast_dtype");
    return none();
  });
}
PyObject* is_autocast_cache_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(modes.autocast_cache);
}
PyObject* set_autocast_cache_enabled(PyObject*, PyObject* on) {
  return guarded([&] { return modes.autocast_cache = to_bool(on), none(); });
}
PyObject* autocast_increment_nesting(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLong(++modes.autocast_depth);
}
PyObject* autocast_decrement_nesting(PyObject*, PyObject*) {
  return guarded([&] {
    FB_CHECK(modes.autocast_depth > 0, "autocast_decrement_nesting: no autocast context is open");
    return PyLong_FromUnsignedLong(--modes.autocast_depth);
  });
}
PyObject* py_clear_autocast_cache(PyObject*, PyObject*) {
  return clear_autocast_cache(), none();
}

// Questions
// -----------------------------------------------------------------------------------------------------------

Param two_dtypes[] = {{"type1", Arg::DType}, {"type2", Arg::DType}};
PyObject* call_promote(const Args& a) {
  return wrap_dtype(promote(to_dtype(a[0]), to_dtype(a[1])));
}
Signature promote_signatures[] = {
    {two_dtypes, 2, 2, "(torch.dtype type1, torch.dtype type2)", call_promote}};
const Binding promote_binding = {"promote_types", "", promote_signatures, 1, false};
PyObject* promote_types(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call_binding(promote_binding, nullptr, args, n, names);
}

Param cast_params[] = {{"from_", Arg::DType}, {"to", Arg::DType}};
PyObject* call_can_cast(const Args& a) {
  return PyBool_FromLong(can_cast(to_dtype(a[0]), to_dtype(a[1])));
}
Signature cast_signatures[] = {
    {cast_params, 2, 2, "(torch.dtype from_, torch.dtype to)", call_can_cast}};
const Binding cast_binding = {"can_cast", "", cast_signatures, 1, false};
PyObject* py_can_cast(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call_binding(cast_binding, nullptr, args, n, names);
}

Param result_params[] = {{"tensor", Arg::TensorOrNumber}, {"other", Arg::TensorOrNumber}};
PyObject* call_result_type(const Args& a) {
  TensorArg x(a[0]), y(a[1]);
  return wrap_dtype(result_type(*x, *y));
}
Signature result_signatures[] = {
    {result_params, 2, 2, "(Tensor tensor, Tensor other)", call_result_type}};
const Binding result_binding = {"result_type", "", result_signatures, 1, false};
PyObject* py_result_type(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call_binding(result_binding, nullptr, args, n, names);
}

PyObject* py_is_tensor(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o));
}
template <bool (Tensor::*question)() const noexcept>
PyObject* ask(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    PyObject* o = only_argument("is_floating_point", args, n, names);
    return PyBool_FromLong((expect_tensor(o, "is_floating_point", "input").*question)());
  });
}
PyObject* numel(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    PyObject* o = only_argument("numel", args, n, names);
    return PyLong_FromLongLong(expect_tensor(o, "numel", "input").numel());
  });
}
PyObject* is_nonzero(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    PyObject* o = only_argument("is_nonzero", args, n, names);
    FB_CHECK(expect_tensor(o, "is_nonzero", "input").numel() == 1, "Boolean value of Tensor with ",
             unwrap(o).numel() ? "more than one value" : "no values", " is ambiguous");
    int truth = PyObject_IsTrue(o);
    return truth < 0 ? nullptr : PyBool_FromLong(truth);
  });
}

// What Python does not let set: the module of a type that is not made at run time.
PyObject* set_module_of_type(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2 && PyType_Check(args[0]),
                  "_set_module_of_type: expected a type and a str");
    auto* type = reinterpret_cast<PyTypeObject*>(args[0]);
    FB_CHECK_TYPE(!(type->tp_flags & Py_TPFLAGS_HEAPTYPE), "_set_module_of_type: ", type->tp_name,
                  " was made at run time; set its __module__");
    const char* dot = std::strrchr(type->tp_name, '.');
    auto* name = new std::string(concat(to_str(args[1]), ".", dot ? dot + 1 : type->tp_name));
    type->tp_name = name->c_str();  // lives as long as the type, to the end of the process
    PyType_Modified(type);
    return none();
  });
}

// nn.Parameter tells of itself, so that its instances take the fast paths of plain tensors.
PyObject* set_parameter_type(PyObject*, PyObject* type) {
  return guarded([&] {
    FB_CHECK_TYPE(
        PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), TensorType),
        "_set_parameter_type: expected a subclass of Tensor");
    ParameterType = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
    return none();
  });
}

}  // namespace

void init_config() {
  kernels::lapack::set_finder(find_openblas);
}

PyMethodDef config_functions[] = {
    {"get_default_dtype", get_default_dtype, METH_NOARGS, "The dtype of floats without one."},
    {"set_default_dtype", py_set_default_dtype, METH_O, "Sets the dtype of floats without one."},
    {"get_default_device", get_default_device, METH_NOARGS,
     "The device on which factories put tensors, in this thread."},
    {"set_default_device", py_set_default_device, METH_O,
     "Sets the device of factories that are not told one, in this thread; None: the CPU."},
    {"_attention_backends", attention_backends, METH_NOARGS,
     "The implementations of attention, preferred first; ~n: this thread does not allow n."},
    {"_set_attention_backends", set_attention_backends, METH_O,
     "Sets what _attention_backends gives, in this thread."},
    {"get_num_threads", get_num_threads, METH_NOARGS, "Threads that one operation may use."},
    {"set_num_threads", py_set_num_threads, METH_O, "Sets how many threads one operation may use."},
    {"get_num_interop_threads", get_num_interop_threads, METH_NOARGS,
     "Threads for independent operations."},
    {"set_num_interop_threads", set_num_interop_threads, METH_O,
     "Sets the threads for independent operations."},
    {"memory_stats", py_memory_stats, METH_NOARGS,
     "Figures of the CPU allocator, in bytes and calls."},
    {"reset_peak_memory_stats", reset_peak, METH_NOARGS,
     "Starts peak_bytes anew from what is live."},
    {"empty_cache", py_empty_cache, METH_NOARGS, "Gives cached memory back to the system."},
    {"_log_api_usage_once", log_api_usage_once, METH_O, "Nothing: usage is not recorded."},
    {"_set_fills_new_memory", set_fills_new_memory, METH_O,
     "Whether memory that would be unset holds known values."},
    {"_build_info", build_info, METH_NOARGS,
     "Which optional libraries this build has, and finds now; whether freed memory is kept; which "
     "instruction set is in use."},
    {"_lapack_library", lapack_library, METH_NOARGS,
     "The file that LAPACK's routines come from, looked for now; None where plain ones are used."},
    {"manual_seed", manual_seed, METH_O, "Seeds the default generator and returns it."},
    {"seed", seed, METH_NOARGS,
     "Seeds the default generator from the system and returns the seed."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed of the default generator."},
    {"get_rng_state", get_rng_state, METH_NOARGS,
     "State of the default generator as a tensor of bytes."},
    {"set_rng_state", set_rng_state, METH_O, "Continues the default generator from a state."},
    {"is_autocast_enabled", fast(is_autocast_enabled), METH_FASTCALL,
     "Is autocast on for a device type?"},
    {"is_autocast_cpu_enabled", is_autocast_cpu_enabled, METH_NOARGS,
     "Is autocast on for the CPU?"},
    {"set_autocast_enabled", fast(py_set_autocast_enabled), METH_FASTCALL,
     "Turns autocast on or off for a device type."},
    {"get_autocast_dtype", get_autocast_dtype, METH_O, "The dtype to which autocast lowers."},
    {"get_autocast_cpu_dtype", get_autocast_cpu_dtype, METH_NOARGS,
     "The dtype to which autocast lowers."},
    {"set_autocast_dtype", fast(set_autocast_dtype), METH_FASTCALL,
     "Sets the dtype to which autocast lowers."},
    {"is_autocast_cache_enabled", is_autocast_cache_enabled, METH_NOARGS,
     "Are lowered weights kept?"},
    {"set_autocast_cache_enabled", set_autocast_cache_enabled, METH_O,
     "Sets whether lowered weights are kept."},
    {"autocast_increment_nesting", autocast_increment_nesting, METH_NOARGS,
     "Enters an autocast context; the depth after."},
    {"autocast_decrement_nesting", autocast_decrement_nesting, METH_NOARGS,
     "Leaves an autocast context; the depth after."},
    {"clear_autocast_cache", py_clear_autocast_cache, METH_NOARGS, "Forgets lowered weights."},
    {"promote_types", fast(promote_types), kFast, "The smallest dtype to which both can go."},
    {"can_cast", fast(py_can_cast), kFast,
     "Does the conversion keep the class (bool, int, float, complex)?"},
    {"result_type", fast(py_result_type), kFast, "The dtype of arithmetic on both."},
    {"is_tensor", py_is_tensor, METH_O, "Is the object a tensor?"},
    {"is_floating_point", fast(ask<&Tensor::is_floating_point>), kFast,
     "Are the elements real floating-point numbers?"},
    {"is_complex", fast(ask<&Tensor::is_complex>), kFast, "Are the elements complex?"},
    {"is_signed", fast(ask<&Tensor::is_signed>), kFast, "Can the elements be negative?"},
    {"numel", fast(numel), kFast, "Number of elements."},
    {"is_nonzero", fast(is_nonzero), kFast, "Is the only element not zero?"},
    {"_set_parameter_type", set_parameter_type, METH_O, "Registers nn.Parameter."},
    {"_set_module_of_type", fast(set_module_of_type), METH_FASTCALL,
     "Says that a type of the core is of another module."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
