// Arguments of a call: static signatures, matched without allocation. A call is bound to the first
// signature whose parameters accept it; the signature's thunk then converts each slot with the
// functions below and calls C++. Messages are PyTorch's. Knows signatures and conversions, no
// operation.
#pragma once

#include <cstdint>
#include <string>

#include "core/generator.h"
#include "python/tensor_object.h"
#include "python/types.h"

namespace flambeau::python {

enum class Arg : uint8_t {
  Tensor,
  TensorOrNumber,
  Tensors,
  OptTensors,
  Int,
  Size,  // an int that may be a tensor of one element with dims
  Float,
  Bool,
  Str,
  Number,
  Ints,
  Floats,
  Bools,
  Numbers,
  DType,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  Object,
};

struct Param {
  const char* name;
  Arg type;
  bool none = false;  // None is accepted
  bool required = true;
  uint8_t length = 0;       // Ints of a known length: an int stands for that many; Tensors: f(*xs)
  PyObject* key = nullptr;  // interned name, filled on first use
};

inline constexpr int kMaxParams = 32;

// What a call's arguments were bound to: one borrowed object per parameter, null where none was
// given.
struct Args {
  PyObject* slot[kMaxParams];
  PyObject* const* varargs = nullptr;  // x.view(2, 8): the items, when slot holds kVarargs
  Py_ssize_t nvarargs = 0;
  PyObject* operator[](int i) const { return slot[i]; }
};

struct Signature {
  Param* params;
  uint8_t count;                        // parameters in all, out= and factory extras included
  uint8_t positional;                   // those that may be given by position
  const char* text;                     // "(Tensor input, Tensor other, *, Number alpha = 1)"
  PyObject* (*call)(const Args& args);  // may throw
  bool needs_tensor = false;            // of the arguments that may be numbers, one is a tensor
  const char* target = nullptr;         // the entry and form as graphs name it; null: no entry
  bool all_numbers = false;             // the first two may both be numbers: full((), first), then
};

// An order of arguments that PyTorch had once, `add(input, alpha, other)`, for one that it has now.
// Accepted where no signature is, and not told in messages.
struct OldOrder {
  Signature given;
  uint8_t stands_for;  // which signature
  uint8_t place[8];    // of each of its parameters, in `given`
};

// A signature in the place of a binding's own: what it takes is put where the signature takes it,
// with a flag that chooses the binding's second signature (`inplace=`) and two old arguments that
// name a reduction.
struct Front {
  static constexpr uint8_t none = 255;
  Signature given;
  uint8_t flag;                        // which parameters: `inplace`,
  uint8_t average, reduce, reduction;  // `size_average`, `reduce`, `reduction`
  uint8_t place[16];                   // of each of the signature's parameters, in `given`
};

// A Python-visible function or method: its overloads, and where it is found (for
// __torch_function__).
struct Binding {
  const char* name;
  const char* module;  // "" for the top, "nn.functional", ...
  Signature* signatures;
  uint8_t count;
  bool has_method;
  OldOrder* old_orders = nullptr;
  uint8_t old_count = 0;
  Front* front = nullptr;
};

// What programs call it by: the function of its module, or the method of Tensor. Null: an error.
PyObject* function_of(const Binding& b, bool method);
// The whole call: match, convert, run, translate exceptions. `self` is null for a function.
PyObject* call_binding(const Binding& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                       PyObject* kwnames) noexcept;

// For hand-written functions: binds arguments to the first signature that accepts them and returns
// its index; -1 with an exception set; -2 when an argument overrides __torch_function__ (see
// call_torch_function).
int match(const Binding& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
          PyObject* kwnames, Args& out);

// Conversions of a bound slot (its type has been checked; they still throw for what only the value
// shows). ----------

// A Tensor argument: refers to the object's tensor, or owns the one made from a number.
class TensorArg {
 public:
  explicit TensorArg(PyObject* o) {
    if (is_exact_tensor(o)) [[likely]]
      p_ = &unwrap(o);
    else
      convert(o);
  }
  TensorArg(PyObject* o, const Scalar& fallback) {  // null: the number
    if (o)
      convert(o);
    else
      own_ = wrapped_number(fallback), p_ = &own_;
  }
  operator const Tensor&() const { return *p_; }
  const Tensor& operator*() const { return *p_; }
  TensorArg(const TensorArg&) = delete;
  bool from_number() const { return p_ == &own_; }
  void replace(Tensor t) { own_ = std::move(t), p_ = &own_; }

 private:
  void convert(PyObject* o);
  const Tensor* p_;
  Tensor own_;
};

OptTensor to_opt_tensor(PyObject* o);  // null or None: nullopt
Tensors to_tensors(PyObject* o);
Tensors to_tensors(const Args& a, int i);  // also from varargs
OptTensors to_opt_tensors(PyObject* o);
int64_t to_int(PyObject* o);
double to_float(PyObject* o);
bool to_bool(PyObject* o);
std::string to_str(PyObject* o);
Scalar to_number(PyObject* o);  // Python and NumPy numbers, 0-d tensors
Ints to_ints(PyObject* o, int length = 0);
Ints to_ints(const Args& a, int i, int length = 0);  // also from varargs
std::optional<Ints> optional_ints(const Args& a, int i, int length = 0);
std::vector<double> to_floats(PyObject* o);
std::vector<bool> to_bools(PyObject* o);
std::vector<Scalar> to_numbers(PyObject* o);
DType to_dtype(PyObject* o);
Device to_device(PyObject* o);
Device to_usable_device(PyObject* o);  // refuses one that this build cannot compute on
[[noreturn]] void refuse_cuda();       // AssertionError, as PyTorch's build without CUDA raises
Layout to_layout(PyObject* o);
MemoryFormat to_memory_format(PyObject* o);
Generator to_generator(PyObject* o);

// null or None gives nullopt, anything else f(o).
template <class F>
auto optional(PyObject* o, F f) -> std::optional<decltype(f(o))> {
  if (!o || o == Py_None) return std::nullopt;
  return f(o);
}

bool is_number(PyObject* o) noexcept;  // int, float, complex, bool and NumPy's scalars
extern PyObject* const kVarargs;       // marks a slot filled from varargs

}  // namespace flambeau::python
