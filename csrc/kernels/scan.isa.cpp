// Loops of csrc/kernels/scan.h. A line is a chain of dependent additions, so four are walked at
// once; columns are independent and vectorise.
#include "kernels/scan.h"

#include "kernels/isa_types.h"
#include "kernels/move.h"

namespace flambeau::kernels::FB_ISA {
namespace {

// What a running value of T is kept in.
template <class T>
struct RunningType {
  using type = T;
};
template <>
struct RunningType<float> {
  using type = double;
};
template <>
struct RunningType<F16> {
  using type = float;
};
template <>
struct RunningType<BF16> {
  using type = float;
};
template <>
struct RunningType<C64> {
  using type = C128;
};
template <>
struct RunningType<int8_t> {
  using type = uint8_t;
};
template <>
struct RunningType<int16_t> {
  using type = uint16_t;
};
template <>
struct RunningType<int32_t> {
  using type = uint32_t;
};
template <>
struct RunningType<int64_t> {
  using type = uint64_t;
};
template <class T>
using Running = typename RunningType<T>::type;

template <Scan op, class A>
FB_INLINE A joined(A a, A b) {
  if constexpr (is_complex_v<A>) {
    if constexpr (op == Scan::Sum)
      return {a.re + b.re, a.im + b.im};
    else
      return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  } else if constexpr (op == Scan::Sum) {
    return static_cast<A>(a + b);
  } else if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}
template <Scan op, class A>
FB_INLINE A identity() {
  return cast<A>(op == Scan::Sum ? 0.0f : 1.0f);
}

template <Scan op, class T, int k>
FB_INLINE void walk_lines(const T* x, T* out, int64_t x_stride, int64_t out_stride, int64_t n,
                          Running<T>* running) {
  using A = Running<T>;
  A a[k];
  for (int i = 0; i < k; ++i) a[i] = running[i];
  for (int64_t j = 0; j < n; ++j)
    for (int i = 0; i < k; ++i) {
      a[i] = joined<op>(a[i], cast<A>(x[i * x_stride + j]));
      out[i * out_stride + j] = cast<T>(a[i]);
    }
  for (int i = 0; i < k; ++i) running[i] = a[i];
}

template <Scan op, class T>
void lines(const void* x_, void* out_, int64_t count, int64_t stride, int64_t n,
           const double* start, bool to_memory) {
  using A = Running<T>;
  auto* x = static_cast<const T*>(x_);
  auto* out = static_cast<T*>(out_);
  A running[kScanLanes];
  for (int64_t i = 0; i < kScanLanes; ++i) running[i] = identity<op, A>();
  if constexpr (std::is_floating_point_v<A>)
    if (start)
      for (int64_t i = 0; i < count; ++i) running[i] = static_cast<A>(start[i]);
  constexpr int64_t kChunk = 512;
  alignas(64) T buffer[kScanLanes * kChunk];
  for (int64_t j = 0; j < n; j += to_memory ? kChunk : n) {
    int64_t m = to_memory && n - j > kChunk ? kChunk : n - j;
    T* to = to_memory ? buffer : out + j;
    int64_t to_stride = to_memory ? kChunk : stride;
    switch (count) {
      case 4:
        walk_lines<op, T, 4>(x + j, to, stride, to_stride, m, running);
        break;
      case 3:
        walk_lines<op, T, 3>(x + j, to, stride, to_stride, m, running);
        break;
      case 2:
        walk_lines<op, T, 2>(x + j, to, stride, to_stride, m, running);
        break;
      default:
        walk_lines<op, T, 1>(x + j, to, stride, to_stride, m, running);
        break;
    }
    if (!to_memory) continue;
    for (int64_t i = 0; i < count; ++i)
      stream(out + i * stride + j, buffer + i * kChunk, m * static_cast<int64_t>(sizeof(T)));
  }
  if (to_memory) stream_fence();
}

template <Scan op, class T>
void columns(const void* x_, void* out_, int64_t width, int64_t stride, int64_t n, bool to_memory) {
  using A = Running<T>;
  auto* x = static_cast<const T*>(x_);
  auto* out = static_cast<T*>(out_);
  alignas(64) A running[kScanColumns];
  alignas(64) T buffer[kScanColumns];
  for (int64_t j = 0; j < width; ++j) running[j] = identity<op, A>();
  for (int64_t i = 0; i < n; ++i, x += stride, out += stride) {
    T* to = to_memory ? buffer : out;
#pragma GCC ivdep
    for (int64_t j = 0; j < width; ++j) {
      A a = joined<op>(running[j], cast<A>(x[j]));
      running[j] = a;
      to[j] = cast<T>(a);
    }
    if (to_memory) stream(out, buffer, width * static_cast<int64_t>(sizeof(T)));
  }
  if (to_memory) stream_fence();
}

template <class T>
double sum_of(const T* x, int64_t n) {
  double lanes[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 16; ++k) lanes[k] += static_cast<double>(x[i + k]);
  double total = 0;
  for (; i < n; ++i) total += static_cast<double>(x[i]);
  for (double l : lanes) total += l;
  return total;
}

template <Scan op>
bool loops_of(int dtype, ScanLoops& loops) {
  int i = 0;
#define X(T)                                               \
  if (i++ == dtype) {                                      \
    if constexpr (std::is_same_v<T, Truth>)                \
      return false;                                        \
    else                                                   \
      return loops = {lines<op, T>, columns<op, T>}, true; \
  }
  FB_ISA_TYPES(X)
#undef X
  return false;
}

}  // namespace

bool scan_loops(Scan op, int dtype, ScanLoops& loops) {
  return op == Scan::Sum ? loops_of<Scan::Sum>(dtype, loops) : loops_of<Scan::Prod>(dtype, loops);
}

double sum_floats(const float* x, int64_t n) {
  return sum_of(x, n);
}
double sum_doubles(const double* x, int64_t n) {
  return sum_of(x, n);
}

}  // namespace flambeau::kernels::FB_ISA
