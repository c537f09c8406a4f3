// Matrix products of bfloat16 by the dot products of pairs that AVX512_BF16 has. One file, built
// for that set alone and used when the machine has it; gemm_float.isa.cpp is the way for all
// others.
#include "kernels/providers/gemm.h"

#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ >= 11
#include <immintrin.h>

#include <cstring>
#include <memory>
#include "core/allocator.h"
#include "core/parallel.h"
#pragma GCC push_options
#pragma GCC optimize("O3")
#pragma GCC target( \
    "avx2,fma,bmi,bmi2,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")
#define FB_KERNEL_NS v4_bf16
#define FB_VECTOR_BYTES 64
#include "kernels/providers/gemm_call.h"

namespace flambeau::kernels::v4_bf16::tiles {

// 16 bfloat16 as the low halves of words.
[[gnu::always_inline]] inline Vec<uint32_t> words_of(const BFloat16* p) {
  typedef uint16_t Halves __attribute__((vector_size(32)));
  return __builtin_convertvector(peek<Halves>(p), Vec<uint32_t>);
}

// One element is a pair of bfloat16 that follow each other along k.
struct Pairs {
  using Elem = uint32_t;
  using Acc = float;
  using Out = float;
  static constexpr int kVectors = 2;
  [[gnu::always_inline]] static Vec<float> step(Vec<float> acc, uint32_t a, Vec<uint32_t> b) {
    return _mm512_dpbf16_ps(acc, (__m512bh)splat<uint32_t>(a), (__m512bh)b);
  }
  [[gnu::always_inline]] static Vec<float> get(const float* p) { return load<float>(p); }
  [[gnu::always_inline]] static void put(float* p, Vec<float> v) { store<float>(p, v); }
};

// The same, rounded when it is written.
struct PairsRounded : Pairs {
  using Out = BFloat16;
  [[gnu::always_inline]] static Vec<float> get(const BFloat16* p) {
    return (Vec<float>)(words_of(p) << 16);
  }
  [[gnu::always_inline]] static void put(BFloat16* p, Vec<float> v) {
    __m256bh out = _mm512_cvtneps_pbh(v);
    std::memcpy(static_cast<void*>(p), &out, sizeof out);
  }
};

struct PackPairs {
  Strides<BFloat16> x;  // rs between what becomes lanes' tiles, as in gemm_core.h

  uint32_t pair(const BFloat16* p, int64_t step, bool both) const {
    return p[0].bits | (both ? static_cast<uint32_t>(p[step].bits) << 16 : 0u);
  }
  // Lanes along `lane`, pairs along `along`.
  void general(const BFloat16* src, int64_t lane, int64_t along, int64_t lanes, int64_t from,
               int64_t pairs, int64_t values, int64_t width, uint32_t* dst) const {
    for (int64_t q = from; q < pairs; ++q)
      for (int64_t i = 0; i < lanes; ++i)
        dst[q * width + i] = pair(src + i * lane + 2 * q * along, along, 2 * q + 1 < values);
  }
  // k dense: pairs are words in memory.
  void words(const BFloat16* src, int64_t lane, int64_t lanes, int64_t pairs, int64_t values,
             int64_t width, uint32_t* dst) const {
    const int64_t whole = values / 2;
    pack_transposed<uint32_t, uint32_t>(src, 2 * lane, lanes, std::min(whole, pairs), width, dst);
    general(src, lane, 1, lanes, whole, pairs, values, width, dst);
  }
};

template <class P>
void run(const GemmCall& g, typename P::Out* c, int64_t ldc, const Epilogue<float>& e) {
  constexpr int64_t NR = Blocking<P>::kNR;
  const PackPairs a{operand_a<BFloat16>(g)}, b{operand_b<BFloat16>(g)};
  const int64_t k = g.k;
  gemm_packed<P>(
      g.m, g.n, (k + 1) / 2,
      [&](int64_t p0, int64_t kc, int64_t i0, int64_t rows, int64_t mr, uint32_t* dst) {
        const BFloat16* src = a.x.data + i0 * a.x.rs + 2 * p0 * a.x.cs;
        for (int64_t i = 0; i < rows; i += mr, src += mr * a.x.rs, dst += mr * kc) {
          const int64_t some = std::min(mr, rows - i), values = k - 2 * p0;
          if (a.x.cs == 1)
            a.words(src, a.x.rs, some, kc, values, mr, dst);
          else
            a.general(src, a.x.rs, a.x.cs, some, 0, kc, values, mr, dst);
        }
      },
      [&](int64_t p0, int64_t kc, int64_t j0, int64_t columns, uint32_t* dst) {
        const BFloat16* src = b.x.data + 2 * p0 * b.x.rs + j0 * b.x.cs;
        const int64_t values = k - 2 * p0;
        if (columns < NR) std::memset(dst, 0, sizeof(uint32_t) * NR * kc);
        if (b.x.rs == 1) return b.words(src, b.x.cs, columns, kc, values, NR, dst);
        if (b.x.cs != 1 || columns < NR)
          return b.general(src, b.x.cs, b.x.rs, columns, 0, kc, values, NR, dst);
        int64_t q = 0;
        for (; q < kc && 2 * q + 1 < values; ++q, src += 2 * b.x.rs)
          for (int64_t j = 0; j < NR; j += 16)
            store<uint32_t>(dst + q * NR + j, words_of(src + j) | words_of(src + b.x.rs + j) << 16);
        b.general(b.x.data + 2 * p0 * b.x.rs + j0 * b.x.cs, b.x.cs, b.x.rs, columns, q, kc, values,
                  NR, dst);
      },
      k, c, ldc, e, g.threads);
}

void product(const GemmCall& g) {
  if (!g.bias && !g.row_bias && (g.k + 1) / 2 <= Blocking<Pairs>::kKC) {
    const Epilogue<float> e{static_cast<float>(g.alpha), static_cast<float>(g.beta)};
    return run<PairsRounded>(g, static_cast<BFloat16*>(g.c), g.ldc, e);
  }
  Buffer<float> sums(g.m * g.n);
  run<Pairs>(g, sums.get(), g.n, {});
  finish_converted<float, BFloat16>(g, sums.get());
}

}  // namespace flambeau::kernels::v4_bf16::tiles
#pragma GCC pop_options

namespace flambeau::kernels {

bool has_bf16_dot() {
  static const bool has = !std::strcmp(isa_name(), "v4") && __builtin_cpu_supports("avx512bf16");
  return has;
}
void gemm_bf16_dot(const GemmCall& call) {
  v4_bf16::tiles::product(call);
}

}  // namespace flambeau::kernels
#else
namespace flambeau::kernels {
bool has_bf16_dot() {
  return false;
}
void gemm_bf16_dot(const GemmCall&) {}
}  // namespace flambeau::kernels
#endif
