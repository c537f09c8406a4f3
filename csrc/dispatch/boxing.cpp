#include "dispatch/boxing.h"

namespace flambeau {

const Tensor& Unbox<Tensor>::from(const Value& v) {
  static const Tensor none;
  return std::holds_alternative<std::monostate>(v) ? none : std::get<Tensor>(v);
}

OptTensors Unbox<OptTensors>::from(const Value& v) {
  if (auto* xs = std::get_if<Tensors>(&v)) return OptTensors(xs->begin(), xs->end());
  return std::get<OptTensors>(v);
}

Values single(Value x) {
  Values out;
  out.push_back(std::move(x));
  return out;
}

}  // namespace flambeau
