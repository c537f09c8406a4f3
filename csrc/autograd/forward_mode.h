// Forward mode: dual numbers. Inside a level, operations on tensors that have a tangent also
// compute that of their results, by the operation's jvp. Levels nest: a tensor has a tangent for
// each, and what an inner level computes with is dual to the outer ones. What a level leaves on
// tensors means nothing after its end.
#pragma once

#include "core/tensor.h"

namespace flambeau {

struct Tangent;

int64_t enter_dual_level(bool nested = false);  // Error(Runtime) inside another, unless nested
void exit_dual_level(int64_t level);
int64_t dual_level() noexcept;  // the innermost one; -1 outside

// The tangent of t in the innermost level; undefined: none.
Tensor tangent_of(const Tensor& t);
bool has_tangent(const Tensor& t);
// Where t's tangent in the innermost level is or will be; leads to those of levels further out.
std::shared_ptr<Tangent> tangent_cell(const Tensor& t);
// Gives `to` the tangents of `from`, of all levels, as they are now.
void copy_tangents(const Tensor& from, const Tensor& to);
// Gives t a tangent of the same shape in the innermost level, in place of one it may have.
void set_tangent(const Tensor& t, const Tensor& tangent);
// Does the cell hold a tangent of a level that goes on?
bool has_live_tangent(const Tangent& cell) noexcept;
// A view of primal with the tangent in the innermost level.
Tensor make_dual(const Tensor& primal, const Tensor& tangent);
// A view of t without its tangent in the innermost level.
Tensor primal_of(const Tensor& t);

}  // namespace flambeau
