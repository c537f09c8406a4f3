// Kernels of flambeau/ops/losses_sequences.py: the forward-backward recursions of connectionist
// temporal classification, in logarithms (Graves et al., 2006). A target l of length S is walked as
// blank l1 blank l2 ... blank: 2 S + 1 states.
#include <cmath>
#include <limits>
#include <vector>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"

namespace flambeau::kernels {
namespace {

template <class T>
constexpr T kImpossible = -std::numeric_limits<T>::infinity();

template <class T>
T log_add(T a, T b) {
  if (a < b) std::swap(a, b);
  return b == kImpossible<T> ? a : a + std::log1p(std::exp(b - a));
}

// The label of every state, per sample.
struct Labels {
  Tensor targets;
  std::vector<int64_t> begin;
  const Ints& lengths;
  int64_t blank;
  Labels(const Tensor& t, const Ints& target_lengths, int64_t blank_label, int64_t classes)
      : targets(contiguous(to_dtype(t, DType::Int64))),
        begin(target_lengths.size()),
        lengths(target_lengths),
        blank(blank_label) {
    int64_t at = 0;
    for (size_t i = 0; i < begin.size(); ++i) {
      begin[i] = t.dim() == 1 ? at : static_cast<int64_t>(i) * t.size(1);
      at += lengths[i];
      for (int64_t s = 0; s < lengths[i]; ++s) {
        int64_t c = targets.data<int64_t>()[begin[i] + s];
        FB_CHECK(c >= 0 && c < classes, "ctc_loss: label ", c, " of sample ", i, " is outside the ",
                 classes, " classes");
      }
    }
  }
  int64_t states(int64_t i) const { return 2 * lengths[i] + 1; }
  int64_t operator()(int64_t i, int64_t s) const {
    return s % 2 ? targets.data<int64_t>()[begin[i] + s / 2] : blank;
  }
  // May state s follow s - 2 directly?
  bool skips(int64_t i, int64_t s) const {
    return s >= 2 && s % 2 && (*this)(i, s) != (*this)(i, s - 2);
  }
};

}  // namespace

void ctc_loss(Tensor& loss, Tensor& log_alpha, const Tensor& log_probs, const Tensor& targets,
              const Ints& input_lengths, const Ints& target_lengths, int64_t blank, bool) {
  int64_t n = log_probs.size(1), classes = log_probs.size(2), steps = log_probs.size(0),
          width = log_alpha.size(2);
  Labels label(targets, target_lengths, blank, classes);
  Tensor probs = contiguous(log_probs);
  auto run = [&]<class T>() {
    parallel_for(0, n, 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        T* alpha = log_alpha.data<T>() + i * steps * width;
        std::fill_n(alpha, steps * width, kImpossible<T>);
        int64_t count = label.states(i), length = input_lengths[i];
        auto lp = [&](int64_t t, int64_t s) {
          return probs.data<T>()[(t * n + i) * classes + label(i, s)];
        };
        if (length == 0) {
          loss.data<T>()[i] = target_lengths[i] == 0 ? T(0) : -kImpossible<T>;
          continue;
        }
        alpha[0] = lp(0, 0);
        if (count > 1) alpha[1] = lp(0, 1);
        for (int64_t t = 1; t < length; ++t) {
          const T* last = alpha + (t - 1) * width;
          for (int64_t s = 0; s < count; ++s) {
            T sum = last[s];
            if (s >= 1) sum = log_add(sum, last[s - 1]);
            if (label.skips(i, s)) sum = log_add(sum, last[s - 2]);
            alpha[t * width + s] = sum + lp(t, s);
          }
        }
        const T* last = alpha + (length - 1) * width;
        loss.data<T>()[i] = -(count > 1 ? log_add(last[count - 1], last[count - 2]) : last[0]);
      }
    });
  };
  if (log_probs.dtype() == DType::Float64)
    run.template operator()<double>();
  else
    run.template operator()<float>();
}

void ctc_loss_backward(Tensor& out, const Tensor& grad, const Tensor& log_probs,
                       const Tensor& targets, const Ints& input_lengths, const Ints& target_lengths,
                       int64_t blank, bool zero_infinity, const Tensor& loss,
                       const Tensor& log_alpha) {
  int64_t n = log_probs.size(1), classes = log_probs.size(2), steps = log_probs.size(0),
          width = log_alpha.size(2);
  Labels label(targets, target_lengths, blank, classes);
  Tensor probs = contiguous(log_probs), g = contiguous(grad), nll = contiguous(loss),
         alphas = contiguous(log_alpha);
  fill_zero(out);
  auto run = [&]<class T>() {
    parallel_for(0, n, 1, [&](int64_t from, int64_t to) {
      std::vector<T> beta(width), next(width), joint(classes);
      for (int64_t i = from; i < to; ++i) {
        T total = nll.data<T>()[i];
        if (zero_infinity && total == -kImpossible<T>) continue;
        int64_t count = label.states(i);
        const T* alpha = alphas.data<T>() + i * steps * width;
        for (int64_t t = input_lengths[i] - 1; t >= 0; --t) {
          const T* row = probs.data<T>() + (t * n + i) * classes;
          bool last = t == input_lengths[i] - 1;
          std::fill(joint.begin(), joint.end(), kImpossible<T>);
          for (int64_t s = 0; s < count; ++s) {
            T sum;
            if (last) {
              sum = s >= count - 2 ? T(0) : kImpossible<T>;
            } else {
              sum = next[s];
              if (s + 1 < count) sum = log_add(sum, next[s + 1]);
              if (s + 2 < count && label.skips(i, s + 2)) sum = log_add(sum, next[s + 2]);
            }
            int64_t c = label(i, s);
            beta[s] = sum + row[c];
            joint[c] = log_add(joint[c], alpha[t * width + s] + beta[s]);
          }
          T* to_row = out.data<T>() + (t * n + i) * classes;
          for (int64_t c = 0; c < classes; ++c)
            to_row[c] = (std::exp(row[c]) - std::exp(joint[c] + total - row[c])) * g.data<T>()[i];
          beta.swap(next);
        }
      }
    });
  };
  if (log_probs.dtype() == DType::Float64)
    run.template operator()<double>();
  else
    run.template operator()<float>();
}

}  // namespace flambeau::kernels
