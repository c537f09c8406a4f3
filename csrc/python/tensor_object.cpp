// Life of Tensor objects: allocation from a free list, identity, death and survival (Note [Who owns
// whom] in the header), cycles, and the assembly of the type from the method tables of module.h.
#include "python/tensor_object.h"

#include <structmember.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "autograd/meta.h"
#include "core/caching.h"
#include "python/hooks.h"
#include "python/module.h"

namespace flambeau::python {

PyTypeObject* TensorType = nullptr;
PyTypeObject* ParameterType = nullptr;
int (*traverse_node)(void*, visitproc, void*) = nullptr;

namespace {
constexpr int kKept = 128;
TensorObject* kept[kKept];  // freed objects of the exact type; guarded by the GIL
int kept_count = 0;

// What precedes a collectable object in memory. Bit 0 of `prev` says that its finaliser has run.
struct GcHead {
  uintptr_t next, prev;
};
void allow_finalizer_again(TensorObject* o) {
  (reinterpret_cast<GcHead*>(o) - 1)->prev &= ~uintptr_t{1};
}

TensorObject* object_of(PyObject* o) {
  return reinterpret_cast<TensorObject*>(o);
}
PyObject* as_python(TensorObject* o) {
  return reinterpret_cast<PyObject*>(o);
}

// The object gets an impl of its own with all that the dying one has. For objects that Python
// reached through a weak reference while the impl owned them.
TensorImpl* take_over(TensorImpl* dying) {
  TensorImpl* t = TensorImpl::make();
  t->dtype = dying->dtype;
  t->flags = static_cast<uint16_t>(dying->flags & ~kOwnsPython);
  t->sizes = dying->sizes;
  t->strides = dying->strides;
  t->numel = dying->numel;
  t->offset = dying->offset;
  t->storage = dying->storage;
  t->own_version = dying->own_version;
  t->autograd = std::exchange(dying->autograd, nullptr);
  return t;
}

void release_object(void* pyobj) noexcept {
  auto* o = static_cast<TensorObject*>(pyobj);
  const bool running = Py_IsInitialized();  // if not, the last collections may still look at it
  std::optional<GilHeld> gil;
  if (running) gil.emplace();
  if (Py_REFCNT(o) > 1) {
    o->impl = take_over(o->impl);
    o->impl->pyobj = o;
  } else {
    o->impl = nullptr;
  }
  if (running) Py_DECREF(as_python(o));
}

// Called when the last Python reference goes: keeps the object alive if C++ holds its impl and it
// carries state.
void tensor_finalize(PyObject* self) {
  TensorObject* o = object_of(self);
  TensorImpl* impl = o->impl;
  if (!impl || impl->use_count() == 1 || impl->flags & kOwnsPython) return;
  bool state =
      Py_TYPE(self) != TensorType || o->weakrefs || (o->dict && PyDict_GET_SIZE(o->dict) > 0);
  if (!state) return;
  Py_INCREF(self);
  impl->flags |= kOwnsPython;
  impl->release();
}

void tensor_dealloc(PyObject* self) {
  TensorObject* o = object_of(self);
  PyTypeObject* type = Py_TYPE(self);
  bool exact = type == TensorType;
  if (exact && (o->dict || o->weakrefs) && o->impl && o->impl->use_count() > 1) [[unlikely]]
    if (PyObject_CallFinalizerFromDealloc(self) < 0) return;
  PyObject_GC_UnTrack(self);
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  if (TensorImpl* impl = std::exchange(o->impl, nullptr)) {
    impl->pyobj = nullptr;
    impl->release();
  }
  if (kCaching && exact && kept_count < kKept) {
    allow_finalizer_again(o);
    kept[kept_count++] = o;
  } else {
    PyObject_GC_Del(self);
  }
  Py_DECREF(type);
}

// Hooks ask the gc to look through them when the tensor alone keeps them.
template <class Hook, class List>
int traverse_hooks(const List& list, visitproc visit, void* arg) {
  for (auto& [id, hook] : list)
    if (auto* h = hook.template target<Hook>(); h && h->callable.unique())
      Py_VISIT(h->callable.get());
  return 0;
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  TensorObject* o = object_of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(o->dict);
  TensorImpl* impl = o->impl;
  if (!impl || impl->use_count() != 1 || impl->flags & kOwnsPython || !impl->autograd) return 0;
  AutogradMeta& meta = *impl->autograd;
  if (meta.hooks) {
    if (int r = traverse_hooks<PyTensorHook>(meta.hooks->pre, visit, arg)) return r;
    if (int r = traverse_hooks<PyAccumulateHook>(meta.hooks->post_accumulate, visit, arg)) return r;
  }
  if (meta.grad.defined() && meta.grad->use_count() == 1 && meta.grad.has_flag(kOwnsPython))
    Py_VISIT(static_cast<PyObject*>(meta.grad->pyobj));
  if (meta.grad_fn && meta.grad_fn->use_count() == 1 && traverse_node)
    return traverse_node(meta.grad_fn.get(), visit, arg);
  return 0;
}

int tensor_clear(PyObject* self) {
  TensorObject* o = object_of(self);
  Py_CLEAR(o->dict);
  TensorImpl* impl = o->impl;
  if (impl && impl->use_count() == 1 && !(impl->flags & kOwnsPython) && impl->autograd) {
    impl->flags &= static_cast<uint16_t>(~(kRequiresGrad | kIsView));
    destroy_autograd_meta(std::exchange(impl->autograd, nullptr));
  }
  return 0;
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

template <class Def>
void append(std::vector<Def>& all, const Def* table) {
  for (; table->name; ++table) all.push_back(*table);
}
void append(std::vector<PyMethodDef>& all, const PyMethodDef* table) {
  for (; table->ml_name; ++table) all.push_back(*table);
}
}  // namespace

PyObject* wrap(Tensor&& t) noexcept {
  TensorImpl* impl = t.impl();
  if (!impl) Py_RETURN_NONE;
  if (auto* o = static_cast<TensorObject*>(impl->pyobj)) {
    if (impl->flags & kOwnsPython)
        [[unlikely]] {  // the impl's reference becomes the caller's, and ours the object's
      impl->flags &= static_cast<uint16_t>(~kOwnsPython);
      t.detach_handle();
      allow_finalizer_again(o);
      return as_python(o);
    }
    return Py_NewRef(as_python(o));
  }
  TensorObject* o;
  if (kept_count > 0) [[likely]] {
    o = kept[--kept_count];
    PyObject_Init(as_python(o), TensorType);
  } else {
    o = PyObject_GC_New(TensorObject, TensorType);
    if (!o) return nullptr;
  }
  o->impl = t.detach_handle();
  o->dict = o->weakrefs = nullptr;
  impl->pyobj = o;
  PyObject_GC_Track(as_python(o));
  return as_python(o);
}

PyObject* wrap_as(PyTypeObject* type, Tensor&& t) noexcept {
  if (type == TensorType || t->pyobj) return wrap(std::move(t));
  auto* o = object_of(type->tp_alloc(type, 0));
  if (!o) return nullptr;
  o->impl = t.detach_handle();
  o->impl->pyobj = o;
  return as_python(o);
}

PyObject* wrap_list(const Tensors& ts) {
  PyRef list = checked(PyList_New(static_cast<Py_ssize_t>(ts.size())));
  for (size_t i = 0; i < ts.size(); ++i)
    PyList_SET_ITEM(list.get(), i, checked(wrap(ts[i])).release());
  return list.release();
}

PyObject* wrap_tuple(const Tensors& ts) {
  PyRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(ts.size())));
  for (size_t i = 0; i < ts.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), i, checked(wrap(ts[i])).release());
  return tuple.release();
}

const Tensor& expect_tensor(PyObject* o, const char* op, const char* arg) {
  FB_CHECK_TYPE(is_tensor(o), op, "(): argument '", arg, "' must be Tensor, not ",
                Py_TYPE(o)->tp_name);
  return unwrap(o);
}

PyObject* only_argument(const char* op, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  FB_CHECK_TYPE(n + named == 1, op, "() takes one argument, input, but ", n + named, " were given");
  if (named) {
    PyObject* text = PyTuple_GET_ITEM(names, 0);
    const std::string name = PyUnicode_AsUTF8(text);
    FB_CHECK_TYPE(name == "input", op, "() got an unexpected keyword argument '", name, "'");
  }
  return args[0];
}

bool init_tensor_type(PyObject* module) {
  // Hand-written tables first: the first of two methods with one name wins. The type keeps pointers
  // into them.
  static std::vector<PyMethodDef> methods;
  static std::vector<PyGetSetDef> properties;
  for (auto* table : {tensor_methods, conversion_methods, factory_methods, inplace_view_methods,
                      number_methods, dlpack_methods, autograd_methods, generated_methods})
    append(methods, table);
  methods.push_back({nullptr, nullptr, 0, nullptr});
  for (auto* table : {tensor_properties, autograd_properties}) append(properties, table);
  properties.push_back({nullptr, nullptr, nullptr, nullptr, nullptr});

  std::vector<PyType_Slot> slots = {
      {Py_tp_doc, const_cast<char*>(
                      "A multi-dimensional array of one element type that autograd can follow.")},
      {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
      {Py_tp_finalize, reinterpret_cast<void*>(tensor_finalize)},
      {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
      {Py_tp_repr, reinterpret_cast<void*>(tensor_repr)},
      {Py_tp_new, reinterpret_cast<void*>(new_tensor_object)},
      {Py_tp_members, members},
      {Py_tp_methods, methods.data()},
      {Py_tp_getset, properties.data()},
  };
  for (auto* list : {number_slots, indexing_slots})
    for (; list->slot; ++list) slots.push_back(*list);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"flambeau.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  auto* type = PyType_FromSpec(&spec);
  if (!type) return false;
  TensorType = ParameterType = reinterpret_cast<PyTypeObject*>(type);
  TensorType->tp_name = "Tensor";  // as messages of Python itself show it
  release_python_object = release_object;
  return PyModule_AddObjectRef(module, "Tensor", type) == 0;
}

}  // namespace flambeau::python
