// Loops over runs of one tensor and its partners, for operations on lists and for the steps of
// optimisers; built per instruction set in foreach.isa.cpp. Float formats only; half formats
// compute in float32. Knows memory, not tensors.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

// X(enumerator, the name under which entries ask for it)
#define FB_LIST_OPS(X)                                                                          \
  X(Add, "add")                                                                                 \
  X(Sub, "sub") X(Mul, "mul") X(Div, "div") X(ClampMin, "clamp_min") X(ClampMax, "clamp_max")   \
      X(AddNumber, "add_number") X(SubNumber, "sub_number") X(MulNumber, "mul_number")          \
          X(DivNumber, "div_number") X(ClampMinNumber, "clamp_min_number")                      \
              X(ClampMaxNumber, "clamp_max_number") X(Addcmul, "addcmul") X(Addcdiv, "addcdiv") \
                  X(Lerp, "lerp")

enum class ListOp : int {
#define X(name, text) name,
  FB_LIST_OPS(X)
#undef X
};

// Whether c is taken to the list's type first. What is added is; factors and divisors keep their
// precision, as the entries of add, mul and div say of one tensor. See Note [Compute types] in
// kernels/pointwise.h; tests/ops/test_numbers_beside_halves.py holds both forms together.
constexpr bool rounds_number(ListOp op) {
  return op == ListOp::Add || op == ListOp::Sub || op == ListOp::AddNumber ||
         op == ListOp::SubNumber;
}

// x[i] = op(x[i], y[i], z[i], c).
using ListLoop = void (*)(void* x, const void* y, const void* z, int64_t n, double c);

struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first_step;
};
struct AdamStep {
  double beta1, beta2, eps, weight_decay;
  double shrink;     // factor of the parameter, decoupled decay
  double step_size;  // lr / (1 - beta1^t)
  double root;       // sqrt(1 - beta2^t)
  bool amsgrad, maximize;
};
using SgdLoop = void (*)(void* p, const void* g, void* buffer, int64_t n, const SgdStep& s);
using AdamLoop = void (*)(void* p, const void* g, void* m, void* v, void* largest, int64_t n,
                          const AdamStep& s);

// Null for types that have no loop.
FB_ISA_DECLARE(ListLoop list_loop(ListOp op, int dtype); SgdLoop sgd_loop(int dtype);
               AdamLoop adam_loop(int dtype);)

}  // namespace flambeau::kernels
