#include "autograd/items.h"

#include "autograd/node.h"
#include "gen/ops.h"
#include "kernels/copy.h"
#include "profiler/events.h"

namespace flambeau {

ViewBuilder::ViewBuilder(const Tensor& x)
    : base_(x), stepwise_(intercepted() || needs_grad(x) || profiler::is_open()) {
  if (stepwise_)
    current_ = x;
  else
    sizes_ = x.sizes(), strides_ = x.strides(), offset_ = x.offset();
}

void ViewBuilder::select(int64_t d, int64_t i) {
  need(d);
  int64_t n = size(d);
  FB_CHECK_INDEX(i >= -n && i < n, "index ", i, " is out of bounds for dimension ", dim_shown(d),
                 " with size ", n);
  changed_ = true;
  if (stepwise_) {
    current_ = ops::select(current_, d, i);
  } else {
    offset_ += strides_[d] * (i < 0 ? i + n : i);
    sizes_.erase(&sizes_[d]);
    strides_.erase(&strides_[d]);
  }
  ++dropped_;
}

void ViewBuilder::slice(int64_t d, int64_t start, int64_t stop, int64_t step) {
  if (start == 0 && stop == size(d) && step == 1) return;
  changed_ = true;
  if (stepwise_) {
    current_ = ops::slice(current_, d, start, stop, step);
    return;
  }
  offset_ += start * strides_[d];
  const int64_t by = ops::_step_among(step, sizes_[d]);
  sizes_[d] = stop > start ? (stop - start - 1) / by + 1 : 0;
  int64_t stride;  // of one entry when it overflows: never walked
  strides_[d] = __builtin_mul_overflow(strides_[d], by, &stride) ? 1 : stride;
}

void ViewBuilder::unsqueeze(int64_t d) {
  FB_CHECK_INDEX(d <= ndim(), "too many indices for tensor of dimension ", base_.dim());
  changed_ = true;
  --dropped_;
  if (stepwise_) {
    current_ = ops::unsqueeze(current_, d);
    return;
  }
  int64_t stride = d < ndim() ? sizes_[d] * strides_[d] : 1;
  sizes_.insert(sizes_.begin() + d, 1);
  strides_.insert(strides_.begin() + d, stride);
}

Tensor ViewBuilder::finish(bool same_allowed) {
  if (!changed_ && same_allowed) return base_;
  if (stepwise_) return changed_ ? current_ : ops::alias(base_);
  Tensor out = alias(base_, sizes_, strides_, offset_);
  mark_view(out, base_);
  return out;
}

void KeyPlaces::begin(int64_t ndim, int64_t given, bool number) {
  if (ndim == 0 && number && given > 0)
    fail(ErrorKind::Index,
         "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in "
         "C++ to convert a 0-dim tensor to a number");
  FB_CHECK_INDEX(given <= ndim, "too many indices for tensor of dimension ", ndim);
  left_over_ = ndim - given;
}

void Indexer::slice(int64_t start, int64_t stop, int64_t step) {
  FB_CHECK_VALUE(step > 0, "step must be greater than zero");
  const int64_t d = places_.next();
  views_.need(d);
  const int64_t n = views_.size(d);
  auto within = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  start = within(start), stop = std::max(within(stop), start);
  views_.slice(d, start, stop, step);
}

void Indexer::truth(bool on) {
  views_.unsqueeze(places_.dim());
  Tensor t = on ? scalar_tensor(0, DType::Int64) : empty({0}, DType::Int64);
  if (on) t = alias(t, {1}, {1}, 0);
  at(places_.slot(1), t);
}

void Indexer::tensor(const Tensor& t) {
  if (t.dim() == 0 && !t.has_flag(kWrapper)) {
    if (is_mask(t)) return truth(t.item().to_int() != 0);
    if (t.is_integral()) return select(t.item().to_int());
  }
  at(places_.slot(is_mask(t) ? t.dim() : 1), t);
}

void Indexer::at(int64_t slot, const Tensor& t) {
  indices_.resize(static_cast<size_t>(slot));
  indices_.push_back(t);
}

static Tensor without_leading_ones(const Tensor& value, int64_t ndim) {
  Ints sizes = value.sizes();
  int64_t drop = 0;
  while (static_cast<int64_t>(sizes.size()) - drop > ndim && sizes[drop] == 1) ++drop;
  if (drop == 0) return value;
  return ops::view(value, Ints(sizes.begin() + drop, sizes.end()));
}

void assign(const Tensor&, Indexer& key, const Tensor& value) {
  Tensor view = key.view(true);
  if (key.advanced())
    ops::index_put_(view, key.indices(), value, false);
  else
    ops::copy_(view, without_leading_ones(value, view.dim()));
}

void assign(const Tensor& x, Indexer& key, const Scalar& value) {
  const DType d = x.dtype();
  const bool reduced = is_reduced_float(d) && !value.is_complex();
  const Scalar held = reduced ? Scalar(kernels::held(d, value.to_double())) : value;
  Tensor view = key.view(true);
  if (key.advanced())
    ops::index_put_(view, key.indices(), scalar_tensor(held, d), false);
  else
    ops::fill_(view, held);
}

}  // namespace flambeau
