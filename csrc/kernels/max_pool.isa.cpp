// Maxima over windows: a row of outputs at a time, tap by tap, so that lanes are outputs; where
// channels lie last, one output of all channels at a time: lanes are channels.
#include "kernels/max_pool.h"

#include <limits>
#include <type_traits>

#include "core/parallel.h"
#include "kernels/providers/gemm_core.h"

namespace flambeau::kernels::FB_ISA {
using namespace tiles;
namespace {

template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::lowest();
  else
    return static_cast<T>(-std::numeric_limits<float>::infinity());
}

template <class T>
[[gnu::always_inline]] inline bool beats(T x, T best) {
  if constexpr (std::is_integral_v<T>)
    return x > best;
  else
    return static_cast<bool>((x > best) | (x != x));
}

// `mine` where x beats the best, else `theirs`. Two selections: compilers make branches of one.
template <class T, class V>
[[gnu::always_inline]] inline V winner(T x, T best, V mine, V theirs) {
  const V greater = x > best ? mine : theirs;
  if constexpr (std::is_integral_v<T>)
    return greater;
  else
    return x != x ? mine : greater;
}

// One row of outputs: the best value of each window and where it is. `line` holds a padded row of
// the input.
template <class T>
struct RowMax {
  const WindowAxis* axes;
  std::vector<T> line, best;
  std::vector<int32_t> index;

  explicit RowMax(const WindowAxis* axes)
      : axes(axes),
        line(axes[2].in + 2 * axes[2].pad + axes[2].stride + axes[2].size * axes[2].step + 8,
             lowest<T>()),
        best(axes[2].out),
        index(axes[2].out) {}

  template <bool Positions, int Stride>
  void tap(int64_t from, int32_t place, int64_t stride) {
    const T* v = line.data() + from;
    T* b = best.data();
    int32_t* at = index.data();
    const int64_t n = axes[2].out, s = Stride ? Stride : stride;
    for (int64_t o = 0; o < n; ++o) {
      const T x = v[o * s];
      if constexpr (Positions)
        at[o] = winner<T>(x, b[o], static_cast<int32_t>(place + o * s), at[o]);
      b[o] = winner<T>(x, b[o], x, b[o]);
    }
  }

  template <bool Positions>
  void regular_row(const T* row, int32_t row_place) {
    const WindowAxis& a = axes[2];
    std::copy_n(row, a.in, line.data() + a.pad);
    for (int64_t j = 0; j < a.size; ++j) {
      const int64_t from = j * a.step;
      const int32_t place = row_place + static_cast<int32_t>(from - a.pad);
      if (a.stride == 1)
        tap<Positions, 1>(from, place, 1);
      else if (a.stride == 2)
        tap<Positions, 2>(from, place, 2);
      else
        tap<Positions, 0>(from, place, a.stride);
    }
  }

  template <bool Positions>
  void irregular_row(const T* row, int32_t row_place) {
    const WindowAxis& a = axes[2];
    for (int64_t o = 0; o < a.out; ++o)
      for (int64_t i = a.from[o]; i < a.to[o]; i += a.step)
        if (beats<T>(row[i], best[o])) {
          best[o] = row[i];
          if constexpr (Positions) index[o] = row_place + static_cast<int32_t>(i);
        }
  }

  template <bool Positions>
  void run(const T* plane, int64_t z, int64_t y) {
    const int64_t h = axes[1].in, w = axes[2].in;
    const int64_t z0 = axes[0].from[z], y0 = axes[1].from[y];
    for (int64_t o = 0; o < axes[2].out; ++o) {
      best[o] = lowest<T>();
      index[o] = static_cast<int32_t>((z0 * h + y0) * w + axes[2].from[o]);
    }
    for (int64_t i = z0; i < axes[0].to[z]; i += axes[0].step)
      for (int64_t j = y0; j < axes[1].to[y]; j += axes[1].step) {
        const int64_t at = (i * h + j) * w;
        if (axes[2].stride)
          regular_row<Positions>(plane + at, static_cast<int32_t>(at));
        else
          irregular_row<Positions>(plane + at, static_cast<int32_t>(at));
      }
  }
};

// Calls f(row of outputs done, plane, output row number) for all rows of all planes.
template <class T, bool Positions, class F>
void rows(const WindowAxis* axes, int64_t planes, const T* x, const F& f) {
  const int64_t in = axes[0].in * axes[1].in * axes[2].in, per_plane = axes[0].out * axes[1].out;
  parallel_for(0, planes, std::max<int64_t>(1, kGrain / (in + 1)), [&](int64_t from, int64_t to) {
    RowMax<T> row(axes);
    for (int64_t p = from; p < to; ++p)
      for (int64_t r = 0; r < per_plane; ++r) {
        row.template run<Positions>(x + p * in, r / axes[1].out, r % axes[1].out);
        f(row, p, p * per_plane + r);
      }
  });
}

// Types for which maxima without positions have code of their own: the others are rare.
template <class T>
inline constexpr bool kUsual = std::is_same_v<T, float> || std::is_same_v<T, BFloat16>;

template <class T>
void forward(const WindowAxis* axes, int64_t planes, const T* x, T* y, int64_t* indices) {
  const int64_t w = axes[2].out;
  if constexpr (kUsual<T>)
    if (!indices)
      return rows<T, false>(axes, planes, x, [&](RowMax<T>& row, int64_t, int64_t r) {
        std::copy_n(row.best.data(), w, y + r * w);
      });
  rows<T, true>(axes, planes, x, [&](RowMax<T>& row, int64_t, int64_t r) {
    if (y) std::copy_n(row.best.data(), w, y + r * w);
    if (indices)
      for (int64_t o = 0; o < w; ++o) indices[r * w + o] = row.index[o];
  });
}

template <class T>
void backward(const WindowAxis* axes, int64_t planes, const T* x, const T* gy, T* gx) {
  const int64_t w = axes[2].out, in = axes[0].in * axes[1].in * axes[2].in;
  rows<T, true>(axes, planes, x, [&](RowMax<T>& row, int64_t p, int64_t r) {
    T* to = gx + p * in;
    for (int64_t o = 0; o < w; ++o)
      to[row.index[o]] = static_cast<T>(to[row.index[o]] + gy[r * w + o]);
  });
}

constexpr int64_t kChannels = 64;  // that are looked at together: they stay in registers

// One window of some channels: the best value of each, and which tap it came from.
template <class T>
struct ChannelMax {
  const WindowAxis* axes;
  int64_t channels;
  std::vector<int64_t> places;  // of the taps, in elements from the start of the image
  T best[kChannels];
  int32_t tap[kChannels];

  ChannelMax(const WindowAxis* axes, int64_t channels) : axes(axes), channels(channels) {}

  void move(int64_t oz, int64_t oy, int64_t ox) {
    places.clear();
    for (int64_t i = axes[0].from[oz]; i < axes[0].to[oz]; i += axes[0].step)
      for (int64_t j = axes[1].from[oy]; j < axes[1].to[oy]; j += axes[1].step)
        for (int64_t k = axes[2].from[ox]; k < axes[2].to[ox]; k += axes[2].step)
          places.push_back(((i * axes[1].in + j) * axes[2].in + k) * channels);
  }

  template <bool Taps>
  void run(const T* image, int64_t first) {
    if (channels - first >= kChannels)
      return look<Taps>(image + first, std::integral_constant<int64_t, kChannels>(), 0);
    const int64_t count = channels - first;
    int64_t at = 0;
    for (; at + kFew <= count; at += kFew)
      look<Taps>(image + first + at, std::integral_constant<int64_t, kFew>(), at);
    if (at < count) look<Taps>(image + first + at, count - at, at);
  }

 private:
  static constexpr int64_t kFew = 8;  // a count that is known is taken in lanes

  template <bool Taps, class N>
  [[gnu::always_inline]] inline void look(const T* image, N count, int64_t at) {
    T b[kChannels];
    int32_t t[kChannels];
    for (int64_t c = 0; c < count; ++c) b[c] = lowest<T>(), t[c] = 0;
    for (size_t n = 0; n < places.size(); ++n) {
      const T* v = image + places[n];
      for (int64_t c = 0; c < count; ++c) {
        const T x = v[c];
        if constexpr (Taps) t[c] = winner<T>(x, b[c], static_cast<int32_t>(n), t[c]);
        b[c] = winner<T>(x, b[c], x, b[c]);
      }
    }
    std::copy_n(b, static_cast<int64_t>(count), best + at);
    if constexpr (Taps) std::copy_n(t, static_cast<int64_t>(count), tap + at);
  }
};

// Calls f(window done, start of its image, its output's first element, first channel, channels) for
// all outputs.
template <class T, bool Taps, class F>
void windows(const WindowAxis* axes, int64_t images, int64_t channels, const T* x, const F& f) {
  const int64_t in = axes[0].in * axes[1].in * axes[2].in * channels;
  const int64_t d = axes[0].out, h = axes[1].out, w = axes[2].out;
  parallel_for(0, images, std::max<int64_t>(1, kGrain / (in + 1)), [&](int64_t from, int64_t to) {
    ChannelMax<T> window(axes, channels);
    for (int64_t n = from; n < to; ++n)
      for (int64_t o = 0; o < d * h * w; ++o) {
        window.move(o / (h * w), o / w % h, o % w);
        for (int64_t c = 0; c < channels; c += kChannels) {
          window.template run<Taps>(x + n * in, c);
          f(window, n * in, (n * d * h * w + o) * channels + c, c,
            std::min(kChannels, channels - c));
        }
      }
  });
}

template <class T>
void forward_last(const WindowAxis* axes, int64_t images, int64_t channels, const T* x, T* y,
                  int64_t* indices) {
  if constexpr (kUsual<T>)
    if (!indices)
      return windows<T, false>(axes, images, channels, x,
                               [&](const ChannelMax<T>& window, int64_t, int64_t at, int64_t,
                                   int64_t count) { std::copy_n(window.best, count, y + at); });
  windows<T, true>(axes, images, channels, x,
                   [&](const ChannelMax<T>& window, int64_t, int64_t at, int64_t, int64_t count) {
                     std::copy_n(window.best, count, y + at);
                     if (!indices) return;
                     for (int64_t c = 0; c < count; ++c)
                       indices[at + c] = window.places[window.tap[c]] / channels;
                   });
}

template <class T>
void backward_last(const WindowAxis* axes, int64_t images, int64_t channels, const T* x,
                   const T* gy, T* gx) {
  windows<T, true>(
      axes, images, channels, x,
      [&](const ChannelMax<T>& window, int64_t image, int64_t at, int64_t first, int64_t count) {
        for (size_t n = 0; n < window.places.size(); ++n) {
          T* target = gx + image + window.places[n] + first;
          const int32_t own = static_cast<int32_t>(n);
          for (int64_t c = 0; c < count; ++c)
            target[c] =
                static_cast<T>(target[c] + (window.tap[c] == own ? gy[at + c] : static_cast<T>(0)));
        }
      });
}

template <bool Whole, class F>
void by_type(DType d, const F& f) {
  switch (d) {
    case DType::Float32:
      return f(float());
    case DType::Float64:
      return f(double());
    case DType::BFloat16:
      return f(BFloat16());
    case DType::Float16:
      return f(Half());
    default:  // derivatives are not of whole numbers
      if constexpr (Whole) return f(int64_t());
  }
}

}  // namespace

void max_windows(DType d, const WindowAxis* axes, int64_t planes, const void* x, void* y,
                 int64_t* indices) {
  by_type<true>(d, [&]<class T>(T) {
    forward<T>(axes, planes, static_cast<const T*>(x), static_cast<T*>(y), indices);
  });
}

void max_windows_backward(DType d, const WindowAxis* axes, int64_t planes, const void* x,
                          const void* gy, void* gx) {
  by_type<false>(d, [&]<class T>(T) {
    backward<T>(axes, planes, static_cast<const T*>(x), static_cast<const T*>(gy),
                static_cast<T*>(gx));
  });
}

void max_windows_last(DType d, const WindowAxis* axes, int64_t images, int64_t channels,
                      const void* x, void* y, int64_t* indices) {
  by_type<true>(d, [&]<class T>(T) {
    forward_last<T>(axes, images, channels, static_cast<const T*>(x), static_cast<T*>(y), indices);
  });
}

void max_windows_last_backward(DType d, const WindowAxis* axes, int64_t images, int64_t channels,
                               const void* x, const void* gy, void* gx) {
  by_type<false>(d, [&]<class T>(T) {
    backward_last<T>(axes, images, channels, static_cast<const T*>(x), static_cast<const T*>(gy),
                     static_cast<T*>(gx));
  });
}

}  // namespace flambeau::kernels::FB_ISA
