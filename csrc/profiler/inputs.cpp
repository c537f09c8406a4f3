#include "profiler/inputs.h"

#include <bit>

#include "core/tensor.h"

namespace flambeau::profiler {

namespace {
void put(std::vector<int64_t>& out, Input tag) {
  out.push_back(static_cast<int64_t>(tag));
}
void put(std::vector<int64_t>& out, Input tag, int64_t value) {
  put(out, tag);
  out.push_back(value);
}
void put_float(std::vector<int64_t>& out, double x) {
  put(out, Input::Float, std::bit_cast<int64_t>(x));
}
void put_number(std::vector<int64_t>& out, const Scalar& x) {
  if (x.is_bool())
    put(out, Input::Bool, x.to_bool());
  else if (x.is_integral())
    put(out, Input::Int, x.to_int());
  else if (x.is_floating_point())
    put_float(out, x.to_double());
  else
    put(out, Input::Other);
}
void put_ints(std::vector<int64_t>& out, const Ints& xs) {
  put(out, Input::Ints, static_cast<int64_t>(xs.size()));
  for (int64_t x : xs) out.push_back(x);
}

// f(value) where there is one, under the C++ type that the table's type stands for.
template <class T, class F>
void given_value(std::vector<int64_t>& out, const TypeDesc& type, const void* at, F f) {
  if (!type.optional) return f(*static_cast<const T*>(at));
  const auto& x = *static_cast<const std::optional<T>*>(at);
  if (x)
    f(*x);
  else
    put(out, Input::None);
}

void append_tensor(const Tensor& x, std::vector<int64_t>& out) {
  if (!x.defined()) return put(out, Input::None);
  put(out, Input::Tensor, static_cast<int64_t>(x.dtype()));
  out.push_back(x.dim());
  for (int64_t n : x.sizes()) out.push_back(n);
  for (int64_t n : x.strides()) out.push_back(n);
}

template <class List>
void append_tensors(const List& xs, std::vector<int64_t>& out) {
  put(out, Input::List, static_cast<int64_t>(xs.size()));
  for (const auto& x : xs) {
    if constexpr (std::is_same_v<List, OptTensors>)
      append_tensor(x ? *x : Tensor(), out);
    else
      append_tensor(x, out);
  }
}
}  // namespace

void append_inputs(const OpDesc& op, const Value* const* given, std::vector<int64_t>& out) {
  out.push_back(static_cast<int64_t>(op.params.size()));
  for (size_t i = 0; i < op.params.size(); ++i) {
    const Value& v = *given[i];
    if (v.is_none())
      put(out, Input::None);
    else if (auto* tensor = v.get_if<Tensor>())
      append_tensor(*tensor, out);
    else if (auto* tensors = v.get_if<Tensors>())
      append_tensors(*tensors, out);
    else if (auto* holes = v.get_if<OptTensors>())
      append_tensors(*holes, out);
    else if (auto* ints = v.get_if<Ints>())
      put_ints(out, *ints);
    else if (auto* b = v.get_if<bool>())
      put(out, Input::Bool, *b);
    else if (auto* n = v.get_if<int64_t>())
      put(out, Input::Int, *n);
    else if (auto* x = v.get_if<double>())
      put_float(out, *x);
    else
      put(out, Input::Other);
  }
}

void append_inputs(const OpDesc& op, const void* const* given, std::vector<int64_t>& out) {
  out.push_back(static_cast<int64_t>(op.params.size()));
  for (size_t i = 0; i < op.params.size(); ++i) {
    const TypeDesc& type = op.params[i].type;
    const void* at = given[i];
    switch (type.base) {
      case TypeBase::Tensor:
        given_value<Tensor>(out, type, at, [&](const Tensor& x) { append_tensor(x, out); });
        break;
      case TypeBase::Tensors:
        given_value<Tensors>(out, type, at, [&](const Tensors& xs) { append_tensors(xs, out); });
        break;
      case TypeBase::OptTensors:
        given_value<OptTensors>(out, type, at,
                                [&](const OptTensors& xs) { append_tensors(xs, out); });
        break;
      case TypeBase::Int:
        given_value<int64_t>(out, type, at, [&](int64_t x) { put(out, Input::Int, x); });
        break;
      case TypeBase::Float:
        given_value<double>(out, type, at, [&](double x) { put_float(out, x); });
        break;
      case TypeBase::Bool:
        given_value<bool>(out, type, at, [&](bool x) { put(out, Input::Bool, x); });
        break;
      case TypeBase::Number:
        given_value<Scalar>(out, type, at, [&](const Scalar& x) { put_number(out, x); });
        break;
      case TypeBase::Ints:
        given_value<Ints>(out, type, at, [&](const Ints& xs) { put_ints(out, xs); });
        break;
      default:
        put(out, Input::Other);
    }
  }
}

}  // namespace flambeau::profiler
