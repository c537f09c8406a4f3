// Boxed calls: every operation has a descriptor through which it can be called with a vector of
// Values. Transforms (vmap, forward mode, tracing) are interceptors on a stack: a primitive called
// while one is active boxes its arguments once and hands them to the innermost, which runs with
// itself off the stack. See Note [One slow path].
//
// Note [One slow path]
// The fast path of a primitive tests `modes.active` and nothing else. Whatever changes the meaning
// of a call (a batch dimension, a tangent, a recording) is an Interceptor, written once over
// descriptors and not once per operation. Autocast is no interceptor but a step before them: what
// it does to a call depends on the operation alone, see dispatch/autocast.h.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/generator.h"
#include "core/tensor.h"
#include "dispatch/modes.h"

namespace flambeau {

// An argument or a result. Copies and destruction are out of line, for the tables of so many
// alternatives would be made in every file.
class Value
    : public std::variant<std::monostate, Tensor, Tensors, OptTensors, bool, int64_t, double,
                          Scalar, std::string, Ints, std::vector<double>, std::vector<bool>,
                          std::vector<Scalar>, DType, Device, Layout, MemoryFormat, Generator> {
 public:
  using variant::variant;
  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
};
using Values = std::vector<Value>;

struct ParamDesc {
  const char* name;
  const char* type;          // as the table spells it: "Tensor", "Ints", "int | None"
  const char* default_text;  // null: required
  bool kwonly;
};

// Which dtype autocast runs an operation in.
enum class Autocast : uint8_t { None, Lower, Float32, Widest };

struct OpDesc {
  const char* name;  // public name
  const char* uid;   // unique: name, or name_1 for an overload
  const char* kind;  // pointwise, reduction, view, structured, composite
  std::span<const ParamDesc> params;
  int outputs;
  Values (*call)(const Values& args);  // all parameters, in order
  // Rules of primitives; null when there is none.
  // args, cotangents of the results (undefined Tensor: zero), results, which tensor parameters'
  // cotangents are wanted (bit k: the k-th) -> cotangents of the tensor parameters
  Tensors (*vjp)(const Values& args, const Tensors& cotangents, const Values& results,
                 uint32_t wanted) = nullptr;
  // args, tangents of the tensor parameters (undefined: zero), results -> tangents of the results
  Tensors (*jvp)(const Values& args, const Tensors& tangents, const Values& results) = nullptr;
  // args, of which those in `batched` (bit i: parameter i) have the batch in front -> results, all
  // with the batch in front. Taken when the derived rule, below, does not apply.
  Values (*vmap)(const Values& args, uint32_t batched, int64_t batch) = nullptr;
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
};

// Parameters that this call changes besides giving results.
inline uint32_t updated_by(const OpDesc& op, const Values& args) {
  if (!op.updates || op.updates_when < 0) return op.updates;
  const bool* on = std::get_if<bool>(&args[op.updates_when]);
  return on && *on ? op.updates : 0;
}

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

const OpDesc* find_op(const std::string& uid);  // null when there is none
std::span<const OpDesc* const> all_ops();       // generated

}  // namespace flambeau

extern template class std::vector<flambeau::Value>;
