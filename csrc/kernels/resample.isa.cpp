// Separable linear maps over planes: axis by axis, those that shrink first, so that the least is
// computed.
#include "kernels/resample.h"

#include "core/parallel.h"
#include "kernels/providers/gemm_core.h"

namespace flambeau::kernels::FB_ISA {
using namespace tiles;
namespace {

template <class T>
struct Weights {
  std::vector<T> values;
  explicit Weights(const AxisMap& m) : values(m.weights.begin(), m.weights.end()) {}
};

// Nothing of an input that has no weight: it may be infinite or NaN.
template <class T>
FB_INLINE T share(T weight, T x) {
  return weight != 0 ? weight * x : T(0);
}

// Along a dense axis.
template <class T, int Width>
void along(const AxisMap& m, const T* w, const T* x, T* y) {
  const int32_t* start = m.start.data();
  const int64_t n = m.out;
  for (int64_t o = 0; o < n; ++o) {
    const T* from = x + start[o];
    T sum = share(w[o], from[0]);
    if constexpr (Width > 1) sum += share(w[n + o], from[1]);
    if constexpr (Width > 2) sum += share(w[2 * n + o], from[2]);
    if constexpr (Width > 3) sum += share(w[3 * n + o], from[3]);
    y[o] = sum;
  }
}
template <class T>
void along_any(const AxisMap& m, const T* w, const T* x, T* y) {
  const int64_t n = m.out;
  switch (m.width) {
    case 1:
      return along<T, 1>(m, w, x, y);
    case 2:
      return along<T, 2>(m, w, x, y);
    case 3:
      return along<T, 3>(m, w, x, y);
    case 4:
      return along<T, 4>(m, w, x, y);
  }
  along<T, 4>(m, w, x, y);
  for (int64_t j = 4; j < m.width; ++j)
    for (int64_t o = 0; o < n; ++o) y[o] += share(w[j * n + o], x[m.start[o] + j]);
}

// Sums of rows of `inner` elements.
template <class T>
void across(const AxisMap& m, const T* w, int64_t inner, const T* x, T* y) {
  constexpr int W = kLanes<T>;
  for (int64_t o = 0; o < m.out; ++o, y += inner) {
    const T* from = x + m.start[o] * inner;
    int64_t i = 0;
    for (; i + 2 * W <= inner; i += 2 * W) {
      Vec<T> a{}, b{};
      for (int64_t j = 0; j < m.width; ++j) {
        const T weight = w[j * m.out + o];
        if (weight == 0) continue;
        a += load<T>(from + j * inner + i) * weight;
        b += load<T>(from + j * inner + i + W) * weight;
      }
      store<T>(y + i, a);
      store<T>(y + i + W, b);
    }
    for (; i < inner; ++i) {
      T s = 0;
      for (int64_t j = 0; j < m.width; ++j) s += share(w[j * m.out + o], from[j * inner + i]);
      y[i] = s;
    }
  }
}

template <class T>
void apply(const AxisMap* maps, int64_t planes, const T* x, T* y) {
  const Weights<T> weights[3] = {Weights<T>(maps[0]), Weights<T>(maps[1]), Weights<T>(maps[2])};
  int order[3], steps = 0;
  for (int a = 0; a < 3; ++a)
    if (!maps[a].identity && maps[a].out < maps[a].in) order[steps++] = a;
  for (int a = 2; a >= 0; --a)
    if (!maps[a].identity && maps[a].out >= maps[a].in) order[steps++] = a;
  const int64_t in_size = maps[0].in * maps[1].in * maps[2].in,
                out_size = maps[0].out * maps[1].out * maps[2].out;
  int64_t most = 1;
  for (int a = 0; a < 3; ++a) most *= std::max(maps[a].in, maps[a].out);
  parallel_for(0, planes, std::max<int64_t>(1, kGrain / (in_size + out_size + 1)),
               [&](int64_t from, int64_t to) {
                 Buffer<T> temp(2 * most);
                 for (int64_t p = from; p < to; ++p) {
                   const T* src = x + p * in_size;
                   int64_t size[3] = {maps[0].in, maps[1].in, maps[2].in};
                   if (steps == 0)
                     std::memcpy(static_cast<void*>(y + p * out_size), src, sizeof(T) * out_size);
                   for (int s = 0; s < steps; ++s) {
                     const int a = order[s];
                     const AxisMap& m = maps[a];
                     const T* w = weights[a].values.data();
                     T* dst = s + 1 == steps ? y + p * out_size : temp.get() + (s & 1) * most;
                     const int64_t outer = a == 0 ? 1 : a == 1 ? size[0] : size[0] * size[1];
                     const int64_t inner = a == 2 ? 1 : a == 1 ? size[2] : size[1] * size[2];
                     for (int64_t i = 0; i < outer; ++i) {
                       if (inner == 1)
                         along_any<T>(m, w, src + i * m.in, dst + i * m.out);
                       else
                         across<T>(m, w, inner, src + i * m.in * inner, dst + i * m.out * inner);
                     }
                     size[a] = m.out;
                     src = dst;
                   }
                 }
               });
}

}  // namespace

void apply_axis_maps(DType d, const AxisMap* maps, int64_t planes, const void* x, void* y) {
  if (d == DType::Float32)
    return apply<float>(maps, planes, static_cast<const float*>(x), static_cast<float*>(y));
  apply<double>(maps, planes, static_cast<const double*>(x), static_cast<double*>(y));
}

}  // namespace flambeau::kernels::FB_ISA
