// Operations on lists of tensors in one pass: a tensor and its partners are runs of memory that are
// walked together. Owns the split of a whole list between threads; tensors that are not laid out
// alike are copied there and back.
#include "kernels/foreach.h"

#include <cmath>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"

namespace flambeau::kernels {
namespace {

// A tensor and its partners as memory.
struct Run {
  char* p;
  char* partners[4];
  int64_t n, itemsize;
  const void* step;  // what the loop is told about this tensor
  DType dtype;
};

bool repeats(const std::vector<Run>& runs) {
  std::vector<char*> starts;
  starts.reserve(runs.size());
  for (const Run& r : runs) starts.push_back(r.p);
  std::sort(starts.begin(), starts.end());
  return std::adjacent_find(starts.begin(), starts.end()) != starts.end();
}

// Calls f(run, from, to) so that every element of every run is met once; threads share the elements
// of the whole list.
template <class F>
void walk(const std::vector<Run>& runs, const F& f) {
  int64_t total = 0;
  for (const Run& r : runs) total += r.n;
  if (total < 2 * kGrain || num_threads() == 1 || (runs.size() > 1 && repeats(runs))) {
    for (const Run& r : runs) f(r, int64_t{0}, r.n);
    return;
  }
  // Whole cache lines to each thread.
  constexpr int64_t kLine = 64;
  parallel_for(0, (total + kLine - 1) / kLine, kGrain / kLine, [&](int64_t a, int64_t b) {
    int64_t from = a * kLine, to = std::min(b * kLine, total), start = 0;
    for (const Run& r : runs) {
      int64_t lo = std::max(from, start) - start, hi = std::min(to, start + r.n) - start;
      if (lo < hi) f(r, lo, hi);
      start += r.n;
    }
  });
}

ListOp list_op(const std::string& name) {
#define X(op, text) \
  if (name == text) return ListOp::op;
  FB_LIST_OPS(X)
#undef X
  fail(ErrorKind::Runtime, "_list_step_: unknown operation ", name);
}

// Memory of tensors laid out as their parameter is. What is written to a copy goes back when
// `finish` is called.
class Layouts {
 public:
  explicit Layouts(const char* op) : op_(op) {}

  // The next parameter: its run, without partners.
  Run start(const Tensor& p) {
    FB_CHECK(p.is_floating_point(), op_, ": expected parameters of floating point type, got ",
             p.dtype());
    param_ = &p;
    dense_ = p.is_contiguous() || p.is_dense();
    return {memory(p, true), {}, p.numel(), p.itemsize(), nullptr, p.dtype()};
  }

  char* partner(const Tensor& t, const char* what, bool written) {
    FB_CHECK(t.dtype() == param_->dtype() && t.sizes() == param_->sizes(), op_, ": expected ", what,
             " of shape ", param_->sizes(), " and type ", param_->dtype(),
             " as the parameter has, got ", t.sizes(), " and ", t.dtype());
    return memory(t, written);
  }

  void finish() {
    for (auto& [t, copied] : written_) copy(t, copied);
  }

 private:
  char* memory(const Tensor& t, bool written) {
    bool fits = t.is_contiguous() && param_->is_contiguous();
    if (!fits) fits = dense_ && t.strides() == param_->strides();
    if (fits) return static_cast<char*>(t.data_ptr());
    Tensor copied = dense_ ? empty_strided(param_->sizes(), param_->strides(), t.dtype())
                           : empty(t.sizes(), t.dtype());
    copy(copied, t);
    auto& kept = written ? written_ : read_;
    kept.emplace_back(t, copied);
    return static_cast<char*>(copied.data_ptr());
  }

  const char* op_;
  const Tensor* param_ = nullptr;
  bool dense_ = true;
  std::vector<std::pair<Tensor, Tensor>> read_, written_;
};

}  // namespace

void list_step(const std::string& name, const Tensors& self, const Tensors& tensor1,
               const Tensors& tensor2, const std::vector<Scalar>& scalars) {
  ListOp op = list_op(name);
  std::vector<double> numbers(scalars.size());
  for (size_t i = 0; i < scalars.size(); ++i) numbers[i] = scalars[i].to_double();
  std::vector<Run> runs;
  runs.reserve(self.size());
  for (size_t i = 0; i < self.size(); ++i) {
    const Tensor& x = self[i];
    auto* y = static_cast<char*>(tensor1[i].data_ptr());
    auto* z = static_cast<char*>(tensor2[i].data_ptr());
    runs.push_back({static_cast<char*>(x.data_ptr()),
                    {y, z},
                    x.numel(),
                    x.itemsize(),
                    &numbers[numbers.size() == 1 ? 0 : i],
                    x.dtype()});
  }
  DType dtype = DType::Bool;
  ListLoop loop = nullptr;
  for (const Run& r : runs)
    if (r.dtype != dtype)
      dtype = r.dtype, loop = FB_ISA_DISPATCH(list_loop)(op, static_cast<int>(dtype));
  bool one_dtype =
      std::all_of(runs.begin(), runs.end(), [&](const Run& r) { return r.dtype == dtype; });
  walk(runs, [&](const Run& r, int64_t from, int64_t to) {
    ListLoop f = one_dtype ? loop : FB_ISA_DISPATCH(list_loop)(op, static_cast<int>(r.dtype));
    int64_t at = from * r.itemsize;
    f(r.p + at, r.partners[0] + at, r.partners[1] + at, to - from,
      *static_cast<const double*>(r.step));
  });
}

void fused_sgd(const Tensors& params, const Tensors& grads, const Tensors& momentum_buffers,
               double lr, double momentum, double dampening, double weight_decay, bool nesterov,
               bool maximize, bool first_step) {
  SgdStep step{lr, momentum, dampening, weight_decay, nesterov, maximize, first_step};
  Layouts layouts("_fused_sgd_");
  std::vector<Run> runs;
  runs.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    Run r = layouts.start(params[i]);
    r.partners[0] = layouts.partner(grads[i], "grads", false);
    r.partners[1] = momentum_buffers.empty()
                        ? nullptr
                        : layouts.partner(momentum_buffers[i], "momentum_buffers", true);
    runs.push_back(r);
  }
  walk(runs, [&](const Run& r, int64_t from, int64_t to) {
    int64_t at = from * r.itemsize;
    char* buffer = r.partners[1] ? r.partners[1] + at : nullptr;
    FB_ISA_DISPATCH(sgd_loop)
    (static_cast<int>(r.dtype))(r.p + at, r.partners[0] + at, buffer, to - from, step);
  });
  layouts.finish();
}

void fused_adam(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs,
                const Tensors& exp_avg_sqs, const Tensors& max_exp_avg_sqs, const Tensors& steps,
                double lr, double beta1, double beta2, double eps, double weight_decay,
                bool amsgrad, bool maximize, bool decoupled) {
  Layouts layouts("_fused_adam_");
  std::vector<Run> runs;
  std::vector<AdamStep> told;
  runs.reserve(params.size()), told.reserve(params.size());
  double counted = -1;
  AdamStep s{beta1,
             beta2,
             eps,
             decoupled ? 0 : weight_decay,
             decoupled ? 1 - lr * weight_decay : 1,
             0,
             0,
             amsgrad,
             maximize};
  for (size_t i = 0; i < params.size(); ++i) {
    Run r = layouts.start(params[i]);
    r.partners[0] = layouts.partner(grads[i], "grads", false);
    r.partners[1] = layouts.partner(exp_avgs[i], "exp_avgs", true);
    r.partners[2] = layouts.partner(exp_avg_sqs[i], "exp_avg_sqs", true);
    r.partners[3] =
        amsgrad ? layouts.partner(max_exp_avg_sqs[i], "max_exp_avg_sqs", true) : nullptr;
    const Tensor& counter = steps[i];
    FB_CHECK(counter.dtype() == DType::Float32 && counter.numel() == 1,
             "_fused_adam_: expected steps of one float32 each, "
             "got shape ",
             counter.sizes(), " and type ", counter.dtype());
    double t = static_cast<double>(counter.data<float>()[0]) + 1;
    if (t != counted) {
      counted = t;
      s.step_size = lr / (1 - std::pow(beta1, t));
      s.root = std::sqrt(1 - std::pow(beta2, t));
    }
    told.push_back(s);
    r.step = &told.back();
    runs.push_back(r);
  }
  for (const Tensor& counter : steps) *counter.data<float>() += 1;
  walk(runs, [&](const Run& r, int64_t from, int64_t to) {
    int64_t at = from * r.itemsize;
    char* largest = r.partners[3] ? r.partners[3] + at : nullptr;
    AdamLoop loop = FB_ISA_DISPATCH(adam_loop)(static_cast<int>(r.dtype));
    loop(r.p + at, r.partners[0] + at, r.partners[1] + at, r.partners[2] + at, largest, to - from,
         *static_cast<const AdamStep*>(r.step));
  });
  layouts.finish();
}

}  // namespace flambeau::kernels
