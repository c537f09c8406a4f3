#include "func/vmap.h"

#include "autograd/grad_ops.h"
#include "gen/ops.h"

namespace flambeau::func {

void (*warn)(const std::string& message) = [](const std::string&) {};

namespace {

std::atomic<int64_t> levels{0};
thread_local constinit Level* innermost = nullptr;

bool is_random(const OpDesc& op) {
  for (const ParamDesc& p : op.params)
    if (p.type.base == TypeBase::Generator) return true;
  return false;
}

GeneratorImpl& generator_of(const Values& args) {
  for (const Value& v : args)
    if (auto* g = v.get_if<Generator>(); g && *g) return **g;
  return *default_generator();
}

}  // namespace

// Levels and wrappers
// -----------------------------------------------------------------------------------------------

Level::Level(int64_t batch, Randomness randomness)
    : id(levels.fetch_add(1)),
      depth(innermost ? innermost->depth + 1 : 1),
      batch(batch),
      randomness(randomness) {}

// Note [Adopted tensors]
// What is recorded in a level is a history of its wrappers. A tensor that is none (made by a
// factory inside, say) can get such a history when it changes in place: it is then made a wrapper,
// the same for all samples, of a new tensor that takes over what it was to the levels around. Its
// views follow when they are used. When the level ends it is what it was before.
void Level::adopt(const Tensor& x) {
  AutogradMeta* meta = x->autograd;
  Tensor base = meta && meta->view ? meta->view->base : Tensor();
  if (base.defined() && !wrapped(base)) adopt(base);
  Tensor inner = alias(x);
  TensorImpl* impl = inner.impl();
  if (impl->autograd) destroy_autograd_meta(impl->autograd);
  impl->autograd = std::exchange(x->autograd, nullptr);
  impl->flags = static_cast<uint16_t>(x->flags & ~kOwnsPython);
  x->flags &= kOwnsPython | kInference | kWrappedNumber | kContiguous;
  x.set_flag(kWrapper);
  materialize_meta(x).wrapped = std::make_shared<const Wrapped>(inner, id, depth, false);
  if (base.defined()) {
    impl->autograd->view->base = value(base);
    mark_view_as(x, base, impl->autograd->view->origin);
    x->autograd->view->version = x.version() - 1;  // it follows what the base has become
  }
  if (is_dual(inner)) {
    x->autograd->tangent = impl->autograd->tangent;
    x.set_flag(kHasTangent);
  }
  adopted_.push_back(x);
  if (adopted_.size() < most_adopted_) return;
  std::erase_if(adopted_, [](const Tensor& t) { return t->use_count() == 1; });
  most_adopted_ = 2 * adopted_.size() + 16;
}

Level::~Level() {
  for (const Tensor& x : adopted_) {
    TensorImpl* impl = wrapped(x)->value.impl();
    AutogradMeta* ours = x->autograd;
    if (impl->autograd && impl->autograd->view) impl->autograd->view->base = ours->view->base;
    x->flags = static_cast<uint16_t>((x->flags & kOwnsPython) | impl->flags);
    x->autograd = std::exchange(impl->autograd, nullptr);
    impl->flags &= kContiguous | kInference;
    destroy_autograd_meta(ours);
  }
}

Level* innermost_level() noexcept {
  return innermost;
}

Level& enter_level(int64_t batch, Randomness randomness) {
  auto* level = new Level(batch, randomness);
  level->around = innermost;
  resume_level(*level);
  return *level;
}

Level& suspend_level() {
  FB_CHECK(innermost && modes.top == innermost,
           "vmap: a transform that was entered later is still active");
  Level& level = *innermost;
  modes.top = level.outer;
  modes.active -= kIntercept;
  innermost = level.around;
  return level;
}

void resume_level(Level& level) {
  level.outer = modes.top;
  modes.top = innermost = &level;
  modes.active += kIntercept;
}

void leave_level(const Level& level) {
  FB_CHECK(innermost == &level, "vmap: a transform that was entered later is still active");
  delete &suspend_level();
}

const Wrapped* Level::wrapped(const Tensor& x) const noexcept {
  if (!x.defined() || !x.has_flag(kWrapper)) return nullptr;
  const Wrapped* w = x->autograd->wrapped.get();
  return w->level == id ? w : nullptr;
}

bool Level::is_batched(const Tensor& x) const noexcept {
  const Wrapped* w = wrapped(x);
  return w && w->batched;
}

const Tensor& Level::value(const Tensor& x) const noexcept {
  const Wrapped* w = wrapped(x);
  return w ? w->value : x;
}

// The wrapper has the geometry of the first sample.
Tensor Level::wrap(const Tensor& value, bool batched) const {
  if (!value.defined()) return value;
  // What an operation leaves out (vectors that nobody asked for) is empty, for all samples.
  if (batched && value.numel() == 0 && value.dim() == 1 && batch != 0) batched = false;
  FB_CHECK(!batched || (value.dim() > 0 && value.sizes()[0] == batch),
           "vmap: expected a value with a batch of ", batch, " in front, got shape ",
           value.sizes());
  auto* impl = TensorImpl::make();
  Tensor out(Ref<TensorImpl>::adopt(impl));
  impl->dtype = value.dtype();
  impl->flags = kWrapper | (value->flags & (kInference | kWrappedNumber));
  impl->sizes = value.sizes();
  impl->strides = value.strides();
  if (batched) {
    impl->sizes.erase(impl->sizes.begin());
    impl->strides.erase(impl->strides.begin());
  }
  impl->offset = value.offset();
  impl->storage = value.storage();
  impl->own_version = value->own_version;
  impl->refresh();
  materialize_meta(out).wrapped = std::make_shared<const Wrapped>(value, id, depth, batched);
  return out;
}

Tensor add_batch(const Level& level, const Tensor& x, int64_t dim) {
  return level.wrap(dim == 0 ? x : ops::movedim(x, Ints{dim}, Ints{0}), true);
}

Tensor remove_batch(const Level& level, const Tensor& x, int64_t dim) {
  Tensor value = level.value(x);
  if (!level.is_batched(x)) {
    Ints sizes = value.sizes();
    sizes.insert(sizes.begin(), level.batch);
    value = ops::expand(value, sizes);
  }
  int64_t to = wrap_dim(dim, value.dim());
  return to == 0 ? value : ops::movedim(value, Ints{0}, Ints{to});
}

// Tangents of levels inside this one are the wrapper's; those of levels outside it does not hide.
Tensor lift(const Level& level, const Tensor& x) {
  if (level.wrapped(x)) return x;
  Tensor out = level.wrap(x, false);
  if (is_dual(x)) {
    out->autograd->tangent = x->autograd->tangent;
    out.set_flag(kHasTangent);
  }
  return out;
}

bool wants_gradients(const Tensor& x) noexcept {
  const Tensor* t = &x;
  while (!requires_grad(*t) && t->has_flag(kWrapper)) t = &(*t)->autograd->wrapped->value;
  return requires_grad(*t);
}

// Calls
// -----------------------------------------------------------------------------------------------

namespace {

// In a list of which one tensor is batched, all are made so: a bit stands for the whole list.
Values values_of(const Level& level, const Values& args, uint32_t batched) {
  Values out = args;
  for (size_t i = 0; i < out.size(); ++i) {
    bool list = !out[i].is<Tensor>() && batched >> i & 1;
    for_each_tensor(out[i], [&](Tensor& x) {
      x = list && !level.is_batched(x) ? remove_batch(level, x, 0) : level.value(x);
    });
  }
  return out;
}

Values wrap_all(const Level& level, Values results, bool batched) {
  for (Value& v : results) for_each_tensor(v, [&](Tensor& x) { x = level.wrap(x, batched); });
  return results;
}

}  // namespace

Values Level::call(const OpDesc& op, Values args) {
  const Values& given = args;
  for (const Value& v : given)
    for_each_tensor(v, [&](const Tensor& x) {
      if (x.has_flag(kIsView) && !wrapped(x) && wrapped(x->autograd->view->base)) adopt(x);
    });
  uint32_t batched = 0;
  bool ours = false;
  for (size_t i = 0; i < args.size(); ++i)
    for_each_tensor(given[i], [&](const Tensor& x) {
      const Wrapped* w = wrapped(x);
      ours |= w != nullptr;
      if (w && w->batched) batched |= 1u << i;
    });
  bool draws = is_random(op);
  if (!ours && !draws) return call_op(op, args);
  Ref<Node> node = begin_record(*this, op, args);
  Values results = draws ? random(op, args, batched) : compute(op, args, batched);
  if (op.mutates && ours && !op.returns.empty()) results = {args[0]};
  if (op.kind == OpKind::View)
    for (Value& r : results)
      for_each_tensor(r, [&](Tensor& y) { mark_view(y, args[0].get<Tensor>()); });
  if (node) end_record(node, op, results);
  return results;
}

static void refuse_shared(const OpDesc& op) {
  fail(ErrorKind::Runtime, "vmap: ", op.name,
       ": an in-place operation on a tensor that is the same for all samples was given a batched "
       "tensor, whose values it cannot hold; use the out-of-place operation, or batch the tensor "
       "(new_zeros of a batched tensor is batched)");
}

Values Level::compute(const OpDesc& op, Values& args, uint32_t batched) {
  if (!batched) return wrap_all(*this, call_op(op, values_of(*this, args, 0)), false);
  if (op.mutates && !(batched & 1)) refuse_shared(op);
  if (op.kind == OpKind::Pointwise) return wrap_all(*this, batch_pointwise(*this, op, args), true);
  if (op.batchable && !(batched & ~op.batchable))
    return wrap_all(*this, batch_derived(*this, op, args), true);
  Values values = values_of(*this, args, batched);
  if (op.vmap) {
    const Lift lift(*this, op, args);
    for (size_t i = 0; lift.lifted && i < values.size(); ++i)
      if (op.batchable >> i & 1)
        for_each_tensor(values[i], [&](Tensor& x) {
          if (x.dim() == (batched >> i & 1 ? 1 : 0)) x = ops::unsqueeze(x, -1);
        });
    Values results = op.vmap(op, values, batched, batch);
    lift.restore(results);
    return wrap_all(*this, std::move(results), true);
  }
  if (op.added)
    for (size_t i = 0; i < args.size(); ++i)
      if ((updated_by(op, args) & ~batched) >> i & 1)
        for_each_tensor(std::as_const(args[i]), [&](const Tensor&) { refuse_shared(op); });
  return wrap_all(*this, batch_loop(op, values, batched, batch, nullptr), true);
}

// Operations that draw random numbers.
Values Level::random(const OpDesc& op, Values& args, uint32_t batched) {
  FB_CHECK(randomness != Randomness::Error, "vmap: called random operation ", op.name,
           " while in randomness error mode. Use vmap(..., randomness='same') to draw the same "
           "numbers for all samples, or randomness='different' to draw numbers for each");
  Values values = values_of(*this, args, batched);
  if (randomness == Randomness::Same) {
    if (!batched) return call_op(op, values);
    return wrap_all(*this, batch_loop(op, values, batched, batch, &generator_of(args)), true);
  }
  if (batched) return compute(op, args, batched);
  FB_CHECK(!op.mutates, "vmap: ", op.name,
           ": cannot draw different numbers for each sample in place on a tensor that is the same "
           "for all of them; use the out-of-place operation, or randomness='same'");
  if (op.vmap) return wrap_all(*this, op.vmap(op, values, batched, batch), true);
  return wrap_all(*this, batch_loop(op, values, batched, batch, nullptr), true);
}

}  // namespace flambeau::func
