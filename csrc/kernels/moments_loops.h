// Moments of runs and of columns. A block that is in cache is summed around its first entry: equal
// entries have exactly no deviation. Where that entry lies far from the others, it is summed again
// around the mean; where floats are too small or too large for their squares, in double. Included
// by *.isa.cpp files only.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/moments.h"
#include "kernels/scalar_math.h"

namespace flambeau::kernels::FB_ISA::moments {

// Sums of n deviations from `centre` and of their squares.
struct Deviations {
  double n, each, centre, sum, squares;  // each: 1 / n

  FB_INLINE double m2() const { return squares - sum * sum * each; }
  FB_INLINE double mean() const { return centre + sum * each; }
  FB_INLINE Moment moment() const {
    double rest = m2();
    return {n, mean(), rest < 0 ? 0 : rest};
  }
  // Whether the centre is so near the mean that the distance cost two bits at most.
  FB_INLINE bool near() const { return m2() * 4 >= squares; }
  // Whether squares in T neither under- nor overflowed. Not with NaN.
  template <class T>
  FB_INLINE bool in_range() const {
    return !std::is_same_v<T, float> || ((squares > 1e-28) & (squares < 1e37));
  }
};

FB_INLINE double finite_or_zero(double x) {
  return s::isfinite(x) ? x : 0;
}

// The sum of L numbers, in pairs: L long chains of additions would wait for each other.
template <int L, class S>
FB_INLINE S total(const S* x) {
  if constexpr (L == 1)
    return x[0];
  else
    return total<L / 2>(x) + total<L / 2>(x + L / 2);
}

template <class S, class T>
FB_INLINE Deviations run_around(double centre, const T* x, int64_t n) {
  constexpr int L = 32;
  const S c = static_cast<S>(centre);
  S sums[L] = {}, squares[L] = {};
  int64_t i = 0;
  for (; i + L <= n; i += L)
#pragma GCC ivdep
    for (int k = 0; k < L; ++k) {
      S d = static_cast<S>(x[i + k]) - c;
      sums[k] += d;
      squares[k] += d * d;
    }
  for (int k = 0; i < n; ++i, ++k) {
    S d = static_cast<S>(x[i]) - c;
    sums[k] += d;
    squares[k] += d * d;
  }
  auto count = static_cast<double>(n);
  return {count, 1 / count, centre, static_cast<double>(total<L>(sums)),
          static_cast<double>(total<L>(squares))};
}

// Adds n entries to `acc`.
template <class T>
FB_INLINE void add_run(Moment& acc, const T* x, int64_t n) {
  constexpr int64_t kBlock = 2048;  // sums in T stay short
  for (int64_t i = 0; i < n; i += kBlock) {
    int64_t m = n - i < kBlock ? n - i : kBlock;
    double first = finite_or_zero(static_cast<double>(x[i]));
    Deviations block = run_around<T>(first, x + i, m);
    if (!block.near() && block.template in_range<T>())
      block = run_around<T>(block.mean(), x + i, m);
    if (!block.near() || !block.template in_range<T>()) {
      block = run_around<double>(first, x + i, m);
      if (!block.near()) block = run_around<double>(finite_or_zero(block.mean()), x + i, m);
    }
    acc = join(acc, block.moment());
  }
}

template <class T>
FB_INLINE const T* row_at(const T* x, int64_t stride, int64_t r) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(x) + r * stride);
}

// Columns of a block, each around its own centre.
struct Columns {
  static constexpr int kMost = 128;
  Deviations at[kMost];

  FB_INLINE void centre(int64_t c, double x) { at[c].centre = finite_or_zero(x); }
  FB_INLINE void centre_at_means(int64_t cols) {
    for (int64_t c = 0; c < cols; ++c) centre(c, at[c].mean());
  }
  FB_INLINE bool near(int64_t cols) const {
    bool all = true;
    for (int64_t c = 0; c < cols; ++c) all &= at[c].near();
    return all;
  }
  template <class T>
  FB_INLINE bool in_range(int64_t cols) const {
    bool all = true;
    for (int64_t c = 0; c < cols; ++c) all &= at[c].template in_range<T>();
    return all;
  }
  template <class S, class T>
  FB_INLINE void add(const T* x, int64_t stride, int64_t rows, int64_t cols) {
    S centre[kMost], sum[kMost], squares[kMost];
    for (int64_t c = 0; c < cols; ++c) {
      centre[c] = static_cast<S>(at[c].centre);
      sum[c] = squares[c] = 0;
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T* y = row_at(x, stride, r);
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c) {
        S d = static_cast<S>(y[c]) - centre[c];
        sum[c] += d;
        squares[c] += d * d;
      }
    }
    const double count = static_cast<double>(rows), each = 1 / count;
    for (int64_t c = 0; c < cols; ++c)
      at[c] = {count, each, at[c].centre, static_cast<double>(sum[c]),
               static_cast<double>(squares[c])};
  }
};

// Adds rows of `cols` entries, `stride` bytes apart, to one `acc` per column.
template <class T>
FB_INLINE void add_rows(Moment* acc, const T* x, int64_t stride, int64_t rows, int64_t cols) {
  constexpr int64_t kRows = 64;
  for (int64_t c0 = 0; c0 < cols; c0 += Columns::kMost) {
    int64_t width = cols - c0 < Columns::kMost ? cols - c0 : Columns::kMost;
    for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
      int64_t m = rows - r0 < kRows ? rows - r0 : kRows;
      const T* first = row_at(x, stride, r0) + c0;
      Columns block;
      for (int64_t c = 0; c < width; ++c) block.centre(c, static_cast<double>(first[c]));
      block.add<T>(first, stride, m, width);
      if (!block.near(width)) {
        block.centre_at_means(width);
        block.add<T>(first, stride, m, width);
      }
      if (!block.near(width) || !block.template in_range<T>(width)) {
        block.centre_at_means(width);
        block.add<double>(first, stride, m, width);
        block.centre_at_means(width);
        block.add<double>(first, stride, m, width);
      }
      for (int64_t c = 0; c < width; ++c) acc[c0 + c] = join(acc[c0 + c], block.at[c].moment());
    }
  }
}

}  // namespace flambeau::kernels::FB_ISA::moments
