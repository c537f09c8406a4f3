// Values of scripts from Python and back. A list or dict that comes in is remembered for the call:
// it goes out as the same object, changed if the script changed it.
#pragma once

#include <string>
#include <vector>

#include "python/thunks.h"
#include "script/code.h"
#include "script/core_ops.h"
#include "script/run.h"
#include "script/values.h"

namespace flambeau::python {

// How values of a type come in.
struct Conversion {
  enum class Kind : uint8_t {
    Tensor,
    Int,
    Float,
    Bool,
    Str,
    Complex,
    Number,
    None,
    DType,
    Device,
    Layout,
    MemoryFormat,
    Generator,
    List,
    Tuple,
    Named,  // a named tuple
    Dict,
    Union,
    Any,
    Object,
    Future,
    Nothing  // has no form here
  };
  Conversion(const script::Type& t, PyObject* classes);

  Kind kind = Kind::Nothing;
  bool optional = false;
  bool known = false;  // objects are of the class, whatever Python calls that
  bool native = false;  // objects are those of classes of C++
  script::ListKind list = script::ListKind::Any;
  PyObject* cls = nullptr;  // of a named tuple or an object; the program's classes hold it
  std::string name, shown;
  std::vector<Conversion> items;
};

// What a program finds in Python by name; borrowed.
struct ProgramNames {
  PyObject* classes;      // a dict
  PyObject* error_class;  // gives the class of an exception
};

// Lists and dicts of a call, by what stands for them.
class Given {
 public:
  explicit Given(const ProgramNames& n) noexcept : names(n) {}
  bool empty() const noexcept { return items_.empty(); }
  const Value* find(PyObject* o) const;
  PyObject* find(const Value& v) const;  // borrowed; null where it did not come in
  void add(PyObject* o, const Value& v);
  void write_back() const;
  const ProgramNames names;
  bool large = false;       // a tensor of the call is worth giving Python's lock up for

 private:
  struct Item {
    PyRef object;
    Value value;
  };
  std::vector<Item> items_;
};
// What `to_python` looks at in this thread.
class GivenScope {
 public:
  explicit GivenScope(Given* g);
  ~GivenScope();
  GivenScope(const GivenScope&) = delete;
  static Given* of_thread() noexcept;

 private:
  Given* outer_;
};

// False where the object has no form of this type.
bool from_python(const Conversion& c, PyObject* o, Value* out, Given* given);
// The same for what is quick to look at: tensors, numbers, text; others are false.
bool plain_from_python(const Conversion& c, PyObject* o, Value* out);
PyObject* to_python(Value v);  // a new reference, or null with an error

// Python's lock during a run: given up at once, or when the first large tensor turns up. Small
// operations take less time than giving it up.
class RunLock {
 public:
  explicit RunLock(bool give_up);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  static void large();  // the run of this thread holds it no more

 private:
  RunLock* outer_;
  PyThreadState* state_ = nullptr;
};
inline bool is_large(const Value& v) noexcept {
  const Tensor* t = v.get_if<Tensor>();
  return t && t->defined() && t->numel() > kUnlockedElements;
}

// Readies an attribute of Python's objects. Where the program is not trusted, an object is asked
// whether it is of the class that has it. `fixed`: it stays what it is during a run.
void prepare_attribute(script::AttrRef& a, const ProgramNames& names, bool trusted, bool fixed);

// In a catch (...): Python's error for what a script has thrown.
void raise_script(PyObject* error_class) noexcept;

// An object of Python's as a value, and back (borrowed). One that a script has made is made in
// Python when it first goes out, and lives there from then on.
Value python_object(PyObject* o);
PyObject* object_of(const Value& v);

}  // namespace flambeau::python
