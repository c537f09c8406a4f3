// Backward of compiled functions, see compiled_function.h.
#include "autograd/engine.h"
#include "autograd/generated.h"
#include "autograd/grad_ops.h"
#include "func/vmap.h"
#include "gen/ops.h"
#include "python/argparse.h"
#include "python/compiled_function.h"
#include "python/frame_eval.h"
#include "python/spec.h"
#include "python/tensor_object.h"

namespace flambeau::python {

using runtime::Geometry;

namespace {

// Stands behind gradients that were asked for with create_graph where backward has no derivative:
// they are right.
struct Refusal final : Node {
  const char* name() const override { return "CompiledFunctionDoubleBackward"; }
  Tensors apply(Tensors&&) override {
    fail(ErrorKind::Runtime, "this compiled function cannot be differentiated twice: ", why);
  }
  std::string why;
};

void refuse(Tensors& made, const Node& node, const Tensors& grads, const std::string& why) {
  auto refusal = new_node<Refusal>();
  refusal->why = why;
  for (const Edge& e : node.edges) refusal->edges.push_back(e);
  refusal->add_next(grads);
  for (Tensor& g : made)
    if (g.defined()) set_history(g = alias(g), refusal);
}

// A cotangent with the geometry that backward was made for. Recorded where gradients are.
Tensor laid_out(Tensor&& g, const Geometry& want) {
  if (g.defined() && want.is_laid_out_as(g)) return std::move(g);
  Tensor made = empty_strided(want.sizes, want.strides, want.dtype);
  if (g.defined())
    ops::copy_(made, g);
  else
    grad_ops::zero_(made);
  return made;
}

// With that of the saved value that it belongs to.
Tensor laid_out_like(Tensor&& g, const Tensor& value) {
  Geometry want;
  {
    NoGradGuard no_grad;
    const Tensor like = ops::empty_like(value);
    want.sizes = like.sizes();
    want.strides = like.strides();
    want.dtype = like.dtype();
  }
  return laid_out(std::move(g), want);
}

}  // namespace

void CompiledNode::release_saved() {
  std::vector<SavedTensor> gone;  // dies without the lock
  std::lock_guard guard(mutex_);
  for (SavedTensor& s : saved_) {
    gone.push_back(s);
    s.reset();
  }
}

// What backward takes. Saved tensors are given away when nobody will ask for them again.
std::vector<Input> CompiledNode::arguments(const CompiledFunction::Backward::Part& part,
                                           Tensors&& grads, bool again) {
  std::vector<SavedTensor> saved;
  {
    std::lock_guard guard(mutex_);
    saved = saved_;
    if (!again && !running_keeps_graph())
      for (SavedTensor& s : saved_) s.reset();
  }
  std::vector<Input> out;
  out.reserve(part.saved.size() + b_->numbers.size() + part.cotangents.size());
  for (uint32_t i : part.saved) out.push_back({saved[i].unpack(*this), 0});
  for (uint32_t n : b_->numbers) out.push_back({Tensor(), numbers_[n]});
  Geometry room;
  for (size_t k = 0; k < part.cotangents.size(); ++k) {
    uint32_t i = part.cotangents[k];
    Tensor& g = grads[i];
    Tensor taken = part.spread[k] ? ops::as_strided(g, Ints(), Ints(), g.offset())
                                  : laid_out(std::move(g), b_->cotangents[i].in(numbers_, room));
    out.push_back({std::move(taken), 0});
  }
  return out;
}

Tensors CompiledNode::apply(Tensors&& grads) {
  grads.resize(std::max(grads.size(), b_->cotangents.size()));
  return run(std::move(grads), false);
}

// Under vmap: one sample after another, for what runs is made for the cotangents of one.
Tensors CompiledNode::of_samples(Tensors&& grads, bool again) {
  FB_CHECK(func::innermost_level(),
           "compiled function: backward was given a gradient of a vmap that is over");
  struct Suspended {
    func::Level& level = func::suspend_level();
    ~Suspended() { func::resume_level(level); }
  } const outside;
  const func::Level& level = outside.level;
  std::vector<Tensors> samples;
  for (int64_t b = 0; b < level.batch; ++b) {
    Tensors one;
    for (const Tensor& g : grads)
      one.push_back(level.is_batched(g) ? ops::select(level.value(g), 0, b)
                    : g.defined()       ? level.value(g)
                                        : g);
    samples.push_back(run(std::move(one), again || b + 1 < level.batch));
  }
  Tensors out(edges.size());
  for (size_t i = 0; i < out.size() && !samples.empty(); ++i) {
    if (!samples[0][i].defined()) continue;
    Tensors each;
    for (const Tensors& s : samples) each.push_back(s[i]);
    out[i] = level.wrap(ops::stack(each, 0), true);
  }
  return out;
}

Tensors CompiledNode::run(Tensors&& grads, bool again) {
  Tensors out(edges.size());
  if (none_defined(grads)) return out;
  for (const Tensor& g : grads)
    if (g.defined() && g.has_flag(kWrapper)) return of_samples(std::move(grads), again);
  std::string why;
  const auto first = grads.begin() + static_cast<ptrdiff_t>(b_->cotangents.size());
  const bool of_values =
      std::any_of(first, grads.end(), [](const Tensor& g) { return g.defined(); });
  if (modes.grad || of_values)
    if (std::optional<Tensors> made = run_recorded(grads, again, why)) return std::move(*made);
  grads.resize(b_->cotangents.size());
  Tensors given = modes.grad ? grads : Tensors();
  Tensors made;
  const CompiledFunction::Backward::Part* part;
  {
    NoGradGuard no_grad;
    NoAutocastGuard no_autocast;  // the graphs hold their casts
    CpuFactories on_cpu;          // the graphs hold their devices
    part = &b_->part(grads, *this);
    std::vector<Input> inputs = arguments(*part, std::move(grads), again);
    Numbers numbers;
    made = part->runner->run(inputs, numbers);
  }
  FB_CHECK(made.size() == part->grads.size(), "compiled function: backward gave ", made.size(),
           " gradients, expected ", part->grads.size());
  if (modes.grad) refuse(made, *this, given, why);
  for (size_t i = 0; i < made.size(); ++i) out[part->grads[i]] = std::move(made[i]);
  return out;
}

Tensor CompiledNode::as_result(const SavedTensor& saved, uint32_t nr) const {
  Tensor t;
  {
    NoGradGuard no_grad;
    t = detach(saved.unpack(*this));
  }
  AutogradMeta& meta = materialize_meta(t);
  meta.grad_fn = Ref<Node>(const_cast<CompiledNode*>(this));
  meta.output_nr = nr;
  t.set_flag(kRequiresGrad);
  return t;
}

std::optional<Tensors> CompiledNode::run_recorded(Tensors& grads, bool again, std::string& why) {
  NoAutocastGuard no_autocast;  // the graph holds its casts
  CpuFactories on_cpu;          // and its devices
  std::string there;
  for (const Tensor& g : grads) there += g.defined() ? '1' : '0';
  if (const std::string only = b_->wanted(*this); !only.empty()) there += '/' + only;
  GilHeld gil;
  CapturePaused paused;
  PyRef found = checked(PyObject_CallFunction(b_->recorded.make->get(), "s", there.c_str()));
  if (PyUnicode_Check(found.get())) {
    why = to_str(found.get());
    return std::nullopt;
  }
  const auto results = static_cast<uint32_t>(b_->cotangents.size());
  std::vector<int64_t> values;
  each(item(found.get(), 4), [&](PyObject* i) { values.push_back(integer(i)); });
  std::vector<SavedTensor> saved;
  {
    std::lock_guard guard(mutex_);
    saved = saved_;
  }
  Tensors shown;  // unpacked without the lock: hooks are the user's code
  if (modes.grad)
    for (int64_t i : values) shown.push_back(saved.at(static_cast<size_t>(i)).unpack(*this));
  {
    std::lock_guard guard(mutex_);
    if (modes.grad && !values_are_outputs_) {
      for (const Tensor& t : shown) add_output(t);
      values_are_outputs_ = true;
    }
    if (!again && !running_keeps_graph())
      for (SavedTensor& s : saved_) s.reset();
  }
  std::vector<PyRef> given;
  each(item(found.get(), 0), [&](PyObject* number) {
    int64_t i = integer(number);
    const SavedTensor& s = saved.at(static_cast<size_t>(i));
    auto value = std::find(values.begin(), values.end(), i);
    bool result = modes.grad && value != values.end();
    given.push_back(
        checked(wrap(result ? as_result(s, results + static_cast<uint32_t>(value - values.begin()))
                            : s.unpack(*this, /*history=*/modes.grad))));
  });
  each(item(found.get(), 1), [&](PyObject* i) {
    int64_t n = numbers_[static_cast<size_t>(integer(i))];
    given.push_back(checked(PyLong_FromLongLong(n)));
  });
  Geometry room;
  each(item(found.get(), 2), [&](PyObject* number) {
    auto k = static_cast<uint32_t>(integer(number));
    if (k < results) {
      const Geometry& want = b_->cotangents[k].in(numbers_, room);
      given.push_back(checked(wrap(laid_out(Tensor(grads.at(k)), want))));
    } else {
      const Tensor like = saved.at(static_cast<size_t>(values.at(k - results))).unpack(*this);
      given.push_back(checked(wrap(laid_out_like(Tensor(grads.at(k)), like))));
    }
  });
  std::vector<PyObject*> arguments;
  for (const PyRef& x : given) arguments.push_back(x.get());
  PyRef made = checked(
      PyObject_Vectorcall(item(found.get(), 3), arguments.data(), arguments.size(), nullptr));
  Tensors out(edges.size());
  each(made.get(), [&](PyObject* pair) {
    out.at(static_cast<size_t>(integer(pair, 0))) = unwrap(item(pair, 1));
  });
  return out;
}

}  // namespace flambeau::python
