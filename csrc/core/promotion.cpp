#include "core/promotion.h"

namespace flambeau {

namespace {

int class_of(DType d) {
  if (d == DType::Bool) return 0;
  if (is_integral(d)) return 1;
  return is_complex(d) ? 3 : 2;
}

// `low` has its say on `high` only when its class is above. Precision is that of `high` when both
// have one.
DType combine(DType high, DType low) {
  if (is_floating_point(high) && is_complex(low)) return to_complex(high);
  return class_of(low) > class_of(high) ? promote(high, low) : high;
}

}  // namespace

void ResultType::note(int rank, DType d) {
  best_[rank] = seen_[rank] ? promote(best_[rank], d) : d;
  seen_[rank] = true;
}

void ResultType::add(const Tensor& x) {
  if (x.is_wrapped_number()) {
    // A Python float or complex has the default type, whatever the 0-d tensor holds it in.
    DType d = x.is_complex()          ? to_complex(default_dtype())
              : x.is_floating_point() ? default_dtype()
                                      : x.dtype();
    note(2, d);
  } else {
    note(x.dim() > 0 ? 0 : 1, x.dtype());
  }
}

void ResultType::add(const Scalar& x) {
  note(2, x.dtype());
}

DType ResultType::get() const {
  DType out = DType::Bool;
  bool any = false;
  for (int rank = 0; rank < 3; ++rank) {
    if (!seen_[rank]) continue;
    out = any ? combine(out, best_[rank]) : best_[rank];
    any = true;
  }
  return out;
}

DType result_type(const Tensors& xs) {
  ResultType t;
  for (const Tensor& x : xs) t.add(x);
  return t.get();
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating_point(from) && is_integral(to, true)) return false;
  return from == DType::Bool || to != DType::Bool;
}

}  // namespace flambeau
