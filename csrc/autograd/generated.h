// What generated nodes and glue share: which inputs want a gradient, cotangents made whole, saved
// lists, the common part of in-place and out= forms. Knows no operation but through generated
// declarations.
#pragma once

#include <array>
#include <cmath>
#include <tuple>

#include "autograd/node.h"
#include "core/devices.h"
#include "core/promotion.h"
#include "core/pylist.h"
#include "core/warning.h"
#include "dispatch/boxing.h"

namespace flambeau {

// One differentiable parameter of a rule: is its cotangent wanted, and how many tensors is it?
struct Need {
  bool wanted = true;
  uint32_t count = 1;
  explicit operator bool() const { return wanted; }
};
template <size_t N>
using Needs = std::array<Need, N>;

// Is any of the edges [from, from + count) of the node wanted?
Need need_of(const Node& node, size_t from, size_t count = 1);
inline uint32_t count_of(const Tensors& xs) {
  return static_cast<uint32_t>(xs.size());
}
inline uint32_t count_of(const OptTensors& xs) {
  return static_cast<uint32_t>(xs.size());
}

// Cotangents of all inputs, one after another; lists in place of their parameter.
inline void flatten_into(Tensors& out, Tensor x) {
  out.push_back(std::move(x));
}
inline void flatten_into(Tensors& out, const OptTensor& x) {
  out.push_back(x ? *x : Tensor());
}
inline void flatten_into(Tensors& out, const Tensors& xs) {
  out.insert(out.end(), xs.begin(), xs.end());
}
template <class... T>
Tensors flatten(T&&... xs) {
  Tensors out;
  out.reserve(sizeof...(xs));
  (flatten_into(out, std::forward<T>(xs)), ...);
  return out;
}
template <class... T>
Tensors flatten(const std::tuple<T...>& xs) {
  return std::apply([](const auto&... x) { return flatten(x...); }, xs);
}

bool none_defined(const Tensors& grads);
// The cotangent of output i, zeros of its shape when it is undefined.
Tensor cotangent(const Node& node, const Tensors& grads, size_t i);
Tensor cotangent_like(const Tensor& grad, const Tensor& result);
inline OptTensor optional_cotangent(const Tensor& grad) {
  return grad.defined() ? OptTensor(grad) : std::nullopt;
}
// May anybody differentiate what is computed now? It is recorded, or a dual level is open. Rules
// ask this before they choose a kernel that has no derivative.
bool differentiated() noexcept;
// Does anybody differentiate x, or a value that it stands for?
bool is_differentiated(const Tensor& x);
// The tangent of x, zeros when it is undefined.
Tensor tangent_like(const Tensor& tangent, const Tensor& x);

// Saved tensors that may be absent, and lists of them.
using SavedList = std::vector<SavedTensor>;
SavedList save_list(const Tensors& xs);
SavedList save_list(const OptTensors& xs);
OptTensor unpack_optional(const SavedTensor& saved, const Node& owner);
Tensors unpack_list(const SavedList& saved, const Node& owner);
OptTensors unpack_optional_list(const SavedList& saved, const Node& owner);
void reset_list(SavedList& saved);

// Tensors of the same dtypes and geometry, on no device: what some rules need of a list.
Tensors shapes_of(const Tensors& xs);

// A copy of what is about to be overwritten, for a derivative that reads it.
Tensor copied(const Tensor& x);
// In-place form from the functional one: checks that `result` fits into self, copies, records.
Tensor assign_inplace(const Tensor& self, const Tensor& result, const char* op);
// Before a kernel changes all of `xs`, unrecorded.
void check_inplace(const Tensors& xs, const char* op);
void bump_versions(const Tensors& xs);
// Before a kernel changes these besides giving results.
void before_updates(const OptTensors& xs, const char* op);
// Can one plain loop change each of `a` by its partners: floats, contiguous, of equal dtype and
// shape, either the same memory or other memory, while no mode watches and nothing of it is
// recorded?
bool alike(const Tensors& a, const Tensors& b, const Tensors& c);
// out= forms: no history may be asked for; dtype and device must fit, the shape is the result's.
// `duals`: an input has a tangent, which the result could not carry on.
void check_out(const Tensor& out, bool inputs_need_grad, const char* op, bool duals = false);
// Is one of them dual? Asked only while something intercepts calls.
bool any_dual(const Tensor& x) noexcept;
bool any_dual(const OptTensor& x) noexcept;
bool any_dual(const Tensors& xs) noexcept;
bool any_dual(const OptTensors& xs) noexcept;
// out= of an operation that reads its inputs at other places than it writes; `sizes` are those that
// out will have.
void check_apart(const Tensor& out, const Ints& sizes, const Tensor& input, const char* op);
void check_apart(const Tensor& out, const Ints& sizes, const Tensors& inputs, const char* op);
bool writes_directly(const Tensor& out, const Tensor& like);  // same geometry and dtype
// Might a kernel that writes `out` destroy what it has still to read?
bool may_overlap(const Tensor& out, const Tensor& x);
bool may_overlap(const Tensor& out, const OptTensor& x);
bool may_overlap(const Tensor& out, const Tensors& xs);
bool may_overlap(const Tensor& out, const OptTensors& xs);
void assign_out(const Tensor& out, const Tensor& result, const char* op, bool told = true);
// The result in the shape of `out`, if that has as many elements.
Tensor in_shape_of(const Tensor& out, const Tensor& result);
// Raises what assign_out would; asked of every out= before the first is written.
void check_assignable(const Tensor& out, const Tensor& result, const char* op);
// out= of entries that do not convert their result.
void check_out_dtype(const Tensor& out, DType result, std::optional<DType> also = {});

// In place of g times a derivative that nobody knows. Error(NotImplemented) unless g is zero.
Tensor underivable(const Tensor& g, const char* op);

// Sums x over the dimensions that broadcasting from `shape` would have added or repeated.
Tensor sum_to(const Tensor& x, const Ints& shape);

}  // namespace flambeau
