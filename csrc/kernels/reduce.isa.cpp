#include "kernels/reduce_loops.h"

#include "kernels/moments_loops.h"
#include "kernels/pointwise.h"
#include "kernels/scalar_math.h"

namespace flambeau::kernels::FB_ISA {
namespace {

constexpr int64_t kBlock =
    1024;  // elements summed in their own precision before they go to the accumulator
constexpr int kLanes = 64;         // partial results of a run, for the vectoriser
constexpr int64_t kRowBlock = 32;  // rows summed so
constexpr int64_t kAhead = 2048;   // bytes between what is summed and what is fetched

template <class T>
constexpr int compute_of = std::is_same_v<T, float>      ? 0
                           : std::is_same_v<T, double>   ? 1
                           : std::is_same_v<T, int64_t>  ? 2
                           : std::is_same_v<T, uint64_t> ? 3
                           : std::is_same_v<T, bool>     ? 4
                           : std::is_same_v<T, C64>      ? 5
                                                         : 6;
template <class T>
using wide_of = std::conditional_t<std::is_same_v<T, float>, double,
                                   std::conditional_t<std::is_same_v<T, C64>, C128, T>>;

// Calls `run` for each of several runs.
template <class F>
void runs_of(void* acc, const void* x, int64_t stride, int64_t rows, int64_t n, int64_t base,
             double p) {
  for (int64_t r = 0; r < rows; ++r)
    F::run(static_cast<typename F::Acc*>(acc) + r, static_cast<const char*>(x) + r * stride, n,
           base, p);
}

// Sums
// -----------------------------------------------------------------------------------------------------------------
// An operation of this kind maps elements and adds: in blocks of their own precision, blocks in a
// wider one. `Adds` is the one whose loops it shares.

template <class T>
struct Plain {
  using Item = T;
  using Adds = Plain;
  FB_INLINE static T map(T x, double) { return x; }
  FB_INLINE static wide_of<T> finish(wide_of<T> a, double, int64_t) { return a; }
};
template <class T>
struct Average : Plain<T> {
  FB_INLINE static wide_of<T> finish(wide_of<T> a, double, int64_t n) {
    auto k = static_cast<double>(n);
    if constexpr (is_complex_v<T>)
      return {a.re / k, a.im / k};
    else
      return a / k;
  }
};
template <class T>
struct NoNan : Plain<T> {
  using Adds = NoNan;
  FB_INLINE static T map(T x, double) { return s::isnan(x) ? lift<T>(0) : x; }
};
template <class T>
struct Magnitude {
  using Item = real_of<T>;
  using Adds = Magnitude;
  FB_INLINE static Item map(T x, double) { return s::abs(x); }
  FB_INLINE static wide_of<Item> finish(wide_of<Item> a, double, int64_t) { return a; }
};
template <class T>
struct Square {
  using Item = real_of<T>;
  using Adds = Square;
  FB_INLINE static Item map(T x, double) {
    if constexpr (is_complex_v<T>)
      return x.re * x.re + x.im * x.im;
    else
      return x * x;
  }
  FB_INLINE static wide_of<Item> finish(wide_of<Item> a, double, int64_t) {
    return __builtin_sqrt(a);
  }
};
template <class T>
struct Power {
  using Item = real_of<T>;
  using Adds = Power;
  FB_INLINE static Item map(T x, double p) { return s::pow(s::abs(x), static_cast<Item>(p)); }
  FB_INLINE static wide_of<Item> finish(wide_of<Item> a, double p, int64_t) {
    return __builtin_pow(a, 1 / p);
  }
};
struct Count {
  using Item = int64_t;
  using Adds = Count;
  FB_INLINE static int64_t map(uint8_t x, double) { return x != 0; }
  FB_INLINE static int64_t finish(int64_t a, double, int64_t) { return a; }
};

template <class T, class Op>
struct Sums {
  using Item = typename Op::Item;
  using Acc = wide_of<Item>;

  static void init(void* acc, int64_t count) { std::memset(acc, 0, count * sizeof(Acc)); }

  FB_INLINE static void run(void* acc, const void* data, int64_t n, int64_t, double p) {
    auto* x = static_cast<const T*>(data);
    Acc total = *static_cast<Acc*>(acc);
    constexpr int L = kLanes * 4 / sizeof(Item) > 0 ? kLanes * 4 / sizeof(Item) : 1;
    int64_t i = 0;
    for (; i + L <= n;) {
      Item lanes[L] = {};
      int64_t end = i + kBlock < n ? i + kBlock : n;
      for (; i + L <= end; i += L) {
        // The processor's own prefetchers stop at the end of every page.
        for (size_t line = 0; line < L * sizeof(T); line += 64)
          __builtin_prefetch(reinterpret_cast<const char*>(x + i) + kAhead + line);
#pragma GCC ivdep
        for (int k = 0; k < L; ++k) lanes[k] = s::add(lanes[k], Op::map(read<T>(x + i + k), p));
      }
      for (int width = L / 2; width > 0; width /= 2)
        for (int k = 0; k < width; ++k) lanes[k] = s::add(lanes[k], lanes[k + width]);
      total = s::add(total, lift<Acc>(lanes[0]));
    }
    for (; i < n; ++i) total = s::add(total, lift<Acc>(Op::map(read<T>(x + i), p)));
    *static_cast<Acc*>(acc) = total;
  }

  static void rows(void* acc, const void* data, int64_t stride, int64_t rows, int64_t cols, int64_t,
                   double p) {
    auto* total = static_cast<Acc*>(acc);
    constexpr int64_t W = 8192 / sizeof(Item);  // wide, for the prefetchers
    for (int64_t c0 = 0; c0 < cols; c0 += W) {
      int64_t width = cols - c0 < W ? cols - c0 : W;
      for (int64_t r0 = 0; r0 < rows; r0 += kRowBlock) {
        Item part[W];
        int64_t end = r0 + kRowBlock < rows ? r0 + kRowBlock : rows;
        const T* first = row<T>(data, stride, r0) + c0;
#pragma GCC ivdep
        for (int64_t c = 0; c < width; ++c) part[c] = Op::map(read<T>(first + c), p);
        int64_t r = r0 + 1;
        for (; r + 4 <= end; r += 4) {
          const T *a = row<T>(data, stride, r) + c0, *b = row<T>(data, stride, r + 1) + c0;
          const T *d = row<T>(data, stride, r + 2) + c0, *e = row<T>(data, stride, r + 3) + c0;
#pragma GCC ivdep
          for (int64_t c = 0; c < width; ++c)
            part[c] = s::add(
                part[c], s::add(s::add(Op::map(read<T>(a + c), p), Op::map(read<T>(b + c), p)),
                                s::add(Op::map(read<T>(d + c), p), Op::map(read<T>(e + c), p))));
        }
        for (; r < end; ++r) {
          const T* a = row<T>(data, stride, r) + c0;
#pragma GCC ivdep
          for (int64_t c = 0; c < width; ++c) part[c] = s::add(part[c], Op::map(read<T>(a + c), p));
        }
#pragma GCC ivdep
        for (int64_t c = 0; c < width; ++c)
          total[c0 + c] = s::add(total[c0 + c], lift<Acc>(part[c]));
      }
    }
  }

  static void combine(void* acc, const void* other, int64_t count) {
    auto* a = static_cast<Acc*>(acc);
    auto* b = static_cast<const Acc*>(other);
    for (int64_t i = 0; i < count; ++i) a[i] = s::add(a[i], b[i]);
  }
  static void finish(const void* acc, int64_t count, int64_t n, double p, void* out, void*) {
    auto* a = static_cast<const Acc*>(acc);
    auto* y = static_cast<Acc*>(out);
    for (int64_t i = 0; i < count; ++i) y[i] = Op::finish(a[i], p, n);
  }
  using Loop = Sums<T, typename Op::Adds>;
  static constexpr ReduceLoops loops = {
      sizeof(Acc), init, runs_of<Loop>, Loop::rows, Loop::combine, finish, compute_of<Acc>, -1};
};

// Folds
// ----------------------------------------------------------------------------------------------------------------
// Operations whose accumulator has the element's (mapped) type and whose order does not matter.

template <class T>
struct Product {
  using Acc = wide_of<T>;
  static Acc start() { return lift<Acc>(1); }
  FB_INLINE static Acc map(T x) { return lift<Acc>(x); }
  FB_INLINE static Acc join(Acc a, Acc b) { return s::mul(a, b); }
};
template <class T>
struct Largest {
  using Acc = T;
  static T start() {
    if constexpr (is_float_v<T>)
      return -std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::lowest();
  }
  FB_INLINE static T map(T x) { return x; }
  FB_INLINE static T join(T a, T b) { return s::maximum(a, b); }
};
template <class T>
struct Smallest {
  using Acc = T;
  static T start() {
    if constexpr (is_float_v<T>)
      return std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::max();
  }
  FB_INLINE static T map(T x) { return x; }
  FB_INLINE static T join(T a, T b) { return s::minimum(a, b); }
};
template <class T>
struct LargestSize {
  using Acc = real_of<T>;
  static Acc start() { return 0; }
  FB_INLINE static Acc map(T x) { return s::abs(x); }
  FB_INLINE static Acc join(Acc a, Acc b) { return s::maximum(a, b); }
};
template <class T>
struct SmallestSize {
  using Acc = real_of<T>;
  static Acc start() { return std::numeric_limits<Acc>::infinity(); }
  FB_INLINE static Acc map(T x) { return s::abs(x); }
  FB_INLINE static Acc join(Acc a, Acc b) { return s::minimum(a, b); }
};
struct Every {
  using Acc = uint8_t;
  static Acc start() { return 1; }
  FB_INLINE static Acc map(uint8_t x) { return x != 0; }
  FB_INLINE static Acc join(Acc a, Acc b) { return a & b; }
};
struct Some : Every {
  static Acc start() { return 0; }
  FB_INLINE static Acc join(Acc a, Acc b) { return a | b; }
};

template <class T, class Op, class Out = typename Op::Acc>
struct Folds {
  using Acc = typename Op::Acc;
  static void init(void* acc, int64_t count) {
    for (int64_t i = 0; i < count; ++i) static_cast<Acc*>(acc)[i] = Op::start();
  }
  FB_INLINE static void run(void* acc, const void* data, int64_t n, int64_t, double) {
    auto* x = static_cast<const T*>(data);
    constexpr int L = kLanes;
    Acc lanes[L];
    init(lanes, L);
    int64_t i = 0;
    for (; i + L <= n; i += L)
#pragma GCC ivdep
      for (int k = 0; k < L; ++k) lanes[k] = Op::join(lanes[k], Op::map(read<T>(x + i + k)));
    Acc total = *static_cast<Acc*>(acc);
    if (i > 0) {
      for (int width = L / 2; width > 0; width /= 2)
        for (int k = 0; k < width; ++k) lanes[k] = Op::join(lanes[k], lanes[k + width]);
      total = Op::join(total, lanes[0]);
    }
    for (; i < n; ++i) total = Op::join(total, Op::map(read<T>(x + i)));
    *static_cast<Acc*>(acc) = total;
  }
  static void rows(void* acc, const void* data, int64_t stride, int64_t rows, int64_t cols, int64_t,
                   double) {
    auto* total = static_cast<Acc*>(acc);
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      const T *a = row<T>(data, stride, r), *b = row<T>(data, stride, r + 1);
      const T *d = row<T>(data, stride, r + 2), *e = row<T>(data, stride, r + 3);
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c)
        total[c] = Op::join(total[c],
                            Op::join(Op::join(Op::map(read<T>(a + c)), Op::map(read<T>(b + c))),
                                     Op::join(Op::map(read<T>(d + c)), Op::map(read<T>(e + c)))));
    }
    for (; r < rows; ++r) {
      const T* x = row<T>(data, stride, r);
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c) total[c] = Op::join(total[c], Op::map(read<T>(x + c)));
    }
  }
  static void combine(void* acc, const void* other, int64_t count) {
    auto* a = static_cast<Acc*>(acc);
    auto* b = static_cast<const Acc*>(other);
    for (int64_t i = 0; i < count; ++i) a[i] = Op::join(a[i], b[i]);
  }
  static void finish(const void* acc, int64_t count, int64_t, double, void* out, void*) {
    auto* a = static_cast<const Acc*>(acc);
    for (int64_t i = 0; i < count; ++i) static_cast<Out*>(out)[i] = static_cast<Out>(a[i]);
  }
  static constexpr ReduceLoops loops = {sizeof(Acc), init,   runs_of<Folds>,  rows,
                                        combine,     finish, compute_of<Out>, -1};
};
template <class T, class Op>
struct FoldsWide : Folds<T, Op> {  // complex accumulators are structs: no cast
  static void finish(const void* acc, int64_t count, int64_t, double, void* out, void*) {
    std::memcpy(out, acc, count * sizeof(typename Op::Acc));
  }
  using F = Folds<T, Op>;
  static constexpr ReduceLoops loops = {
      sizeof(typename Op::Acc),     F::init, runs_of<F>, F::rows, F::combine, finish,
      compute_of<typename Op::Acc>, -1};
};

// Moments
// --------------------------------------------------------------------------------------------------------------
// Mean and sum of squared deviations.

template <class T, bool Root = false>
struct Moments {
  using Acc = Moment;
  static void init(void* acc, int64_t count) { std::memset(acc, 0, count * sizeof(Acc)); }
  FB_INLINE static void run(void* acc, const void* data, int64_t n, int64_t, double) {
    moments::add_run(*static_cast<Acc*>(acc), static_cast<const T*>(data), n);
  }
  static void rows(void* acc, const void* data, int64_t stride, int64_t rows, int64_t cols, int64_t,
                   double) {
    moments::add_rows(static_cast<Acc*>(acc), static_cast<const T*>(data), stride, rows, cols);
  }
  static void combine(void* acc, const void* other, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      static_cast<Acc*>(acc)[i] =
          join(static_cast<Acc*>(acc)[i], static_cast<const Acc*>(other)[i]);
  }
  // p: the correction. Variance and mean.
  static void finish(const void* acc, int64_t count, int64_t n, double p, void* out, void* out2) {
    auto* a = static_cast<const Acc*>(acc);
    double divisor = static_cast<double>(n) - p;
    for (int64_t i = 0; i < count; ++i) {
      double var = a[i].m2 / (divisor > 0 ? divisor : 0.0);
      static_cast<double*>(out)[i] = Root ? __builtin_sqrt(var) : var;
      static_cast<double*>(out2)[i] = n ? a[i].mean : std::numeric_limits<double>::quiet_NaN();
    }
  }
  using Loop = Moments<T>;
  static constexpr ReduceLoops loops = {
      sizeof(Acc), init, runs_of<Loop>, Loop::rows, Loop::combine, finish, 1, 1};
};

// Extremes with positions
// ------------------------------------------------------------------------------------------------
// The first of equal ones; NaN is beyond everything.

template <class T, bool Most>
struct Extremes {
  struct Acc {
    T value;
    int64_t at;  // -1: none yet
  };
  FB_INLINE static bool beats(T a, T b) {
    bool better = Most ? a > b : a < b;
    return better | ((a != a) & (b == b));
  }
  static void init(void* acc, int64_t count) {
    for (int64_t i = 0; i < count; ++i) static_cast<Acc*>(acc)[i] = {T(0), -1};
  }
  static void take(Acc& acc, T value, int64_t at) {
    if (acc.at < 0 || beats(value, acc.value)) acc = {value, at};
  }
  FB_INLINE static void run(void* acc, const void* data, int64_t n, int64_t base, double p) {
    if (n <= 0) return;
    auto* x = static_cast<const T*>(data);
    T best;
    using Op = std::conditional_t<Most, Largest<T>, Smallest<T>>;
    Folds<T, Op>::init(&best, 1);
    Folds<T, Op>::run(&best, x, n, 0, p);
    take(*static_cast<Acc*>(acc), best, base + first_of(x, n, best));
  }
  // Where the first entry equal to best (which occurs) lies.
  FB_INLINE static int64_t first_of(const T* x, int64_t n, T best) {
    using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    constexpr int64_t B = 64;
    bool is_nan = best != best;
    int64_t at = 0;
    for (; at + B <= n; at += B) {
      I place = B;
      for (I k = 0; k < B; ++k) {
        bool hit = (x[at + k] == best) | (is_nan & (x[at + k] != x[at + k]));
        I here = hit ? k : static_cast<I>(B);
        place = here < place ? here : place;
      }
      if (place < B) return at + place;
    }
    while (at + 1 < n && !(is_nan ? x[at] != x[at] : x[at] == best)) ++at;
    return at;
  }
  static void rows(void* acc, const void* data, int64_t stride, int64_t rows, int64_t cols,
                   int64_t base, double) {
    auto* total = static_cast<Acc*>(acc);
    constexpr int64_t W = 1024;
    using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    for (int64_t c0 = 0; c0 < cols; c0 += W) {
      int64_t width = cols - c0 < W ? cols - c0 : W;
      T best[W];
      I at[W];
      for (int64_t c = 0; c < width; ++c) best[c] = row<T>(data, stride, 0)[c0 + c], at[c] = 0;
      for (int64_t r = 1; r < rows; ++r) {
        const T* x = row<T>(data, stride, r) + c0;
        I index = static_cast<I>(r);
#pragma GCC ivdep
        for (int64_t c = 0; c < width; ++c) {
          T v = x[c], b = best[c];
          bool better = beats(v, b);
          best[c] = better ? v : b;
          at[c] = better ? index : at[c];
        }
      }
      for (int64_t c = 0; c < width; ++c) take(total[c0 + c], best[c], base + at[c]);
    }
  }
  static void combine(void* acc, const void* other, int64_t count) {
    auto* b = static_cast<const Acc*>(other);
    for (int64_t i = 0; i < count; ++i)
      if (b[i].at >= 0) take(static_cast<Acc*>(acc)[i], b[i].value, b[i].at);
  }
  static void finish(const void* acc, int64_t count, int64_t, double, void* out, void* out2) {
    auto* a = static_cast<const Acc*>(acc);
    for (int64_t i = 0; i < count; ++i) {
      static_cast<T*>(out)[i] = a[i].value;
      static_cast<int64_t*>(out2)[i] = a[i].at;
    }
  }
  static constexpr ReduceLoops loops = {sizeof(Acc), init,   runs_of<Extremes>, rows,
                                        combine,     finish, compute_of<T>,     2};
};

// Log-sum-exp
// ----------------------------------------------------------------------------------------------------------
// Sums of exp(x - top) with the greatest entry of each block as its top.

template <class T>
struct LogSumExps {
  struct Acc {
    double top, sum;
  };
  static Acc joined(Acc a, Acc b) {
    if (b.sum == 0) return a;
    if (a.sum == 0) return b;
    double top = a.top > b.top ? a.top : b.top;
    return {top, weighed(a, top) + weighed(b, top)};
  }
  // Sums that are infinite or NaN stay so: the factor may be 0.
  static double weighed(Acc a, double top) {
    return s::isfinite(a.sum) ? a.sum * __builtin_exp(a.top - top) : a.sum;
  }
  // Infinite tops would make NaN of what is infinite; NaN comes back through the sum.
  FB_INLINE static T shift(T top) { return s::isfinite(top) ? top : T(0); }

  static void init(void* acc, int64_t count) { std::memset(acc, 0, count * sizeof(Acc)); }
  FB_INLINE static void run(void* acc, const void* data, int64_t n, int64_t, double) {
    auto* x = static_cast<const T*>(data);
    auto& total = *static_cast<Acc*>(acc);
    constexpr int64_t B = 2048;
    T e[B];
    for (int64_t i = 0; i < n; i += B) {
      int64_t m = n - i < B ? n - i : B;
      T top;
      Folds<T, Largest<T>>::init(&top, 1);
      Folds<T, Largest<T>>::run(&top, x + i, m, 0, 0);
      top = shift(top);
#pragma GCC ivdep
      for (int64_t j = 0; j < m; ++j) e[j] = s::exp(x[i + j] - top);
      double sum = 0;
      Sums<T, Plain<T>>::run(&sum, e, m, 0, 0);
      total = joined(total, {static_cast<double>(top), sum});
    }
  }
  static void rows(void* acc, const void* data, int64_t stride, int64_t rows, int64_t cols, int64_t,
                   double) {
    auto* total = static_cast<Acc*>(acc);
    constexpr int64_t W = 128, R = 32;
    for (int64_t c0 = 0; c0 < cols; c0 += W) {
      int64_t width = cols - c0 < W ? cols - c0 : W;
      for (int64_t r0 = 0; r0 < rows; r0 += R) {
        int64_t end = rows - r0 < R ? rows : r0 + R;
        T top[W], sum[W];
        Folds<T, Largest<T>>::init(top, width);
        Folds<T, Largest<T>>::rows(top, row<T>(data, stride, r0) + c0, stride, end - r0, width, 0,
                                   0);
        for (int64_t c = 0; c < width; ++c) top[c] = shift(top[c]), sum[c] = 0;
        for (int64_t r = r0; r < end; ++r) {
          const T* x = row<T>(data, stride, r) + c0;
#pragma GCC ivdep
          for (int64_t c = 0; c < width; ++c) sum[c] += s::exp(x[c] - top[c]);
        }
        for (int64_t c = 0; c < width; ++c)
          total[c0 + c] =
              joined(total[c0 + c], {static_cast<double>(top[c]), static_cast<double>(sum[c])});
      }
    }
  }
  static void combine(void* acc, const void* other, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      static_cast<Acc*>(acc)[i] =
          joined(static_cast<Acc*>(acc)[i], static_cast<const Acc*>(other)[i]);
  }
  static void finish(const void* acc, int64_t count, int64_t, double, void* out, void*) {
    for (int64_t i = 0; i < count; ++i) {
      Acc a = static_cast<const Acc*>(acc)[i];
      static_cast<double*>(out)[i] = a.top + __builtin_log(a.sum);
    }
  }
  static constexpr ReduceLoops loops = {
      sizeof(Acc), init, runs_of<LogSumExps>, rows, combine, finish, 1, -1};
};

// The table
// --------------------------------------------------------------------------------------------------------------

// Sums and products of signed numbers have the bits of those of unsigned ones.
ReduceLoops as_signed(ReduceLoops loops) {
  loops.result = compute_of<int64_t>;
  return loops;
}

template <class T>
ReduceLoops pick(Reduction op) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (op == Reduction::Sum || op == Reduction::Prod) return as_signed(pick<uint64_t>(op));
  } else if (op == Reduction::Sum) {
    return Sums<T, Plain<T>>::loops;
  } else if (op == Reduction::Prod) {
    return FoldsWide<T, Product<T>>::loops;
  }
  if constexpr (!std::is_integral_v<T>) {
    switch (op) {
      case Reduction::Mean:
        return Sums<T, Average<T>>::loops;
      case Reduction::NanSum:
        return Sums<T, NoNan<T>>::loops;
      case Reduction::Norm1:
        return Sums<T, Magnitude<T>>::loops;
      case Reduction::Norm2:
        return Sums<T, Square<T>>::loops;
      case Reduction::NormP:
        return Sums<T, Power<T>>::loops;
      case Reduction::NormMax:
        return Folds<T, LargestSize<T>>::loops;
      case Reduction::NormMin:
        return Folds<T, SmallestSize<T>>::loops;
      default:
        break;
    }
  }
  if constexpr (is_float_v<T>) {
    switch (op) {
      case Reduction::Moments:
        return Moments<T>::loops;
      case Reduction::Deviation:
        return Moments<T, true>::loops;
      case Reduction::LogSumExp:
        return LogSumExps<T>::loops;
      default:
        break;
    }
  }
  if constexpr (!is_complex_v<T>) {
    switch (op) {
      case Reduction::Max:
        return Folds<T, Largest<T>>::loops;
      case Reduction::Min:
        return Folds<T, Smallest<T>>::loops;
      case Reduction::ArgMax:
        return Extremes<T, true>::loops;
      case Reduction::ArgMin:
        return Extremes<T, false>::loops;
      default:
        break;
    }
  }
  return {};
}

ReduceLoops pick_bool(Reduction op) {
  switch (op) {
    case Reduction::All:
      return Folds<uint8_t, Every, bool>::loops;
    case Reduction::Any:
      return Folds<uint8_t, Some, bool>::loops;
    case Reduction::Count:
      return Sums<uint8_t, Count>::loops;
    default:
      return {};
  }
}

struct Table {
  ReduceLoops entries[kReductions][kComputeTypes];
  Table() {
    for (int i = 0; i < kReductions; ++i) {
      auto op = static_cast<Reduction>(i);
      entries[i][0] = pick<float>(op);
      entries[i][1] = pick<double>(op);
      entries[i][2] = pick<int64_t>(op);
      entries[i][3] = pick<uint64_t>(op);
      entries[i][4] = pick_bool(op);
      entries[i][5] = pick<C64>(op);
      entries[i][6] = pick<C128>(op);
    }
  }
};

}  // namespace

const ReduceLoops& reduce_loops(int reduction, int compute) {
  static const Table table;
  return table.entries[reduction][compute];
}

}  // namespace flambeau::kernels::FB_ISA
