// Forward and backward of attention for one instruction set; see attention_blocks.h.
#include "kernels/attention_blocks.h"

#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "kernels/move.h"
#include "kernels/providers/gemm.h"
#include "kernels/providers/gemm_core.h"
#include "kernels/vector_exp.h"

namespace flambeau::kernels::FB_ISA {
namespace {

using tiles::Buffer;
using tiles::Epilogue;
using tiles::gemm_strided;
using tiles::Strides;

// A block of scores: 209 KB of floats. Products over its keys are small enough to read it where it
// lies; its rows are a line longer than that, or they would share sets of the first-level cache.
constexpr int64_t kQueries = 192, kKeys = 256, kStride = kKeys + 16;
// So few queries, as when tokens are decoded one by one, read keys once, where they lie: packing
// them for a product would cost more than it.
constexpr int64_t kFew = 4;

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
        const auto* m = static_cast<const uint8_t*>(c.mask) + at;
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

// NaN is passed over: it comes back with the sum of exponentials.
template <class T>
T row_max(const T* x, int64_t n) {
  constexpr int W = kLanes<T>;
  Vec<T> a = tiles::splat<T>(kNone<T>), b = a;
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    const Vec<T> v = load<T>(x + i), w = load<T>(x + i + W);
    a = v > a ? v : a;
    b = w > b ? w : b;
  }
  a = b > a ? b : a;
  T best = kNone<T>;
  for (int l = 0; l < W; ++l) best = a[l] > best ? a[l] : best;
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

template <class T>
T row_dot(const T* x, const T* y, int64_t n) {
  constexpr int W = kLanes<T>;
  Vec<T> sums{};
  int64_t i = 0;
  for (; i + W <= n; i += W) sums += load<T>(x + i) * load<T>(y + i);
  T sum = tiles::lane_sum<T>(sums);
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

// x = exp(x - shift), and the sum.
template <class T>
T exp_row(T* x, int64_t n, T shift) {
  constexpr int W = kLanes<T>;
  Vec<T> total{}, more{};
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    const Vec<T> e = vexp<T>(load<T>(x + i) - shift), f = vexp<T>(load<T>(x + i + W) - shift);
    store<T>(x + i, e);
    store<T>(x + i + W, f);
    total += e;
    more += f;
  }
  total += more;
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

// A head's matrices and where they are in memory, in the computing type; its products of a block of
// queries with keys [k0, k0 + columns), and of the weights that these get with the values.
template <class T>
struct Head {
  const AttentionCall& c;
  const T *q, *k, *v;
  T* out;
  int64_t q_row, k_row, v_row, out_row;

  void scores(int64_t rows, int64_t k0, int64_t columns, T* to) const {
    if (rows <= kFew) {
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < rows; ++i)
          to[i * kStride + j] =
              row_dot(q + i * q_row, k + (k0 + j) * k_row, c.dim) * static_cast<T>(c.scale);
      return;
    }
    Epilogue<T> e;
    e.alpha = static_cast<T>(c.scale);
    gemm_strided<T>(rows, columns, c.dim, {q, q_row, 1}, {k + k0 * k_row, 1, k_row}, to, kStride, e,
                    1);
  }
  void add_values(int64_t rows, int64_t k0, int64_t columns, const T* weights, T* sums) const {
    Epilogue<T> add;
    add.beta = k0 ? T(1) : T(0);
    gemm_strided<T>(rows, c.value_dim, columns, {weights, kStride, 1}, {v + k0 * v_row, v_row, 1},
                    sums, c.value_dim, add, 1);
  }
};

// The same of bfloat16 by the tiles of AMX: keys and values are packed, weights are rounded.
struct TiledHead {
  const AttentionCall& c;
  const BFloat16* q;
  const uint32_t *k, *v;
  float* out;
  BFloat16* rounded;
  int64_t q_row, out_row;

  void scores(int64_t rows, int64_t k0, int64_t columns, float* to) const {
    amx_product({rows, columns, c.dim, q, q_row, 1, k + amx_words(k0, c.dim), c.dim, to, kStride,
                 static_cast<float>(c.scale)});
  }
  void add_values(int64_t rows, int64_t k0, int64_t columns, const float* weights,
                  float* sums) const {
    for (int64_t i = 0; i < rows; ++i)
      amx_round(weights + i * kStride, columns, rounded + i * kKeys);
    amx_product({rows, c.value_dim, columns, rounded, kKeys, 1,
                 v + k0 / kKeys * amx_words(c.value_dim, kKeys), std::min(kKeys, c.keys - k0), sums,
                 c.value_dim, 1, k0 ? 1.0f : 0.0f});
  }
};

template <class T, class Head>
void query_block(const AttentionCall& c, const Head& x, int64_t b, int64_t h, int64_t q0, T* scores,
                 T* sums) {
  const int64_t rows = std::min(kQueries, c.queries - q0);
  T best[kQueries], total[kQueries];
  std::fill_n(best, rows, kNone<T>);
  std::fill_n(total, rows, T(0));
  const int64_t end = c.causal ? std::min(c.keys, q0 + rows) : c.keys;
  for (int64_t k0 = 0; k0 < end; k0 += kKeys) {
    const int64_t columns = std::min(kKeys, end - k0);
    x.scores(rows, k0, columns, scores);
    restrict_scores<T>(c, b, h, q0, rows, k0, columns, scores, kStride);
    for (int64_t i = 0; i < rows; ++i) {
      T* row = scores + i * kStride;
      const T high = row_max<T>(row, columns), now = best[i] > high ? best[i] : high;
      const T shift = now == kNone<T> ? T(0) : now;
      const T sum = exp_row<T>(row, columns, shift);
      const T keep = k0 ? std::exp(best[i] - shift) : T(0);
      total[i] = total[i] * keep + sum;
      if (k0 && keep != T(1))
        for (int64_t j = 0; j < c.value_dim; ++j) sums[i * c.value_dim + j] *= keep;
      best[i] = now;
    }
    x.add_values(rows, k0, columns, scores, sums);
  }
  T* lse = static_cast<T*>(c.lse) + (b * c.heads + h) * c.queries + q0;
  for (int64_t i = 0; i < rows; ++i) {
    const bool empty = total[i] == T(0) || end == 0;
    const T inverse = empty ? T(0) : 1 / total[i];
    for (int64_t j = 0; j < c.value_dim; ++j)
      x.out[i * x.out_row + j] = empty ? T(0) : sums[i * c.value_dim + j] * inverse;
    lse[i] = empty ? -kNone<T> : best[i] + std::log(total[i]);
  }
}

// Rows of another type, in the computing type and back; a head at a time stays in the cache.
template <class T>
class Widened {
 public:
  explicit Widened(const AttentionCall& c)
      : c_(c),
        size_(itemsize(c.stored)),
        load_(converter(static_cast<int>(c.stored), static_cast<int>(c.dtype))),
        store_(converter(static_cast<int>(c.dtype), static_cast<int>(c.stored))),
        k_(c.keys * c.dim + 1),
        v_(c.keys * c.value_dim + 1),
        q_(kQueries * c.dim + 1),
        out_(kQueries * c.value_dim + 1) {}

  Head<T> block(int64_t b, int64_t h, int64_t q0) {
    const int64_t kv = h / (c_.heads / c_.kv_heads), rows = std::min(kQueries, c_.queries - q0);
    if (b != b_ || kv != kv_) {
      read(c_.k, b, kv, 0, c_.keys, c_.dim, k_.get());
      read(c_.v, b, kv, 0, c_.keys, c_.value_dim, v_.get());
      b_ = b, kv_ = kv;
    }
    read(c_.q, b, h, q0, rows, c_.dim, q_.get());
    return {c_,     q_.get(), k_.get(),     v_.get(),    out_.get(),
            c_.dim, c_.dim,   c_.value_dim, c_.value_dim};
  }
  void finish(int64_t b, int64_t h, int64_t q0) {
    for (int64_t i = 0; i < std::min(kQueries, c_.queries - q0); ++i)
      store_(out_.get() + i * c_.value_dim, row_of(c_.out, b, h, q0 + i), c_.value_dim);
  }

 private:
  char* row_of(const AttentionOperand& x, int64_t b, int64_t h, int64_t i) const {
    return static_cast<char*>(x.data) + (b * x.batch + h * x.head + i * x.row) * size_;
  }
  void read(const AttentionOperand& x, int64_t b, int64_t h, int64_t first, int64_t rows,
            int64_t columns, T* to) const {
    for (int64_t i = 0; i < rows; ++i) load_(row_of(x, b, h, first + i), to + i * columns, columns);
  }

  const AttentionCall& c_;
  int64_t size_, b_ = -1, kv_ = -1;
  ConvertFn load_, store_;
  Buffer<T> k_, v_, q_, out_;
};

// Heads of bfloat16 for the tiles of AMX.
class Tiled {
 public:
  explicit Tiled(const AttentionCall& c)
      : c_(c),
        k_(amx_words(c.keys, c.dim) + 1),
        v_(tiles::ceil_div(c.keys, kKeys) * amx_words(c.value_dim, kKeys) + 1),
        rounded_(kQueries * kKeys),
        out_(kQueries * c.value_dim + 1) {}

  TiledHead block(int64_t b, int64_t h, int64_t q0) {
    const int64_t kv = h / (c_.heads / c_.kv_heads);
    if (b != b_ || kv != kv_) {
      amx_pack(head_of<BFloat16>(c_.k, b, kv), c_.k.row, 1, c_.keys, c_.dim, k_.get());
      for (int64_t k0 = 0; k0 < c_.keys; k0 += kKeys)
        amx_pack(head_of<BFloat16>(c_.v, b, kv) + k0 * c_.v.row, 1, c_.v.row, c_.value_dim,
                 std::min(kKeys, c_.keys - k0),
                 v_.get() + k0 / kKeys * amx_words(c_.value_dim, kKeys));
      b_ = b, kv_ = kv;
    }
    return {c_,         head_of<BFloat16>(c_.q, b, h) + q0 * c_.q.row,
            k_.get(),   v_.get(),
            out_.get(), rounded_.get(),
            c_.q.row,   c_.value_dim};
  }
  void finish(int64_t b, int64_t h, int64_t q0) {
    BFloat16* to = head_of<BFloat16>(c_.out, b, h) + q0 * c_.out.row;
    for (int64_t i = 0; i < std::min(kQueries, c_.queries - q0); ++i)
      amx_round(out_.get() + i * c_.value_dim, c_.value_dim, to + i * c_.out.row);
  }

 private:
  const AttentionCall& c_;
  int64_t b_ = -1, kv_ = -1;
  Buffer<uint32_t> k_, v_;
  Buffer<BFloat16> rounded_;
  Buffer<float> out_;
};

// Heads that are used where they lie.
template <class T>
struct Direct {
  const AttentionCall& c;

  Head<T> block(int64_t b, int64_t h, int64_t q0) const {
    const int64_t kv = h / (c.heads / c.kv_heads);
    return {c,
            head_of<T>(c.q, b, h) + q0 * c.q.row,
            head_of<T>(c.k, b, kv),
            head_of<T>(c.v, b, kv),
            head_of<T>(c.out, b, h) + q0 * c.out.row,
            c.q.row,
            c.k.row,
            c.v.row,
            c.out.row};
  }
  void finish(int64_t, int64_t, int64_t) const {}
};

template <class T, class Heads>
void forward_of(const AttentionCall& c) {
  const int64_t blocks = tiles::ceil_div(c.queries, kQueries), all = c.batch * c.heads * blocks;
  const double work = static_cast<double>(c.keys + 1) * static_cast<double>(c.dim + c.value_dim) *
                      static_cast<double>(std::clamp<int64_t>(c.queries, 8, 64));
  parallel_for(0, all, std::max<int64_t>(1, static_cast<int64_t>(2e6 / work)),
               [&](int64_t from, int64_t to) {
                 Buffer<T> scores(kQueries * kStride), sums(kQueries * c.value_dim + 1);
                 Heads heads{c};
                 for (int64_t t = from; t < to; ++t) {
                   const int64_t b = t / blocks / c.heads, h = t / blocks % c.heads,
                                 q0 = t % blocks * kQueries;
                   query_block<T>(c, heads.block(b, h, q0), b, h, q0, scores.get(), sums.get());
                   heads.finish(b, h, q0);
                 }
               });
}

template <class T>
void forward(const AttentionCall& c) {
  if (c.stored == c.dtype) return forward_of<T, Direct<T>>(c);
  if constexpr (std::is_same_v<T, float>)
    if (c.tiled) return forward_of<T, Tiled>(c);
  forward_of<T, Widened<T>>(c);
}

// Heads of queries that share keys and values add to one gradient of these: a group is one
// thread's.
inline bool is_first_of_group(const AttentionCall& c, int64_t h) {
  return h % (c.heads / c.kv_heads) == 0;
}
template <class T>
void clear_group(const AttentionGradCall& c, int64_t b, int64_t kv, T zero) {
  for (int64_t i = 0; i < c.keys; ++i) {
    std::fill_n(head_of<T>(c.gk, b, kv) + i * c.gk.row, c.dim, zero);
    std::fill_n(head_of<T>(c.gv, b, kv) + i * c.gv.row, c.value_dim, zero);
  }
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
  T* gk = head_of<T>(c.gk, b, kv);
  T* gv = head_of<T>(c.gv, b, kv);
  const T* lse = static_cast<const T*>(c.lse) + (b * c.heads + h) * c.queries;
  for (int64_t i = 0; i < c.queries; ++i)
    delta[i] = row_dot(go + i * c.go.row, out + i * c.out.row, e);
  if (is_first_of_group(c, h)) clear_group(c, b, kv, T(0));
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
      gemm_strided<T>(rows, columns, d, {qb, c.q.row, 1}, {k + k0 * c.k.row, 1, c.k.row}, p,
                      kStride, scaled, 1);
      restrict_scores<T>(c, b, h, q0, rows, k0, columns, p, kStride);
      for (int64_t i = 0; i < rows; ++i) exp_row<T>(p + i * kStride, columns, lse[q0 + i]);
      gemm_strided<T>(columns, e, rows, {p, 1, kStride}, {gb, c.go.row, 1}, gv + k0 * c.gv.row,
                      c.gv.row, add, 1);
      gemm_strided<T>(rows, columns, e, {gb, c.go.row, 1}, {v + k0 * c.v.row, 1, c.v.row}, ds,
                      kStride, plain, 1);
      const T scale = static_cast<T>(c.scale);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          T& x = ds[i * kStride + j];
          x = p[i * kStride + j] * (x - delta[q0 + i]) * scale;
        }
      gemm_strided<T>(columns, d, rows, {ds, 1, kStride}, {qb, c.q.row, 1}, gk + k0 * c.gk.row,
                      c.gk.row, add, 1);
      gemm_strided<T>(rows, d, columns, {ds, kStride, 1}, {k + k0 * c.k.row, c.k.row, 1},
                      gq + q0 * c.gq.row, c.gq.row, k0 ? add : plain, 1);
    }
  }
}

// The same of bfloat16 by the tiles of AMX: P and dS are rounded before they are multiplied.
class TiledGrad {
 public:
  explicit TiledGrad(const AttentionGradCall& c)
      : c_(c),
        k_rows_(amx_words(c.keys, c.dim) + 1),
        v_rows_(amx_words(c.keys, c.value_dim) + 1),
        k_columns_(tiles::ceil_div(c.keys, kKeys) * amx_words(c.dim, kKeys) + 1),
        q_columns_(amx_words(c.dim, kQueries)),
        go_columns_(amx_words(c.value_dim, kQueries)),
        p_(kQueries * kStride),
        ds_(kQueries * kStride),
        delta_(kQueries),
        rounded_(kQueries * kKeys) {}

  void head(int64_t b, int64_t h) {
    const int64_t kv = h / (c_.heads / c_.kv_heads), d = c_.dim, e = c_.value_dim;
    const BFloat16* k = head_of<BFloat16>(c_.k, b, kv);
    const BFloat16* v = head_of<BFloat16>(c_.v, b, kv);
    amx_pack(k, c_.k.row, 1, c_.keys, d, k_rows_.get());
    amx_pack(v, c_.v.row, 1, c_.keys, e, v_rows_.get());
    for (int64_t k0 = 0; k0 < c_.keys; k0 += kKeys)
      amx_pack(k + k0 * c_.k.row, 1, c_.k.row, d, std::min(kKeys, c_.keys - k0), k_columns_at(k0));
    if (is_first_of_group(c_, h)) clear_group(c_, b, kv, 0.0f);
    for (int64_t q0 = 0; q0 < c_.queries; q0 += kQueries) queries(b, h, q0);
  }

 private:
  uint32_t* k_columns_at(int64_t k0) const {
    return k_columns_.get() + k0 / kKeys * amx_words(c_.dim, kKeys);
  }

  void queries(int64_t b, int64_t h, int64_t q0) {
    const int64_t d = c_.dim, e = c_.value_dim, rows = std::min(kQueries, c_.queries - q0),
                  end = c_.causal ? std::min(c_.keys, q0 + rows) : c_.keys,
                  kv = h / (c_.heads / c_.kv_heads);
    const BFloat16* q = head_of<BFloat16>(c_.q, b, h) + q0 * c_.q.row;
    const BFloat16* go = head_of<BFloat16>(c_.go, b, h) + q0 * c_.go.row;
    const BFloat16* out = head_of<BFloat16>(c_.out, b, h) + q0 * c_.out.row;
    float* gq = head_of<float>(c_.gq, b, h) + q0 * c_.gq.row;
    const float* lse = static_cast<const float*>(c_.lse) + (b * c_.heads + h) * c_.queries + q0;
    const auto scale = static_cast<float>(c_.scale);
    amx_pack(q, 1, c_.q.row, d, rows, q_columns_.get());
    amx_pack(go, 1, c_.go.row, e, rows, go_columns_.get());
    for (int64_t i = 0; i < rows; ++i) {
      float sum = 0;
      for (int64_t j = 0; j < e; ++j) sum += go[i * c_.go.row + j] * out[i * c_.out.row + j];
      delta_.get()[i] = sum;
      if (end == 0) std::fill_n(gq + i * c_.gq.row, d, 0.0f);
    }
    for (int64_t k0 = 0; k0 < end; k0 += kKeys) {
      const int64_t columns = std::min(kKeys, end - k0);
      float *p = p_.get(), *ds = ds_.get();
      amx_product({rows, columns, d, q, c_.q.row, 1, k_rows_.get() + amx_words(k0, d), d, p,
                   kStride, scale});
      restrict_scores<float>(c_, b, h, q0, rows, k0, columns, p, kStride);
      for (int64_t i = 0; i < rows; ++i) exp_row<float>(p + i * kStride, columns, lse[i]);
      round(p, rows, columns);
      amx_product({columns, e, rows, rounded_.get(), 1, kKeys, go_columns_.get(), rows,
                   head_of<float>(c_.gv, b, kv) + k0 * c_.gv.row, c_.gv.row, 1, 1});
      amx_product(
          {rows, columns, e, go, c_.go.row, 1, v_rows_.get() + amx_words(k0, e), e, ds, kStride});
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = i * kStride; j < i * kStride + columns; ++j)
          ds[j] = p[j] * (ds[j] - delta_.get()[i]) * scale;
      round(ds, rows, columns);
      amx_product({columns, d, rows, rounded_.get(), 1, kKeys, q_columns_.get(), rows,
                   head_of<float>(c_.gk, b, kv) + k0 * c_.gk.row, c_.gk.row, 1, 1});
      amx_product({rows, d, columns, rounded_.get(), kKeys, 1, k_columns_at(k0),
                   std::min(kKeys, c_.keys - k0), gq, c_.gq.row, 1, k0 ? 1.0f : 0.0f});
    }
  }
  void round(const float* x, int64_t rows, int64_t columns) const {
    for (int64_t i = 0; i < rows; ++i)
      amx_round(x + i * kStride, columns, rounded_.get() + i * kKeys);
  }

  const AttentionGradCall& c_;
  Buffer<uint32_t> k_rows_, v_rows_, k_columns_, q_columns_, go_columns_;
  Buffer<float> p_, ds_, delta_;
  Buffer<BFloat16> rounded_;
};

// f(first head, last head + 1) of all batches, in shares of whole groups.
template <class F>
void each_group(const AttentionCall& c, const F& f) {
  const int64_t group = c.heads / c.kv_heads;
  parallel_for(0, c.batch * c.kv_heads, 1,
               [&](int64_t from, int64_t to) { f(from * group, to * group); });
}

void tiled_backward(const AttentionGradCall& c) {
  each_group(c, [&](int64_t from, int64_t to) {
    TiledGrad grad(c);
    for (int64_t t = from; t < to; ++t) grad.head(t / c.heads, t % c.heads);
  });
}

template <class T>
void backward(const AttentionGradCall& c) {
  each_group(c, [&](int64_t from, int64_t to) {
    Buffer<T> p(kQueries * kStride), ds(kQueries * kStride), delta(c.queries + 1);
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
  if (call.tiled) return tiled_backward(call);
  if (call.dtype == DType::Float32) return backward<float>(call);
  backward<double>(call);
}

}  // namespace flambeau::kernels::FB_ISA
