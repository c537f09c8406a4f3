// The built-in matrix product: panels of A and B are packed so that a register tile streams through
// both (Goto & van de Geijn 2008, "Anatomy of high-performance matrix multiplication"). Any element
// type with + and *; operands come from functions that fill panels, so a convolution packs its
// patches without ever storing them. One OpenMP region per product; all threads pack B together and
// then own disjoint tiles of C. Included by *.isa.cpp files alone.
#pragma once

#include <algorithm>
#include <memory>

#include "core/allocator.h"
#include "core/parallel.h"
#include "kernels/providers/simd.h"

namespace flambeau::kernels::FB_KERNEL_NS::tiles {

// Register tile: kRows x (2 vectors). 32 registers hold 12 rows, 16 hold 6 (5 for unfused multiply
// and add). Large products with 32 registers take kWideRows x (3 vectors): 27 multiplications
// with 12 loads, where 24 have 14.
inline constexpr int kRows = kVectorBytes == 64 ? 12 : kVectorBytes == 32 ? 6 : 4;
inline constexpr int kWideRows = 9;

// How packed elements (Elem) multiply, sum (Acc) and are written (Out; another type than Acc only
// for products of one block of k), and how many vectors wide their tile is. Pairs of bfloat16 have
// their own policy.
template <class T, int Vectors = 2>
struct Plain {
  using Elem = T;
  using Acc = T;
  using Out = T;
  static constexpr int kVectors = Vectors;
  [[gnu::always_inline]] static Vec<T> step(Vec<T> acc, T a, Vec<T> b) { return acc + a * b; }
  [[gnu::always_inline]] static Vec<T> get(const T* p) { return load<T>(p); }
  [[gnu::always_inline]] static void put(T* p, Vec<T> v) { store<T>(p, v); }
};

template <class P>
inline constexpr int kTileRows = P::kVectors == 3 ? kWideRows : kRows;

// What happens to a finished tile: c = alpha * (a b) + beta * c + bias[j] (beta 0 never reads c).
template <class T>
struct Epilogue {
  T alpha = 1, beta = 0;
  const T* bias = nullptr;      // one per column
  const T* row_bias = nullptr;  // one per row
};

template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t n)
      : bytes_(sizeof(T) * static_cast<size_t>(n)), p_(static_cast<T*>(allocate(bytes_))) {}
  ~Buffer() {
    if (p_) deallocate(p_, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer(Buffer&& other) : bytes_(other.bytes_), p_(std::exchange(other.p_, nullptr)) {}
  T* get() const { return p_; }

 private:
  size_t bytes_;
  T* p_;
};

// Writes a tile of which some columns lie behind the matrix.
template <class T, class Out>
[[gnu::noinline]] void finish_partial(const T* tile, int width, int rows, int64_t columns, Out* c,
                                      int64_t ldc, const Epilogue<T>& e, int64_t row,
                                      int64_t column) {
  for (int i = 0; i < rows; ++i) {
    const T shift = e.row_bias ? e.row_bias[row + i] : T(0);
#pragma GCC unroll 1
    for (int64_t j = 0; j < columns; ++j) {
      T v = tile[i * width + j] * e.alpha + shift;
      if (e.bias) v += e.bias[column + j];
      Out* to = c + i * ldc + j;
      *to = static_cast<Out>(e.beta != T(0) ? v + static_cast<T>(*to) * e.beta : v);
    }
  }
}

// One tile of R rows and NV vectors. A is packed with `lda` elements per step of k (Strided: row i
// at a + i * ars). AVX-512 can multiply by an element in memory, which takes a load for each vector
// but no instruction of its own: done for every second row, the loop is short of neither. The
// compiler would load the element once, so the second pointer is hidden from it. A tile of three
// vectors is one of a large product, whose C is far away: each of the first steps fetches a row of
// it.
template <class P, int R, int NV, bool Strided>
[[gnu::noinline]] void tile(int64_t k, const typename P::Elem* a, int64_t lda, int64_t ars,
                            const typename P::Elem* b, int64_t ldb, typename P::Out* c, int64_t ldc,
                            int64_t columns, const Epilogue<typename P::Acc>& e, int64_t row,
                            int64_t column) {
  using T = typename P::Acc;
  using E = typename P::Elem;
  constexpr int W = kLanes<T>;
  constexpr bool kFromMemory = kVectorBytes == 64 && NV == 2 && !Strided;
  Vec<T> acc[R][NV] = {};
  auto step = [&]() [[gnu::always_inline]] {
    Vec<E> bv[NV];
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) bv[j] = load<E>(b + j * W);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const int64_t at = Strided ? i * ars : i;
      if (kFromMemory && i % 2 == 1) {
        const E* again = a;
        asm("" : "+r"(again));
        acc[i][0] = P::step(acc[i][0], a[at], bv[0]);
        acc[i][NV - 1] = P::step(acc[i][NV - 1], again[at], bv[NV - 1]);
        continue;
      }
      const E x = a[at];
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) acc[i][j] = P::step(acc[i][j], x, bv[j]);
    }
    a += lda;
    b += ldb;
  };
  int64_t p = 0;
  if constexpr (NV == 3) {
    const typename P::Out* ahead = c;
#pragma GCC unroll 1
    for (const int64_t lead = std::min<int64_t>(k, R); p < lead; ++p, ahead += ldc) {
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) __builtin_prefetch(ahead + j * W);
      step();
    }
  }
#pragma GCC unroll 2
  for (; p < k; ++p) step();
  if (columns >= NV * W) {
    auto each = [&](auto f) [[gnu::always_inline]] {
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j) f(acc[i][j], i, j);
    };
    auto shifted = [&](Vec<T> v, int i, int j) [[gnu::always_inline]] {
      v *= e.alpha;
      if (e.bias) v += load<T>(e.bias + column + j * W);
      if (e.row_bias) v += e.row_bias[row + i];
      return v;
    };
    // Where C is at hand, what is to be done is asked once for all vectors; where it is not, stores
    // that follow each other closely would fill their buffers.
    if constexpr (NV == 3) {
      if (e.alpha != T(1) || e.bias || e.row_bias)
        each([&](Vec<T>& v, int i, int j) [[gnu::always_inline]] { v = shifted(v, i, j); });
      if (e.beta != T(0))
        each([&](Vec<T>& v, int i, int j)
                 [[gnu::always_inline]] { v += P::get(c + i * ldc + j * W) * e.beta; });
      each([&](const Vec<T>& v, int i, int j)
               [[gnu::always_inline]] { P::put(c + i * ldc + j * W, v); });
    } else {
      each([&](const Vec<T>& sum, int i, int j) [[gnu::always_inline]] {
        typename P::Out* to = c + i * ldc + j * W;
        Vec<T> v = shifted(sum, i, j);
        if (e.beta != T(0)) v += P::get(to) * e.beta;
        P::put(to, v);
      });
    }
    return;
  }
  T out[R * NV * W];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) store<T>(out + (i * NV + j) * W, acc[i][j]);
  finish_partial<T, typename P::Out>(out, NV * W, R, columns, c, ldc, e, row, column);
}

template <class P>
using TileFn = void (*)(int64_t, const typename P::Elem*, int64_t, int64_t, const typename P::Elem*,
                        int64_t, typename P::Out*, int64_t, int64_t,
                        const Epilogue<typename P::Acc>&, int64_t, int64_t);

template <class P, int NV, bool Strided, int... R>
TileFn<P> pick_tile(int rows, std::integer_sequence<int, R...>) {
  static constexpr TileFn<P> fns[] = {&tile<P, R + 1, NV, Strided>...};
  return fns[rows - 1];
}
// The tile function of a height (1..kTileRows) and of as many vectors as hold the columns.
template <class P, bool Strided>
TileFn<P> tile_for(int rows, int64_t columns) {
  constexpr int W = kLanes<typename P::Acc>;
  using Seq = std::make_integer_sequence<int, kTileRows<P>>;
  if constexpr (P::kVectors == 3)
    if (columns > 2 * W) return pick_tile<P, 3, Strided>(rows, Seq{});
  return columns > W ? pick_tile<P, 2, Strided>(rows, Seq{})
                     : pick_tile<P, 1, Strided>(rows, Seq{});
}

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
inline int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}
// Size of equal blocks of at most `most`, in multiples of `unit`, that cover n.
inline int64_t even_block(int64_t n, int64_t most, int64_t unit) {
  int64_t blocks = std::max<int64_t>(1, ceil_div(n, most));
  return round_up(ceil_div(n, blocks), unit);
}

// Elements of k that gemm_small has room for. gemm_packed sums as many in one go, so that the ways
// of a product (which depend on threads) give the same bits.
inline constexpr int64_t kSmallK = 256;

template <class P>
struct Blocking {
  static constexpr int64_t kNR = P::kVectors * kLanes<typename P::Acc>;
  // A block of A (192 KB, 245 of double) and a panel of B (48 KB) stay in the second-level cache
  // with room to spare: a block that filled it cost a fifth of the rate with two threads. Wide
  // tiles take up to twice as much: C is read less often.
  static constexpr int64_t kKC =
      P::kVectors == 3 ? 512 : std::max<int64_t>(kSmallK, 1600 / sizeof(typename P::Elem));
  static constexpr int64_t kMC = 120 / kTileRows<P> * kTileRows<P>;
  static constexpr int64_t kNC = 2048 * 4 / sizeof(typename P::Acc);
};

// Runs f(thread, threads) on `threads` threads at once; nothing it calls may throw.
template <class F>
void region(int threads, const F& f) {
#ifdef _OPENMP
  if (threads > 1) {
#pragma omp parallel num_threads(threads)
    f(omp_get_thread_num(), omp_get_num_threads());
    return;
  }
#endif
  f(0, 1);
}
inline void barrier(int threads) {
#ifdef _OPENMP
  if (threads > 1) {
#pragma omp barrier
  }
#else
  (void)threads;
#endif
}

// c (m x n, row stride ldc) from operands given by packers:
//   pack_a(p0, kc, i0, rows, mr, dst): panels of mr rows, kc * mr apart: dst[p * mr + i] for rows i
//   of a panel (the last may have fewer; one vector may be overrun)
//   pack_b(p0, kc, j0, columns, dst): dst[p * NR + j], zeros behind `columns`
// k counts elements (for pairs: pairs). Of B, `b_step` of them go to all panels before the next do.
template <class P, class PackA, class PackB>
void gemm_packed(int64_t m, int64_t n, int64_t k, const PackA& pack_a, const PackB& pack_b,
                 int64_t b_step, typename P::Out* c, int64_t ldc,
                 const Epilogue<typename P::Acc>& e, int threads) {
  using E = typename P::Elem;
  using B = Blocking<P>;
  using Acc = typename P::Acc;
  constexpr int64_t NR = B::kNR;
  const int64_t kc_most = even_block(k, B::kKC, 1), nc_most = even_block(n, B::kNC, NR);
  // Columns are shared out when rows are few and every thread gets several panels: then none waits
  // for another. Else rows are, in equal shares.
  const bool by_rows = m > 2 * B::kMC || ceil_div(n, NR) < 4 * threads;
  const int64_t share = by_rows ? ceil_div(m, threads) : m;
  const int64_t mr = std::max<int64_t>(1, ceil_div(share, ceil_div(share, kTileRows<P>)));
  const int64_t mc_most = even_block(share, B::kMC, mr);
  Buffer<E> packed_b(kc_most * (nc_most + (by_rows ? 0 : threads * NR)));
  const int64_t a_size = round_up(kc_most * round_up(mc_most, mr) + 2 * NR, 64);
  Buffer<E> packed_a(a_size * threads);

  region(threads, [&](int t, int nt) {
    E* ap = packed_a.get() + a_size * t;
    // The team may be smaller than asked for.
    const int64_t m0 = by_rows ? m * t / nt : 0, m1 = by_rows ? m * (t + 1) / nt : m;
    // Threads that share out columns never wait for each other, so each packs into its own part, at
    // a place that is the same for all blocks.
    const int64_t part = by_rows ? 0 : t * ceil_div(nc_most / NR, nt);
    for (int64_t jc = 0; jc < n; jc += nc_most) {
      const int64_t nc = std::min(nc_most, n - jc), panels = ceil_div(nc, NR);
      const int64_t first = panels * t / nt, last = panels * (t + 1) / nt;
      const int64_t from = by_rows ? 0 : first, to = by_rows ? panels : last;
      auto packed = [&](int64_t j) { return packed_b.get() + (part + j - from) * NR * kc_most; };
      for (int64_t pc = 0; pc < k; pc += kc_most) {
        const int64_t kc = std::min(kc_most, k - pc);
        Epilogue<Acc> now = e;
        if (pc) now.beta = 1, now.bias = now.row_bias = nullptr;
        for (int64_t p = 0; p < kc; p += b_step)
          for (int64_t j = first; j < last; ++j)
            pack_b(pc + p, std::min(b_step, kc - p), jc + j * NR, std::min(NR, nc - j * NR),
                   packed(j) + p * NR);
        if (by_rows) barrier(nt);
        for (int64_t ic = m0; ic < m1; ic += mc_most) {
          const int64_t mc = std::min(mc_most, m1 - ic);
          pack_a(pc, kc, ic, mc, mr, ap);
          for (int64_t j = from; j < to; ++j) {
            const int64_t columns = std::min(NR, nc - j * NR);
            const E* bp = packed(j);
            auto whole = tile_for<P, false>(static_cast<int>(mr), columns);
            for (int64_t i = 0; i < mc; i += mr) {
              const int64_t rows = std::min(mr, mc - i);
              auto f = rows == mr ? whole : tile_for<P, false>(static_cast<int>(rows), columns);
              f(kc, ap + i * kc, mr, 0, bp, NR, c + (ic + i) * ldc + jc + j * NR, ldc, columns, now,
                ic + i, jc + j * NR);
            }
          }
        }
        if (by_rows) barrier(nt);
      }
    }
  });
}

// Packers of strided matrices, with conversion from the stored type S
// ------------------------------------------------

template <class T, class S>
[[gnu::always_inline]] inline T as(S x) {
  return static_cast<T>(x);
}

// dst[p * width + i] = src[i][p], for i < rows, p < k, with `stride` bytes between the rows of src:
// rows become columns. Writes may run over by a vector, into what is written later.
template <class T, class S>
void pack_transposed(const void* from, int64_t stride, int64_t rows, int64_t k, int64_t width,
                     T* dst) {
  const char* src = static_cast<const char*>(from);
  int64_t p = 0;
  if constexpr (std::is_same_v<T, S> && std::is_arithmetic_v<T>) {
    constexpr int W = kLanes<T>;
    p = k / W * W;
    // Downwards: an overrun is overwritten. Rows that are missing repeat the last one.
    for (int64_t i0 = (rows - 1) / W * W; i0 >= 0; i0 -= W) {
      const int64_t some = std::min<int64_t>(W, rows - i0);
      const char* row[W];
      for (int i = 0; i < W; ++i) row[i] = src + (i0 + std::min<int64_t>(i, some - 1)) * stride;
      T* to = dst + i0;
      for (int64_t q = 0; q < p; q += W) {
        Vec<T> r[W];
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i)
          r[i] = peek<Vec<T>>(row[i] + q * static_cast<int64_t>(sizeof(T)));
        transpose<T>(r);
        if (some == W || i0 + W >= width) {
#pragma GCC unroll 16
          for (int i = 0; i < W; ++i, to += width) store<T>(to, r[i]);
        } else {
          for (int i = 0; i < W; ++i, to += width)
            for (int64_t j = 0; j < some; ++j) to[j] = r[i][j];
        }
      }
    }
  }
  for (; p < k; ++p)
    for (int64_t i = 0; i < rows; ++i)
      dst[p * width + i] = as<T>(peek<S>(src + i * stride + p * static_cast<int64_t>(sizeof(S))));
}

template <class S>
struct Strides {
  const S* data;
  int64_t rs, cs;  // between rows (A: of m, B: of k) and columns (A: of k, B: of n)
};

// Copies a few elements (most often 6 to 12), without a loop from half a vector on.
template <class T>
[[gnu::always_inline]] inline void copy_few(T* dst, const T* src, int64_t n) {
  constexpr int64_t W = kLanes<T>;
  auto twice = [&]<int64_t N>() {  // two stretches that may overlap
    std::memcpy(dst, src, N * sizeof(T));
    std::memcpy(dst + n - N, src + n - N, N * sizeof(T));
  };
  if (n >= W && n <= 2 * W) return twice.template operator()<W>();
  if (n >= W / 2 && n < W) return twice.template operator()<W / 2>();
  for (int64_t i = 0; i < n; ++i) dst[i] = src[i];
}

template <class T, class S>
void pack_a_block(const Strides<S>& x, int64_t p0, int64_t kc, int64_t i0, int64_t rows, int64_t mr,
                  T* dst) {
  const S* src = x.data + i0 * x.rs + p0 * x.cs;
  if (x.cs == 1) {
    for (int64_t i = 0; i < rows; i += mr)
      pack_transposed<T, S>(src + i * x.rs, x.rs * static_cast<int64_t>(sizeof(S)),
                            std::min(mr, rows - i), kc, mr, dst + i * kc);
    return;
  }
  // All panels step by step: what they read of a dense column lies in the same lines.
  for (int64_t p = 0; p < kc; ++p, src += x.cs)
    for (int64_t i0 = 0; i0 < rows; i0 += mr) {
      const int64_t some = std::min(mr, rows - i0);
      T* to = dst + i0 * kc + p * mr;
      if constexpr (std::is_same_v<T, S>) {
        if (x.rs == 1) {
          copy_few<T>(to, src + i0, some);
          continue;
        }
      }
      for (int64_t i = 0; i < some; ++i) to[i] = as<T>(src[(i0 + i) * x.rs]);
    }
}

template <class T, class S, int64_t NR = 2 * kLanes<T>>
void pack_b_panel(const Strides<S>& x, int64_t p0, int64_t kc, int64_t j0, int64_t columns,
                  T* dst) {
  const S* src = x.data + p0 * x.rs + j0 * x.cs;
  if (columns < NR) {
    std::memset(static_cast<void*>(dst), 0, sizeof(T) * NR * kc);
  }
  if (x.cs == 1) {
    if (columns == NR && std::is_same_v<T, S>) {
      for (int64_t p = 0; p < kc; ++p, src += x.rs)
        std::memcpy(static_cast<void*>(dst + p * NR), src, NR * sizeof(T));
    } else {
      for (int64_t p = 0; p < kc; ++p, src += x.rs)
        for (int64_t j = 0; j < columns; ++j) dst[p * NR + j] = as<T>(src[j]);
    }
  } else if (x.rs == 1) {
    pack_transposed<T, S>(src, x.cs * static_cast<int64_t>(sizeof(S)), columns, kc, NR, dst);
  } else {
    for (int64_t p = 0; p < kc; ++p, src += x.rs)
      for (int64_t j = 0; j < columns; ++j) dst[p * NR + j] = as<T>(src[j * x.cs]);
  }
}

// A product of strided operands, converted while they are packed.
template <class P, class S>
void gemm_by_packing(int64_t m, int64_t n, int64_t k, const Strides<S>& a, const Strides<S>& b,
                     typename P::Out* c, int64_t ldc, const Epilogue<typename P::Acc>& e,
                     int threads) {
  using T = typename P::Elem;
  // Dense rows of a B that comes from beyond the second-level cache are read as they lie.
  const bool far = k * n * static_cast<int64_t>(sizeof(S)) >= 1 << 20;
  const int64_t b_step = b.cs == 1 && far ? 8 : k;
  gemm_packed<P>(
      m, n, k,
      [&](int64_t p0, int64_t kc, int64_t i0, int64_t rows, int64_t mr, T* dst) {
        pack_a_block<T, S>(a, p0, kc, i0, rows, mr, dst);
      },
      [&](int64_t p0, int64_t kc, int64_t j0, int64_t columns, T* dst) {
        pack_b_panel<T, S, Blocking<P>::kNR>(b, p0, kc, j0, columns, dst);
      },
      b_step, c, ldc, e, threads);
}

// The same with the tile that fits. Wide ones have fewer rows, so A takes longer to pack: worth it
// where A is packed once, for threads share its rows out, and used for many columns.
template <class T, class S>
void gemm_by_tiles(int64_t m, int64_t n, int64_t k, const Strides<S>& a, const Strides<S>& b, T* c,
                   int64_t ldc, const Epilogue<T>& e, int threads) {
  if constexpr (kVectorBytes == 64 && std::is_floating_point_v<T>) {
    using Wide = Plain<T, 3>;
    if (m >= 300 && n >= 10 * Blocking<Wide>::kNR)
      return gemm_by_packing<Wide, S>(m, n, k, a, b, c, ldc, e, threads);
  }
  gemm_by_packing<Plain<T>, S>(m, n, k, a, b, c, ldc, e, threads);
}

// Columns [j0, j1) of a product whose A stays in the second-level cache: A is read where it lies, B
// too when its rows are dense and few; no allocation. Needs k * NR elements on the stack.
template <class T>
void gemm_small(int64_t m, int64_t j0, int64_t j1, int64_t k, const Strides<T>& a,
                const Strides<T>& b, T* c, int64_t ldc, const Epilogue<T>& e) {
  constexpr int64_t NR = 2 * kLanes<T>;
  const int mr = static_cast<int>(ceil_div(m, ceil_div(m, kRows)));
  // Many rows, or rows on the same few sets of the first-level cache, are packed for several tiles.
  const bool apart = k <= 64 && b.rs * static_cast<int64_t>(sizeof(T)) % 1024 != 0;
  const bool in_place = b.cs == 1 && (apart || m <= 2 * mr);
  alignas(64) T panel[kSmallK * NR];
  for (int64_t j = j0; j < j1; j += NR) {
    const int64_t columns = std::min(NR, j1 - j);
    const T* bp = panel;
    int64_t ldb = NR;
    if (in_place && columns == NR)
      bp = b.data + j, ldb = b.rs;
    else
      pack_b_panel<T, T>(b, 0, k, j, columns, panel);
    for (int64_t i = 0; i < m; i += mr) {
      const int rows = static_cast<int>(std::min<int64_t>(mr, m - i));
      tile_for<Plain<T>, true>(rows, columns)(k, a.data + i * a.rs, a.cs, a.rs, bp, ldb,
                                              c + i * ldc + j, ldc, columns, e, i, j);
    }
  }
}

// Packing A costs a small product more than it brings, unless what a tile reads of it shares few
// sets of the first-level cache: its rows, or its columns when these are dense. Threads take
// columns, in shares that must be about equal.
template <class T>
bool is_small(int64_t m, int64_t n, int64_t k, const Strides<T>& a, int threads) {
  constexpr int64_t kSize = sizeof(T), kWork = 256 * 256 * 256, kBytes = 512 << 10;
  if (k > kSmallK || m * n * k > kWork || m * k * kSize > kBytes) return false;
  const int64_t panels = ceil_div(n, 2 * kLanes<T>);
  if (threads > 1 && panels % threads != 0 && panels < 4 * threads) return false;
  const int64_t shared = a.cs == 1 ? a.rs * kSize % 4096 : a.cs * kSize % 1024;
  return m * n * k <= 64 * 64 * 64 || shared != 0;
}

// A long sum for a small result, as the gradient of a small layer's weight is over a large batch:
// columns of A and rows of B are dense, and both are read where they lie, as many rows at a time as
// the first-level cache holds. Rows of tiles [t0, t1).
template <class T>
int64_t long_step(int64_t m, int64_t n) {
  return std::min<int64_t>(kSmallK, (28 << 10) / static_cast<int64_t>(sizeof(T)) / (m + n) / 8 * 8);
}
template <class T>
void gemm_long(int64_t m, int64_t mr, int64_t t0, int64_t t1, int64_t n, int64_t k,
               const Strides<T>& a, const Strides<T>& b, T* c, int64_t ldc, const Epilogue<T>& e) {
  constexpr int64_t NR = 2 * kLanes<T>;
  const int64_t step = long_step<T>(m, n);
  alignas(64) T panel[kSmallK * NR];
  for (int64_t p = 0; p < k; p += step) {
    const int64_t kc = std::min(step, k - p);
    Epilogue<T> now = e;
    if (p) now.beta = 1, now.bias = now.row_bias = nullptr;
    for (int64_t j = 0; j < n; j += NR) {
      const int64_t columns = std::min(NR, n - j);
      const T* bp = b.data + p * b.rs + j;
      int64_t ldb = b.rs;
      if (columns < NR) {
        pack_b_panel<T, T>(b, p, kc, j, columns, panel);
        bp = panel, ldb = NR;
      }
      for (int64_t i = t0 * mr; i < std::min(m, t1 * mr); i += mr) {
        const int rows = static_cast<int>(std::min(mr, m - i));
        tile_for<Plain<T>, false>(rows, columns)(kc, a.data + p * a.cs + i, a.cs, 0, bp, ldb,
                                                 c + i * ldc + j, ldc, columns, now, i, j);
      }
    }
  }
}
template <class T>
bool is_long(int64_t m, int64_t n, int64_t k, const Strides<T>& a, const Strides<T>& b) {
  constexpr int64_t kRow = 1024 / sizeof(T);  // longer ones meet in the same sets of the cache
  return a.rs == 1 && b.cs == 1 && k > kSmallK && a.cs < kRow && b.rs < kRow &&
         long_step<T>(m, n) >= 48;
}
template <class T>
void gemm_long_shared(int64_t m, int64_t n, int64_t k, const Strides<T>& a, const Strides<T>& b,
                      T* c, int64_t ldc, const Epilogue<T>& e, int threads) {
  const int64_t tiles = ceil_div(m, kRows), mr = ceil_div(m, tiles);
  region(threads, [&](int t, int nt) {
    gemm_long<T>(m, mr, tiles * t / nt, tiles * (t + 1) / nt, n, k, a, b, c, ldc, e);
  });
}
// Few columns would leave most of a vector empty: the transpose has few rows.
template <class T>
void gemm_long_narrow(int64_t m, int64_t n, int64_t k, const Strides<T>& a, const Strides<T>& b,
                      T* c, int64_t ldc, const Epilogue<T>& e, int threads) {
  Buffer<T> sums(m * n);
  gemm_long_shared<T>(n, m, k, {b.data, b.cs, b.rs}, {a.data, a.cs, a.rs}, sums.get(), m, {},
                      threads);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T v = sums.get()[j * m + i] * e.alpha;
      if (e.bias) v += e.bias[j];
      if (e.row_bias) v += e.row_bias[i];
      T* to = c + i * ldc + j;
      *to = e.beta != T(0) ? v + *to * e.beta : v;
    }
}

// c = alpha a b + ...: picks the way by size.
template <class T>
void gemm_strided(int64_t m, int64_t n, int64_t k, const Strides<T>& a, const Strides<T>& b, T* c,
                  int64_t ldc, const Epilogue<T>& e, int threads) {
  if (is_long<T>(m, n, k, a, b)) {
    const bool narrow = 2 * n <= kLanes<T> && m >= kLanes<T>;
    return narrow ? gemm_long_narrow<T>(m, n, k, a, b, c, ldc, e, threads)
                  : gemm_long_shared<T>(m, n, k, a, b, c, ldc, e, threads);
  }
  if (is_small<T>(m, n, k, a, threads)) {
    constexpr int64_t NR = 2 * kLanes<T>;
    const int64_t panels = ceil_div(n, NR);
    return region(threads, [&](int t, int nt) {
      gemm_small<T>(m, panels * t / nt * NR, std::min(n, panels * (t + 1) / nt * NR), k, a, b, c,
                    ldc, e);
    });
  }
  gemm_by_tiles<T, T>(m, n, k, a, b, c, ldc, e, threads);
}

}  // namespace flambeau::kernels::FB_KERNEL_NS::tiles
