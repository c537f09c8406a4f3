// Process groups and work for Python: what flambeau/distributed/_group.py and _collectives.py call.
// Names, defaults and checks of arguments are theirs. Every call gives up the GIL while it waits.
#include "distributed/process_group.h"
#include "python/argparse.h"
#include "python/distributed.h"

namespace flambeau::python {

namespace {

using namespace distributed;

struct WorkObject {
  PyObject_HEAD std::shared_ptr<Work> value;
};
struct GroupObject {
  PyObject_HEAD std::shared_ptr<ProcessGroup> value;
};
PyTypeObject WorkType = static_type("flambeau._C._distributed.Work", sizeof(WorkObject),
                                    "A collective or message under way.");
PyTypeObject GroupType = static_type("flambeau._C._distributed.Group", sizeof(GroupObject),
                                     "The ranks of a group.");

Work& work_of(PyObject* self) {
  return *reinterpret_cast<WorkObject*>(self)->value;
}
ProcessGroup& group_of(PyObject* self) {
  return *reinterpret_cast<GroupObject*>(self)->value;
}

template <class Object, class T>
PyObject* wrap_shared(PyTypeObject& type, std::shared_ptr<T> value) {
  auto* o = PyObject_New(Object, &type);
  if (!o) throw PythonError();
  new (&o->value) std::shared_ptr<T>(std::move(value));
  return reinterpret_cast<PyObject*>(o);
}

// What is let go may wait for threads, or hold tensors: never under the GIL.
template <class Object>
void dealloc_shared(PyObject* self) {
  auto* o = reinterpret_cast<Object*>(self);
  {
    auto gone = std::move(o->value);
    GilFree free;
    gone.reset();
  }
  std::destroy_at(&o->value);
  PyObject_Free(self);
}

PyObject* wrap_work(std::shared_ptr<Work> work) {
  if (!work) return Py_NewRef(Py_None);
  return wrap_shared<WorkObject>(WorkType, std::move(work));
}

PyObject* work_done(PyObject* self, PyObject*) {
  return PyBool_FromLong(work_of(self).done());
}
PyObject* work_wait(PyObject* self, PyObject* timeout) {
  return guarded_fault([&] {
    std::optional<Milliseconds> most;
    if (timeout != Py_None) most = Milliseconds(to_int(timeout));
    {
      GilFree free;
      work_of(self).wait(most);
    }
    return Py_NewRef(Py_None);
  });
}
// The fault as an exception, or None.
PyObject* work_fault(PyObject* self, PyObject*) {
  return guarded_fault([&]() -> PyObject* {
    auto fault = work_of(self).fault();
    if (!fault) return Py_NewRef(Py_None);
    raise_fault(*fault);
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
  });
}
PyObject* work_then(PyObject* self, PyObject* callable) {
  return guarded_fault([&] {
    PyCallable held(callable);
    {
      GilFree free;
      work_of(self).then([held] {
        if (!Py_IsInitialized()) return;
        GilHeld gil;
        PyRef result = PyRef::steal(PyObject_CallNoArgs(held.get()));
        if (!result) PyErr_WriteUnraisable(held.get());
      });
    }
    return Py_NewRef(Py_None);
  });
}
PyObject* work_source(PyObject* self, PyObject*) {
  return PyLong_FromLong(work_of(self).source);
}

PyMethodDef work_methods[] = {
    {"done", work_done, METH_NOARGS, nullptr},
    {"wait", work_wait, METH_O, nullptr},
    {"fault", work_fault, METH_NOARGS, nullptr},
    {"then", work_then, METH_O, nullptr},
    {"source", work_source, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void check_size(int rank, int size) {
  FB_CHECK_VALUE(size >= 1 && size <= kMostRanks && rank >= 0 && rank < size,
                 "process group: expected at most ", kMostRanks, " ranks, got rank ", rank, " of ",
                 size);
}

// make_group(rank, size, name, address): rank 0 gives "" and makes the memory.
PyObject* make_group(PyObject*, PyObject* args) {
  int rank, size;
  const char *name, *address;
  if (!PyArg_ParseTuple(args, "iiss", &rank, &size, &name, &address)) return nullptr;
  return guarded_fault([&] {
    check_size(rank, size);
    auto region = *address ? std::make_unique<Region>(address, rank, size, name)
                           : std::make_unique<Region>(size, name);
    return wrap_shared<GroupObject>(GroupType,
                                    std::make_shared<ProcessGroup>(std::move(region)));
  });
}

// make_tcp_group(rank, size, name, host, secret): listens at this address of this machine.
PyObject* make_tcp_group(PyObject*, PyObject* args) {
  int rank, size;
  const char *name, *host, *secret;
  if (!PyArg_ParseTuple(args, "iisss", &rank, &size, &name, &host, &secret)) return nullptr;
  return guarded_fault([&] {
    check_size(rank, size);
    auto mesh = std::make_unique<Mesh>(rank, size, name, host, secret);
    return wrap_shared<GroupObject>(GroupType, std::make_shared<ProcessGroup>(std::move(mesh)));
  });
}

// Processes with the same text can share memory.
PyObject* machine_text(PyObject*, PyObject*) {
  return guarded_fault([&] { return PyUnicode_FromString(machine().c_str()); });
}

// begin(addresses, timeout)
PyObject* group_begin(PyObject* self, PyObject* args) {
  PyObject* list;
  long long milliseconds;
  if (!PyArg_ParseTuple(args, "O!L", &PyList_Type, &list, &milliseconds)) return nullptr;
  return guarded_fault([&] {
    Milliseconds time(milliseconds);
    std::vector<std::string> addresses;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      const char* text = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));
      if (!text) throw PythonError();
      addresses.push_back(text);
    }
    {
      GilFree free;
      group_of(self).begin(addresses, time);
    }
    return Py_NewRef(Py_None);
  });
}
PyObject* group_shutdown(PyObject* self, PyObject*) {
  return guarded_fault([&] {
    {
      GilFree free;
      group_of(self).shutdown();
    }
    return Py_NewRef(Py_None);
  });
}
PyObject* group_address(PyObject* self, void*) {
  return PyUnicode_FromString(group_of(self).address().c_str());
}

// collective(kind, out, in, op, root, timeout, asynchronous)
PyObject* group_collective(PyObject* self, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    if (n != 7) fail(ErrorKind::Type, "collective: expected 7 arguments, got ", n);
    auto kind = static_cast<Kind>(to_int(a[0]));
    Tensors out = to_tensors(a[1]), in = to_tensors(a[2]);
    auto op = static_cast<distributed::ReduceOp>(to_int(a[3]));
    int root = static_cast<int>(to_int(a[4]));
    Milliseconds timeout(to_int(a[5]));
    bool async = a[6] == Py_True;
    std::shared_ptr<Work> work;
    {
      GilFree free;
      work = group_of(self).collective(kind, out, in, op, root, timeout, async);
    }
    return wrap_work(std::move(work));
  });
}

// message(sends, tensor, peer, tag, timeout, asynchronous): work, or from whom it came
PyObject* group_message(PyObject* self, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&]() -> PyObject* {
    if (n != 6) fail(ErrorKind::Type, "message: expected 6 arguments, got ", n);
    bool sends = a[0] == Py_True, async = a[5] == Py_True;
    Tensor data = expect_tensor(a[1], sends ? "send" : "recv", "tensor");
    int peer = static_cast<int>(to_int(a[2])), tag = static_cast<int>(to_int(a[3])), source = -1;
    Milliseconds timeout(to_int(a[4]));
    std::shared_ptr<Work> work;
    {
      GilFree free;
      work = group_of(self).message(sends, data, peer, tag, timeout, async, &source);
    }
    return work ? wrap_work(std::move(work)) : PyLong_FromLong(source);
  });
}

PyMethodDef group_methods[] = {
    {"begin", group_begin, METH_VARARGS, nullptr},
    {"shutdown", group_shutdown, METH_NOARGS, nullptr},
    {"collective", fast(group_collective), METH_FASTCALL, nullptr},
    {"message", fast(group_message), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef group_properties[] = {
    {"address", group_address, nullptr, "By which other ranks find this one.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef functions[] = {
    {"make_group", make_group, METH_VARARGS, nullptr},
    {"make_tcp_group", make_tcp_group, METH_VARARGS, nullptr},
    {"machine", machine_text, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool init_distributed_group(PyObject* space) {
  WorkType.tp_dealloc = dealloc_shared<WorkObject>;
  WorkType.tp_methods = work_methods;
  GroupType.tp_dealloc = dealloc_shared<GroupObject>;
  GroupType.tp_methods = group_methods;
  GroupType.tp_getset = group_properties;
  if (PyType_Ready(&WorkType) < 0 || PyType_Ready(&GroupType) < 0) return false;
  return PyModule_AddFunctions(space, functions) == 0 &&
         PyModule_AddObjectRef(space, "Work", reinterpret_cast<PyObject*>(&WorkType)) == 0 &&
         PyModule_AddObjectRef(space, "Group", reinterpret_cast<PyObject*>(&GroupType)) == 0;
}

}  // namespace flambeau::python
