// Files for Python: directories of zip archives, ranges with their checksums, and the pickle
// machine with Python's values. A builder in Python decides what a pickle names and calls.
#include <algorithm>

#include "files/crc32.h"
#include "files/pickle.h"
#include "files/safetensors.h"
#include "files/source.h"
#include "files/zip.h"
#include "files/zip_writer.h"
#include "python/argparse.h"
#include "python/module.h"
#include "python/tensor_object.h"

namespace flambeau::python {

namespace {

// The bytes of an object, held for as long as this lives.
class Buffer {
 public:
  Buffer(PyObject* o, int flags) {
    if (PyObject_GetBuffer(o, &view_, flags) < 0) throw PythonError();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  char* data() const { return static_cast<char*>(view_.buf); }
  size_t size() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_;
};

// Runs f without the GIL.
template <class F>
auto unlocked(F f) {
  struct Release {
    PyThreadState* state = PyEval_SaveThread();
    ~Release() { PyEval_RestoreThread(state); }
  } release;
  return f();
}

// -- archives

// Calls f with the bytes of a descriptor or a buffer.
template <class F>
auto with_whole(PyObject* from, F f) {
  if (PyLong_Check(from)) {
    const int descriptor = static_cast<int>(PyLong_AsLong(from));
    if (PyErr_Occurred()) throw PythonError();
    files::FileSource source(descriptor);
    return unlocked([&] { return f(source); });
  }
  Buffer buffer(from, PyBUF_SIMPLE);
  files::MemorySource source(buffer.data(), buffer.size());
  return unlocked([&] { return f(source); });
}

// A range of a source, as a source.
class PartSource final : public files::Source {
 public:
  PartSource(const files::Source& whole, uint64_t start, uint64_t size)
      : whole_(whole), start_(start), size_(size) {}
  uint64_t size() const override { return size_; }
  size_t read(uint64_t at, void* to, size_t count) const override {
    if (at >= size_) return 0;
    const uint64_t left = size_ - at;
    return whole_.read(start_ + at, to, left < count ? static_cast<size_t>(left) : count);
  }

 private:
  const files::Source& whole_;
  uint64_t start_, size_;
};

// Calls f with the bytes behind an argument: the number of a descriptor, a buffer, or
// (one of these, start, size).
template <class F>
auto with_source(PyObject* from, F f) {
  if (PyTuple_Check(from)) {
    PyObject* whole;
    unsigned long long start, size;
    if (!PyArg_ParseTuple(from, "OKK", &whole, &start, &size)) throw PythonError();
    FB_CHECK_TYPE(!PyTuple_Check(whole), "expected a range of a descriptor or a buffer");
    return with_whole(whole, [&](const files::Source& s) { return f(PartSource(s, start, size)); });
  }
  return with_whole(from, f);
}

PyRef name_of(const files::Entry& e) {
  const auto n = static_cast<Py_ssize_t>(e.name.size());
  return checked(e.utf8 ? PyUnicode_DecodeUTF8(e.name.data(), n, "strict")
                        : PyUnicode_Decode(e.name.data(), n, "cp437", "strict"));
}

// _zip_directory(from): {name: (start, size, crc)}
PyObject* zip_directory(PyObject*, PyObject* from) {
  return guarded([&]() -> PyObject* {
    const auto entries =
        with_source(from, [](const files::Source& s) { return files::read_directory(s); });
    PyRef out = checked(PyDict_New());
    for (const files::Entry& e : entries) {
      PyRef place = checked(Py_BuildValue("KKk", static_cast<unsigned long long>(e.start),
                                          static_cast<unsigned long long>(e.size),
                                          static_cast<unsigned long>(e.crc)));
      PyRef name = name_of(e);
      if (PyDict_SetItem(out.get(), name.get(), place.get()) < 0) throw PythonError();
    }
    return out.release();
  });
}

// _read_range(from, start, buffer): fills the buffer and gives the checksum
PyObject* read_range(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    FB_CHECK_TYPE(n == 3, "_read_range: expected 3 arguments, got ", n);
    const unsigned long long start = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred()) throw PythonError();
    Buffer to(args[2], PyBUF_WRITABLE);
    const uint32_t crc = with_source(args[0], [&](const files::Source& s) {
      return files::read_checked(s, start, to.data(), to.size());
    });
    return PyLong_FromUnsignedLong(crc);
  });
}

// _crc32(data, crc)
PyObject* crc32(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    FB_CHECK_TYPE(n == 2, "_crc32: expected 2 arguments, got ", n);
    Buffer data(args[0], PyBUF_SIMPLE);
    const auto crc = static_cast<uint32_t>(PyLong_AsUnsignedLongMask(args[1]));
    return PyLong_FromUnsignedLong(
        unlocked([&] { return files::crc32(crc, data.data(), data.size()); }));
  });
}

// _begin_writing(descriptor, start, size)
PyObject* begin_writing(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    FB_CHECK_TYPE(n == 3, "_begin_writing: expected 3 arguments, got ", n);
    const long descriptor = PyLong_AsLong(args[0]);
    const unsigned long long start = PyLong_AsUnsignedLongLong(args[1]);
    const unsigned long long size = PyLong_AsUnsignedLongLong(args[2]);
    if (PyErr_Occurred()) throw PythonError();
    unlocked([&] { files::begin_writing(static_cast<int>(descriptor), start, size); });
    Py_RETURN_NONE;
  });
}

// -- safetensors

PyRef text_of(const std::string& s) {
  return checked(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "strict"));
}

// _safetensors_header(header, size): [(name, dtype, shape, start, stop)], metadata or None
PyObject* safetensors_header(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    FB_CHECK_TYPE(n == 2, "_safetensors_header: expected 2 arguments, got ", n);
    Buffer text(args[0], PyBUF_SIMPLE);
    const unsigned long long size = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred()) throw PythonError();
    const auto header = files::read_safetensors_header({text.data(), text.size()}, size);
    PyRef tensors = checked(PyList_New(0));
    for (const files::SafeTensor& t : header.tensors) {
      PyRef shape = checked(PyTuple_New(static_cast<Py_ssize_t>(t.shape.size())));
      for (size_t d = 0; d < t.shape.size(); ++d)
        PyTuple_SET_ITEM(shape.get(), static_cast<Py_ssize_t>(d),
                         checked(PyLong_FromLongLong(t.shape[d])).release());
      PyRef name = text_of(t.name);
      PyRef entry =
          checked(Py_BuildValue("OsOLL", name.get(), t.dtype.c_str(), shape.get(),
                                static_cast<long long>(t.start), static_cast<long long>(t.stop)));
      if (PyList_Append(tensors.get(), entry.get()) < 0) throw PythonError();
    }
    PyRef metadata = PyRef::borrow(Py_None);
    if (header.metadata) {
      metadata = checked(PyDict_New());
      for (const auto& [name, value] : *header.metadata)
        if (PyDict_SetItem(metadata.get(), text_of(name).get(), text_of(value).get()) < 0)
          throw PythonError();
    }
    return Py_BuildValue("OO", tensors.get(), metadata.get());
  });
}

// -- tensors inside of a file's bytes

constexpr size_t kMostDims = 64;

Ints counts(PyObject* given, const char* what) {
  const bool list = PyList_CheckExact(given) || PyTuple_CheckExact(given);
  FB_CHECK_VALUE(list && static_cast<size_t>(PySequence_Fast_GET_SIZE(given)) <= kMostDims,
                 "load: a tensor's ", what, " should be a list of at most ", kMostDims, " numbers");
  Ints out;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(given); ++k) {
    PyObject* item = PySequence_Fast_GET_ITEM(given, k);
    int overflow = PyLong_CheckExact(item) ? 0 : 1;
    const long long n = overflow ? -1 : PyLong_AsLongLongAndOverflow(item, &overflow);
    FB_CHECK_VALUE(!overflow && n >= 0, "load: a tensor's ", what,
                   " should hold numbers from 0 to 2**63 - 1");
    out.push_back(n);
  }
  return out;
}

// One more than the last element that is reached; -1 where that is beyond 64 bits.
int64_t reach(int64_t offset, const Ints& size, const Ints& stride) {
  int64_t last = offset;
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d] == 0) return offset;
    int64_t step;
    if (__builtin_mul_overflow(size[d] - 1, stride[d], &step) ||
        __builtin_add_overflow(last, step, &last))
      return -1;
  }
  return last == INT64_MAX ? -1 : last + 1;
}

// _tensor_in(flat, dtype, offset, size, stride): a tensor in its own right over the bytes of flat;
// None: on the meta device
PyObject* tensor_in(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    FB_CHECK_TYPE(n == 5 && (args[0] == Py_None || is_tensor(args[0])),
                  "_tensor_in: expected a tensor and 4 more, got ", n);
    const DType dtype = to_dtype(args[1]);
    int overflow = PyLong_CheckExact(args[2]) ? 0 : 1;
    const int64_t offset = overflow ? -1 : PyLong_AsLongLongAndOverflow(args[2], &overflow);
    FB_CHECK_VALUE(!overflow && offset >= 0,
                   "load: a tensor's offset should hold numbers from 0 to 2**63 - 1");
    const Ints size = counts(args[3], "size"), stride = counts(args[4], "stride");
    FB_CHECK_VALUE(size.size() == stride.size(), "load: tensor with ", size.size(), " sizes but ",
                   stride.size(), " strides");
    int64_t elements = 1;
    for (int64_t s : size)
      FB_CHECK_VALUE(
          s == 0 || (!__builtin_mul_overflow(elements, s, &elements) && elements <= INT64_MAX / 16),
          "load: a tensor of size ", size, " has too many elements");
    if (args[0] == Py_None) {  // without data
      const int64_t last = reach(offset, size, stride);
      FB_CHECK_VALUE(last >= 0 && last <= INT64_MAX / 16, "load: tensor of size ", size,
                     " and stride ", stride, " is too large");
      return wrap(empty_strided(size, stride, dtype, Device{DeviceType::Meta}));
    }
    const Tensor& flat = unwrap(args[0]);
    FB_CHECK_TYPE(flat.dtype() == DType::UInt8 && flat.dim() == 1 && flat.is_contiguous(),
                  "_tensor_in: expected flat bytes");
    const int64_t width = itemsize(dtype), count = flat.numel() / width,
                  needed = reach(offset, size, stride), start = flat.offset();
    FB_CHECK_VALUE(needed >= 0 && needed <= count, "load: tensor of size ", size, ", stride ",
                   stride, ", offset ", offset, " and dtype ", dtype_name(dtype), " needs ",
                   needed < 0 ? "too many" : std::to_string(needed),
                   " elements of its storage, which has ", count);
    FB_CHECK_VALUE(start % width == 0, "load: a tensor of ", dtype_name(dtype), " begins at byte ",
                   start, " of its storage");
    if (dtype == DType::Bool && flat.device() == Device{}) {
      const uint8_t* p = flat.data<uint8_t>() + offset;
      const bool sound = std::all_of(p, p + std::max<int64_t>(needed - offset, 0),
                                     [](uint8_t b) { return b < 2; });
      FB_CHECK_VALUE(sound, "load: a bool tensor holds bytes other than 0 and 1");
    }
    Tensor made = empty({0}, dtype, MemoryFormat::Contiguous, flat.device());
    set_data(made, alias_as(flat, dtype, size, stride, start / width + offset));
    made->own_version = Ref<VersionCounter>::adopt(new VersionCounter);
    return wrap(std::move(made));
  });
}

// -- pickles

// Refuses keys whose hash takes long, or many whose hashes a file can make equal, which would cost
// quadratic time.
class KeyGuard {
 public:
  explicit KeyGuard(Py_ssize_t odd = 0) : odd_(odd) {}
  Py_ssize_t odd() const { return odd_; }
  void check(PyObject* key) {
    if (PyUnicode_CheckExact(key) || PyBytes_CheckExact(key) || key == Py_None || PyBool_Check(key))
      return;
    if (PyTuple_CheckExact(key)) return check_parts(key);
    if (PyLong_CheckExact(key)) {
      int overflow;
      const long long x = PyLong_AsLongLongAndOverflow(key, &overflow);
      if (!overflow && -kHashPrime < x && x < kHashPrime) return;
    } else if (!PyComplex_CheckExact(key)) {
      return;
    }
    FB_CHECK_VALUE(++odd_ <= kMost, "more than ", kMost, " huge or complex numbers as keys");
  }

 private:
  static constexpr long long kHashPrime = (1LL << 61) - 1;
  static constexpr Py_ssize_t kMost = 10000;

  // Hashing a tuple visits every part, shared ones once per occurrence.
  static void check_parts(PyObject* key) {
    Py_ssize_t parts = 0;
    std::vector<PyObject*> work{key};
    while (!work.empty()) {
      PyObject* item = work.back();
      work.pop_back();
      if (!PyTuple_Check(item)) continue;
      parts += 1 + PyTuple_GET_SIZE(item);
      FB_CHECK_VALUE(parts <= kMost, "a key with more than ", kMost, " parts");
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(item); ++k)
        work.push_back(PyTuple_GET_ITEM(item, k));
    }
  }

  Py_ssize_t odd_;
};

// _check_keys(keys, odd): checks a list of keys; how many odd ones there are with those before.
PyObject* check_keys(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    FB_CHECK_TYPE(n == 2 && PyList_Check(args[0]), "_check_keys: expected a list and a number");
    KeyGuard guard(PyLong_AsSsize_t(args[1]));
    if (PyErr_Occurred()) throw PythonError();
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(args[0]); ++k)
      guard.check(PyList_GET_ITEM(args[0], k));
    return PyLong_FromSsize_t(guard.odd());
  });
}

class PythonMaker {
 public:
  using Value = PyRef;

  // find: a function of module, name and protocol
  PythonMaker(PyObject* builder, PyObject* find, const char* encoding)
      : encoding_(encoding),
        find_(PyRef::borrow(find)),
        persistent_(attribute(builder, "persistent_load")),
        call_(attribute(builder, "reduce")),
        new_(attribute(builder, "new")),
        state_(attribute(builder, "build")),
        extend_(attribute(builder, "extend")),
        set_items_(attribute(builder, "set_items")) {}

  PyRef none() { return PyRef::borrow(Py_None); }
  PyRef boolean(bool b) { return PyRef::borrow(b ? Py_True : Py_False); }
  PyRef integer(int64_t n) { return checked(PyLong_FromLongLong(n)); }
  PyRef real(double x) { return checked(PyFloat_FromDouble(x)); }
  PyRef long_integer(std::string_view raw) {
    return checked(_PyLong_FromByteArray(reinterpret_cast<const unsigned char*>(raw.data()),
                                         raw.size(), 1, 1));
  }
  PyRef decimal(std::string_view text) {
    const std::string ended(text);
    char* end = nullptr;
    PyRef made = checked(PyLong_FromString(ended.c_str(), &end, 10));
    FB_CHECK_VALUE(end == ended.c_str() + ended.size(), "a number '", text, "'");
    return made;
  }
  PyRef real_text(std::string_view text) {
    PyRef raw = bytes(text);
    return checked(PyFloat_FromString(raw.get()));
  }
  PyRef text(std::string_view raw) {
    return checked(PyUnicode_DecodeUTF8(raw.data(), size(raw), "surrogatepass"));
  }
  PyRef raw_unicode(std::string_view raw) {
    return checked(PyUnicode_DecodeRawUnicodeEscape(raw.data(), size(raw), nullptr));
  }
  PyRef old_text(std::string_view raw) {
    if (encoding_ == std::string_view("bytes")) return bytes(raw);
    return checked(PyUnicode_Decode(raw.data(), size(raw), encoding_.c_str(), "strict"));
  }
  PyRef quoted(std::string_view raw) {
    const bool ends =
        raw.size() >= 2 && raw.front() == raw.back() && (raw.front() == '\'' || raw.front() == '"');
    FB_CHECK_VALUE(ends, "a text without quotes");
    PyRef codecs = checked(import_module("codecs"));
    PyRef inner = bytes(raw.substr(1, raw.size() - 2));
    PyRef pair = checked(PyObject_CallMethod(codecs.get(), "escape_decode", "O", inner.get()));
    PyObject* plain = PyTuple_GetItem(pair.get(), 0);
    if (!plain) throw PythonError();
    char* data;
    Py_ssize_t count;
    if (PyBytes_AsStringAndSize(plain, &data, &count) < 0) throw PythonError();
    return old_text({data, static_cast<size_t>(count)});
  }
  PyRef bytes(std::string_view raw) {
    return checked(PyBytes_FromStringAndSize(raw.data(), size(raw)));
  }
  PyRef byte_array(std::string_view raw) {
    return checked(PyByteArray_FromStringAndSize(raw.data(), size(raw)));
  }

  PyRef tuple(PyRef* v, size_t n) {
    PyRef made = checked(PyTuple_New(static_cast<Py_ssize_t>(n)));
    for (size_t k = 0; k < n; ++k)
      PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(k), Py_NewRef(v[k].get()));
    return made;
  }
  PyRef list(PyRef* v, size_t n) {
    PyRef made = checked(PyList_New(static_cast<Py_ssize_t>(n)));
    for (size_t k = 0; k < n; ++k)
      PyList_SET_ITEM(made.get(), static_cast<Py_ssize_t>(k), Py_NewRef(v[k].get()));
    return made;
  }
  PyRef dict(PyRef* v, size_t n) {
    PyRef made = checked(PyDict_New());
    put_pairs(made.get(), v, n);
    return made;
  }
  PyRef set(PyRef* v, size_t n, bool frozen) {
    for (size_t k = 0; k < n; ++k) keys_.check(v[k].get());
    PyRef items = list(v, n);
    return checked(frozen ? PyFrozenSet_New(items.get()) : PySet_New(items.get()));
  }
  void extend(PyRef& target, PyRef* v, size_t n) {
    if (!PyList_CheckExact(target.get())) {
      PyRef items = list(v, n);
      checked(PyObject_CallFunctionObjArgs(extend_.get(), target.get(), items.get(), nullptr));
      return;
    }
    for (size_t k = 0; k < n; ++k)
      if (PyList_Append(target.get(), v[k].get()) < 0) throw PythonError();
  }
  void set_items(PyRef& target, PyRef* v, size_t n) {
    if (PyDict_CheckExact(target.get())) return put_pairs(target.get(), v, n);
    check_keys(v, n);
    PyRef pairs = checked(PyList_New(static_cast<Py_ssize_t>(n / 2)));
    for (size_t k = 0; k < n; k += 2)
      PyList_SET_ITEM(pairs.get(), static_cast<Py_ssize_t>(k / 2), tuple(v + k, 2).release());
    checked(PyObject_CallFunctionObjArgs(set_items_.get(), target.get(), pairs.get(), nullptr));
  }
  void add_items(PyRef& target, PyRef* v, size_t n) {
    FB_CHECK_TYPE(Py_IS_TYPE(target.get(), &PySet_Type), "items are added to a ",
                  Py_TYPE(target.get())->tp_name);
    for (size_t k = 0; k < n; ++k) {
      keys_.check(v[k].get());
      if (PySet_Add(target.get(), v[k].get()) < 0) throw PythonError();
    }
  }

  PyRef global(const PyRef& module, const PyRef& name, int protocol) {
    FB_CHECK_TYPE(PyUnicode_CheckExact(module.get()) && PyUnicode_CheckExact(name.get()),
                  "a global is named by two texts");
    PyRef by = integer(protocol);
    return checked(
        PyObject_CallFunctionObjArgs(find_.get(), module.get(), name.get(), by.get(), nullptr));
  }
  PyRef persistent(const PyRef& id) {
    return checked(PyObject_CallOneArg(persistent_.get(), id.get()));
  }
  PyRef call(const PyRef& function, const PyRef& args) {
    FB_CHECK_TYPE(PyTuple_CheckExact(args.get()), "the arguments of a call are a ",
                  Py_TYPE(args.get())->tp_name);
    return checked(PyObject_CallFunctionObjArgs(call_.get(), function.get(), args.get(), nullptr));
  }
  PyRef new_object(const PyRef& cls, const PyRef& args, const PyRef& kwargs) {
    PyRef named = kwargs ? kwargs : checked(PyDict_New());
    FB_CHECK_TYPE(PyTuple_CheckExact(args.get()) && PyDict_CheckExact(named.get()),
                  "the arguments of a new object are not a tuple and a dict");
    return checked(
        PyObject_CallFunctionObjArgs(new_.get(), cls.get(), args.get(), named.get(), nullptr));
  }
  void state(const PyRef& object, const PyRef& state) {
    checked(PyObject_CallFunctionObjArgs(state_.get(), object.get(), state.get(), nullptr));
  }

 private:
  static Py_ssize_t size(std::string_view raw) { return static_cast<Py_ssize_t>(raw.size()); }
  static PyRef attribute(PyObject* o, const char* name) {
    return checked(PyObject_GetAttrString(o, name));
  }
  void check_keys(PyRef* v, size_t n) {
    FB_CHECK_VALUE(n % 2 == 0, "a key without a value");
    for (size_t k = 0; k < n; k += 2) keys_.check(v[k].get());
  }
  void put_pairs(PyObject* dict, PyRef* v, size_t n) {
    check_keys(v, n);
    for (size_t k = 0; k < n; k += 2)
      if (PyDict_SetItem(dict, v[k].get(), v[k + 1].get()) < 0) throw PythonError();
  }

  std::string encoding_;
  PyRef find_, persistent_, call_, new_, state_, extend_, set_items_;
  KeyGuard keys_;
};

// _unpickle(data, start, builder, find, encoding, at): the object; where the machine stood goes to
// at[0]
PyObject* unpickle(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    FB_CHECK_TYPE(n == 6 && PyList_Check(args[5]) && PyList_GET_SIZE(args[5]) == 1,
                  "_unpickle: expected 6 arguments, the last a list of one, got ", n);
    Buffer data(args[0], PyBUF_SIMPLE);
    const size_t start = PyLong_AsSize_t(args[1]);
    if (PyErr_Occurred()) throw PythonError();
    FB_CHECK_VALUE(start <= data.size(), "the pickle would begin after the end");
    const char* encoding = PyUnicode_AsUTF8(args[4]);
    if (!encoding) throw PythonError();
    PythonMaker maker(args[2], args[3], encoding);
    files::Unpickler<PythonMaker> machine({data.data(), data.size()}, start, maker);
    struct Note {
      files::Unpickler<PythonMaker>& machine;
      PyObject* list;
      ~Note() {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyObject* at = PyLong_FromSize_t(machine.at());
        if (!at || PyList_SetItem(list, 0, at) < 0) PyErr_Clear();
        PyErr_Restore(type, value, trace);
      }
    } note{machine, args[5]};
    return machine.run().release();
  });
}

}  // namespace

PyMethodDef file_functions[] = {
    {"_zip_directory", zip_directory, METH_O, "Entries of a zip archive: start, size, checksum."},
    {"_read_range", fast(read_range), METH_FASTCALL, "Fills a buffer; gives the checksum."},
    {"_safetensors_header", fast(safetensors_header), METH_FASTCALL,
     "What a header of safetensors says, checked."},
    {"_crc32", fast(crc32), METH_FASTCALL, "The checksum of zip archives."},
    {"_begin_writing", fast(begin_writing), METH_FASTCALL,
     "Asks the system to begin writing bytes of a file to its disk."},
    {"_tensor_in", fast(tensor_in), METH_FASTCALL, "A tensor over the bytes of a file."},
    {"_check_keys", fast(check_keys), METH_FASTCALL, "Refuses keys whose hashes take long."},
    {"_unpickle", fast(unpickle), METH_FASTCALL, "Reads a pickle as data, with a builder."},
    {}};

}  // namespace flambeau::python
