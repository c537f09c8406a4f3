// Kernels of flambeau/ops/losses_classes.py: negative log-likelihood and cross entropy. Class
// indices are checked here, as they are read. Half formats are computed in float, row by row; sums
// over samples are in double and in a fixed order.
#include <cmath>
#include <vector>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"
#include "kernels/softmax_rows.h"

namespace flambeau::kernels {
namespace {

enum Reduction : int64_t { kNone, kMean, kSum };

template <class F>
void visit_float(DType d, F&& f) {
  switch (d) {
    case DType::Float16:
      return f.template operator()<Half>();
    case DType::BFloat16:
      return f.template operator()<BFloat16>();
    case DType::Float32:
      return f.template operator()<float>();
    default:
      return f.template operator()<double>();
  }
}

Tensor dense(const Tensor& t, DType d) {
  return contiguous(to_dtype(t, d));
}
Tensor dense(const OptTensor& t, DType d) {
  return t && t->defined() ? dense(*t, d) : Tensor();
}

int64_t checked_class(int64_t c, int64_t classes) {
  FB_CHECK_INDEX(c >= 0 && c < classes, "Target ", c, " is out of bounds.");
  return c;
}

// Offsets of the positions of all dims but 1, row-major: where the scores of a target begin.
struct Positions {
  const Tensor& x;
  int64_t offset(int64_t i) const {
    int64_t total = 0;
    for (int64_t d = x.dim() - 1; d >= 0; --d) {
      if (d == 1) continue;
      total += i % x.sizes()[d] * x.strides()[d];
      i /= x.sizes()[d];
    }
    return total;
  }
};

// The loss of all samples from their terms: their sum over a total, or the terms themselves.
void reduce_terms(const Tensor& loss, const std::vector<double>& terms, int64_t reduction,
                  double total) {
  double sum = 0;
  if (reduction != kNone)
    for (double t : terms) sum += t;
  visit_float(loss.dtype(), [&]<class T>() {
    if (reduction == kNone)
      std::copy(terms.begin(), terms.end(), loss.data<T>());
    else
      loss.data<T>()[0] = T(reduction == kMean ? sum / total : sum);
  });
}
void set_total(const Tensor& out, double total) {
  visit_float(out.dtype(), [&]<class T>() { out.data<T>()[0] = T(total); });
}

// Weight of each term: that of the target's class, 0 where the target is ignored.
std::vector<double> term_weights(const Tensor& target, const OptTensor& weight, int64_t ignore,
                                 int64_t classes) {
  Tensor t = dense(target, DType::Int64), w = dense(weight, DType::Float64);
  std::vector<double> out(t.numel());
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t c = t.data<int64_t>()[i];
    if (c == ignore) continue;
    checked_class(c, classes);
    out[i] = w.defined() ? w.data<double>()[c] : 1;
  }
  return out;
}

double sum_of(const std::vector<double>& xs) {
  double total = 0;
  for (double x : xs) total += x;
  return total;
}

// Factor that the cotangent puts on each term, weights left out.
std::vector<double> term_cotangents(const Tensor& grad, int64_t n, int64_t reduction,
                                    double total) {
  Tensor g = dense(grad, DType::Float64);
  if (reduction == kNone) return {g.data<double>(), g.data<double>() + n};
  double each = g.data<double>()[0];
  return std::vector<double>(n, reduction == kMean ? each / total : each);
}

}  // namespace

// Negative log-likelihood
// ------------------------------------------------------------------------------------------------

void nll_loss(Tensor& loss, Tensor& total, const Tensor& input, const Tensor& target,
              const OptTensor& weight, int64_t reduction, int64_t ignore) {
  std::vector<double> weights = term_weights(target, weight, ignore, input.size(1)),
                      terms(weights.size());
  Tensor t = dense(target, DType::Int64);
  Positions at{input};
  visit_float(input.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < t.numel(); ++i) {
      int64_t c = t.data<int64_t>()[i];
      if (c != ignore)
        terms[i] = -weights[i] * double(input.data<T>()[at.offset(i) + c * input.strides()[1]]);
    }
  });
  double sum = sum_of(weights);
  set_total(total, sum);
  reduce_terms(loss, terms, reduction, sum);
}

void nll_loss_backward(Tensor& out, const Tensor& grad, const Ints& shape, const Tensor& target,
                       const OptTensor& weight, int64_t reduction, int64_t ignore,
                       const Tensor& total) {
  std::vector<double> weights = term_weights(target, weight, ignore, shape[1]);
  std::vector<double> g =
      term_cotangents(grad, target.numel(), reduction, total.item().to_double());
  Tensor t = dense(target, DType::Int64);
  Positions at{out};
  fill_zero(out);
  visit_float(out.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < t.numel(); ++i) {
      int64_t c = t.data<int64_t>()[i];
      if (c != ignore) out.data<T>()[at.offset(i) + c * out.strides()[1]] = T(-weights[i] * g[i]);
    }
  });
}

// Cross entropy
// -----------------------------------------------------------------------------------------------------------

namespace {

int64_t rows_per_thread(int64_t classes) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(classes, 1));
}

// Rows of x as values of T: where they lie, or converted into a buffer.
template <class T>
struct Rows {
  Tensor x;
  int64_t n;
  std::vector<T> buffer;
  Rows(const Tensor& t) : x(t), n(t.size(1)), buffer(t.dtype() == dtype_of<T> ? 0 : n) {}
  const T* row(int64_t i) {
    if (buffer.empty()) return x.data<T>() + i * n;
    convert(x.dtype(), static_cast<const char*>(x.data_ptr()) + i * n * x.itemsize(), dtype_of<T>,
            buffer.data(), n);
    return buffer.data();
  }
};

template <class F>
void visit_compute(DType d, F&& f) {
  if (d == DType::Float64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

}  // namespace

void cross_entropy_rows(Tensor& loss, Tensor& lse, Tensor& total, const Tensor& input,
                        const Tensor& target, const OptTensor& weight, int64_t reduction,
                        int64_t ignore, double smoothing) {
  int64_t n = input.size(0), c = input.size(1);
  std::vector<double> weights = term_weights(target, weight, ignore, c), terms(n);
  Tensor t = dense(target, DType::Int64), x = contiguous(input);
  visit_compute(opmath(input.dtype()), [&]<class T>() {
    auto& fn = softmax_fns<T>();
    Tensor w = dense(weight, dtype_of<T>);
    double w_sum = w.defined() ? fn.row_sum(w.data<T>(), c) : static_cast<double>(c);
    parallel_for(0, n, rows_per_thread(c), [&](int64_t from, int64_t to) {
      Rows<T> rows(x);
      for (int64_t i = from; i < to; ++i) {
        const T* row = rows.row(i);
        T largest;
        double sum;
        fn.row_stats(row, c, &largest, &sum);
        double z = static_cast<double>(largest) + std::log(sum);
        lse.data<double>()[i] = z;
        int64_t k = t.data<int64_t>()[i];
        if (k == ignore) continue;
        double term = weights[i] * (z - static_cast<double>(row[k]));
        if (smoothing > 0) {
          double spread =
              w_sum * z - (w.defined() ? fn.row_dot(w.data<T>(), row, c) : fn.row_sum(row, c));
          term = (1 - smoothing) * term + smoothing / static_cast<double>(c) * spread;
        }
        terms[i] = term;
      }
    });
  });
  double sum = sum_of(weights);
  set_total(total, sum);
  reduce_terms(loss, terms, reduction, sum);
}

void cross_entropy_backward(Tensor& out, const Tensor& grad, const Tensor& input,
                            const Tensor& target, const OptTensor& weight, int64_t reduction,
                            int64_t ignore, double smoothing, const Tensor& lse,
                            const Tensor& total) {
  int64_t n = input.size(0), c = input.size(1);
  std::vector<double> weights = term_weights(target, weight, ignore, c);
  std::vector<double> g = term_cotangents(grad, n, reduction, total.item().to_double());
  Tensor t = dense(target, DType::Int64), x = contiguous(input), z = contiguous(lse);
  double share = smoothing / static_cast<double>(std::max<int64_t>(c, 1));
  visit_compute(opmath(input.dtype()), [&]<class T>() {
    auto& fn = softmax_fns<T>();
    Tensor w = dense(weight, dtype_of<T>);
    double w_sum = w.defined() ? fn.row_sum(w.data<T>(), c) : static_cast<double>(c);
    bool direct = out.dtype() == dtype_of<T>;
    bool stream = direct && out.numel() * out.itemsize() > streaming_threshold();
    parallel_for(0, n, rows_per_thread(c), [&](int64_t from, int64_t to) {
      Rows<T> rows(x);
      std::vector<T> buffer(direct ? 0 : c);
      for (int64_t i = from; i < to; ++i) {
        T* y = direct ? out.data<T>() + i * c : buffer.data();
        int64_t k = t.data<int64_t>()[i];
        if (k == ignore) {
          std::fill_n(y, c, T(0));
        } else {
          const T* row = rows.row(i);
          double hit = g[i] * (1 - smoothing) * weights[i], spread = g[i] * share;
          T center = static_cast<T>(z.data<double>()[i]);
          // What T has no digits for is a factor: large logits lose nothing.
          double rest = std::exp(static_cast<double>(center) - z.data<double>()[i]);
          T slope = static_cast<T>((hit + spread * w_sum) * rest),
            shift = static_cast<T>(w.defined() ? 0 : -spread);
          fn.exp_affine(row, y, c, center, slope, shift, stream);
          if (w.defined() && spread != 0)
            for (int64_t j = 0; j < c; ++j) y[j] -= static_cast<T>(spread) * w.data<T>()[j];
          y[k] -= static_cast<T>(hit);
        }
        if (!direct)
          convert(dtype_of<T>, y, out.dtype(),
                  static_cast<char*>(out.data_ptr()) + i * c * out.itemsize(), c);
      }
    });
  });
}

}  // namespace flambeau::kernels
