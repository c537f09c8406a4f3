// Batching rules that follow from an operation's kind and signature, and the loop over the samples
// that stands in for a missing one. All give values with the batch in dim 0.
#include <mutex>
#include <set>

#include "core/promotion.h"
#include "func/vmap.h"
#include "gen/ops.h"

namespace flambeau::func {

namespace {

// The value with dims of size 1 behind the batch, so that a sample has `rank` dims.
Tensor with_rank(const Tensor& value, int64_t rank) {
  int64_t missing = rank + 1 - value.dim();
  if (missing <= 0) return value;
  Ints sizes{value.sizes()[0]};
  for (int64_t d = 0; d < missing; ++d) sizes.push_back(1);
  for (size_t d = 1; d < value.sizes().size(); ++d) sizes.push_back(value.sizes()[d]);
  return ops::view(value, sizes);
}

Tensor expanded(const Tensor& x, int64_t batch) {
  Ints sizes = x.sizes();
  sizes.insert(sizes.begin(), batch);
  return ops::expand(x, sizes);
}

}  // namespace

// Pointwise
// -----------------------------------------------------------------------------------------------

// A sample's 0-d tensor has a say in promotion that its value, which has a dim, would not have.
static void promote_as_samples(const Level& level, const Values& args, Values& values) {
  ResultType samples, whole;
  bool zero_dim = false;
  for (size_t i = 0; i < args.size(); ++i) {
    auto* x = args[i].get_if<Tensor>();
    auto* v = values[i].get_if<Tensor>();
    if (!x || !x->defined()) continue;
    zero_dim |= x->dim() == 0 && level.is_batched(*x);
    samples.add(*x);
    whole.add(*v);
  }
  if (!zero_dim || samples.get() == whole.get()) return;
  for (size_t i = 0; i < args.size(); ++i) {
    auto* x = args[i].get_if<Tensor>();
    auto* v = values[i].get_if<Tensor>();
    if (!x || !x->defined() || x->dim() > 0 || x->is_wrapped_number()) continue;
    if (v->dtype() != DType::Bool) *v = ops::to(*v, samples.get());
  }
}

Values batch_pointwise(const Level& level, const OpDesc& op, const Values& args) {
  int64_t rank = 0;
  for (const Value& v : args)
    for_each_tensor(v, [&](const Tensor& x) { rank = std::max(rank, x.dim()); });
  Values values = args;
  for (Value& v : values)
    for_each_tensor(v, [&](Tensor& x) {
      x = level.is_batched(x) ? with_rank(level.value(x), rank) : level.value(x);
    });
  promote_as_samples(level, args, values);
  return call_op(op, values);
}

// Operations that take one more dim in front
// -----------------------------------------------------------------------------------------------

// The number of a dim, or all of them where none are named, moved behind the batch.
static void shift_dims(const OpDesc& op, Value& v, int64_t rank) {
  int64_t n = std::max<int64_t>(rank, 1);
  bool all = false;
  if (auto* dim = v.get_if<int64_t>()) {
    *dim = wrap_dim(*dim, n) + 1;
  } else if (auto* dims = v.get_if<Ints>()) {
    for (int64_t& d : *dims) d = wrap_dim(d, n) + 1;
    all = dims->empty() && op.all_dims;
  } else {
    all = v.is_none();
  }
  if (!all) return;
  Ints dims;
  for (int64_t d = 1; d <= n; ++d) dims.push_back(d);
  v = dims;
}

Lift::Lift(const Level& level, const OpDesc& op, const Values& args) {
  if (op.dims == 0) return;
  for (size_t i = 0; i < args.size(); ++i)
    if (op.batchable >> i & 1)
      for_each_tensor(args[i], [&](const Tensor& x) {
        if (x.dim() == 0) lifted = true;
      });
  if (!lifted) return;
  Values sample = args;
  for (Value& v : sample)
    for_each_tensor(v, [](Tensor& x) {
      Tensor blank = empty_strided(x.sizes(), x.strides(), x.dtype(), Device(DeviceType::Meta));
      if (x.is_wrapped_number()) blank.set_flag(kWrappedNumber);
      x = blank;
    });
  for (Value& v : call_op(op, sample))
    for_each_tensor(v, [&](const Tensor& y) {
      shapes.push_back(y.sizes());
      shapes.back().insert(shapes.back().begin(), level.batch);
    });
}

void Lift::restore(Values& results) const {
  if (!lifted) return;
  size_t k = 0;
  for (Value& r : results)
    for_each_tensor(r, [&](Tensor& y) {
      const Ints& shape = shapes.at(k++);
      if (y.sizes() != shape) y = ops::view(y, shape);
    });
}

Values batch_derived(const Level& level, const OpDesc& op, const Values& args) {
  Values out = args;
  int64_t rank = -1;
  for (size_t i = 0; i < args.size(); ++i)
    if (op.batchable >> i & 1)
      for_each_tensor(args[i], [&](const Tensor& x) {
        if (rank < 0) rank = x.dim();
      });
  const Lift lift(level, op, args);
  for (size_t i = 0; i < args.size(); ++i) {
    bool batch = op.batchable >> i & 1;
    for_each_tensor(out[i], [&](Tensor& x) {
      bool batched = level.is_batched(x);
      x = level.value(x);
      if (batch && !batched) x = expanded(x, level.batch);
      if (batch && lift.lifted && x.dim() == 1) x = ops::unsqueeze(x, 1);
    });
    if (op.dims >> i & 1) shift_dims(op, out[i], rank);
    // Formats other than row-major are bound to a number of dims.
    if (auto* format = out[i].get_if<MemoryFormat>())
      if (*format != MemoryFormat::Preserve) *format = MemoryFormat::Contiguous;
  }
  Values results = call_op(op, out);
  lift.restore(results);
  return results;
}

// One sample after another
// -----------------------------------------------------------------------------------------------

static void warn_of_loop(const OpDesc& op) {
  static std::mutex mutex;
  static std::set<const OpDesc*> warned;
  {
    std::lock_guard guard(mutex);
    if (!warned.insert(&op).second) return;
  }
  warn(concat("vmap: there is no batching rule for ", op.name,
              " here: it runs once for each sample, which is slow"));
}

static Value stacked(const OpDesc& op, const std::vector<Values>& samples, size_t output) {
  const Value& first = samples[0][output];
  auto join = [&](auto get) {
    Tensors xs;
    for (const Values& s : samples) xs.push_back(get(s[output]));
    for (const Tensor& x : xs)
      FB_CHECK(x.sizes() == xs[0].sizes(), "vmap: ", op.name,
               ": the shape of the result depends on the data: samples gave ", xs[0].sizes(),
               " and ", x.sizes());
    return ops::stack(xs, 0);
  };
  if (auto* x = first.get_if<Tensor>()) {
    if (!x->defined()) return *x;
    return join([](const Value& v) { return v.get<Tensor>(); });
  }
  if (auto* xs = first.get_if<Tensors>()) {
    Tensors out;
    for (size_t k = 0; k < xs->size(); ++k)
      out.push_back(join([k](const Value& v) { return v.get<Tensors>().at(k); }));
    return out;
  }
  fail(ErrorKind::Runtime, "vmap: ", op.name,
       ": the result is no tensor but one number for each sample, on which Python's control flow "
       "would depend; use tensor operations");
}

Values batch_loop(const OpDesc& op, const Values& values, uint32_t batched, int64_t batch,
                  GeneratorImpl* same_from) {
  if (!same_from && batched) warn_of_loop(op);
  std::vector<Values> samples;
  Tensor state = same_from ? same_from->get_state() : Tensor();
  auto run = [&](auto sample_of) {
    Values one = values;
    for (size_t i = 0; i < one.size(); ++i)
      if (batched >> i & 1) for_each_tensor(one[i], [&](Tensor& x) { x = sample_of(x); });
    if (same_from) same_from->set_state(state);
    samples.push_back(call_op(op, one));
  };
  for (int64_t b = 0; b < batch; ++b) run([&](const Tensor& x) { return ops::select(x, 0, b); });
  if (op.mutates) return {};
  bool none = batch == 0;  // shapes still have to be found
  if (none)
    run([](const Tensor& x) {
      Ints sizes = x.sizes();
      sizes.erase(sizes.begin());
      return ops::zeros(sizes, x.dtype(), x.device());
    });
  Values out;
  for (size_t k = 0; k < samples[0].size(); ++k) out.push_back(stacked(op, samples, k));
  if (none)
    for (Value& v : out) for_each_tensor(v, [](Tensor& x) { x = ops::slice(x, 0, 0, 0, 1); });
  return out;
}

}  // namespace flambeau::func
