// Recurrent steps for one instruction set; see rnn_steps.h.
#include "kernels/rnn_steps.h"

#include <vector>

#include "core/parallel.h"
#include "kernels/providers/gemm_core.h"
#include "kernels/vector_exp.h"

namespace flambeau::kernels::FB_ISA {
namespace {

using tiles::barrier;
using tiles::Buffer;
using tiles::ceil_div;
using tiles::kRows;

template <class T>
inline constexpr int64_t kPanel = 2 * kLanes<T>;

template <class T>
FB_INLINE Vec<T> select_sign(Vec<T> x, Vec<T> negative, Vec<T> other) {
  return x < T(0) ? negative : other;
}

template <class T>
FB_INLINE Vec<T> magnitude(Vec<T> x) {
  return select_sign<T>(x, -x, x);
}

template <class T>
FB_INLINE Vec<T> vsigmoid(Vec<T> x) {
  const Vec<T> e = vexp<T>(-magnitude<T>(x)), d = T(1) / (T(1) + e);
  return select_sign<T>(x, e * d, d);
}

// tanh: near zero by its Taylor series, where the quotient would cancel.
template <class T>
FB_INLINE Vec<T> vtanh(Vec<T> x) {
  const Vec<T> a = magnitude<T>(x), e = vexp<T>(a * T(-2)), big = (T(1) - e) / (T(1) + e),
               s = x * x;
  Vec<T> p;
  T limit;
  if constexpr (sizeof(T) == 4) {
    p = s * T(-1382.0 / 155925) + T(62.0 / 2835);
    limit = T(0.3);
  } else {
    p = s * T(-443861162.0 / 1856156927625.0) + T(6404582.0 / 10854718875.0);
    p = p * s + T(-929569.0 / 638512875);
    p = p * s + T(21844.0 / 6081075);
    p = p * s + T(-1382.0 / 155925);
    p = p * s + T(62.0 / 2835);
    limit = T(0.1);
  }
  p = p * s + T(-17.0 / 315);
  p = p * s + T(2.0 / 15);
  p = p * s + T(-1.0 / 3);
  const Vec<T> small = x + x * s * p;
  return a < limit ? small : select_sign<T>(x, -big, big);
}

// A matrix (k x n, strides rs, cs) packed in panels of columns, taken group by group of `group`
// columns.
template <class T>
struct PackedWeight {
  int64_t k, group, panels;  // panels per group
  Buffer<T> data;
  PackedWeight(int64_t k, int64_t n, int64_t group, const tiles::Strides<T>& w, int threads)
      : k(k),
        group(group),
        panels(ceil_div(group, kPanel<T>)),
        data(n / group * panels * kPanel<T> * k + 64) {
    const int64_t all = n / group * panels;
    tiles::region(threads, [&](int t, int nt) {
      for (int64_t p = all * t / nt; p < all * (t + 1) / nt; ++p)
        tiles::pack_b_panel<T, T>(w, 0, k, p / panels * group + p % panels * kPanel<T>,
                                  std::min(kPanel<T>, group - p % panels * kPanel<T>),
                                  panel(p / panels, p % panels));
    });
  }
  T* panel(int64_t g, int64_t p) const { return data.get() + (g * panels + p) * kPanel<T> * k; }
};

// A packed left operand: rows of a (row stride lda) in tiles of mr.
template <class T>
struct PackedState {
  int64_t mr = 1;
  Buffer<T> data;
  PackedState(int64_t rows, int64_t k) : data((rows + kRows) * k + 64) {}
  void pack(const T* a, int64_t lda, int64_t rows, int64_t k) {
    mr = ceil_div(rows, ceil_div(rows, kRows));
    for (int64_t i = 0; i < rows; i += mr)
      tiles::pack_transposed<T, T>(a + i * lda, lda * static_cast<int64_t>(sizeof(T)),
                                   std::min(mr, rows - i), k, mr, data.get() + i * k);
  }
  // c += state * panel, in blocks of k that stay in the innermost cache for all tiles of rows.
  void multiply(int64_t rows, int64_t k, const T* panel, int64_t columns, T* c, int64_t ldc) const {
    constexpr int64_t kBlock = (24 << 10) / (kPanel<T> * static_cast<int64_t>(sizeof(T)));
    tiles::Epilogue<T> e;
    e.beta = T(1);
    const int64_t block = tiles::even_block(k, kBlock, 1);
    for (int64_t q = 0; q < k; q += block)
      for (int64_t i = 0; i < rows; i += mr) {
        const int64_t some = std::min(mr, rows - i);
        tiles::tile_for<tiles::Plain<T>, false>(static_cast<int>(some), columns)(
            std::min(block, k - q), data.get() + i * k + q * mr, mr, 0, panel + q * kPanel<T>,
            kPanel<T>, c + i * ldc, ldc, columns, e, 0, 0);
      }
  }
};

// Calls f(u, n) over units [u0, u1): n lanes from u.
template <class T, class F>
FB_INLINE void units(int64_t u0, int64_t u1, const F& f) {
  constexpr int W = kLanes<T>;
  int64_t u = u0;
  for (; u + W <= u1; u += W) f(u, W);
  if (u < u1) f(u, u1 - u);
}
template <class T>
FB_INLINE Vec<T> get(const T* p, int64_t n) {
  return n == kLanes<T> ? load<T>(p) : load_part<T>(p, n, T(0));
}
template <class T>
FB_INLINE void put(T* p, Vec<T> v, int64_t n) {
  if (n == kLanes<T>)
    store<T>(p, v);
  else
    store_part<T>(p, v, n);
}

// First row of every step.
std::vector<int64_t> step_rows(const RnnCall& c) {
  std::vector<int64_t> first(c.steps + 1, 0);
  for (int64_t t = 0; t < c.steps; ++t) first[t + 1] = first[t] + c.batch_sizes[t];
  return first;
}

int threads_for(const RnnCall& c) {
  if (in_parallel()) return 1;
  const double step =
      static_cast<double>(c.batch) * static_cast<double>(c.hidden) * static_cast<double>(c.hidden);
  return step < 100000 ? 1
                       : static_cast<int>(
                             std::min<int64_t>(num_threads(), ceil_div(c.hidden, kPanel<float>)));
}

// One row of cells: `a` holds the summed gates (for GRU: x's part in a, h's part in hg), results to
// y, saved, states.
template <class T>
void cell(const RnnCall& c, int64_t u0, int64_t u1, const T* a, const T* hg, T* y, T* saved, T* h,
          T* cs) {
  const int64_t H = c.hidden;
  units<T>(u0, u1, [&](int64_t u, int64_t n) {
    Vec<T> out;
    if (c.mode == kLstm) {
      const Vec<T> i = vsigmoid<T>(get<T>(a + u, n)), f = vsigmoid<T>(get<T>(a + H + u, n));
      const Vec<T> g = vtanh<T>(get<T>(a + 2 * H + u, n)),
                   o = vsigmoid<T>(get<T>(a + 3 * H + u, n));
      const Vec<T> state = f * get<T>(cs + u, n) + i * g;
      out = o * vtanh<T>(state);
      put<T>(cs + u, state, n);
      put<T>(saved + u, i, n), put<T>(saved + H + u, f, n), put<T>(saved + 2 * H + u, g, n);
      put<T>(saved + 3 * H + u, o, n), put<T>(saved + 4 * H + u, state, n);
    } else if (c.mode == kGru) {
      const Vec<T> r = vsigmoid<T>(get<T>(a + u, n) + get<T>(hg + u, n));
      const Vec<T> z = vsigmoid<T>(get<T>(a + H + u, n) + get<T>(hg + H + u, n));
      const Vec<T> part = get<T>(hg + 2 * H + u, n),
                   m = vtanh<T>(get<T>(a + 2 * H + u, n) + r * part);
      out = m + z * (get<T>(h + u, n) - m);
      put<T>(saved + u, r, n), put<T>(saved + H + u, z, n), put<T>(saved + 2 * H + u, m, n);
      put<T>(saved + 3 * H + u, part, n);
    } else {
      const Vec<T> v = get<T>(a + u, n);
      out = c.mode == kRnnTanh ? vtanh<T>(v) : v < T(0) ? Vec<T>{} : v;
    }
    put<T>(y + u, out, n);
    put<T>(h + u, out, n);
  });
}

template <class T>
void forward(const RnnForward& c) {
  const int64_t H = c.hidden, G = rnn_gates(c.mode), S = rnn_saved(c.mode);
  const std::vector<int64_t> first = step_rows(c);
  const int threads = threads_for(c);
  const PackedWeight<T> w(H, G * H, H, {static_cast<const T*>(c.w), 1, H}, threads);
  // Where each thread's cache holds the whole weight, threads own sequences and never meet.
  const bool by_rows = threads > 1 && c.batch >= 8 * threads &&
                       G * H * H * static_cast<int64_t>(sizeof(T)) <= 5 << 18;
  std::vector<PackedState<T>> states;
  for (int t = 0; t < (by_rows ? threads : 1); ++t) states.emplace_back(c.batch, H);
  Buffer<T> gates(c.batch * G * H + 1);
  const T* x = static_cast<const T*>(c.x);
  const T* b = static_cast<const T*>(c.b);
  T* h = static_cast<T*>(c.h);
  const bool separate = c.mode == kGru;
  tiles::region(threads, [&](int t, int nt) {
    const int64_t p0 = by_rows ? 0 : w.panels * t / nt,
                  p1 = by_rows ? w.panels : w.panels * (t + 1) / nt;
    const int64_t u0 = std::min(H, p0 * kPanel<T>), u1 = std::min(H, p1 * kPanel<T>);
    const int64_t r0 = by_rows ? c.batch * t / nt : 0,
                  r1 = by_rows ? c.batch * (t + 1) / nt : c.batch;
    PackedState<T>& state = states[by_rows ? t : 0];
    for (int64_t s = 0; s < c.steps; ++s) {
      const int64_t step = c.reverse ? c.steps - 1 - s : s, row0 = first[step],
                    end = std::min(r1, c.batch_sizes[step]), rows = std::max<int64_t>(0, end - r0);
      if ((by_rows || t == 0) && rows) state.pack(h + r0 * H, H, rows, H);
      // Start values of this thread's units: the inputs' part and the bias.
      for (int64_t r = r0; r < end; ++r)
        for (int64_t g = 0; g < G; ++g) {
          T* to = gates.get() + (r * G + g) * H;
          const T* from = x + ((row0 + r) * G + g) * H;
          for (int64_t u = u0; u < u1; ++u)
            to[u] = (separate ? T(0) : from[u]) + (b ? b[g * H + u] : T(0));
        }
      if (!by_rows) barrier(nt);
      for (int64_t p = p0; p < p1 && rows; ++p)
        for (int64_t g = 0; g < G; ++g)
          state.multiply(rows, H, w.panel(g, p), std::min(kPanel<T>, H - p * kPanel<T>),
                         gates.get() + (r0 * G + g) * H + p * kPanel<T>, G * H);
      for (int64_t r = r0; r < end; ++r) {
        const int64_t row = row0 + r;
        const T* sums = gates.get() + r * G * H;
        cell<T>(c, u0, u1, separate ? x + row * G * H : sums, sums, static_cast<T*>(c.y) + row * H,
                static_cast<T*>(c.saved) + row * S * H, h + r * H,
                static_cast<T*>(c.c) + (c.c ? r * H : 0));
      }
      if (!by_rows) barrier(nt);
    }
  });
}

// Cotangents of one row's gates from that of its output: dh in gh, to gx (and gg for GRU's hidden
// part). What reaches the state directly (not through the gates) is left in gh.
template <class T>
void cell_backward(const RnnCall& c, int64_t u0, int64_t u1, const T* gy, const T* y,
                   const T* saved, const T* h, const T* cs, T* gx, T* gg, T* gh, T* gc) {
  const int64_t H = c.hidden;
  units<T>(u0, u1, [&](int64_t u, int64_t n) {
    const Vec<T> dh = get<T>(gy + u, n) + get<T>(gh + u, n);
    Vec<T> direct{};
    if (c.mode == kLstm) {
      const Vec<T> i = get<T>(saved + u, n), f = get<T>(saved + H + u, n),
                   g = get<T>(saved + 2 * H + u, n);
      const Vec<T> o = get<T>(saved + 3 * H + u, n), th = vtanh<T>(get<T>(saved + 4 * H + u, n));
      const Vec<T> dc = get<T>(gc + u, n) + dh * o * (T(1) - th * th);
      put<T>(gx + u, dc * g * i * (T(1) - i), n);
      put<T>(gx + H + u, dc * get<T>(cs + u, n) * f * (T(1) - f), n);
      put<T>(gx + 2 * H + u, dc * i * (T(1) - g * g), n);
      put<T>(gx + 3 * H + u, dh * th * o * (T(1) - o), n);
      put<T>(gc + u, dc * f, n);
    } else if (c.mode == kGru) {
      const Vec<T> r = get<T>(saved + u, n), z = get<T>(saved + H + u, n),
                   m = get<T>(saved + 2 * H + u, n);
      const Vec<T> part = get<T>(saved + 3 * H + u, n);
      const Vec<T> dm = dh * (T(1) - z) * (T(1) - m * m),
                   dz = dh * (get<T>(h + u, n) - m) * z * (T(1) - z);
      const Vec<T> dr = dm * part * r * (T(1) - r);
      put<T>(gx + u, dr, n), put<T>(gx + H + u, dz, n), put<T>(gx + 2 * H + u, dm, n);
      put<T>(gg + u, dr, n), put<T>(gg + H + u, dz, n), put<T>(gg + 2 * H + u, dm * r, n);
      direct = dh * z;
    } else {
      const Vec<T> v = get<T>(y + u, n);
      put<T>(gx + u, c.mode == kRnnTanh ? dh * (T(1) - v * v) : v > T(0) ? dh : Vec<T>{}, n);
    }
    put<T>(gh + u, direct, n);
  });
}

template <class T>
void backward(const RnnBackward& c) {
  const int64_t H = c.hidden, G = rnn_gates(c.mode), S = rnn_saved(c.mode);
  const std::vector<int64_t> first = step_rows(c);
  const int threads = threads_for(c);
  const PackedWeight<T> w(G * H, H, H, {static_cast<const T*>(c.w), H, 1}, threads);
  PackedState<T> state(c.batch, G * H);
  const T* y = static_cast<const T*>(c.y);
  const T* saved = static_cast<const T*>(c.saved);
  const T* h0 = static_cast<const T*>(c.h0);
  const T* c0 = static_cast<const T*>(c.c0);
  T* gx = static_cast<T*>(c.gx);
  T* gg = static_cast<T*>(c.gh_gates);
  T* gh = static_cast<T*>(c.gh);
  T* previous = static_cast<T*>(c.previous);
  tiles::region(threads, [&](int t, int nt) {
    const int64_t p0 = w.panels * t / nt, p1 = w.panels * (t + 1) / nt;
    const int64_t u0 = std::min(H, p0 * kPanel<T>), u1 = std::min(H, p1 * kPanel<T>);
    for (int64_t s = c.steps - 1; s >= 0; --s) {
      const int64_t step = c.reverse ? c.steps - 1 - s : s, rows = c.batch_sizes[step],
                    row0 = first[step];
      // The step that ran before this one, and how many of our sequences it had.
      const int64_t before = c.reverse ? step + 1 : step - 1;
      const int64_t known =
          before < 0 || before >= c.steps ? 0 : std::min(rows, c.batch_sizes[before]);
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t row = row0 + r, last = r < known ? first[before] + r : -1;
        const T* h = last < 0 ? h0 + r * H : y + last * H;
        const T* cs = c.mode != kLstm ? nullptr
                      : last < 0      ? c0 + r * H
                                      : saved + last * S * H + 4 * H;
        std::copy(h + u0, h + u1, previous + row * H + u0);
        cell_backward<T>(c, u0, u1, static_cast<const T*>(c.gy) + row * H, y + row * H,
                         saved + row * S * H, h, cs, gx + row * G * H, gg + row * G * H, gh + r * H,
                         c.gc ? static_cast<T*>(c.gc) + r * H : nullptr);
      }
      barrier(nt);
      if (t == 0 && rows) state.pack(gg + row0 * G * H, G * H, rows, G * H);
      barrier(nt);
      for (int64_t p = p0; p < p1 && rows; ++p)
        state.multiply(rows, G * H, w.panel(0, p), std::min(kPanel<T>, H - p * kPanel<T>),
                       gh + p * kPanel<T>, H);
    }
  });
}

}  // namespace

void rnn_forward(const RnnForward& call) {
  if (call.dtype == DType::Float32) return forward<float>(call);
  forward<double>(call);
}

void rnn_backward(const RnnBackward& call) {
  if (call.dtype == DType::Float32) return backward<float>(call);
  backward<double>(call);
}

}  // namespace flambeau::kernels::FB_ISA
