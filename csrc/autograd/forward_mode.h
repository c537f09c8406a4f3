// Forward mode: dual numbers. Inside a level, operations on tensors that have a tangent also
// compute that of their results, by the operation's jvp. One level at a time; what it leaves on
// tensors means nothing after its end.
#pragma once

#include "core/tensor.h"

namespace flambeau {

struct Tangent;

int64_t enter_dual_level();  // Error(Runtime) inside another
void exit_dual_level(int64_t level);
int64_t dual_level() noexcept;  // -1 outside one

// The tangent of t in the current level; undefined: none.
Tensor tangent_of(const Tensor& t) noexcept;
// Where t's tangent in the current level is or will be.
std::shared_ptr<Tangent> tangent_cell(const Tensor& t);
// Gives t a tangent of the same shape, in place of one it may have.
void set_tangent(const Tensor& t, const Tensor& tangent);
// A view of primal with the tangent.
Tensor make_dual(const Tensor& primal, const Tensor& tangent);
// A view of t without its tangent.
Tensor primal_of(const Tensor& t);

}  // namespace flambeau
