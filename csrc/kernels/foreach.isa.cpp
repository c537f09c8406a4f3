// Loops of csrc/kernels/foreach.h. The formulas are the published update rules in the order in
// which the optimisers of flambeau/optim apply them; each element is read and written once.
#include "kernels/foreach.h"

#include <cmath>

#include "kernels/isa_types.h"

namespace flambeau::kernels::FB_ISA {
namespace {

template <class T>
struct MathType {
  using type = T;
};
template <>
struct MathType<F16> {
  using type = float;
};
template <>
struct MathType<BF16> {
  using type = float;
};
template <class T>
using Math = typename MathType<T>::type;

template <class M>
FB_INLINE M larger(M a, M b) {
  return (a < b) | (b != b) ? b : a;
}  // NaN wins
template <class M>
FB_INLINE M smaller(M a, M b) {
  return (b < a) | (b != b) ? b : a;
}

template <class M>
FB_INLINE M mixed(M x, M y, M w) {
  return w < M(0.5) ? x + w * (y - x) : y - (y - x) * (1 - w);
}

template <ListOp op, class M>
FB_INLINE M applied(M x, M y, M z, M c) {
  switch (op) {
    case ListOp::Add:
      return x + c * y;
    case ListOp::Sub:
      return x - c * y;
    case ListOp::Mul:
      return x * y;
    case ListOp::Div:
      return x / y;
    case ListOp::ClampMin:
      return larger(x, y);
    case ListOp::ClampMax:
      return smaller(x, y);
    case ListOp::AddNumber:
      return x + c;
    case ListOp::SubNumber:
      return x - c;
    case ListOp::MulNumber:
      return x * c;
    case ListOp::DivNumber:
      return x / c;
    case ListOp::ClampMinNumber:
      return larger(x, c);
    case ListOp::ClampMaxNumber:
      return smaller(x, c);
    case ListOp::Addcmul:
      return x + c * y * z;
    case ListOp::Addcdiv:
      return x + c * y / z;
    case ListOp::Lerp:
      return mixed(x, y, c);
  }
  return x;
}

template <ListOp op, class T>
void list_step(void* x_, const void* y_, const void* z_, int64_t n, double c_) {
  using M = Math<T>;
  auto* x = static_cast<T*>(x_);
  auto *y = static_cast<const T*>(y_), *z = static_cast<const T*>(z_);
  M c = static_cast<M>(c_);
  if constexpr (rounds_number(op)) c = cast<M>(cast<T>(c));
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    x[i] = cast<T>(applied<op, M>(cast<M>(x[i]), cast<M>(y[i]), cast<M>(z[i]), c));
}

template <class T, bool has_momentum>
void sgd_run(T* p, const T* g, T* buffer, int64_t n, const SgdStep& s) {
  using M = Math<T>;
  M lr = static_cast<M>(s.lr), momentum = static_cast<M>(s.momentum),
    damp = static_cast<M>(1 - s.dampening);
  M decay = static_cast<M>(s.weight_decay), sign = s.maximize ? M(-1) : M(1);
  bool decays = s.weight_decay != 0, first = s.first_step, nesterov = s.nesterov;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    M x = cast<M>(p[i]), d = sign * cast<M>(g[i]);
    if (decays) d = d + decay * x;
    if constexpr (has_momentum) {
      M b = first ? d : momentum * cast<M>(buffer[i]) + damp * d;
      buffer[i] = cast<T>(b);
      d = nesterov ? d + momentum * b : b;
    }
    p[i] = cast<T>(x - lr * d);
  }
}

template <class T>
void sgd(void* p, const void* g, void* buffer, int64_t n, const SgdStep& s) {
  auto* x = static_cast<T*>(p);
  auto* d = static_cast<const T*>(g);
  if (buffer)
    sgd_run<T, true>(x, d, static_cast<T*>(buffer), n, s);
  else
    sgd_run<T, false>(x, d, x, n, s);
}

template <class T, bool amsgrad>
void adam_run(T* p, const T* g, T* m, T* v, T* largest, int64_t n, const AdamStep& s) {
  using M = Math<T>;
  M w1 = static_cast<M>(1 - s.beta1), beta2 = static_cast<M>(s.beta2),
    w2 = static_cast<M>(1 - s.beta2);
  M eps = static_cast<M>(s.eps), decay = static_cast<M>(s.weight_decay),
    shrink = static_cast<M>(s.shrink);
  M step_size = static_cast<M>(s.step_size), root = static_cast<M>(s.root),
    sign = s.maximize ? M(-1) : M(1);
  bool decays = s.weight_decay != 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    M x = cast<M>(p[i]) * shrink, d = sign * cast<M>(g[i]);
    if (decays) d = d + decay * x;
    M mean = mixed(cast<M>(m[i]), d, w1);
    M square = beta2 * cast<M>(v[i]) + w2 * d * d;
    m[i] = cast<T>(mean);
    v[i] = cast<T>(square);
    if constexpr (amsgrad) {
      square = larger(cast<M>(largest[i]), square);
      largest[i] = cast<T>(square);
    }
    M denominator = std::sqrt(square) / root + eps;
    p[i] = cast<T>(x - step_size * mean / denominator);
  }
}

template <class T>
void adam(void* p, const void* g, void* m, void* v, void* largest, int64_t n, const AdamStep& s) {
  auto *x = static_cast<T*>(p), *a = static_cast<T*>(m), *b = static_cast<T*>(v);
  auto* d = static_cast<const T*>(g);
  if (s.amsgrad)
    adam_run<T, true>(x, d, a, b, static_cast<T*>(largest), n, s);
  else
    adam_run<T, false>(x, d, a, b, b, n, s);
}

template <class T>
ListLoop list_loop_of(ListOp op) {
  switch (op) {
#define X(name, text) \
  case ListOp::name:  \
    return list_step<ListOp::name, T>;
    FB_LIST_OPS(X)
#undef X
  }
  return nullptr;
}

// Calls f with a value of the float type number `dtype`; null when it is none.
template <class F>
auto with_float(int dtype, const F& f) -> decltype(f(0.0f)) {
  int i = 0;
#define X(T)                                                   \
  if (i++ == dtype) {                                          \
    if constexpr (is_half_v<T> || std::is_floating_point_v<T>) \
      return f(T());                                           \
    else                                                       \
      return nullptr;                                          \
  }
  FB_ISA_TYPES(X)
#undef X
  return nullptr;
}

}  // namespace

ListLoop list_loop(ListOp op, int dtype) {
  return with_float(dtype, [&](auto t) -> ListLoop { return list_loop_of<decltype(t)>(op); });
}
SgdLoop sgd_loop(int dtype) {
  return with_float(dtype, [](auto t) -> SgdLoop { return sgd<decltype(t)>; });
}
AdamLoop adam_loop(int dtype) {
  return with_float(dtype, [](auto t) -> AdamLoop { return adam<decltype(t)>; });
}

}  // namespace flambeau::kernels::FB_ISA
