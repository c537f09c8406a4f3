#include "python/argument_errors.h"

#include <cstring>

namespace flambeau::python {
namespace {

const char* type_text(const Param& p) {
  switch (p.type) {
    case Arg::Tensor:
    case Arg::TensorOrNumber:
      return "Tensor";
    case Arg::Tensors:
    case Arg::OptTensors:
      return "tuple of Tensors";
    case Arg::Int:
    case Arg::Size:
      return "int";
    case Arg::Float:
      return "float";
    case Arg::Bool:
      return "bool";
    case Arg::Str:
      return "str";
    case Arg::Number:
      return "Number";
    case Arg::Ints:
      return "tuple of ints";
    case Arg::Floats:
      return "tuple of floats";
    case Arg::Bools:
      return "tuple of bools";
    case Arg::Numbers:
      return "tuple of Scalars";
    case Arg::DType:
      return "torch.dtype";
    case Arg::Device:
      return "torch.device";
    case Arg::Layout:
      return "torch.layout";
    case Arg::MemoryFormat:
      return "torch.memory_format";
    case Arg::Generator:
      return "torch.Generator";
    case Arg::Object:
      return "object";
  }
  return "object";
}

std::string short_name(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  const char* dot = std::strrchr(name, '.');
  if (is_dtype(o) || is_device(o)) return concat("torch.", dot + 1);
  return dot && std::strncmp(name, "numpy", 5) != 0 ? dot + 1 : name;
}

// "list of [int, str]" for short lists, as people need to see what was inside.
std::string described(PyObject* o) {
  if (!PyList_Check(o) && !PyTuple_Check(o)) return short_name(o);
  std::string text = PyList_Check(o) ? "list of [" : "tuple of (";
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n && i < 10; ++i)
    text += (i ? ", " : "") + short_name(PySequence_Fast_ITEMS(o)[i]);
  if (n > 10) text += ", ...";
  if (!PyList_Check(o) && n == 1) text += ",";
  return text + (PyList_Check(o) ? "]" : ")");
}

// Place of the element of a list that spoils it; -1 when there is none to name.
int bad_element(const Param& p, PyObject* o) {
  if (!PyList_Check(o) && !PyTuple_Check(o)) return -1;
  Param one = p;
  switch (p.type) {
    case Arg::Ints:
      one.type = Arg::Size;
      break;
    case Arg::Floats:
      one.type = Arg::Float;
      break;
    case Arg::Bools:
      one.type = Arg::Bool;
      break;
    case Arg::Numbers:
      one.type = Arg::Number;
      break;
    case Arg::Tensors:
    case Arg::OptTensors:
      one.type = Arg::Tensor;
      break;
    default:
      return -1;
  }
  one.none = p.type == Arg::OptTensors;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    bool ignored = false;
    if (!accepts(one, PySequence_Fast_ITEMS(o)[i], ignored)) return static_cast<int>(i);
  }
  return -1;
}

std::string unpack_failure(const Param& p, PyObject* item, Py_ssize_t at) {
  return concat(" failed to unpack the object at pos ", at + 1, " with error \"type must be ",
                type_text(p), ",but got ", short_name(item), "\"");
}

std::string plural(int n) {
  return concat(n, n == 1 ? " positional argument" : " positional arguments");
}

std::string wrong_type(const Binding& b, const Param& p, PyObject* o, int position) {
  std::string where = position > 0 ? concat(" (position ", position, ")") : "";
  std::string start = concat(b.name, "(): argument '", p.name, "'");
  if (int at = bad_element(p, o); at >= 0) {
    PyObject* item = PySequence_Fast_ITEMS(o)[at];
    if (p.type == Arg::Tensors || p.type == Arg::OptTensors)
      return concat("expected Tensor as element ", at, " in argument ", std::max(position - 1, 0),
                    ", but got ", short_name(item));
    if (at > 0) return concat(start, unpack_failure(p, item, at));
    return concat(start, where, " must be ", type_text(p), ", but found element of type ",
                  short_name(item), " at pos ", at);
  }
  return concat(start, where, " must be ", type_text(p), ", not ",
                o == Py_None ? "NoneType" : short_name(o));
}

// Why the only signature does not take the call.
std::string reason(const Binding& b, Signature& s, PyObject* self, PyObject* const* args,
                   Py_ssize_t nargs, PyObject* kwnames) {
  int base = self ? 1 : 0;
  PyObject* slot[kMaxParams] = {};
  if (self) slot[0] = self;
  const Py_ssize_t keywords = nargs;  // where they begin
  int last = s.positional - 1;
  if (spreads_tensors(s, args, base, nargs)) {
    for (Py_ssize_t i = last - base; i < nargs; ++i) {
      bool ignored = false;
      if (!accepts({"", Arg::Tensor}, args[i], ignored))
        return concat("expected Tensor as element ", i - last + base, " in argument ", last,
                      ", but got ", short_name(args[i]));
    }
    slot[last] = kVarargs;
    nargs = last - base;
  }
  bool spread = nargs + base > s.positional && takes_varargs(s, base);
  if (nargs + base > s.positional && !spread)
    return concat(b.name, "() takes ", plural(s.positional - base), " but ", nargs,
                  nargs == 1 ? " was given" : " were given");
  if (spread) {
    for (Py_ssize_t i = 0; i < nargs; ++i) {
      bool ignored = false;
      if (!accepts({"", Arg::Size}, args[i], ignored)) {
        if (i == 0) return wrong_type(b, s.params[base], args[0], 1);
        return concat(b.name, "(): argument '", s.params[base].name, "'",
                      unpack_failure(s.params[base], args[i], i));
      }
    }
    slot[base] = kVarargs;
  } else {
    for (Py_ssize_t i = 0; i < nargs; ++i) slot[base + i] = args[i];
  }
  std::string unknown;
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* key = PyTuple_GET_ITEM(kwnames, k);
    int i = find_keyword(s, key);
    if (i < 0) {
      if (unknown.empty()) unknown = to_str(key);
      continue;
    }
    if (slot[i])
      return concat(b.name, "() got multiple values for argument '", s.params[i].name, "'");
    slot[i] = args[keywords + k];
  }
  std::string missing;
  int missing_count = 0;
  for (int i = base; i < s.count; ++i) {
    const Param& p = s.params[i];
    bool ignored = false;
    if (!slot[i]) {
      if (!p.required) continue;
      missing += concat(missing_count++ ? ", \"" : "\"", p.name, "\"");
    } else if (!accepts(p, slot[i], ignored)) {
      return wrong_type(b, p, slot[i], i < base + nargs ? i + 1 - base : 0);
    }
  }
  if (missing_count)
    return concat(b.name, "() missing ", missing_count,
                  " required positional arguments: ", missing);
  if (!unknown.empty())
    return concat(b.name, "() got an unexpected keyword argument '", unknown, "'");
  return "";  // all fits, but the numbers: one of them must be a tensor
}

// The signature as a caller sees it: a method's has no self.
std::string shown(const Signature& s, bool method) {
  std::string text = s.text;
  if (!method) return text;
  size_t comma = text.find(", ");
  return comma == std::string::npos ? "()" : "(" + text.substr(comma + 2);
}

// "didn't match because ..." for a signature that has room for the arguments; empty otherwise.
std::string mismatch(Signature& s, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwnames) {
  int base = self ? 1 : 0;
  if (nargs + base > s.positional) return "";
  std::string types, unknown;
  bool wrong = false;
  auto add = [&](const char* key, const Param& p, PyObject* o) {
    bool ignored = false, good = accepts(p, o, ignored);
    wrong |= !good;
    types += concat(types.empty() ? "" : ", ", good ? "" : "!", *key ? concat(key, "=") : "",
                    described(o), good ? "" : "!");
  };
  for (Py_ssize_t i = 0; i < nargs; ++i) add("", s.params[base + i], args[i]);
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    std::string key = to_str(PyTuple_GET_ITEM(kwnames, k));
    int i = find_keyword(s, PyTuple_GET_ITEM(kwnames, k));
    if (i < 0)
      unknown += concat(unknown.empty() ? "" : ", ", key);
    else
      add(key.c_str(), s.params[i], args[nargs + k]);
  }
  if (!unknown.empty())
    return concat("      didn't match because some of the keywords were incorrect: ", unknown,
                  "\n");
  if (!wrong) return "";
  return concat("      didn't match because some of the arguments have invalid types: (", types,
                ")\n");
}

}  // namespace

void raise_mismatch(const Binding& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                    PyObject* kwnames) {
  std::string text;
  if (b.count == 1) text = reason(b, b.signatures[0], self, args, nargs, kwnames);
  if (text.empty()) {
    text = concat(b.name, "() received an invalid combination of arguments - got (");
    for (Py_ssize_t i = 0; i < nargs; ++i) text += (i ? ", " : "") + short_name(args[i]);
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
      text += concat(k || nargs ? ", " : "", to_str(PyTuple_GET_ITEM(kwnames, k)), "=",
                     short_name(args[nargs + k]));
    text += "), but expected one of:\n";
    for (int i = 0; i < b.count; ++i)
      text += concat(" * ", shown(b.signatures[i], self), "\n",
                     mismatch(b.signatures[i], self, args, nargs, kwnames));
  }
  PyErr_SetString(PyExc_TypeError, text.c_str());
}

}  // namespace flambeau::python
