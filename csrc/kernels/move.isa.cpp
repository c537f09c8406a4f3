#include "kernels/move.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/isa_types.h"
#include "kernels/providers/simd.h"

namespace flambeau::kernels::FB_ISA {
using namespace tiles;
namespace {

// Conversion
// ---------------------------------------------------------------------------------------------------------

template <class From, class To>
void convert_run(const void* src, void* dst, int64_t n) {
  auto* x = static_cast<const From*>(src);
  auto* y = static_cast<To*>(dst);
  if constexpr (std::is_same_v<From, To>) {
    if (src != dst) std::memcpy(dst, src, n * sizeof(From));
  } else {
    int64_t i = 0;
#if defined(__F16C__)
    if constexpr (std::is_same_v<From, F16> && std::is_same_v<To, float>)
      for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i,
                         _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
    if constexpr (std::is_same_v<From, float> && std::is_same_v<To, F16>)
      for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
#endif
#pragma GCC ivdep
    for (; i < n; ++i) y[i] = cast<To>(x[i]);
  }
}

// Types whose loop serves a conversion: a sign counts only where integers get wider, or where a
// number with a fraction becomes an integer of 32 bits or more.
template <class T>
constexpr bool is_whole = std::is_integral_v<T> || std::is_same_v<T, Truth>;
template <class T, bool keep>
struct LoopType {
  using type = T;
};
template <class T>
requires std::is_integral_v<T>
struct LoopType<T, false> {
  using type = std::make_signed_t<T>;
};
template <class From, class To>
using LoopFrom = typename LoopType<From, !is_whole<To> || (sizeof(To) > sizeof(From))>::type;
template <class From, class To>
using LoopTo = typename LoopType<To, !is_whole<From> && (sizeof(To) >= 4)>::type;

template <class From>
ConvertFn converter_from(int to) {
  static constexpr ConvertFn table[] = {
#define X(To) &convert_run<LoopFrom<From, To>, LoopTo<From, To>>,
      FB_ISA_TYPES(X)
#undef X
  };
  return table[to];
}

// Tiles
// --------------------------------------------------------------------------------------------------------------

struct Wide {
  uint64_t lo, hi;
};

template <class T>
FB_INLINE T read(const char* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
template <class T>
FB_INLINE void write(char* p, T x) {
  std::memcpy(p, &x, sizeof x);
}

// Lines of src become columns of dst; squares are transposed in registers.
// src: `lines` lines of `run` elements each; dst: `run` lines of `lines` elements.
template <class T>
void transpose_tile(const char* src, int64_t src_line, char* dst, int64_t dst_line, int64_t lines,
                    int64_t run) {
  int64_t i0 = 0;
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    using V = std::conditional_t<sizeof(T) == 4, float, double>;
    constexpr int L = kLanes<V>;
    for (; i0 + L <= lines; i0 += L) {
      int64_t j0 = 0;
      for (; j0 + L <= run; j0 += L) {
        Vec<V> r[L];
#pragma GCC unroll 16
        for (int k = 0; k < L; ++k)
          std::memcpy(&r[k], src + (i0 + k) * src_line + j0 * sizeof(T), sizeof r[k]);
        transpose<V>(r);
#pragma GCC unroll 16
        for (int k = 0; k < L; ++k)
          std::memcpy(dst + (j0 + k) * dst_line + i0 * sizeof(T), &r[k], sizeof r[k]);
      }
      for (; j0 < run; ++j0)
        for (int k = 0; k < L; ++k)
          write<T>(dst + j0 * dst_line + (i0 + k) * sizeof(T),
                   read<T>(src + (i0 + k) * src_line + j0 * sizeof(T)));
    }
  }
  for (; i0 < lines; ++i0)
    for (int64_t j = 0; j < run; ++j)
      write<T>(dst + j * dst_line + i0 * sizeof(T), read<T>(src + i0 * src_line + j * sizeof(T)));
}

template <class T>
void move(Lattice src, Lattice dst, int64_t rows, int64_t cols) {
  constexpr int64_t size = sizeof(T);
  if (src.col == size && dst.col == size) {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(dst.data + r * dst.row, src.data + r * src.row, cols * size);
  } else if (src.col == 0 && dst.col == size) {
    for (int64_t r = 0; r < rows; ++r) {
      T x = read<T>(src.data + r * src.row);
      auto* out = reinterpret_cast<T*>(dst.data + r * dst.row);
      for (int64_t c = 0; c < cols; ++c) out[c] = x;
    }
  } else if (src.row == size && dst.col == size && rows > 1) {
    transpose_tile<T>(src.data, src.col, dst.data, dst.row, cols, rows);
  } else if (src.col == size && dst.row == size && rows > 1) {
    transpose_tile<T>(src.data, src.row, dst.data, dst.col, rows, cols);
  } else if (cols >= rows) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c)
        write<T>(dst.data + r * dst.row + c * dst.col,
                 read<T>(src.data + r * src.row + c * src.col));
  } else {
    for (int64_t c = 0; c < cols; ++c)
      for (int64_t r = 0; r < rows; ++r)
        write<T>(dst.data + r * dst.row + c * dst.col,
                 read<T>(src.data + r * src.row + c * src.col));
  }
}

}  // namespace

ConvertFn converter(int from, int to) {
  using Row = ConvertFn (*)(int);
  static constexpr Row rows[] = {
#define X(From) &converter_from<From>,
      FB_ISA_TYPES(X)
#undef X
  };
  return rows[from](to);
}

void move_tile(int itemsize, Lattice src, Lattice dst, int64_t rows, int64_t cols) {
  switch (itemsize) {
    case 1:
      return move<uint8_t>(src, dst, rows, cols);
    case 2:
      return move<uint16_t>(src, dst, rows, cols);
    case 4:
      return move<uint32_t>(src, dst, rows, cols);
    case 8:
      return move<uint64_t>(src, dst, rows, cols);
    default:
      return move<Wide>(src, dst, rows, cols);
  }
}

// Streaming
// ----------------------------------------------------------------------------------------------------------

namespace {
FB_INLINE void stream16(char* p, Vec<float> v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(reinterpret_cast<float*>(p), reinterpret_cast<__m512>(v));
#elif defined(__AVX2__)
  _mm256_stream_ps(reinterpret_cast<float*>(p), reinterpret_cast<__m256>(v));
#elif defined(__x86_64__)
  _mm_stream_ps(reinterpret_cast<float*>(p), reinterpret_cast<__m128>(v));
#else
  std::memcpy(p, &v, sizeof v);
#endif
}
}  // namespace

void stream(void* to, const void* from, int64_t bytes, const Ahead& ahead) {
  auto* dst = static_cast<char*>(to);
  auto* src = static_cast<const char*>(from);
  int64_t head = -reinterpret_cast<intptr_t>(dst) & 63;
  if (head >= bytes) {
    std::memcpy(dst, src, bytes);
    return;
  }
  if (head) std::memcpy(dst, src, head);
  int64_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    for (int j = 0; j < ahead.count; ++j)
      if (i < ahead.bytes[j]) __builtin_prefetch(ahead.at[j] + i);
#pragma GCC unroll 4
    for (int k = 0; k < 64; k += kVectorBytes) {
      Vec<float> v;
      std::memcpy(&v, src + i + k, sizeof v);
      stream16(dst + i + k, v);
    }
  }
  if (i < bytes) std::memcpy(dst + i, src + i, bytes - i);
}

// By stores of 32 bytes at most: those of whole lines were seen to fill a quarter slower.
void fill_value(void* to, const void* pattern16, int64_t bytes) {
  constexpr int64_t kBytes = kVectorBytes < 32 ? kVectorBytes : 32;
  typedef char Piece __attribute__((vector_size(kBytes)));
  auto* dst = static_cast<char*>(to);
  alignas(64) char block[64];
  for (int k = 0; k < 64; k += 16) std::memcpy(block + k, pattern16, 16);
  Piece v;  // in a register: the loop reads nothing
  std::memcpy(&v, block, sizeof v);
  int64_t i = 0;
  for (; i + 4 * kBytes <= bytes; i += 4 * kBytes)
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) std::memcpy(dst + i + k * kBytes, &v, sizeof v);
  for (; i < bytes; i += 64) std::memcpy(dst + i, block, bytes - i < 64 ? bytes - i : 64);
}

}  // namespace flambeau::kernels::FB_ISA
