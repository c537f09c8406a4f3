// Kernels of flambeau/ops/normalization*.py. Half formats are computed through float copies. Batch
// normalisation works in the layout of its input: planes (NCHW) or rows of channels
// (channels-last).
#include <cmath>
#include <memory>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"
#include "kernels/norm_rows.h"

namespace flambeau::kernels {
namespace {

// Calls f<T>() for the compute type of a floating dtype.
template <class F>
void visit_compute(DType d, F&& f) {
  if (d == DType::Float64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}
DType compute(const Tensor& t) {
  return opmath(t.dtype());
}
Tensor dense(const Tensor& t, DType d) {
  return contiguous(to_dtype(t, d));
}
Tensor dense(const OptTensor& t, DType d) {
  return t && t->defined() ? dense(*t, d) : Tensor();
}
template <class T>
const T* pointer(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

// A tensor to compute into: out itself when it is contiguous and of that dtype, else a buffer that
// is copied at the end.
struct Target {
  Tensor out, work;
  Target(const Tensor& o, DType d)
      : out(o), work(o.dtype() == d && o.is_contiguous() ? o : empty(o.sizes(), d)) {}
  void finish() {
    if (!work.is_same(out)) copy(out, work);
  }
};

int64_t rows_per_thread(int64_t n) {
  return std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(n, 1));
}

// Calls f(held, from, to) for a share of the rows per thread, each with a copy of `empty` to add
// to, then join(held) in the order of the rows: whichever thread is first, the result is the same.
template <class Held, class F, class Join>
void in_shares(int64_t rows, int64_t row_size, const Held& empty, const F& f, const Join& join) {
  int64_t grain = rows_per_thread(row_size);
  int64_t shares = std::min<int64_t>(num_threads(), (rows + grain - 1) / grain);
  std::vector<Held> held(shares, empty);
  parallel_for(0, shares, 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) f(held[i], i * rows / shares, (i + 1) * rows / shares);
  });
  for (const Held& one : held) join(one);
}

template <class T>
struct TwoSums {
  std::vector<T> a, b;
  explicit TwoSums(int64_t n) : a(n), b(n) {}
};

// Both sums of n values of all shares go to a and b.
template <class T, class To, class F>
void accumulate(int64_t rows, int64_t row_size, int64_t n, To* a, To* b, const F& f) {
  std::fill_n(a, n, To(0));
  std::fill_n(b, n, To(0));
  in_shares(rows, row_size, TwoSums<T>(n), f, [&](const TwoSums<T>& share) {
    for (int64_t i = 0; i < n; ++i) a[i] += share.a[i], b[i] += share.b[i];
  });
}

}  // namespace

// Layer normalisation
// ----------------------------------------------------------------------------------------------------

void native_layer_norm(Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& input,
                       const Ints& shape, const OptTensor& weight, const OptTensor& bias,
                       double eps) {
  int64_t n = checked_numel(shape), rows = n ? input.numel() / n : 0;
  DType d = compute(input);
  if (n == 0 || rows == 0) return fill_zero(mean), fill_zero(rstd);
  Tensor x = dense(input, d), w = dense(weight, d), b = dense(bias, d);
  Target y(out, d);
  visit_compute(d, [&]<class T>() {
    auto& fn = norm_fns<T>();
    parallel_for(0, rows, rows_per_thread(n), [&](int64_t from, int64_t to) {
      for (int64_t r = from; r < to; ++r) {
        const T* row = x.data<T>() + r * n;
        Moment m = {};
        fn.moments(m, row, n);
        T centre = static_cast<T>(m.mean), scale = static_cast<T>(1 / std::sqrt(m.m2 / m.n + eps));
        mean.data<T>()[r] = centre;
        rstd.data<T>()[r] = scale;
        fn.normalise(row, y.work.data<T>() + r * n, n, centre, scale, pointer<T>(w), pointer<T>(b));
      }
    });
  });
  y.finish();
}

void layer_norm_backward(Tensor& gx, Tensor& gw, Tensor& gb, const Tensor& g, const Tensor& input,
                         const Ints& shape, const OptTensor& weight, const Tensor& mean,
                         const Tensor& rstd) {
  int64_t n = checked_numel(shape), rows = n ? input.numel() / n : 0;
  DType d = compute(input);
  Tensor gy = dense(g, d), x = dense(input, d), w = dense(weight, d), m = dense(mean, d),
         s = dense(rstd, d);
  Target y(gx, d);
  visit_compute(d, [&]<class T>() {
    auto& fn = norm_fns<T>();
    auto share = [&](TwoSums<T>& sums, int64_t from, int64_t to) {
      for (int64_t r = from; r < to; ++r)
        fn.layer_backward(gy.data<T>() + r * n, x.data<T>() + r * n, y.work.data<T>() + r * n, n,
                          m.data<T>()[r], s.data<T>()[r], pointer<T>(w), sums.a.data(),
                          sums.b.data());
    };
    accumulate<T>(rows, n, n, gw.data<T>(), gb.data<T>(), share);
  });
  y.finish();
}

// Batch normalisation
// ----------------------------------------------------------------------------------------------------

namespace {

// How the channels lie: planes of `inner` values (samples * channels of them), or `rows` rows of c
// channels.
struct Channels {
  Tensor x;
  bool last;
  int64_t samples, c, inner, rows;
  Channels(const Tensor& input, DType d) {
    MemoryFormat f = input.suggest_memory_format();
    last = (f != MemoryFormat::Contiguous && input.is_contiguous(f) && !input.is_contiguous()) ||
           input.dim() == 2;
    x = input.dim() == 2 || !last ? dense(input, d) : to_dtype(input, d);
    samples = input.size(0);
    c = input.size(1);
    inner = input.numel() ? input.numel() / (samples * c) : 0;
    rows = samples * inner;
  }
  // Another tensor of the same shape in the same layout.
  Tensor like(const Tensor& t, DType d) const {
    Tensor converted = to_dtype(t, d);
    if (converted.strides() == x.strides()) return converted;
    Tensor out = empty_strided(x.sizes(), x.strides(), d);
    copy(out, converted);
    return out;
  }
};

// What each channel becomes: (x - mean) * a + b.
template <class T>
struct Affine {
  std::vector<T> mean, a, b;
  explicit Affine(int64_t c) : mean(c), a(c), b(c) {}
  void set(int64_t j, double centre, double scale, double shift) {
    mean[j] = static_cast<T>(centre);
    a[j] = static_cast<T>(scale);
    b[j] = static_cast<T>(shift - (centre - static_cast<double>(mean[j])) * scale);
  }
};

template <class T>
void channel_affine(const Channels& ch, const T* x, T* o, const Affine<T>& f) {
  auto& fn = norm_fns<T>();
  if (ch.last) {
    parallel_for(0, ch.rows, rows_per_thread(ch.c), [&](int64_t from, int64_t to) {
      fn.column_affine(x + from * ch.c, o + from * ch.c, to - from, ch.c, f.mean.data(), f.a.data(),
                       f.b.data());
    });
    return;
  }
  parallel_for(0, ch.samples * ch.c, rows_per_thread(ch.inner), [&](int64_t from, int64_t to) {
    for (int64_t p = from; p < to; ++p) {
      int64_t j = p % ch.c;
      fn.affine(x + p * ch.inner, o + p * ch.inner, ch.inner, f.mean[j], f.a[j], f.b[j]);
    }
  });
}

// Mean and biased variance per channel.
template <class T>
void channel_moments(const Channels& ch, std::vector<double>& mean, std::vector<double>& var) {
  auto& fn = norm_fns<T>();
  const T* x = ch.x.data<T>();
  std::vector<Moment> total(ch.c);
  if (ch.last) {
    using Held = std::vector<Moment>;
    auto share = [&](Held& held, int64_t from, int64_t to) {
      fn.column_moments(held.data(), x + from * ch.c, to - from, ch.c);
    };
    in_shares(ch.rows, ch.c, Held(ch.c), share, [&](const Held& held) {
      for (int64_t j = 0; j < ch.c; ++j) total[j] = join(total[j], held[j]);
    });
  } else {
    parallel_for(0, ch.c, 1, [&](int64_t from, int64_t to) {
      for (int64_t j = from; j < to; ++j)
        for (int64_t i = 0; i < ch.samples; ++i)
          fn.moments(total[j], x + (i * ch.c + j) * ch.inner, ch.inner);
    });
  }
  for (int64_t j = 0; j < ch.c; ++j) mean[j] = total[j].mean, var[j] = total[j].m2 / total[j].n;
}

void move_running(const OptTensor& running, const std::vector<double>& now, double momentum) {
  if (!running || !running->defined()) return;
  Tensor r = *running, values = contiguous(to_dtype(r, DType::Float64));
  Tensor moved = empty(r.sizes(), DType::Float64);
  for (int64_t j = 0; j < r.numel(); ++j)
    moved.data<double>()[j] = values.data<double>()[j] * (1 - momentum) + momentum * now[j];
  copy(r, moved);
  r.bump_version();
}

}  // namespace

void native_batch_norm(Tensor& out, Tensor& save_mean, Tensor& save_rstd, const Tensor& input,
                       const OptTensor& weight, const OptTensor& bias,
                       const OptTensor& running_mean, const OptTensor& running_var, bool training,
                       double momentum, double eps) {
  DType d = compute(input);
  Channels ch(input, d);
  std::vector<double> mean(ch.c, 0), var(ch.c, 0);
  Tensor w = dense(weight, d), b = dense(bias, d);
  Tensor y = out.dtype() == d && out.strides() == ch.x.strides()
                 ? out
                 : empty_strided(ch.x.sizes(), ch.x.strides(), d);
  visit_compute(d, [&]<class T>() {
    if (training) {
      if (ch.rows) channel_moments<T>(ch, mean, var);
      double n = static_cast<double>(ch.rows);
      std::vector<double> unbiased(var);
      for (double& v : unbiased) v *= n > 1 ? n / (n - 1) : 1;
      if (ch.rows) {
        move_running(running_mean, mean, momentum);
        move_running(running_var, unbiased, momentum);
      }
    } else {
      Tensor m = dense(running_mean, DType::Float64), v = dense(running_var, DType::Float64);
      std::copy_n(m.data<double>(), ch.c, mean.begin());
      std::copy_n(v.data<double>(), ch.c, var.begin());
    }
    Affine<T> f(ch.c);
    for (int64_t j = 0; j < ch.c; ++j) {
      double rstd = 1.0 / std::sqrt(var[j] + eps);
      if (training) {
        save_mean.data<T>()[j] = static_cast<T>(mean[j]);
        save_rstd.data<T>()[j] = static_cast<T>(rstd);
      }
      f.set(j, mean[j], rstd * (w.defined() ? w.data<T>()[j] : 1),
            b.defined() ? b.data<T>()[j] : 0);
    }
    if (ch.rows) channel_affine<T>(ch, ch.x.data<T>(), y.data<T>(), f);
  });
  if (!y.is_same(out)) copy(out, y);
}

void batch_norm_backward(Tensor& gx, Tensor& gw, Tensor& gb, const Tensor& g, const Tensor& input,
                         const OptTensor& weight, const OptTensor& running_mean,
                         const OptTensor& running_var, const Tensor& save_mean,
                         const Tensor& save_rstd, bool training, double eps) {
  DType d = compute(input);
  Channels ch(input, d);
  Tensor gy = ch.like(g, d), w = dense(weight, d);
  Tensor y = gx.dtype() == d && gx.strides() == ch.x.strides()
                 ? gx
                 : empty_strided(ch.x.sizes(), ch.x.strides(), d);
  visit_compute(d, [&]<class T>() {
    auto& fn = norm_fns<T>();
    std::vector<T> mean(ch.c), rstd(ch.c);
    if (training) {
      Tensor m = dense(save_mean, d), s = dense(save_rstd, d);
      std::copy_n(m.data<T>(), ch.c, mean.begin());
      std::copy_n(s.data<T>(), ch.c, rstd.begin());
    } else {
      Tensor m = dense(running_mean, DType::Float64), v = dense(running_var, DType::Float64);
      for (int64_t j = 0; j < ch.c; ++j) {
        mean[j] = static_cast<T>(m.data<double>()[j]);
        rstd[j] = static_cast<T>(1.0 / std::sqrt(v.data<double>()[j] + eps));
      }
    }
    const T *x = ch.x.data<T>(), *gp = gy.data<T>();
    std::vector<double> sum(ch.c, 0), product(ch.c, 0);
    if (ch.last) {
      auto share = [&](TwoSums<double>& sums, int64_t from, int64_t to) {
        std::vector<T> a(ch.c), b(ch.c);
        for (int64_t r = from; r < to; r += 128) {
          std::fill(a.begin(), a.end(), T(0));
          std::fill(b.begin(), b.end(), T(0));
          fn.column_cross(gp + r * ch.c, x + r * ch.c, std::min<int64_t>(128, to - r), ch.c,
                          mean.data(), a.data(), b.data());
          for (int64_t j = 0; j < ch.c; ++j) sums.a[j] += a[j], sums.b[j] += b[j];
        }
      };
      accumulate<double>(ch.rows, ch.c, ch.c, sum.data(), product.data(), share);
    } else {
      parallel_for(0, ch.c, 1, [&](int64_t from, int64_t to) {
        for (int64_t j = from; j < to; ++j)
          for (int64_t i = 0; i < ch.samples; ++i) {
            double a, b;
            int64_t at = (i * ch.c + j) * ch.inner;
            fn.cross(gp + at, x + at, ch.inner, mean[j], &a, &b);
            sum[j] += a;
            product[j] += b;
          }
      });
    }
    // gx = (g - mean(g) - hat * mean(g * hat)) * rstd * w, as g * p + (x - mean) * q + r; in
    // evaluation g * p, whatever x is.
    std::vector<T> q(ch.c), r(ch.c);
    Affine<T> f(ch.c);
    double n = static_cast<double>(std::max<int64_t>(ch.rows, 1));
    for (int64_t j = 0; j < ch.c; ++j) {
      gb.data<T>()[j] = static_cast<T>(sum[j]);
      gw.data<T>()[j] = static_cast<T>(product[j] * rstd[j]);
      double scale = double(rstd[j]) * (w.defined() ? w.data<T>()[j] : 1);
      f.set(j, 0, scale, 0);
      q[j] = static_cast<T>(-scale * (product[j] * rstd[j] * rstd[j] / n));
      r[j] = static_cast<T>(-scale * sum[j] / n);
    }
    const std::vector<T>& p = f.a;
    T* o = y.data<T>();
    if (!training) {
      if (ch.rows) channel_affine<T>(ch, gp, o, f);
    } else if (ch.last) {
      parallel_for(0, ch.rows, rows_per_thread(ch.c), [&](int64_t from, int64_t to) {
        fn.column_affine2(gp + from * ch.c, x + from * ch.c, o + from * ch.c, to - from, ch.c,
                          mean.data(), p.data(), q.data(), r.data());
      });
    } else {
      parallel_for(0, ch.samples * ch.c, rows_per_thread(ch.inner), [&](int64_t from, int64_t to) {
        for (int64_t k = from; k < to; ++k)
          fn.affine2(gp + k * ch.inner, x + k * ch.inner, o + k * ch.inner, ch.inner,
                     mean[k % ch.c], p[k % ch.c], q[k % ch.c], r[k % ch.c]);
      });
    }
  });
  if (!y.is_same(gx)) copy(gx, y);
}

// Group normalisation
// ----------------------------------------------------------------------------------------------------

void native_group_norm(Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& input,
                       const OptTensor& weight, const OptTensor& bias, int64_t groups, double eps) {
  DType d = compute(input);
  if (input.numel() == 0) return fill_zero(mean), fill_zero(rstd);
  int64_t c = input.size(1), per = c / groups, inner = input.numel() / (input.size(0) * c),
          n = per * inner;
  Tensor x = dense(input, d), w = dense(weight, d), b = dense(bias, d);
  Target y(out, d);
  visit_compute(d, [&]<class T>() {
    auto& fn = norm_fns<T>();
    parallel_for(0, input.size(0) * groups, rows_per_thread(n), [&](int64_t from, int64_t to) {
      Affine<T> f(per);
      for (int64_t r = from; r < to; ++r) {
        const T* row = x.data<T>() + r * n;
        Moment m = {};
        fn.moments(m, row, n);
        double s = 1.0 / std::sqrt(m.m2 / m.n + eps);
        mean.data<T>()[r] = static_cast<T>(m.mean);
        rstd.data<T>()[r] = static_cast<T>(s);
        for (int64_t k = 0; k < per; ++k) {
          int64_t j = r % groups * per + k;
          f.set(k, m.mean, s * (w.defined() ? w.data<T>()[j] : 1),
                b.defined() ? b.data<T>()[j] : 0);
          fn.affine(row + k * inner, y.work.data<T>() + r * n + k * inner, inner, f.mean[k], f.a[k],
                    f.b[k]);
        }
      }
    });
  });
  y.finish();
}

void group_norm_backward(Tensor& gx, Tensor& gw, Tensor& gb, const Tensor& g, const Tensor& input,
                         const OptTensor& weight, int64_t groups, const Tensor& mean,
                         const Tensor& rstd) {
  DType d = compute(input);
  if (input.numel() == 0) return fill_zero(gw), fill_zero(gb);
  int64_t c = input.size(1), per = c / groups, inner = input.numel() / (input.size(0) * c),
          n = per * inner;
  Tensor gy = dense(g, d), x = dense(input, d), w = dense(weight, d), mt = dense(mean, d),
         st = dense(rstd, d);
  Target y(gx, d);
  visit_compute(d, [&]<class T>() {
    auto& fn = norm_fns<T>();
    auto share = [&](TwoSums<T>& total, int64_t from, int64_t to) {
      std::vector<double> sums(per), products(per);
      for (int64_t r = from; r < to; ++r) {
        T centre = mt.data<T>()[r];
        double s = st.data<T>()[r], c1 = 0, c2 = 0;
        for (int64_t k = 0; k < per; ++k) {
          int64_t at = r * n + k * inner, j = r % groups * per + k;
          fn.cross(gy.data<T>() + at, x.data<T>() + at, inner, centre, &sums[k], &products[k]);
          double by = w.defined() ? w.data<T>()[j] : 1;
          c1 += sums[k] * by;
          c2 += products[k] * by * s;
          total.a[j] += static_cast<T>(products[k] * s);
          total.b[j] += static_cast<T>(sums[k]);
        }
        c1 /= static_cast<double>(n);
        c2 /= static_cast<double>(n);
        for (int64_t k = 0; k < per; ++k) {
          int64_t at = r * n + k * inner, j = r % groups * per + k;
          double by = w.defined() ? w.data<T>()[j] : 1;
          fn.affine2(gy.data<T>() + at, x.data<T>() + at, y.work.data<T>() + at, inner, centre,
                     static_cast<T>(s * by), static_cast<T>(-s * s * c2), static_cast<T>(-s * c1));
        }
      }
    };
    accumulate<T>(input.size(0) * groups, n, c, gw.data<T>(), gb.data<T>(), share);
  });
  y.finish();
}

}  // namespace flambeau::kernels
