// Moments of runs and of columns. A block that is in cache is summed around its first entry: equal
// entries have exactly no deviation. Where that entry lies far from the others, it is summed again
// around the mean; where floats are too small or too large for their squares, in double. Included
// by *.isa.cpp files only.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/moments.h"
#include "kernels/scalar_math.h"

namespace flambeau::kernels::FB_ISA {

// Row r of rows that lie `stride` bytes apart.
template <class T>
FB_INLINE const T* row(const void* x, int64_t stride, int64_t r) {
  return reinterpret_cast<const T*>(static_cast<const char*>(x) + r * stride);
}

namespace moments {

// Whether sums around a centre tell the moments: with NaN they do not.
struct Fit {
  bool near;      // the centre is so near the mean that the distance cost two bits at most
  bool in_range;  // squares neither under- nor overflowed
};

// Sums of n deviations from `centre` and of their squares.
struct Deviations {
  double n, each, centre, sum, squares;  // each: 1 / n

  FB_INLINE double m2() const { return squares - sum * sum * each; }
  FB_INLINE double mean() const { return centre + sum * each; }
  FB_INLINE Moment moment() const {
    double rest = m2();
    return {n, mean(), rest < 0 ? 0 : rest};
  }
  // How sums in S fit.
  template <class S>
  FB_INLINE Fit fit() const {
    return {m2() * 4 >= squares,
            !std::is_same_v<S, float> || ((squares > 1e-28) & (squares < 1e37))};
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

// Sums a block around what it was made with, its first entries, and again where they are no centre.
template <class T, class Block>
FB_INLINE void sum_up(Block& block) {
  Fit fit = block.template add<T>();
  if (!fit.near && fit.in_range) {
    block.centre_at_means();
    fit = block.template add<T>();
  }
  if (!fit.near || !fit.in_range) {
    block.centre_at_means();
    if (!block.template add<double>().near) {
      block.centre_at_means();
      block.template add<double>();
    }
  }
}

// Numbers side by side.
template <class T>
struct Run {
  static constexpr int64_t kMost = 2048;  // sums in T stay short
  const T* x;
  int64_t n;
  Deviations at;

  FB_INLINE Run(const T* x, int64_t n) : x(x), n(n) { centre(static_cast<double>(x[0])); }
  FB_INLINE void centre(double c) { at.centre = finite_or_zero(c); }
  FB_INLINE void centre_at_means() { centre(at.mean()); }
  template <class S>
  FB_INLINE Fit add() {
    constexpr int L = 32;
    const S c = static_cast<S>(at.centre);
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
    at = {count, 1 / count, at.centre, static_cast<double>(total<L>(sums)),
          static_cast<double>(total<L>(squares))};
    return at.template fit<S>();
  }
};

// Columns of rows that lie `stride` bytes apart, each around its own centre.
template <class T>
struct Columns {
  static constexpr int64_t kMost = 128, kMostRows = 64;
  const T* x;
  int64_t stride, rows, cols;
  Deviations at[kMost];

  FB_INLINE Columns(const T* x, int64_t stride, int64_t rows, int64_t cols)
      : x(x), stride(stride), rows(rows), cols(cols) {
    for (int64_t c = 0; c < cols; ++c) centre(c, static_cast<double>(x[c]));
  }
  FB_INLINE void centre(int64_t c, double x) { at[c].centre = finite_or_zero(x); }
  FB_INLINE void centre_at_means() {
    for (int64_t c = 0; c < cols; ++c) centre(c, at[c].mean());
  }
  template <class S>
  FB_INLINE Fit add() {
    S centre[kMost], sum[kMost], squares[kMost];
    for (int64_t c = 0; c < cols; ++c) {
      centre[c] = static_cast<S>(at[c].centre);
      sum[c] = squares[c] = 0;
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T* y = row<T>(x, stride, r);
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c) {
        S d = static_cast<S>(y[c]) - centre[c];
        sum[c] += d;
        squares[c] += d * d;
      }
    }
    const double count = static_cast<double>(rows), each = 1 / count;
    Fit all = {true, true};
    for (int64_t c = 0; c < cols; ++c) {
      at[c] = {count, each, at[c].centre, static_cast<double>(sum[c]),
               static_cast<double>(squares[c])};
      Fit fit = at[c].template fit<S>();
      all.near &= fit.near, all.in_range &= fit.in_range;
    }
    return all;
  }
};

// Adds n entries to `acc`.
template <class T>
FB_INLINE void add_run(Moment& acc, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; i += Run<T>::kMost) {
    Run<T> block(x + i, n - i < Run<T>::kMost ? n - i : Run<T>::kMost);
    sum_up<T>(block);
    acc = join(acc, block.at.moment());
  }
}

// Adds rows of `cols` entries, `stride` bytes apart, to one `acc` per column.
template <class T>
FB_INLINE void add_rows(Moment* acc, const T* x, int64_t stride, int64_t rows, int64_t cols) {
  using Block = Columns<T>;
  for (int64_t c = 0; c < cols; c += Block::kMost) {
    const int64_t width = cols - c < Block::kMost ? cols - c : Block::kMost;
    for (int64_t r = 0; r < rows; r += Block::kMostRows) {
      Block block(row<T>(x, stride, r) + c, stride,
                  rows - r < Block::kMostRows ? rows - r : Block::kMostRows, width);
      sum_up<T>(block);
      for (int64_t k = 0; k < width; ++k) acc[c + k] = join(acc[c + k], block.at[k].moment());
    }
  }
}

}  // namespace moments
}  // namespace flambeau::kernels::FB_ISA
