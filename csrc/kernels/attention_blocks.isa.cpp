// Forward and backward of attention for one instruction set; see attention_blocks.h.
#include "kernels/attention_blocks.h"

#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "kernels/providers/gemm_core.h"
#include "kernels/vector_exp.h"

namespace flambeau::kernels::FB_ISA {
namespace {

using tiles::Buffer;
using tiles::Epilogue;
using tiles::gemm_strided;
using tiles::Strides;

constexpr int64_t kQueries = 192, kKeys = 512;  // block of scores: 384 KB of floats

template <class T>
T* head_of(const AttentionOperand& x, int64_t b, int64_t h) {
  return static_cast<T*>(x.data) + b * x.batch + h * x.head;
}

template <class T>
constexpr T kNone = -std::numeric_limits<T>::infinity();

// Adds the mask and the causal rule to a block of scores.
template <class T>
void restrict_scores(const AttentionCall& c, int64_t b, int64_t h, int64_t q0, int64_t rows,
                     int64_t k0, int64_t columns, T* scores, int64_t ld) {
  for (int64_t i = 0; i < rows; ++i) {
    T* row = scores + i * ld;
    if (c.mask) {
      const int64_t at = b * c.mask_stride[0] + h * c.mask_stride[1] + (q0 + i) * c.mask_stride[2] +
                         k0 * c.mask_stride[3];
      if (c.mask_is_bool) {
        const bool* m = static_cast<const bool*>(c.mask) + at;
        for (int64_t j = 0; j < columns; ++j)
          if (!m[j * c.mask_stride[3]]) row[j] = kNone<T>;
      } else {
        const T* m = static_cast<const T*>(c.mask) + at;
        if (c.mask_stride[3] == 1)
          for (int64_t j = 0; j < columns; ++j) row[j] += m[j];
        else
          for (int64_t j = 0; j < columns; ++j) row[j] += m[j * c.mask_stride[3]];
      }
    }
    if (c.causal)
      for (int64_t j = std::max<int64_t>(0, q0 + i + 1 - k0); j < columns; ++j) row[j] = kNone<T>;
  }
}

template <class T>
T row_max(const T* x, int64_t n) {
  constexpr int W = kLanes<T>;
  int64_t i = 0;
  T best = kNone<T>;
  if (n >= W) {
    Vec<T> m = load<T>(x);
    for (i = W; i + W <= n; i += W) {
      const Vec<T> v = load<T>(x + i);
      m = (v > m) | (v != v) ? v : m;
    }
    for (int l = 0; l < W; ++l) best = m[l] > best || m[l] != m[l] ? m[l] : best;
  }
  for (; i < n; ++i) best = x[i] > best || x[i] != x[i] ? x[i] : best;
  return best;
}

// x = exp(x - shift), and the sum.
template <class T>
T exp_row(T* x, int64_t n, T shift) {
  constexpr int W = kLanes<T>;
  Vec<T> total{};
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    const Vec<T> e = vexp<T>(load<T>(x + i) - shift);
    store<T>(x + i, e);
    total += e;
  }
  T sum = tiles::lane_sum<T>(total);
  if (i < n) {
    const Vec<T> e = vexp<T>(load_part<T>(x + i, n - i, kNone<T>) - shift);
    store_part<T>(x + i, e, n - i);
    for (int64_t j = i; j < n; ++j) sum += x[j];
  }
  return sum;
}

template <class T>
void query_block(const AttentionCall& c, int64_t b, int64_t h, int64_t q0, T* scores, T* sums) {
  const int64_t rows = std::min(kQueries, c.queries - q0), kv = h / (c.heads / c.kv_heads);
  const T* q = head_of<T>(c.q, b, h) + q0 * c.q.row;
  const T* k = head_of<T>(c.k, b, kv);
  const T* v = head_of<T>(c.v, b, kv);
  T* out = head_of<T>(c.out, b, h) + q0 * c.out.row;
  T best[kQueries], total[kQueries];
  std::fill_n(best, rows, kNone<T>);
  std::fill_n(total, rows, T(0));
  const int64_t end = c.causal ? std::min(c.keys, q0 + rows) : c.keys;
  for (int64_t k0 = 0; k0 < end; k0 += kKeys) {
    const int64_t columns = std::min(kKeys, end - k0);
    Epilogue<T> e;
    e.alpha = static_cast<T>(c.scale);
    gemm_strided<T>(rows, columns, c.dim, {q, c.q.row, 1}, {k + k0 * c.k.row, 1, c.k.row}, scores,
                    kKeys, e, 1);
    restrict_scores<T>(c, b, h, q0, rows, k0, columns, scores, kKeys);
    for (int64_t i = 0; i < rows; ++i) {
      T* row = scores + i * kKeys;
      const T high = row_max<T>(row, columns), now = best[i] > high ? best[i] : high;
      const T shift = now == kNone<T> ? T(0) : now;
      const T sum = exp_row<T>(row, columns, shift);
      const T keep = k0 ? std::exp(best[i] - shift) : T(0);
      total[i] = total[i] * keep + sum;
      if (k0 && keep != T(1))
        for (int64_t j = 0; j < c.value_dim; ++j) sums[i * c.value_dim + j] *= keep;
      best[i] = now;
    }
    Epilogue<T> add;
    add.beta = k0 ? T(1) : T(0);
    gemm_strided<T>(rows, c.value_dim, columns, {scores, kKeys, 1}, {v + k0 * c.v.row, c.v.row, 1},
                    sums, c.value_dim, add, 1);
  }
  T* lse = static_cast<T*>(c.lse) + (b * c.heads + h) * c.queries + q0;
  for (int64_t i = 0; i < rows; ++i) {
    const bool empty = total[i] == T(0) || end == 0;
    const T inverse = empty ? T(0) : 1 / total[i];
    for (int64_t j = 0; j < c.value_dim; ++j)
      out[i * c.out.row + j] = empty ? T(0) : sums[i * c.value_dim + j] * inverse;
    lse[i] = empty ? -kNone<T> : best[i] + std::log(total[i]);
  }
}

template <class T>
void forward(const AttentionCall& c) {
  const int64_t blocks = tiles::ceil_div(c.queries, kQueries), all = c.batch * c.heads * blocks;
  const double work =
      static_cast<double>(c.keys + 1) * static_cast<double>(c.dim + c.value_dim) * 64;
  parallel_for(0, all, std::max<int64_t>(1, static_cast<int64_t>(2e6 / work)),
               [&](int64_t from, int64_t to) {
                 Buffer<T> scores(kQueries * kKeys), sums(kQueries * c.value_dim + 1);
                 // A causal row of blocks costs more the later it is: heads alternate direction so
                 // that shares are even.
                 for (int64_t t = from; t < to; ++t) {
                   const int64_t head = t / blocks, block = t % blocks;
                   query_block<T>(c, head / c.heads, head % c.heads, block * kQueries, scores.get(),
                                  sums.get());
                 }
               });
}

// The gradients of one head. P and dS are recomputed block by block.
template <class T>
void head_backward(const AttentionGradCall& c, int64_t b, int64_t h, T* p, T* ds, T* delta) {
  const int64_t kv = h / (c.heads / c.kv_heads), d = c.dim, e = c.value_dim;
  const T* q = head_of<T>(c.q, b, h);
  const T* k = head_of<T>(c.k, b, kv);
  const T* v = head_of<T>(c.v, b, kv);
  const T* go = head_of<T>(c.go, b, h);
  const T* out = head_of<T>(c.out, b, h);
  T* gq = head_of<T>(c.gq, b, h);
  T* gk = head_of<T>(c.gk, b, h);
  T* gv = head_of<T>(c.gv, b, h);
  const T* lse = static_cast<const T*>(c.lse) + (b * c.heads + h) * c.queries;
  for (int64_t i = 0; i < c.queries; ++i) {
    T s = 0;
    for (int64_t j = 0; j < e; ++j) s += go[i * c.go.row + j] * out[i * c.out.row + j];
    delta[i] = s;
  }
  for (int64_t i = 0; i < c.keys; ++i) {
    std::fill_n(gk + i * c.gk.row, d, T(0));
    std::fill_n(gv + i * c.gv.row, e, T(0));
  }
  Epilogue<T> scaled, plain, add;
  scaled.alpha = static_cast<T>(c.scale);
  add.beta = 1;
  for (int64_t q0 = 0; q0 < c.queries; q0 += kQueries) {
    const int64_t rows = std::min(kQueries, c.queries - q0),
                  end = c.causal ? std::min(c.keys, q0 + rows) : c.keys;
    const T* qb = q + q0 * c.q.row;
    const T* gb = go + q0 * c.go.row;
    for (int64_t i = 0; i < rows && end == 0; ++i) std::fill_n(gq + (q0 + i) * c.gq.row, d, T(0));
    for (int64_t k0 = 0; k0 < end; k0 += kKeys) {
      const int64_t columns = std::min(kKeys, end - k0);
      gemm_strided<T>(rows, columns, d, {qb, c.q.row, 1}, {k + k0 * c.k.row, 1, c.k.row}, p, kKeys,
                      scaled, 1);
      restrict_scores<T>(c, b, h, q0, rows, k0, columns, p, kKeys);
      for (int64_t i = 0; i < rows; ++i) exp_row<T>(p + i * kKeys, columns, lse[q0 + i]);
      gemm_strided<T>(columns, e, rows, {p, 1, kKeys}, {gb, c.go.row, 1}, gv + k0 * c.gv.row,
                      c.gv.row, add, 1);
      gemm_strided<T>(rows, columns, e, {gb, c.go.row, 1}, {v + k0 * c.v.row, 1, c.v.row}, ds,
                      kKeys, plain, 1);
      const T scale = static_cast<T>(c.scale);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          T& x = ds[i * kKeys + j];
          x = p[i * kKeys + j] * (x - delta[q0 + i]) * scale;
        }
      gemm_strided<T>(columns, d, rows, {ds, 1, kKeys}, {qb, c.q.row, 1}, gk + k0 * c.gk.row,
                      c.gk.row, add, 1);
      gemm_strided<T>(rows, d, columns, {ds, kKeys, 1}, {k + k0 * c.k.row, c.k.row, 1},
                      gq + q0 * c.gq.row, c.gq.row, k0 ? add : plain, 1);
    }
  }
}

template <class T>
void backward(const AttentionGradCall& c) {
  parallel_for(0, c.batch * c.heads, 1, [&](int64_t from, int64_t to) {
    Buffer<T> p(kQueries * kKeys), ds(kQueries * kKeys), delta(c.queries + 1);
    for (int64_t t = from; t < to; ++t)
      head_backward<T>(c, t / c.heads, t % c.heads, p.get(), ds.get(), delta.get());
  });
}

}  // namespace

void attention_forward(const AttentionCall& call) {
  if (call.dtype == DType::Float32) return forward<float>(call);
  forward<double>(call);
}

void attention_backward(const AttentionGradCall& call) {
  if (call.dtype == DType::Float32) return backward<float>(call);
  backward<double>(call);
}

}  // namespace flambeau::kernels::FB_ISA
