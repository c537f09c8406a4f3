// Matrix products of bfloat16 by the tile registers of AMX (Intel, Architecture Instruction Set
// Extensions, chapter 3): 16 x 16 sums and 16 steps of 2 numbers an instruction. One file, built
// for that set alone and used when the machine and the system have it.
#include "kernels/providers/gemm.h"

#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__) && __GNUC__ >= 12
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include "core/allocator.h"
#include "core/parallel.h"
#pragma GCC push_options
#pragma GCC optimize("O3")
#pragma GCC target( \
    "avx2,fma,bmi,bmi2,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16,prefer-vector-width=512")
#define FB_KERNEL_NS v4_amx
#define FB_VECTOR_BYTES 64
#include "kernels/providers/gemm_call.h"

namespace flambeau::kernels::v4_amx::tiles {

constexpr int64_t kSide = 32;              // rows and columns of a block of C: two tiles each
constexpr int64_t kTile = 16, kStep = 32;  // rows of a tile; numbers along k that one step takes
constexpr int64_t kWords = kSide * kTile;  // of an operand and a step
constexpr int64_t kHeld = 512;  // steps times panels of B that stay in the second-level cache: 1 MB

// Sums of a block are in tiles 0 to 3, rows of A in 4 and 5, columns of B in 6 and 7.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
class Tiles {  // the registers are large: set up where they are used, and given back
 public:
  Tiles() {
    static constexpr TileConfig config;
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
};

// Rows of A for all steps: 16 rows of 64 bytes, `half` after them 16 more, `step` to the next.
struct Rows {
  const char* data;
  int64_t stride, half, step;  // bytes
};

void block(int64_t steps, Rows a, const uint32_t* b, float* sums) {
  asm volatile("" ::: "memory");  // GCC does not know that loads of tiles read what was packed
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t s = 0; s < steps; ++s, a.data += a.step, b += kWords) {
    _tile_loadd(6, b, 4 * kSide);
    _tile_loadd(4, a.data, a.stride);
    _tile_loadd(7, b + kTile, 4 * kSide);
    _tile_loadd(5, a.data + a.half, a.stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 4 * kSide);
  _tile_stored(1, sums + kTile, 4 * kSide);
  _tile_stored(2, sums + kTile * kSide, 4 * kSide);
  _tile_stored(3, sums + kTile * kSide + kTile, 4 * kSide);
}

// The first of 16 bfloat16, as the low halves of words; zeros behind them.
[[gnu::always_inline]] inline Vec<uint32_t> words_of(const BFloat16* p, int64_t count) {
  typedef uint16_t Halves __attribute__((vector_size(32)));
  const auto mask = static_cast<__mmask16>((1u << count) - 1);
  return __builtin_convertvector((Halves)_mm256_maskz_loadu_epi16(mask, p), Vec<uint32_t>);
}

// A matrix as lanes (rows of A, columns of B) of numbers along k.
struct Lanes {
  const BFloat16* data;
  int64_t lane, along;  // strides in elements
  int64_t lanes, values;

  // 16 lanes of 16 pairs, zeros behind the ends: row by lane, or with `turned` row by pair.
  void square(int64_t first, int64_t from, bool turned, uint32_t* to, int64_t stride) const {
    const int64_t some = std::clamp<int64_t>(lanes - first, 0, kTile),
                  rest = std::clamp<int64_t>(values - from, 0, kStep);
    const BFloat16* src = data + first * lane + from * along;
    alignas(64) uint32_t words[kTile * kTile];
    Vec<uint32_t> r[kTile];
    bool by_pair = false;
    if (along == 1) {
      const auto mask = static_cast<__mmask32>((uint64_t{1} << rest) - 1);
      for (int64_t i = 0; i < kTile; ++i)
        r[i] = i < some ? (Vec<uint32_t>)_mm512_maskz_loadu_epi16(mask, src + i * lane)
                        : Vec<uint32_t>{};
    } else if (lane == 1) {
      for (int64_t q = 0; q < kTile; ++q) {
        r[q] = 2 * q < rest ? words_of(src + 2 * q * along, some) : Vec<uint32_t>{};
        if (2 * q + 1 < rest) r[q] |= words_of(src + (2 * q + 1) * along, some) << 16;
      }
      by_pair = true;
    } else {
      std::memset(words, 0, sizeof words);
      for (int64_t i = 0; i < some; ++i)
        for (int64_t p = 0; p < rest; ++p)
          words[i * kTile + p / 2] |= static_cast<uint32_t>(src[i * lane + p * along].bits)
                                      << p % 2 * 16;
      for (int64_t i = 0; i < kTile; ++i) r[i] = load<uint32_t>(words + i * kTile);
    }
    if (by_pair != turned) transpose<uint32_t>(r);
    for (int64_t i = 0; i < kTile; ++i) store<uint32_t>(to + i * stride, r[i]);
  }
};

// `count` blocks of columns of B from the column `first` on, for all steps; in the order in which B
// lies.
void pack_columns(const Lanes& b, int64_t first, int64_t count, int64_t steps, uint32_t* to) {
  auto one = [&](int64_t j, int64_t s) {
    for (int64_t half = 0; half < kSide; half += kTile)
      b.square(first + j * kSide + half, s * kStep, true, to + (j * steps + s) * kWords + half,
               kSide);
  };
  if (b.lane == 1)
    for (int64_t s = 0; s < steps; ++s)
      for (int64_t j = 0; j < count; ++j) one(j, s);
  else
    for (int64_t j = 0; j < count; ++j)
      for (int64_t s = 0; s < steps; ++s) one(j, s);
}
// Rows of A where they lie, or packed.
Rows rows_of(const Lanes& a, int64_t first, int64_t steps, uint32_t* room) {
  if (a.along == 1 && first + kSide <= a.lanes && a.values % kStep == 0)
    return {reinterpret_cast<const char*>(a.data + first * a.lane), 2 * a.lane, 2 * kTile * a.lane,
            2 * kStep};
  for (int64_t s = 0; s < steps; ++s)
    for (int64_t half = 0; half < 2; ++half)
      a.square(first + half * kTile, s * kStep, false, room + s * kWords + half * kWords / 2,
               kTile);
  return {reinterpret_cast<const char*>(room), 4 * kTile, 2 * kWords, 4 * kWords};
}

// Writes a block of C.
void finish(const GemmCall& g, const float* sums, int64_t i0, int64_t j0) {
  const auto* bias = static_cast<const BFloat16*>(g.bias);
  const auto* row_bias = static_cast<const BFloat16*>(g.row_bias);
  const auto alpha = static_cast<float>(g.alpha), beta = static_cast<float>(g.beta);
  for (int64_t j = j0; j < std::min(g.n, j0 + kSide); j += kTile) {
    const int64_t some = std::min(kTile, g.n - j);
    const auto mask = static_cast<__mmask16>((1u << some) - 1);
    const Vec<float> shift = bias ? (Vec<float>)(words_of(bias + j, some) << 16) : Vec<float>{};
    for (int64_t i = i0; i < std::min(g.m, i0 + kSide); ++i) {
      auto* to = static_cast<BFloat16*>(g.c) + i * g.ldc + j;
      Vec<float> v = load<float>(sums + (i - i0) * kSide + j - j0) * alpha + shift;
      if (row_bias) v += static_cast<float>(row_bias[i]);
      if (beta != 0) v += (Vec<float>)(words_of(to, some) << 16) * beta;
      _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh((__m512)v));
    }
  }
}

// Threads share out columns, each packs its own and none waits; or rows where columns are few, and
// then they pack B together.
void product(const GemmCall& g) {
  const Lanes a{static_cast<const BFloat16*>(g.a), g.a_rs, g.a_cs, g.m, g.k};
  const Lanes b{static_cast<const BFloat16*>(g.b), g.b_cs, g.b_rs, g.n, g.k};
  const int64_t steps = ceil_div(g.k, kStep), high = ceil_div(g.m, kSide),
                wide = ceil_div(g.n, kSide);
  const bool by_rows = wide < 2 * g.threads && high > wide;
  const int64_t held = std::max<int64_t>(1, kHeld / steps);
  Buffer<uint32_t> packed_b(std::min(held, wide) * steps * kWords * (by_rows ? 1 : g.threads) + 16);
  Buffer<uint32_t> packed_a(steps * kWords * g.threads + 16);
  auto aligned = [](uint32_t* p) {
    return reinterpret_cast<uint32_t*>((reinterpret_cast<uintptr_t>(p) + 63) & ~uintptr_t{63});
  };
  region(g.threads, [&](int t, int nt) {
    Tiles tiles;
    alignas(64) float sums[kSide * kSide];
    uint32_t* room = aligned(packed_a.get()) + t * steps * kWords;
    uint32_t* columns = aligned(packed_b.get());
    if (!by_rows) columns += t * std::min(held, wide) * steps * kWords;
    const int64_t i0 = by_rows ? high * t / nt : 0, i1 = by_rows ? high * (t + 1) / nt : high;
    const int64_t j0 = by_rows ? 0 : wide * t / nt, j1 = by_rows ? wide : wide * (t + 1) / nt;
    for (int64_t jc = j0; jc < j1; jc += held) {
      const int64_t count = std::min(held, j1 - jc);
      const int64_t first = by_rows ? count * t / nt : 0,
                    last = by_rows ? count * (t + 1) / nt : count;
      pack_columns(b, (jc + first) * kSide, last - first, steps, columns + first * steps * kWords);
      if (by_rows) barrier(nt);
      for (int64_t i = i0; i < i1; ++i) {
        const Rows rows = rows_of(a, i * kSide, steps, room);
        for (int64_t j = 0; j < count; ++j) {
          block(steps, rows, columns + j * steps * kWords, sums);
          finish(g, sums, i * kSide, (jc + j) * kSide);
        }
      }
      if (by_rows) barrier(nt);
    }
  });
}

void part(const AmxProduct& p) {
  const Lanes a{p.a, p.a_rs, p.a_cs, p.m, p.k};
  const int64_t steps = ceil_div(p.k, kStep);
  Buffer<uint32_t> room(p.a_cs != 1 || p.k % kStep || p.m % kSide ? steps * kWords : 1);
  Tiles tiles;
  alignas(64) float sums[kSide * kSide];
  for (int64_t i0 = 0; i0 < p.m; i0 += kSide) {
    const Rows rows = rows_of(a, i0, steps, room.get());
    const uint32_t* b = p.b;
    for (int64_t j0 = 0; j0 < p.n; j0 += kSide, b += ceil_div(p.b_values, kStep) * kWords) {
      block(steps, rows, b, sums);
      for (int64_t j = j0; j < std::min(p.n, j0 + kSide); j += kTile) {
        const auto mask = static_cast<__mmask16>((1u << std::min(kTile, p.n - j)) - 1);
        for (int64_t i = i0; i < std::min(p.m, i0 + kSide); ++i) {
          float* to = p.c + i * p.ldc + j;
          Vec<float> v = load<float>(sums + (i - i0) * kSide + j - j0) * p.alpha;
          if (p.beta != 0) v += (Vec<float>)_mm512_maskz_loadu_ps(mask, to) * p.beta;
          _mm512_mask_storeu_ps(to, mask, (__m512)v);
        }
      }
    }
  }
}

void rounded(const float* x, int64_t n, BFloat16* to) {
  for (int64_t i = 0; i < n; i += kTile) {
    const auto mask = static_cast<__mmask16>((1u << std::min(kTile, n - i)) - 1);
    _mm256_mask_storeu_epi16(to + i, mask,
                             (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x + i)));
  }
}

}  // namespace flambeau::kernels::v4_amx::tiles
#pragma GCC pop_options

namespace flambeau::kernels {
namespace {
// The system gives a process the registers when it asks for them.
bool granted() {
  constexpr int kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) || !(d >> 24 & 1)) return false;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}
}  // namespace

bool has_amx() {
  static const bool has = has_bf16_dot() && granted();
  return has;
}
void gemm_amx(const GemmCall& call) {
  v4_amx::tiles::product(call);
}
int64_t amx_words(int64_t lanes, int64_t values) {
  using namespace v4_amx::tiles;
  return ceil_div(lanes, kSide) * ceil_div(values, kStep) * kWords;
}
void amx_pack(const BFloat16* data, int64_t lane, int64_t along, int64_t lanes, int64_t values,
              uint32_t* to) {
  using namespace v4_amx::tiles;
  pack_columns({data, lane, along, lanes, values}, 0, ceil_div(lanes, kSide),
               ceil_div(values, kStep), to);
}
void amx_product(const AmxProduct& p) {
  v4_amx::tiles::part(p);
}
void amx_round(const float* x, int64_t n, BFloat16* to) {
  v4_amx::tiles::rounded(x, n, to);
}

}  // namespace flambeau::kernels
#else
namespace flambeau::kernels {
bool has_amx() {
  return false;
}
void gemm_amx(const GemmCall&) {}
int64_t amx_words(int64_t, int64_t) {
  return 0;
}
void amx_pack(const BFloat16*, int64_t, int64_t, int64_t, int64_t, uint32_t*) {}
void amx_product(const AmxProduct&) {}
void amx_round(const float*, int64_t, BFloat16*) {}
}  // namespace flambeau::kernels
#endif
