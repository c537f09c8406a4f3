// Boxed calls: every operation has a descriptor through which it can be called with a vector of
// Values. Transforms (vmap, forward mode, tracing, autocast) are interceptors on a stack: a
// primitive called while one is active boxes its arguments once and hands them to the innermost,
// which runs with itself off the stack. See Note [One slow path].
//
// Note [One slow path]
// The fast path of a primitive tests `modes.active` and nothing else. Whatever changes the meaning
// of a call (a batch dimension, a tangent, a recording) is an Interceptor, written once over
// descriptors and not once per operation.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/generator.h"
#include "core/tensor.h"
#include "dispatch/modes.h"

namespace flambeau {

using Value = std::variant<std::monostate, Tensor, Tensors, OptTensors, bool, int64_t, double,
                           Scalar, std::string, Ints, std::vector<double>, std::vector<bool>,
                           std::vector<Scalar>, DType, Device, Layout, MemoryFormat, Generator>;
using Values = std::vector<Value>;

struct ParamDesc {
  const char* name;
  const char* type;          // as the table spells it: "Tensor", "Ints", "int | None"
  const char* default_text;  // null: required
  bool kwonly;
};

struct OpDesc {
  const char* name;  // public name
  const char* uid;   // unique: name, or name_1 for an overload
  const char* kind;  // pointwise, reduction, view, structured, composite
  std::span<const ParamDesc> params;
  int outputs;
  Values (*call)(const Values& args);  // all parameters, in order
  // Rules of primitives; null when there is none.
  // args, cotangents of the results (undefined Tensor: zero), results -> cotangents of the tensor
  // parameters
  Tensors (*vjp)(const Values& args, const Tensors& cotangents, const Values& results) = nullptr;
  // args, tangents of the tensor parameters (undefined: zero), results -> tangents of the results
  Tensors (*jvp)(const Values& args, const Tensors& tangents, const Values& results) = nullptr;
  // args, batch dim of each tensor parameter (-1: none) -> results, each with the batch in dim 0
  // (or -1: none)
  Values (*vmap)(const Values& args, const std::vector<int>& dims, int64_t batch,
                 std::vector<int>& out_dims) = nullptr;
  bool mutates = false;
  bool linear = false;
};

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
    ++modes.active;
  }
  ~InterceptorScope() {
    modes.top = modes.top->outer;
    --modes.active;
  }
  InterceptorScope(const InterceptorScope&) = delete;
};

// Hands a call to the innermost interceptor, with that one off the stack meanwhile.
Values dispatch_boxed(const OpDesc& op, Values args);

const OpDesc* find_op(const std::string& uid);  // null when there is none
std::span<const OpDesc* const> all_ops();       // generated

}  // namespace flambeau
