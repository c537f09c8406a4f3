// Stores for Python: one type over every kind, made by a function per kind. Signatures, defaults
// and documentation are flambeau/distributed/_store.py's. Every call gives up the GIL.
#include "distributed/file_store.h"
#include "distributed/hmac.h"
#include "distributed/store.h"
#include "distributed/tcp_store.h"
#include "python/distributed.h"

namespace flambeau::python {

namespace {

using namespace distributed;

struct StoreObject {
  PyObject_HEAD std::shared_ptr<Store> value;
};
PyTypeObject StoreType = static_type("flambeau._C._distributed.Store", sizeof(StoreObject),
                                     "Keys and bytes that processes share.");

Store& store_of(PyObject* self) {
  return *reinterpret_cast<StoreObject*>(self)->value;
}

PyObject* wrap_store(std::shared_ptr<Store> s) {
  auto* o = PyObject_New(StoreObject, &StoreType);
  if (!o) throw PythonError();
  new (&o->value) std::shared_ptr<Store>(std::move(s));
  return reinterpret_cast<PyObject*>(o);
}

void store_dealloc(PyObject* self) {
  {
    // A server waits for its thread, a file for its lock.
    auto gone = std::move(reinterpret_cast<StoreObject*>(self)->value);
    GilFree free;
    gone.reset();
  }
  std::destroy_at(&reinterpret_cast<StoreObject*>(self)->value);
  PyObject_Free(self);
}

// Text or bytes.
std::string text_of(PyObject* o, const char* what) {
  if (PyUnicode_Check(o)) {
    Py_ssize_t n = 0;
    const char* p = PyUnicode_AsUTF8AndSize(o, &n);
    if (!p) throw PythonError();
    return {p, static_cast<size_t>(n)};
  }
  Py_buffer view;
  if (!PyObject_CheckBuffer(o))
    fail(ErrorKind::Type, "store: expected ", what, " to be str or bytes, got ",
         Py_TYPE(o)->tp_name);
  checked_int(PyObject_GetBuffer(o, &view, PyBUF_SIMPLE));
  std::string out(static_cast<const char*>(view.buf), static_cast<size_t>(view.len));
  PyBuffer_Release(&view);
  return out;
}

Strings texts_of(PyObject* o, const char* what) {
  if (PyUnicode_Check(o) || PyBytes_Check(o))
    fail(ErrorKind::Type, "store: expected a list of ", what, ", got ", Py_TYPE(o)->tp_name);
  PyRef list = checked(PySequence_Fast(o, "store: expected a list"));
  Strings out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i)
    out.push_back(text_of(PySequence_Fast_GET_ITEM(list.get(), i), what));
  return out;
}

PyObject* bytes(const std::string& s) {
  return PyBytes_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}

PyObject* bytes_list(const Strings& texts, bool as_text) {
  PyRef list = checked(PyList_New(0));
  for (auto& t : texts) {
    auto n = static_cast<Py_ssize_t>(t.size());
    PyRef item = checked(as_text ? PyUnicode_DecodeUTF8(t.data(), n, "surrogateescape") : bytes(t));
    checked_int(PyList_Append(list.get(), item.get()));
  }
  return list.release();
}

int64_t int_of(PyObject* o) {
  PyRef number = checked(PyNumber_Index(o));
  long long out = PyLong_AsLongLong(number.get());
  if (out == -1 && PyErr_Occurred()) throw PythonError();
  return out;
}

// Runs f without the GIL, and gives what it returns.
template <class F>
auto away(F f) {
  GilFree free;
  return f();
}

void expect(Py_ssize_t got, Py_ssize_t wanted) {
  if (got != wanted)
    fail(ErrorKind::Type, "store: expected ", wanted, " arguments, got ", got);
}

PyObject* set(PyObject* self, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    expect(n, 2);
    auto key = text_of(a[0], "key"), value = text_of(a[1], "value");
    away([&] { store_of(self).set(key, value); });
    return Py_NewRef(Py_None);
  });
}
PyObject* get(PyObject* self, PyObject* key) {
  return guarded_fault([&] {
    auto k = text_of(key, "key");
    return bytes(away([&] { return store_of(self).get(k); }));
  });
}
PyObject* add(PyObject* self, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    expect(n, 2);
    auto key = text_of(a[0], "key");
    int64_t amount = int_of(a[1]);
    return PyLong_FromLongLong(away([&] { return store_of(self).add(key, amount); }));
  });
}
PyObject* check(PyObject* self, PyObject* keys) {
  return guarded_fault([&] {
    auto k = texts_of(keys, "keys");
    return PyBool_FromLong(away([&] { return store_of(self).check(k); }));
  });
}
PyObject* wait(PyObject* self, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    expect(n, 2);
    auto keys = texts_of(a[0], "keys");
    Milliseconds timeout(int_of(a[1]));
    away([&] { store_of(self).wait(keys, timeout); });
    return Py_NewRef(Py_None);
  });
}
PyObject* compare_set(PyObject* self, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    expect(n, 3);
    auto key = text_of(a[0], "key"), expected = text_of(a[1], "expected_value"),
         desired = text_of(a[2], "desired_value");
    return bytes(away([&] { return store_of(self).compare_set(key, expected, desired); }));
  });
}
PyObject* delete_key(PyObject* self, PyObject* key) {
  return guarded_fault([&] {
    auto k = text_of(key, "key");
    return PyBool_FromLong(away([&] { return store_of(self).delete_key(k); }));
  });
}
PyObject* num_keys(PyObject* self, PyObject*) {
  return guarded_fault(
      [&] { return PyLong_FromLongLong(away([&] { return store_of(self).num_keys(); })); });
}
PyObject* list_keys(PyObject* self, PyObject*) {
  return guarded_fault(
      [&] { return bytes_list(away([&] { return store_of(self).list_keys(); }), true); });
}
PyObject* append(PyObject* self, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    expect(n, 2);
    auto key = text_of(a[0], "key"), value = text_of(a[1], "value");
    away([&] { store_of(self).append(key, value); });
    return Py_NewRef(Py_None);
  });
}
PyObject* multi_get(PyObject* self, PyObject* keys) {
  return guarded_fault([&] {
    auto k = texts_of(keys, "keys");
    return bytes_list(away([&] { return store_of(self).multi_get(k); }), false);
  });
}
PyObject* multi_set(PyObject* self, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    expect(n, 2);
    auto keys = texts_of(a[0], "keys"), values = texts_of(a[1], "values");
    if (keys.size() != values.size())
      throw Fault(FaultKind::Store, "multiSet keys and values vectors must be of same size");
    away([&] { store_of(self).multi_set(keys, values); });
    return Py_NewRef(Py_None);
  });
}
PyObject* queue_push(PyObject* self, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    expect(n, 2);
    auto key = text_of(a[0], "key"), value = text_of(a[1], "value");
    away([&] { store_of(self).queue_push(key, value); });
    return Py_NewRef(Py_None);
  });
}
PyObject* queue_pop(PyObject* self, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    expect(n, 2);
    auto key = text_of(a[0], "key");
    int block = PyObject_IsTrue(a[1]);
    checked_int(block);
    return bytes(away([&] { return store_of(self).queue_pop(key, block != 0); }));
  });
}
PyObject* queue_len(PyObject* self, PyObject* key) {
  return guarded_fault([&] {
    auto k = text_of(key, "key");
    return PyLong_FromLongLong(away([&] { return store_of(self).queue_len(k); }));
  });
}
PyObject* set_timeout(PyObject* self, PyObject* timeout) {
  return guarded_fault([&] {
    store_of(self).set_timeout(Milliseconds(int_of(timeout)));
    return Py_NewRef(Py_None);
  });
}
PyObject* get_timeout(PyObject* self, void*) {
  return PyLong_FromLongLong(store_of(self).timeout().count());
}
PyObject* get_port(PyObject* self, void*) {
  auto* tcp = dynamic_cast<TcpStore*>(&store_of(self));
  return tcp ? PyLong_FromLong(tcp->port()) : Py_NewRef(Py_None);
}
PyObject* get_has_server(PyObject* self, void*) {
  auto* tcp = dynamic_cast<TcpStore*>(&store_of(self));
  return PyBool_FromLong(tcp && tcp->has_server());
}
PyObject* clone(PyObject* self, PyObject*) {
  return guarded_fault([&]() -> PyObject* {
    auto* tcp = dynamic_cast<TcpStore*>(&store_of(self));
    if (!tcp) return wrap_store(reinterpret_cast<StoreObject*>(self)->value);
    std::shared_ptr<Store> copy = away([&] { return tcp->clone(); });
    return wrap_store(std::move(copy));
  });
}

PyMethodDef methods[] = {
    {"set", fast(set), METH_FASTCALL, nullptr},
    {"get", get, METH_O, nullptr},
    {"add", fast(add), METH_FASTCALL, nullptr},
    {"check", check, METH_O, nullptr},
    {"wait", fast(wait), METH_FASTCALL, nullptr},
    {"compare_set", fast(compare_set), METH_FASTCALL, nullptr},
    {"delete_key", delete_key, METH_O, nullptr},
    {"num_keys", num_keys, METH_NOARGS, nullptr},
    {"list_keys", list_keys, METH_NOARGS, nullptr},
    {"append", fast(append), METH_FASTCALL, nullptr},
    {"multi_get", multi_get, METH_O, nullptr},
    {"multi_set", fast(multi_set), METH_FASTCALL, nullptr},
    {"queue_push", fast(queue_push), METH_FASTCALL, nullptr},
    {"queue_pop", fast(queue_pop), METH_FASTCALL, nullptr},
    {"queue_len", queue_len, METH_O, nullptr},
    {"set_timeout", set_timeout, METH_O, nullptr},
    {"clone", clone, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"timeout", get_timeout, nullptr, "How long a wait may take, in milliseconds.", nullptr},
    {"port", get_port, nullptr, "Of the server; None where there is none.", nullptr},
    {"has_server", get_has_server, nullptr, "Whether this process serves the others.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyObject* hash_store(PyObject*, PyObject* timeout) {
  return guarded_fault(
      [&] { return wrap_store(std::make_shared<HashStore>(Milliseconds(int_of(timeout)))); });
}

PyObject* file_store(PyObject*, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    expect(n, 3);
    auto path = text_of(a[0], "file_name");
    int64_t size = int_of(a[1]);
    Milliseconds timeout(int_of(a[2]));
    auto made = away([&] { return std::make_shared<FileStore>(path, size, timeout); });
    return wrap_store(std::move(made));
  });
}

PyObject* tcp_store(PyObject*, PyObject* args) {
  PyObject *host, *secret;
  int port, master, wait_for_workers, multi_tenant, fd;
  long long size, timeout;
  if (!PyArg_ParseTuple(args, "OiLppLpiO", &host, &port, &size, &master, &wait_for_workers,
                        &timeout, &multi_tenant, &fd, &secret))
    return nullptr;
  return guarded_fault([&] {
    FB_CHECK_VALUE(port >= 0 && port < 65536, "TCPStore: expected a port of 0 to 65535, got ",
                   port);
    TcpStoreOptions o;
    o.host = text_of(host, "host_name");
    o.port = static_cast<uint16_t>(port);
    o.world_size = size;
    o.is_master = master, o.wait_for_workers = wait_for_workers, o.multi_tenant = multi_tenant;
    o.listen_fd = fd;
    o.timeout = Milliseconds(timeout);
    o.secret = text_of(secret, "secret");
    auto made = away([&] { return std::make_shared<TcpStore>(std::move(o)); });
    return wrap_store(std::move(made));
  });
}

PyObject* hmac(PyObject*, PyObject* const* a, Py_ssize_t n) {
  return guarded_fault([&] {
    expect(n, 2);
    Digest d = hmac_sha256(text_of(a[0], "key"), text_of(a[1], "data"));
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(d.data()), d.size());
  });
}

PyMethodDef functions[] = {
    {"hash_store", hash_store, METH_O, nullptr},
    {"file_store", fast(file_store), METH_FASTCALL, nullptr},
    {"tcp_store", tcp_store, METH_VARARGS, nullptr},
    {"hmac_sha256", fast(hmac), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool init_distributed_store(PyObject* space) {
  StoreType.tp_dealloc = store_dealloc;
  StoreType.tp_methods = methods;
  StoreType.tp_getset = properties;
  if (PyType_Ready(&StoreType) < 0) return false;
  return PyModule_AddFunctions(space, functions) == 0 &&
         PyModule_AddObjectRef(space, "Store", reinterpret_cast<PyObject*>(&StoreType)) == 0;
}

}  // namespace flambeau::python
