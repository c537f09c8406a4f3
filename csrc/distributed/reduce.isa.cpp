// Loops of distributed/reduce.h. A block of each rank's values at a time is joined in a buffer that
// stays in the first cache, so the output may be an input.
#include "distributed/reduce.h"

#include "kernels/isa_types.h"

namespace flambeau::kernels::FB_ISA {
namespace {

using distributed::ReduceOp;
constexpr int64_t kBlock = 1024;

// What a type is joined in: float for halves, bytes 0 and 1 for truth values, and unsigned whole
// numbers, which wrap.
template <class T>
struct Joined {
  using type = T;
};
template <>
struct Joined<F16> {
  using type = float;
};
template <>
struct Joined<BF16> {
  using type = float;
};
template <>
struct Joined<Truth> {
  using type = uint8_t;
};

template <class T>
FB_INLINE typename Joined<T>::type load(T x) {
  if constexpr (is_half_v<T>) return widen(x);
  else if constexpr (std::is_same_v<T, Truth>) return x.byte != 0;
  else return x;
}
template <class T>
FB_INLINE T store(typename Joined<T>::type x) {
  if constexpr (is_half_v<T>) return narrow<T>(x);
  else if constexpr (std::is_same_v<T, Truth>) return {static_cast<uint8_t>(x != 0)};
  else return x;
}

template <class T>
using Unsigned = std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>;
// Products of small unsigned types would be made in int, and may not overflow there.
template <class T>
using Wide = std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned, Unsigned<T>>;

template <ReduceOp op, class A>
FB_INLINE A joined(A a, A b) {
  if constexpr (is_complex_v<A>) {
    if constexpr (op == ReduceOp::Product)
      return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    else return {a.re + b.re, a.im + b.im};
  } else if constexpr (std::is_integral_v<A>) {
    using W = Wide<A>;
    if constexpr (op == ReduceOp::Product) return static_cast<A>(W(a) * W(b));
    else if constexpr (op == ReduceOp::Min) return b < a ? b : a;
    else if constexpr (op == ReduceOp::Max) return a < b ? b : a;
    else if constexpr (op == ReduceOp::BitAnd) return a & b;
    else if constexpr (op == ReduceOp::BitOr) return a | b;
    else if constexpr (op == ReduceOp::BitXor) return a ^ b;
    else return static_cast<A>(W(a) + W(b));
  } else {
    if constexpr (op == ReduceOp::Product) return a * b;
    else if constexpr (op == ReduceOp::Min) return (b < a) | (b != b) ? b : a;  // NaN wins
    else if constexpr (op == ReduceOp::Max) return (a < b) | (b != b) ? b : a;
    else return a + b;
  }
}

// 1 + 1 is true: a sum of truth values must not wrap.
template <class T, ReduceOp op>
inline constexpr ReduceOp kMeant = std::is_same_v<T, Truth> && op == ReduceOp::Sum ? ReduceOp::BitOr
                                                                                  : op;

template <class T, ReduceOp op>
void join_block(T* __restrict out, const T* const* inputs, int ranks, int64_t at, int64_t n) {
  using A = typename Joined<T>::type;
  A sums[kBlock];
  const T* first = inputs[0] + at;
  for (int64_t i = 0; i < n; ++i) sums[i] = load(first[i]);
  for (int r = 1; r < ranks; ++r) {
    const T* x = inputs[r] + at;
    for (int64_t i = 0; i < n; ++i) sums[i] = joined<kMeant<T, op>>(sums[i], load(x[i]));
  }
  if constexpr (op == ReduceOp::Avg) {
    if constexpr (is_complex_v<A>) {
      for (int64_t i = 0; i < n; ++i) sums[i].re /= ranks, sums[i].im /= ranks;
    } else {
      for (int64_t i = 0; i < n; ++i) sums[i] = static_cast<A>(sums[i] / ranks);
    }
  }
  for (int64_t i = 0; i < n; ++i) out[i] = store<T>(sums[i]);
}

template <class T, ReduceOp op>
void join_all(void* out, const void* const* inputs, int ranks, int64_t n) {
  auto* to = static_cast<T*>(out);
  auto* from = reinterpret_cast<const T* const*>(inputs);
  for (int64_t at = 0; at < n; at += kBlock)
    join_block<T, op>(to + at, from, ranks, at, n - at < kBlock ? n - at : kBlock);
}

// Which operators a type has is checked before (process_group.cpp); others do nothing here.
template <class T>
void by_op(ReduceOp op, void* out, const void* const* inputs, int ranks, int64_t n) {
  constexpr bool whole = std::is_integral_v<typename Joined<T>::type>;
  switch (op) {
    case ReduceOp::Sum: return join_all<T, ReduceOp::Sum>(out, inputs, ranks, n);
    case ReduceOp::Product: return join_all<T, ReduceOp::Product>(out, inputs, ranks, n);
    case ReduceOp::Avg:
      if constexpr (!whole) return join_all<T, ReduceOp::Avg>(out, inputs, ranks, n);
      return;
    case ReduceOp::Min:
      if constexpr (!is_complex_v<T>) return join_all<T, ReduceOp::Min>(out, inputs, ranks, n);
      return;
    case ReduceOp::Max:
      if constexpr (!is_complex_v<T>) return join_all<T, ReduceOp::Max>(out, inputs, ranks, n);
      return;
    case ReduceOp::BitAnd:
      if constexpr (whole) return join_all<T, ReduceOp::BitAnd>(out, inputs, ranks, n);
      return;
    case ReduceOp::BitOr:
      if constexpr (whole) return join_all<T, ReduceOp::BitOr>(out, inputs, ranks, n);
      return;
    case ReduceOp::BitXor:
      if constexpr (whole) return join_all<T, ReduceOp::BitXor>(out, inputs, ranks, n);
      return;
  }
}

}  // namespace

void join_ranks(int op, int dtype, void* out, const void* const* inputs, int ranks, int64_t n) {
  using Run = void (*)(ReduceOp, void*, const void* const*, int, int64_t);
  static constexpr Run kRuns[] = {
#define X(T) by_op<T>,
      FB_ISA_TYPES(X)
#undef X
  };
  kRuns[dtype](static_cast<ReduceOp>(op), out, inputs, ranks, n);
}

}  // namespace flambeau::kernels::FB_ISA
