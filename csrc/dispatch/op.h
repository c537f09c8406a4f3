// Boxed calls: every operation has a descriptor through which it can be called with Values.
// Transforms (vmap, forward mode, tracing) are interceptors on a stack: a primitive called while
// one is active boxes its arguments once and hands them to the innermost, which runs with itself
// off the stack. See Note [One slow path].
//
// Note [One slow path]
// The fast path of a primitive tests `modes.active` and nothing else. Whatever changes the meaning
// of a call (a batch dimension, a tangent, a recording) is an Interceptor, written once over
// descriptors and not once per operation. Autocast is no interceptor but a step before them: what
// it does to a call depends on the operation alone, see dispatch/autocast.h.
#pragma once

#include <span>
#include <string_view>

#include "dispatch/modes.h"
#include "dispatch/value.h"

namespace flambeau {

// Types of the table's language, by their names there.
enum class TypeBase : uint8_t {
  Tensor,
  Tensors,
  OptTensors,
  Int,
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
  Object  // of operations that programs add: lists of anything, dicts, tuples, objects
};

struct TypeDesc {
  TypeBase base;
  bool optional = false;
  uint8_t length = 0;      // Ints1, Ints2, Ints3: one number stands for that many
  bool or_number = false;  // `Tensor | Number`

  bool holds_tensors() const noexcept { return base <= TypeBase::OptTensors; }
};

struct ParamDesc {
  const char* name;
  TypeDesc type;
  const char* default_text;  // null: required
  bool kwonly;
};

// What an entry is to those who look at calls; a view made of views is a composite.
enum class OpKind : uint8_t { Pointwise, View, Structured, Composite };

// Which dtype autocast runs an operation in.
enum class Autocast : uint8_t { None, Lower, Float32, Widest };

struct OpDesc;
struct AddedOp;  // dispatch/registry.h
// All parameters in order, where they lie; the results, as many as `returns`, are assigned.
using BoxedCall = void (*)(const OpDesc& op, const Value* const* args, Value* results);

struct OpDesc {
  const char* name;  // public name
  const char* uid;   // unique: name, or name_1 for an overload
  OpKind kind;
  std::span<const ParamDesc> params;
  std::span<const TypeDesc> returns;  // none: it only changes an argument
  BoxedCall call;
  // The form that changes its first argument, where one is derived: its name among graphs, and it.
  const char* inplace_uid = nullptr;
  BoxedCall inplace = nullptr;
  // Rules of primitives, which are given the operation; null when there is none.
  // args, cotangents of the results (undefined Tensor: zero), results, which tensor parameters'
  // cotangents are wanted (bit k: the k-th) -> cotangents of the tensor parameters
  Tensors (*vjp)(const OpDesc& op, const Values& args, const Tensors& cotangents,
                 const Values& results, uint32_t wanted) = nullptr;
  // args, tangents of the tensor parameters (undefined: zero), results -> tangents of the results
  Tensors (*jvp)(const OpDesc& op, const Values& args, const Tensors& tangents,
                 const Values& results) = nullptr;
  // args, of which those in `batched` (bit i: parameter i) have the batch in front -> results, all
  // with the batch in front. Taken when the derived rule, below, does not apply.
  Values (*vmap)(const OpDesc& op, const Values& args, uint32_t batched,
                 int64_t batch) = nullptr;
  // Derived rule: the tensor parameters in `batchable` may all have one more dim in front, when
  // those in `dims` (which number dims) are shifted. Others must not be batched.
  uint32_t batchable = 0;
  uint32_t dims = 0;
  bool all_dims = false;       // an empty list of dims means all of them
  uint32_t keeps = 0;          // tensor parameters whose values the vjp needs
  uint32_t keeps_results = 0;  // results whose values it needs
  uint32_t updates = 0;        // parameters that the kernel changes besides
  int updates_when = -1;       // the flag without which it leaves them alone; none: always
  bool mutates = false;
  bool linear = false;
  bool differentiable = true;
  Autocast autocast = Autocast::None;
  AddedOp* added = nullptr;  // what it is besides, if it was added while the program runs
};

// Parameters that this call changes besides giving results.
inline uint32_t updated_by(const OpDesc& op, const Values& args) {
  if (!op.updates || op.updates_when < 0) return op.updates;
  const bool* on = args[static_cast<size_t>(op.updates_when)].get_if<bool>();
  return on && *on ? op.updates : 0;
}

// A call with its arguments in a vector, for who is not in a hurry.
Values call_op(const OpDesc& op, const Values& args);

class Interceptor {
 public:
  virtual ~Interceptor() = default;
  virtual Values call(const OpDesc& op, Values args) = 0;
  Interceptor* outer = nullptr;
};

// Pushes an interceptor for a scope.
class InterceptorScope {
 public:
  explicit InterceptorScope(Interceptor* i) {
    i->outer = modes.top;
    modes.top = i;
    modes.active += kIntercept;
  }
  ~InterceptorScope() {
    modes.top = modes.top->outer;
    modes.active -= kIntercept;
  }
  InterceptorScope(const InterceptorScope&) = delete;
};

// Casts as autocast asks, then hands the call to the innermost interceptor, with that one off the
// stack meanwhile.
Values dispatch_boxed(const OpDesc& op, Values args);

// By name, `NAME` of the table or `NAMESPACE::NAME.OVERLOAD` of what was added; null when there is
// none. Where a descriptor lies, it stays.
const OpDesc* find_op(std::string_view uid);

// An entry, or the in-place form of one.
struct Callee {
  const OpDesc* op = nullptr;  // null: there is none of that name
  BoxedCall call = nullptr;
};
Callee find_callee(std::string_view uid);
std::span<const OpDesc* const> all_ops();  // generated

}  // namespace flambeau
