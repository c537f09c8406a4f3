// flambeau.Generator: random state as a Python object, one per GeneratorImpl.
#include "python/tensor_object.h"
#include "python/types.h"

namespace flambeau::python {

namespace {
GeneratorImpl& impl_of(PyObject* o) {
  return *reinterpret_cast<GeneratorObject*>(o)->value;
}

PyObject* generator_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device", nullptr};
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                   &device))
    return nullptr;
  try {
    Device d;
    if (device) {
      PyRef object =
          checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(&DeviceType_), device));
      d = reinterpret_cast<DeviceObject*>(object.get())->value;
    }
    FB_CHECK(d.type() == DeviceType::CPU, "Generator: expected device 'cpu', got '", d,
             "'; this build has no other device");
    auto g = Generator::adopt(new GeneratorImpl);
    g->manual_seed(67280421310721);  // PyTorch's default seed
    return wrap_generator(g);
  } catch (...) {
    return raise_current();
  }
}

void generator_dealloc(PyObject* self) {
  auto* o = reinterpret_cast<GeneratorObject*>(self);
  o->value->pyobj = nullptr;
  o->value.~Generator();
  PyObject_Free(self);
}

PyObject* generator_repr(PyObject* self) {
  return PyUnicode_FromFormat("<torch._C.Generator object at %p>", self);
}

PyObject* manual_seed(PyObject* self, PyObject* seed) {
  PyRef number = PyRef::steal(PyNumber_Index(seed));
  if (!number) {
    PyErr_Format(PyExc_TypeError, "manual_seed expected a long, but got %s",
                 Py_TYPE(seed)->tp_name);
    return nullptr;
  }
  unsigned long long value = PyLong_AsUnsignedLongLong(number.get());
  if (PyErr_Occurred()) {  // negative seeds count from the top
    PyErr_Clear();
    value = static_cast<unsigned long long>(PyLong_AsLongLong(number.get()));
    if (PyErr_Occurred()) {
      PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
      return nullptr;
    }
  }
  GeneratorImpl& g = impl_of(self);
  g.manual_seed(value);
  return Py_NewRef(self);
}

PyObject* seed(PyObject* self, PyObject*) {
  try {
    GeneratorImpl& g = impl_of(self);
    return PyLong_FromUnsignedLongLong(g.seed_from_system());
  } catch (...) {
    return raise_current();
  }
}
PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(impl_of(self).engine.seed);
}
PyObject* get_state(PyObject* self, PyObject*) {
  try {
    return wrap(impl_of(self).get_state());
  } catch (...) {
    return raise_current();
  }
}
PyObject* set_state(PyObject* self, PyObject* state) {
  try {
    const Tensor& t = expect_tensor(state, "set_state", "new_state");
    impl_of(self).set_state(t);
    return Py_NewRef(self);
  } catch (...) {
    return raise_current();
  }
}
PyObject* clone_state(PyObject* self, PyObject*) {
  try {
    auto copy = Generator::adopt(new GeneratorImpl);
    copy->set_state(impl_of(self).get_state());
    return wrap_generator(copy);
  } catch (...) {
    return raise_current();
  }
}
PyObject* generator_reduce(PyObject* self, PyObject*) {
  PyRef state = PyRef::steal(get_state(self, nullptr));
  return state ? Py_BuildValue("(O()O)", &GeneratorType, state.get()) : nullptr;
}
PyObject* generator_device(PyObject* self, void*) {
  return wrap_device(impl_of(self).device);
}

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O,
     "Starts the stream of numbers that belongs to `seed`; returns the generator."},
    {"seed", seed, METH_NOARGS, "Seeds from the system's entropy and returns the seed."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed that the stream started from."},
    {"get_state", get_state, METH_NOARGS, "The state as a tensor of bytes."},
    {"set_state", set_state, METH_O, "Continues from a state that get_state() gave."},
    {"clone_state", clone_state, METH_NOARGS,
     "A new generator that continues from the same state."},
    {"graphsafe_get_state", clone_state, METH_NOARGS,
     "A new generator that continues from the same state."},
    {"__reduce__", generator_reduce, METH_NOARGS, nullptr},
    {"__setstate__", set_state, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"device", generator_device, nullptr, "Where the generator draws.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
}  // namespace

PyTypeObject GeneratorType = static_type("flambeau.Generator", sizeof(GeneratorObject),
                                         "Random state of its own: Generator(device='cpu').");

PyObject* wrap_generator(const Generator& g) noexcept {
  if (g->pyobj) return Py_NewRef(static_cast<PyObject*>(g->pyobj));
  auto* o = PyObject_New(GeneratorObject, &GeneratorType);
  if (!o) return nullptr;
  new (&o->value) Generator(g);
  g->pyobj = o;
  return reinterpret_cast<PyObject*>(o);
}

bool init_generator(PyObject* module) {
  GeneratorType.tp_new = generator_new;
  GeneratorType.tp_dealloc = generator_dealloc;
  GeneratorType.tp_repr = generator_repr;
  GeneratorType.tp_methods = methods;
  GeneratorType.tp_getset = properties;
  if (PyType_Ready(&GeneratorType) < 0) return false;
  return PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(&GeneratorType)) ==
         0;
}

}  // namespace flambeau::python
