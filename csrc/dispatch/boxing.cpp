#include "dispatch/boxing.h"

namespace flambeau {

const Tensor& Unbox<Tensor>::from(const Value& v) {
  static const Tensor none;
  return v.is_none() ? none : v.get<Tensor>();
}

OptTensors Unbox<OptTensors>::from(const Value& v) {
  if (auto* xs = v.get_if<Tensors>()) return OptTensors(xs->begin(), xs->end());
  return v.get<OptTensors>();
}

Values single(Value x) {
  Values out;
  out.push_back(std::move(x));
  return out;
}

}  // namespace flambeau
