#include "dispatch/autocast.h"

#include <memory>
#include <unordered_map>

#include "autograd/meta.h"
#include "gen/ops.h"

namespace flambeau {

namespace {

struct Lowered {
  Tensor leaf, cast;  // the leaf is held so that its address stays its own
  uint32_t version;
};
using Cache = std::unordered_map<const TensorImpl*, Lowered>;
thread_local std::unique_ptr<Cache> cache;  // null until first used

bool eligible(const Tensor& x) {
  return x.defined() && x.is_floating_point() && x.dtype() != DType::Float64 &&
         x.device().type() == DeviceType::CPU;
}

bool cacheable(const Tensor& x, DType dtype) {
  return modes.autocast_cache && !intercepted() && dtype == modes.autocast_dtype &&
         x.dtype() == DType::Float32 && x.requires_grad() && !x.has_flag(kIsView) && is_leaf(x);
}

Tensor cast(const Tensor& x, DType dtype) {
  if (!eligible(x) || x.dtype() == dtype) return x;
  if (!cacheable(x, dtype)) return ops::_to_copy(x, dtype);
  if (!cache) cache = std::make_unique<Cache>();
  Lowered& kept = (*cache)[x.impl()];
  bool fits = kept.cast.defined() && kept.version == x.version() && kept.cast.dtype() == dtype &&
              (kept.cast.requires_grad() || !modes.grad);
  if (!fits) kept = {x, ops::_to_copy(x, dtype), x.version()};
  return kept.cast;
}

template <class F>
void for_each_tensor(Values& args, F f) {
  for (Value& v : args) {
    if (auto* x = v.get_if<Tensor>()) {
      f(*x);
    } else if (auto* xs = v.get_if<Tensors>()) {
      for (Tensor& t : *xs) f(t);
    } else if (auto* os = v.get_if<OptTensors>()) {
      for (OptTensor& o : *os)
        if (o) f(*o);
    }
  }
}

DType target(const OpDesc& op, Values& args) {
  if (op.autocast == Autocast::Float32) return DType::Float32;
  DType dtype = modes.autocast_dtype;
  if (op.autocast == Autocast::Widest)
    for_each_tensor(args, [&](const Tensor& x) {
      if (eligible(x) && x.dtype() == DType::Float32) dtype = DType::Float32;
    });
  return dtype;
}

}  // namespace

Values autocast_call(const OpDesc& op, Values args) {
  DType dtype = target(op, args);
  NoAutocastGuard off;
  for_each_tensor(args, [&](Tensor& x) { x = cast(x, dtype); });
  // The body of a composite runs where it is called: interceptors see the operations in it.
  if (!intercepted() || op.kind == OpKind::Composite) return call_op(op, args);
  return dispatch_boxed(op, std::move(args));
}

void clear_autocast_cache() {
  cache.reset();
}

}  // namespace flambeau
