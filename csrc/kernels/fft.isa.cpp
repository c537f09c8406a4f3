// Fourier transforms of blocks of lines, one line per lane: Stockham's self-sorting stages of radix
// 8, 5, 4, 3, 2 and any small prime. Sources: Stockham 1966; Temperton, J. Comput. Phys. 52 (1983);
// Bluestein 1970.
#include "kernels/fft.h"

#include "kernels/providers/simd.h"

namespace flambeau::kernels::FB_ISA {
namespace {

using tiles::kLanes;
using tiles::load;
using tiles::splat;
using tiles::store;
using tiles::Vec;

template <class T>
struct C {
  Vec<T> re, im;
};
template <class T>
FB_INLINE C<T> operator+(C<T> a, C<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
FB_INLINE C<T> operator-(C<T> a, C<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
FB_INLINE C<T> mul(C<T> a, Vec<T> re, Vec<T> im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}
template <class T>
FB_INLINE C<T> mul(C<T> a, const T* w) {
  return mul(a, splat<T>(w[0]), splat<T>(w[1]));
}
template <class T>
FB_INLINE C<T> times(C<T> a, T s) {
  return {a.re * s, a.im * s};
}
template <class T>
FB_INLINE C<T> minus_i(C<T> a) {
  return {a.im, -a.re};
}  // -i a
template <class T>
FB_INLINE C<T> conj(C<T> a) {
  return {a.re, -a.im};
}

template <class T>
FB_INLINE void dft4(C<T>& a, C<T>& b, C<T>& c, C<T>& d) {
  const C<T> s = a + c, t = a - c, u = b + d, v = minus_i(b - d);
  a = s + u, b = t + v, c = s - u, d = t - v;
}

// One butterfly: x[0..R) transformed in place.
template <int R, class T>
FB_INLINE void butterfly(C<T>* x) {
  if constexpr (R == 2) {
    const C<T> a = x[0], b = x[1];
    x[0] = a + b, x[1] = a - b;
  } else if constexpr (R == 3) {
    const C<T> s = x[1] + x[2], d = times(minus_i(x[1] - x[2]), T(0.86602540378443864676));
    const C<T> m = x[0] - times(s, T(0.5));
    x[0] = x[0] + s, x[1] = m + d, x[2] = m - d;
  } else if constexpr (R == 4) {
    dft4(x[0], x[1], x[2], x[3]);
  } else if constexpr (R == 5) {
    constexpr T c1 = 0.30901699437494742410, c2 = -0.80901699437494742410;
    constexpr T s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;
    const C<T> a = x[1] + x[4], b = x[2] + x[3], d = minus_i(x[1] - x[4]), e = minus_i(x[2] - x[3]);
    const C<T> p = x[0] + times(a, c1) + times(b, c2), q = x[0] + times(a, c2) + times(b, c1);
    const C<T> r = times(d, s1) + times(e, s2), t = times(d, s2) - times(e, s1);
    x[0] = x[0] + a + b, x[1] = p + r, x[2] = q + t, x[3] = q - t, x[4] = p - r;
  } else {
    static_assert(R == 8);
    constexpr T h = 0.70710678118654752440;
    dft4(x[0], x[2], x[4], x[6]);
    dft4(x[1], x[3], x[5], x[7]);
    const C<T> o1 = {(x[3].re + x[3].im) * h, (x[3].im - x[3].re) * h};
    const C<T> o2 = minus_i(x[5]);
    const C<T> o3 = {(x[7].im - x[7].re) * h, -(x[7].re + x[7].im) * h};
    const C<T> e0 = x[0], e1 = x[2], e2 = x[4], e3 = x[6], o0 = x[1];
    x[0] = e0 + o0, x[4] = e0 - o0, x[1] = e1 + o1, x[5] = e1 - o1;
    x[2] = e2 + o2, x[6] = e2 - o2, x[3] = e3 + o3, x[7] = e3 - o3;
  }
}

// A stage: s interleaved transforms of length R m become R s of length m.
template <int R, class T>
void stage(const C<T>* x, C<T>* y, int64_t m, int64_t s, const T* w) {
  for (int64_t p = 0; p < m; ++p, w += 2 * (R - 1)) {
    const C<T>* from = x + s * p;
    C<T>* to = y + s * R * p;
    for (int64_t q = 0; q < s; ++q) {
      C<T> a[R];
#pragma GCC unroll 8
      for (int k = 0; k < R; ++k) a[k] = from[q + s * m * k];
      butterfly<R>(a);
      to[q] = a[0];
#pragma GCC unroll 8
      for (int k = 1; k < R; ++k) to[q + s * k] = m == 1 ? a[k] : mul(a[k], w + 2 * (k - 1));
    }
  }
}

// Any radix, by definition; the roots of unity stand before the stage's factors.
template <class T>
void stage_any(int radix, const C<T>* x, C<T>* y, int64_t m, int64_t s, const T* roots) {
  const T* w = roots + 2 * radix;
  for (int64_t p = 0; p < m; ++p, w += 2 * (radix - 1))
    for (int64_t q = 0; q < s; ++q)
      for (int k = 0; k < radix; ++k) {
        C<T> sum = x[q + s * p];
        for (int j = 1, at = k; j < radix; ++j, at = at + k >= radix ? at + k - radix : at + k)
          sum = sum + mul(x[q + s * (p + m * j)], roots + 2 * at);
        y[q + s * (radix * p + k)] = k == 0 ? sum : mul(sum, w + 2 * (k - 1));
      }
}

// The transform of x, with y as scratch; returns where the result is.
template <class T>
C<T>* stockham(const FftPlan<T>& plan, C<T>* x, C<T>* y) {
  int64_t length = plan.n, s = 1;
  const T* w = plan.twiddles;
  for (int i = 0; i < plan.stages; ++i) {
    const int r = plan.radices[i];
    const int64_t m = length / r;
    switch (r) {
      case 2:
        stage<2>(x, y, m, s, w);
        break;
      case 3:
        stage<3>(x, y, m, s, w);
        break;
      case 4:
        stage<4>(x, y, m, s, w);
        break;
      case 5:
        stage<5>(x, y, m, s, w);
        break;
      case 8:
        stage<8>(x, y, m, s, w);
        break;
      default:
        stage_any(r, x, y, m, s, w), w += 2 * r;
    }
    w += 2 * (r - 1) * m;
    length = m, s *= r;
    C<T>* t = x;
    x = y, y = t;
  }
  return x;
}

// Any length as a convolution with a chirp; x and y have padded->n entries.
template <class T>
C<T>* bluestein(const FftPlan<T>& plan, C<T>* x, C<T>* y) {
  const int64_t n = plan.n, padded = plan.padded->n;
  for (int64_t k = 0; k < n; ++k) x[k] = mul(x[k], plan.chirp + 2 * k);
  for (int64_t k = n; k < padded; ++k) x[k] = C<T>{Vec<T>{}, Vec<T>{}};
  C<T>* z = stockham(*plan.padded, x, y);
  for (int64_t k = 0; k < padded; ++k) {  // the inverse: a forward transform of swapped parts
    const C<T> v = mul(z[k], plan.kernel + 2 * k);
    z[k] = {v.im, v.re};
  }
  z = stockham(*plan.padded, z, z == x ? y : x);
  for (int64_t k = 0; k < n; ++k) z[k] = mul(C<T>{z[k].im, z[k].re}, plan.chirp + 2 * k);
  return z;
}

template <class T, int... I>
FB_INLINE void split(Vec<T> a, Vec<T> b, C<T>& out, std::integer_sequence<int, I...>) {
  out.re = __builtin_shufflevector(a, b, (2 * I)...);
  out.im = __builtin_shufflevector(a, b, (2 * I + 1)...);
}
template <class T, int... I>
FB_INLINE void merge(C<T> x, Vec<T>& a, Vec<T>& b, std::integer_sequence<int, I...>) {
  constexpr int n = sizeof...(I);
  a = __builtin_shufflevector(x.re, x.im, (I / 2 + (I & 1) * n)...);
  b = __builtin_shufflevector(x.re, x.im, (n / 2 + I / 2 + (I & 1) * n)...);
}
template <class T>
FB_INLINE C<T> load_pairs(const T* p) {
  C<T> out;
  split<T>(load<T>(p), load<T>(p + kLanes<T>), out, std::make_integer_sequence<int, kLanes<T>>{});
  return out;
}
template <class T>
FB_INLINE void store_pairs(T* p, C<T> x) {
  Vec<T> a, b;
  merge<T>(x, a, b, std::make_integer_sequence<int, kLanes<T>>{});
  store<T>(p, a), store<T>(p + kLanes<T>, b);
}

bool side_by_side(const int64_t* at, int count, int lanes) {
  if (count < lanes) return false;
  for (int i = 1; i < count; ++i)
    if (at[i] != at[0] + i) return false;
  return true;
}

// Entries [0, n) of the block's lines into x.
template <class T>
void load_lines(const FftBlock<T>& b, int64_t n, C<T>* x) {
  constexpr int W = kLanes<T>;
  if (side_by_side(b.in_at, b.count, W)) {
    const T* p = b.in + 2 * b.in_at[0];
    for (int64_t k = 0; k < n; ++k) x[k] = load_pairs(p + 2 * k * b.in_step);
    return;
  }
  int64_t done = 0;
  if constexpr (sizeof(T) == 4) {
    // Pairs as units: a square of W / 2 lines and entries at a time.
    constexpr int H = W / 2;
    if (b.in_step == 1 && b.count == W)
      for (; done + H <= n; done += H) {
        Vec<double> low[H], high[H];
        for (int i = 0; i < H; ++i) {
          low[i] = (Vec<double>)load<T>(b.in + 2 * (b.in_at[i] + done));
          high[i] = (Vec<double>)load<T>(b.in + 2 * (b.in_at[i + H] + done));
        }
        tiles::transpose<double>(low), tiles::transpose<double>(high);
        for (int i = 0; i < H; ++i)
          split<T>((Vec<T>)low[i], (Vec<T>)high[i], x[done + i],
                   std::make_integer_sequence<int, W>{});
      }
  }
  for (int i = b.count; i < W; ++i)
    for (int64_t k = 0; k < n; ++k) x[k].re[i] = 0, x[k].im[i] = 0;
  for (int i = 0; i < b.count; ++i) {
    const T* p = b.in + 2 * b.in_at[i];
    for (int64_t k = done; k < n; ++k) {
      x[k].re[i] = p[2 * k * b.in_step];
      x[k].im[i] = p[2 * k * b.in_step + 1];
    }
  }
}

template <class T>
void store_lines(const FftBlock<T>& b, int64_t n, const C<T>* x) {
  constexpr int W = kLanes<T>;
  if (side_by_side(b.out_at, b.count, W)) {
    T* p = b.out + 2 * b.out_at[0];
    for (int64_t k = 0; k < n; ++k) store_pairs(p + 2 * k * b.out_step, x[k]);
    return;
  }
  int64_t done = 0;
  if constexpr (sizeof(T) == 4) {
    constexpr int H = W / 2;
    if (b.out_step == 1 && b.count == W)
      for (; done + H <= n; done += H) {
        Vec<double> low[H], high[H];
        for (int i = 0; i < H; ++i) {
          Vec<T> u, v;
          merge<T>(x[done + i], u, v, std::make_integer_sequence<int, W>{});
          low[i] = (Vec<double>)u, high[i] = (Vec<double>)v;
        }
        tiles::transpose<double>(low), tiles::transpose<double>(high);
        for (int i = 0; i < H; ++i) {
          store<T>(b.out + 2 * (b.out_at[i] + done), (Vec<T>)low[i]);
          store<T>(b.out + 2 * (b.out_at[i + H] + done), (Vec<T>)high[i]);
        }
      }
  }
  for (int i = 0; i < b.count; ++i) {
    T* p = b.out + 2 * b.out_at[i];
    for (int64_t k = done; k < n; ++k) {
      p[2 * k * b.out_step] = x[k].re[i];
      p[2 * k * b.out_step + 1] = x[k].im[i];
    }
  }
}

// Real entries of odd lines.
template <class T>
void load_reals(const FftBlock<T>& b, int64_t n, C<T>* x) {
  for (int64_t k = 0; k < n; ++k) x[k] = C<T>{Vec<T>{}, Vec<T>{}};
  for (int i = 0; i < b.count; ++i)
    for (int64_t k = 0; k < n; ++k) x[k].re[i] = b.in[b.in_at[i] + k * b.in_step];
}
template <class T>
void store_reals(const FftBlock<T>& b, int64_t n, const C<T>* x) {
  for (int i = 0; i < b.count; ++i)
    for (int64_t k = 0; k < n; ++k) b.out[b.out_at[i] + k * b.out_step] = x[k].re[i];
}

// The spectrum [0, h] of real lines of length 2 h, from the transform z of their pairs.
template <class T>
void unpack(const C<T>* z, C<T>* out, int64_t h, const T* halves) {
  out[0] = {z[0].re + z[0].im, Vec<T>{}};
  out[h] = {z[0].re - z[0].im, Vec<T>{}};
  for (int64_t k = 1; 2 * k <= h; ++k) {
    const C<T> a = z[k], b = conj(z[h - k]);
    const C<T> even = times(a + b, T(0.5)),
               odd = mul(minus_i(times(a - b, T(0.5))), halves + 2 * k);
    out[k] = even + odd;
    out[h - k] = conj(even - odd);
  }
}
// The pairs whose transform (inverse, unscaled) is the real line with the spectrum x.
template <class T>
void pack(const C<T>* x, C<T>* z, int64_t h, const T* halves) {
  z[0] = {x[0].re + x[h].re, x[0].re - x[h].re};
  for (int64_t k = 1; 2 * k <= h; ++k) {
    const C<T> a = x[k], b = conj(x[h - k]);
    const C<T> even = a + b,
               turned = conj(mul(conj(a - b), halves + 2 * k));  // (a - b) exp(+i pi k / h)
    const C<T> odd = {-turned.im, turned.re};
    z[k] = even + odd;
    z[h - k] = conj(even - odd);
  }
}

template <class T>
FB_INLINE void swap_parts(C<T>* x, int64_t n) {
  for (int64_t k = 0; k < n; ++k) x[k] = {x[k].im, x[k].re};
}

template <class T>
void block(const FftPlan<T>& plan, const FftBlock<T>& b) {
  const int64_t n = plan.n, room = (plan.padded ? plan.padded->n : n) + 1;
  C<T>* x = reinterpret_cast<C<T>*>(b.scratch);
  C<T>* y = x + room;
  switch (b.kind) {
    case FftKind::Complex:
    case FftKind::RealEven:
      load_lines(b, n, x);
      break;
    case FftKind::RealOdd:
      load_reals(b, n, x);
      break;
    case FftKind::HermitianEven:
      load_lines(b, n + 1, y);
      pack(y, x, n, plan.halves);
      break;
    case FftKind::HermitianOdd:
      load_lines(b, n / 2 + 1, x);
      x[0].im = Vec<T>{};
      for (int64_t k = 1; 2 * k < n; ++k) x[n - k] = conj(x[k]);
  }
  // The inverse is the transform between two exchanges of the real and imaginary parts.
  if (b.inverse) swap_parts(x, n);
  C<T>* z = plan.padded ? bluestein(plan, x, y) : stockham(plan, x, y);
  if (b.inverse) swap_parts(z, n);
  int64_t length = n;
  if (b.kind == FftKind::RealEven) {
    C<T>* spectrum = z == x ? y : x;
    unpack(z, spectrum, n, plan.halves);
    z = spectrum, length = n + 1;
  }
  if (b.kind == FftKind::RealOdd) length = n / 2 + 1;
  if (b.coarse) {
    for (int64_t k = 0; k < n; ++k) {
      const T* c = b.coarse + k / 32 * 2 * b.twist_row;
      const T* f = b.fine + k % 32 * 2 * b.twist_row;
      const C<T> w =
          mul(C<T>{load<T>(c), load<T>(c + b.twist_row)}, load<T>(f), load<T>(f + b.twist_row));
      z[k] = b.inverse ? mul(z[k], w.re, -w.im) : mul(z[k], w.re, w.im);
    }
  }
  if (b.scale != T(1))
    for (int64_t k = 0; k < length; ++k) z[k] = times(z[k], b.scale);
  if (b.kind == FftKind::HermitianOdd)
    store_reals(b, n, z);
  else
    store_lines(b, length, z);
}

template <class T>
void unpack_line(T* out, const T* z, const T* w, int64_t h, T scale, int64_t from, int64_t to) {
  const T half = T(0.5) * scale;
  for (int64_t k = from; k < to; ++k) {
    if (k == 0) {
      out[0] = (z[0] + z[1]) * scale, out[1] = 0;
      out[2 * h] = (z[0] - z[1]) * scale, out[2 * h + 1] = 0;
      continue;
    }
    const T ar = z[2 * k], ai = z[2 * k + 1], br = z[2 * (h - k)], bi = -z[2 * (h - k) + 1];
    const T er = (ar + br) * half, ei = (ai + bi) * half, dr = (ai - bi) * half,
            di = (br - ar) * half;
    const T tr = dr * w[2 * k] - di * w[2 * k + 1], ti = dr * w[2 * k + 1] + di * w[2 * k];
    out[2 * k] = er + tr, out[2 * k + 1] = ei + ti;
    out[2 * (h - k)] = er - tr, out[2 * (h - k) + 1] = ti - ei;
  }
}

template <class T>
void pack_line(T* z, const T* x, const T* w, int64_t h, int64_t from, int64_t to) {
  for (int64_t k = from; k < to; ++k) {
    if (k == 0) {
      z[0] = x[0] + x[2 * h], z[1] = x[0] - x[2 * h];
      continue;
    }
    const T ar = x[2 * k], ai = x[2 * k + 1], br = x[2 * (h - k)], bi = -x[2 * (h - k) + 1];
    const T er = ar + br, ei = ai + bi, dr = ar - br, di = ai - bi;
    const T tr = dr * w[2 * k] + di * w[2 * k + 1], ti = di * w[2 * k] - dr * w[2 * k + 1];
    z[2 * k] = er - ti, z[2 * k + 1] = ei + tr;
    z[2 * (h - k)] = er + ti, z[2 * (h - k) + 1] = tr - ei;
  }
}

}  // namespace

int fft_lanes(bool is_double) {
  return is_double ? kLanes<double> : kLanes<float>;
}
void fft_block_f32(const FftPlan<float>& plan, const FftBlock<float>& b) {
  block(plan, b);
}
void fft_block_f64(const FftPlan<double>& plan, const FftBlock<double>& b) {
  block(plan, b);
}
void fft_unpack_f32(float* out, const float* z, const float* halves, int64_t h, float scale,
                    int64_t from, int64_t to) {
  unpack_line(out, z, halves, h, scale, from, to);
}
void fft_unpack_f64(double* out, const double* z, const double* halves, int64_t h, double scale,
                    int64_t from, int64_t to) {
  unpack_line(out, z, halves, h, scale, from, to);
}
void fft_pack_f32(float* z, const float* in, const float* halves, int64_t h, int64_t from,
                  int64_t to) {
  pack_line(z, in, halves, h, from, to);
}
void fft_pack_f64(double* z, const double* in, const double* halves, int64_t h, int64_t from,
                  int64_t to) {
  pack_line(z, in, halves, h, from, to);
}

}  // namespace flambeau::kernels::FB_ISA
