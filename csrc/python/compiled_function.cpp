#include "python/compiled_function.h"

#include <structmember.h>

#include <algorithm>
#include <numeric>

#include "autograd/generated.h"
#include "autograd/meta.h"
#include "gen/ops.h"
#include "python/frame_eval.h"
#include "python/spec.h"
#include "python/thunks.h"
#include "python/tree.h"

namespace flambeau::python {

using runtime::Geometry;

namespace {

std::vector<uint32_t> indices(PyObject* sequence, size_t below, const char* what) {
  std::vector<uint32_t> out;
  each(sequence, [&](PyObject* o) {
    int64_t i = integer(o);
    FB_CHECK_VALUE(i >= 0 && static_cast<size_t>(i) < below, "a compiled function: no ", what, " ",
                   i);
    out.push_back(static_cast<uint32_t>(i));
  });
  return out;
}

std::vector<uint32_t> all_of(int64_t count) {
  FB_CHECK_VALUE(count >= 0 && count < (int64_t{1} << 24), "a compiled function: ", count,
                 " saved values");
  std::vector<uint32_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

bool is_among(const Tensor& t, const std::vector<Input>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const Input& x) { return x.tensor.is_same(t); });
}

}  // namespace

// (forward, inputs of a call, attached, sizes, mutated, results, aliases, output, backward, the
// function as it was written), where backward is None or (runner, differentiable, cotangents,
// grads, numbers, count of saved values, maker of parts or None, (inputs kept besides, maker of
// what is recorded))
CompiledFunction::CompiledFunction(PyObject* spec)
    : forward_(runner_of(item(spec, 0))),
      given_(static_cast<size_t>(integer(spec, 1))),
      sizes_(tree_of(item(spec, 3))),
      results_(static_cast<size_t>(integer(spec, 5))),
      output_(item(spec, 7)) {
  each(item(spec, 2), [&](PyObject* o) { attached_.push_back(input_of(o, attached_.size())); });
  size_t inputs = given_ + attached_.size();
  mutated_ = indices(item(spec, 4), inputs, "input");
  each(item(spec, 6), [&](PyObject* a) {  // (of an input, index, geometry or None)
    Alias made{
        item(a, 0) == Py_True, static_cast<uint32_t>(integer(a, 1)), item(a, 2) == Py_None, {}};
    FB_CHECK_VALUE(made.index < (made.of_input ? inputs : results_),
                   "a compiled function: nothing of index ", made.index);
    if (!made.whole) made.geometry = Geometry(tree_of(item(a, 2)), sizes_.count());
    shows_inputs_ |= made.of_input;
    aliases_.push_back(std::move(made));
  });
  FB_CHECK_VALUE(output_.tensors() <= static_cast<int64_t>(aliases_.size()),
                 "a compiled function: an output that there is not");
  PyObject* written = PyTuple_GET_SIZE(spec) > 9 ? item(spec, 9) : Py_None;
  if (written != Py_None) as_written_ = PyRef::borrow(written);
  PyObject* back = item(spec, 8);
  if (back == Py_None) return;
  auto b = std::make_shared<Backward>();
  b->differentiable = indices(item(back, 1), results_, "result");
  each(item(back, 2), [&](PyObject* g) { b->cotangents.emplace_back(tree_of(g), sizes_.count()); });
  FB_CHECK_VALUE(b->cotangents.size() == b->differentiable.size(),
                 "a compiled function: a cotangent is missing");
  b->numbers = indices(item(back, 4), sizes_.count(), "number");
  std::shared_ptr<const Runner> runner;
  if (PyObject* run = item(back, 0); run != Py_None) runner = runner_of(run);
  size_t count = b->cotangents.size();
  b->whole = {std::move(runner), all_of(integer(back, 5)), all_of(static_cast<int64_t>(count)),
              std::vector<bool>(count), indices(item(back, 3), inputs, "input")};
  b->reached.resize(inputs);
  for (uint32_t i : b->whole.grads) b->reached[i] = true;
  if (PyObject* make = item(back, 6); make != Py_None) b->make_part.emplace(make);
  FB_CHECK_VALUE(b->whole.runner || b->make_part, "a compiled function: no backward");
  b->recorded.inputs = indices(item(item(back, 7), 0), inputs, "input");
  b->recorded.make.emplace(item(item(back, 7), 1));
  backward_ = std::move(b);
}

namespace {

constexpr int64_t kSpread = 1 << 16;   // elements that are worth a backward of their own
constexpr size_t kPartsForSpread = 4;  // so many parts there may be before one
constexpr size_t kPartsForWanted = 6;  // and before one for some of the gradients

// Is one number the whole cotangent, as that of a sum is?
bool is_spread(const Tensor& g, const Geometry& want) {
  return g.defined() && g.numel() >= kSpread && g.dtype() == want.dtype &&
         std::all_of(g.strides().begin(), g.strides().end(), [](int64_t s) { return s == 0; });
}

}  // namespace

std::string CompiledFunction::Backward::wanted(const Node& node) const {
  auto needed = [&](uint32_t i) { return node.needs(i); };
  const auto from = whole.grads.begin(), to = whole.grads.end();
  if (std::all_of(from, to, needed) || std::none_of(from, to, needed)) return {};
  std::string out;
  for (uint32_t i : whole.grads) out += needed(i) ? '1' : '0';
  return out;
}

const CompiledFunction::Backward::Part& CompiledFunction::Backward::part(const Tensors& grads,
                                                                         const Node& node) const {
  if (!make_part) return whole;
  std::string there, dense;
  for (size_t i = 0; i < grads.size(); ++i) {
    dense += grads[i].defined() ? '1' : '0';
    there += is_spread(grads[i], cotangents[i]) ? 'e' : dense.back();
  }
  std::string only = wanted(node);
  auto key = [&] { return only.empty() ? there : there + '/' + only; };
  auto is_whole = [&] {
    return whole.runner && only.empty() && there.find_first_not_of('1') == there.npos;
  };
  if (is_whole()) return whole;
  {
    std::lock_guard guard(mutex);
    auto is_new = [&] { return !parts.contains(key()); };
    if (parts.size() >= kPartsForSpread && is_new()) there = dense;
    if (parts.size() >= kPartsForWanted && is_new()) only.clear();
    if (auto found = parts.find(key()); found != parts.end()) return *found->second;
  }
  if (is_whole()) return whole;
  GilHeld gil;
  CapturePaused paused;
  PyRef made = checked(PyObject_CallFunction(make_part->get(), "s", key().c_str()));
  auto part = std::make_unique<Part>();
  part->runner = runner_of(item(made.get(), 0));
  part->saved = indices(item(made.get(), 1), whole.saved.size(), "saved value");
  part->cotangents = indices(item(made.get(), 2), grads.size(), "cotangent");
  for (uint32_t k : part->cotangents) part->spread.push_back(there[k] == 'e');
  for (uint32_t k : indices(item(made.get(), 3), whole.grads.size(), "gradient"))
    part->grads.push_back(whole.grads[k]);
  std::lock_guard guard(mutex);
  return *parts.try_emplace(key(), std::move(part)).first->second;
}

Tensors CompiledFunction::forward(std::span<Input> inputs) const {
  int64_t elements = 0;
  for (const Input& x : inputs)
    if (x.tensor.defined()) elements += x.tensor.numel();
  NoGradGuard no_grad;
  NoAutocastGuard no_autocast;  // the graphs hold their casts
  CpuFactories on_cpu;          // the graphs hold their devices
  GilFree free(elements > kUnlockedElements);
  Numbers own;
  return forward_->run(inputs, own);
}

bool CompiledFunction::shares_what_changes(const std::vector<Input>& inputs) const {
  struct Place {
    const char *start, *end;  // of the storage: arrays of another library may overlap
    bool changes;
  };
  SmallVector<Place, 64> places;
  size_t next = 0;  // mutated_ is in order
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    bool changes = next < mutated_.size() && mutated_[next] == i;
    next += changes;
    const Tensor& t = inputs[i].tensor;
    if (!t.defined() || !t.numel()) continue;
    auto* start = static_cast<const char*>(t.storage()->data());
    places.push_back({start, start + t.storage()->nbytes(), changes});
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.start < b.start; });
  Place met{nullptr, nullptr, false};  // storages that overlap one another, as one
  for (const Place& p : places) {
    if (p.start < met.end) {
      if (p.changes || met.changes) return true;
      met.end = std::max(met.end, p.end);
    } else {
      met = p;
    }
  }
  return false;
}

PyRef CompiledFunction::call_as_written(PyObject* const* args, size_t count, int64_t only) const {
  FB_CHECK(as_written_,
           "inputs share memory, and the function changes one of them in place; pass a "
           "clone of one");
  PyRef made = checked(PyObject_Vectorcall(as_written_.get(), args, count, nullptr));
  return only < 0 ? std::move(made) : PyRef::borrow(item(made.get(), only));
}

void CompiledFunction::record(Tensors& results, const std::vector<Input>& inputs,
                              const Ref<Node>& node) const {
  size_t k = 0;
  for (size_t i = 0; i < results_; ++i) {
    Tensor& t = results[i];
    bool differentiable = k < backward_->differentiable.size() && backward_->differentiable[k] == i;
    bool own = !is_among(t, inputs) &&
               std::none_of(results.begin(), results.begin() + static_cast<ptrdiff_t>(i),
                            [&](const Tensor& o) { return o.is_same(t); });
    if (!own) t = detach(t);
    if (!differentiable) continue;
    set_history(t, node);
    ++k;
  }
}

void CompiledFunction::save(CompiledNode& node, const std::vector<Input>& inputs,
                            const Tensors& made, const Numbers& numbers) const {
  FB_CHECK(made.size() - results_ == node.b_->whole.saved.size(),
           "compiled function: forward saved ", made.size() - results_, " values, expected ",
           node.b_->whole.saved.size());
  const std::vector<uint32_t>& besides = backward_->recorded.inputs;
  node.saved_.reserve(made.size() - results_ + besides.size());
  for (size_t i = results_; i < made.size(); ++i) {
    const Tensor& t = made[i];
    const AutogradMeta* meta = t->autograd;
    bool output = meta && meta->grad_fn.get() == &node;
    node.saved_.emplace_back(t, output, &node, output ? meta->output_nr : 0, /*itself=*/true);
  }
  // Hooks pack what would else be gone; leaves are kept by others, too.
  struct Unpacked {
    bool hooks = saved_tensor_hooks_active();
    Unpacked() {
      if (hooks) push_saved_tensor_hooks([](const Tensor&) { return nullptr; });
    }
    ~Unpacked() {
      if (hooks) pop_saved_tensor_hooks();
    }
  };
  for (uint32_t i : besides) {
    const Tensor& t = inputs[i].tensor;
    std::optional<Unpacked> unpacked;
    if (is_leaf(t)) unpacked.emplace();
    node.saved_.emplace_back(t, /*is_output=*/false, &node, 0, /*itself=*/true);
  }
  node.numbers_ = numbers;
}

void CompiledFunction::check_changes(const std::vector<Input>& inputs, bool recorded) const {
  for (size_t k = 0; k < mutated_.size(); ++k) {
    bool followed = recorded && std::binary_search(backward_->differentiable.begin(),
                                                   backward_->differentiable.end(), k);
    GradGuard grad(followed);
    check_inplace(inputs[mutated_[k]].tensor, followed, "copy_");
  }
}

void CompiledFunction::assign(const std::vector<Input>& inputs, const Tensors& results) const {
  for (size_t k = 0; k < mutated_.size(); ++k) {
    if (forward_->in_place(k)) continue;
    const Tensor& fresh = results[k];
    GradGuard grad(modes.grad && requires_grad(fresh));
    ops::copy_(inputs[mutated_[k]].tensor, fresh);
  }
}

namespace {

// The memory of a tensor as elements of a type: a view, which the user's chain of views ended in.
Tensor seen_as(const Tensor& x, DType dtype) {
  if (dtype == x.dtype()) return x;
  if (dtype == to_real(x.dtype())) return ops::view_as_real(x);  // whatever its strides
  return ops::view_dtype(x, dtype);
}

}  // namespace

Tensor CompiledFunction::alias_of(const Alias& a, const std::vector<Input>& inputs,
                                  const Tensors& results, const Numbers& numbers) const {
  const Tensor& shown = a.of_input ? inputs[a.index].tensor : results[a.index];
  if (a.whole) return shown;
  Geometry room;
  const Geometry& g = a.geometry.in(numbers, room);
  const Tensor base = seen_as(shown, g.dtype);
  return ops::as_strided(base, g.sizes, g.strides, base.offset() + g.offset);
}

PyRef CompiledFunction::call(PyObject* const* args, size_t count, int64_t only) const {
  FB_CHECK_TYPE(count == given_, "compiled function: expected ", given_, " inputs, got ", count);
  CapturePaused paused;
  std::vector<Input> inputs;
  inputs.reserve(count + attached_.size());
  for (size_t i = 0; i < count; ++i) inputs.push_back(input_of(args[i], i));
  inputs.insert(inputs.end(), attached_.begin(), attached_.end());
  if (!mutated_.empty() && shares_what_changes(inputs)) return call_as_written(args, count, only);
  Numbers numbers;
  if (!sizes_.empty()) sizes_.evaluate(inputs, numbers);
  Ref<CompiledNode> node;
  if (backward_ && modes.grad && std::any_of(inputs.begin(), inputs.end(), [](const Input& x) {
        return x.tensor.defined() && requires_grad(x.tensor);
      })) {
    node = Ref<CompiledNode>::adopt(new CompiledNode(backward_));
    node->edges.reserve(static_cast<uint32_t>(inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i)
      node->add_next(backward_->reached[i] ? inputs[i].tensor : Tensor());
    // Saved values may become results while others read of these.
    node->outputs.reserve(
        static_cast<uint32_t>(backward_->cotangents.size() + backward_->whole.saved.size()));
  }
  check_changes(inputs, node.get() != nullptr);
  bool needed = node || !mutated_.empty() || shows_inputs_;
  std::vector<Input> passed;
  if (needed) passed.assign(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(given_));
  Tensors made = forward({needed ? passed.data() : inputs.data(), given_});
  FB_CHECK(made.size() >= results_, "compiled function: forward gave ", made.size(),
           " results, expected ", results_);
  if (node) {
    record(made, inputs, node);
    save(*node, inputs, made, numbers);
  }
  made.resize(results_);
  assign(inputs, made);
  Tensors outputs;
  outputs.reserve(aliases_.size());
  for (const Alias& a : aliases_) outputs.push_back(alias_of(a, inputs, made, numbers));
  made.clear();
  return (only < 0 ? output_ : output_.part(only)).build(outputs, numbers);
}

// The object
// ------------------------------------------------------------------------------------------------

namespace {

struct FunctionObject {
  PyObject_HEAD std::shared_ptr<const CompiledFunction> function;
  vectorcallfunc call;
  int64_t only;  // the output that it gives; -1: the tuple of all
};
PyTypeObject* FunctionType = nullptr;

FunctionObject* object_of(PyObject* self) {
  return reinterpret_cast<FunctionObject*>(self);
}

PyObject* call_function(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  try {
    FB_CHECK_TYPE(!kwnames, "compiled function: expected no arguments by name");
    FunctionObject* o = object_of(self);
    auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    return o->function->call(args, count, o->only).release();
  } catch (...) {
    return raise_current();
  }
}

PyObject* make_object(PyTypeObject* type, std::shared_ptr<const CompiledFunction> function,
                      int64_t only) {
  PyRef self = checked(type->tp_alloc(type, 0));
  FunctionObject* o = object_of(self.get());
  new (&o->function) std::shared_ptr<const CompiledFunction>(std::move(function));
  o->call = call_function;
  o->only = only;
  return self.release();
}

PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* spec;
  if (!PyArg_ParseTuple(args, "O!:_CompiledFunction", &PyTuple_Type, &spec)) return nullptr;
  try {
    return make_object(type, std::make_shared<const CompiledFunction>(spec), -1);
  } catch (...) {
    return raise_current();
  }
}

// only(i): the same function, which gives output i alone.
PyObject* function_only(PyObject* self, PyObject* index) {
  try {
    int64_t i = integer(index), n = object_of(self)->function->outputs();
    FB_CHECK_INDEX(i >= 0 && i < n, "only: there is no output ", i, " of ", n);
    return make_object(FunctionType, object_of(self)->function, i);
  } catch (...) {
    return raise_current();
  }
}

void function_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  std::destroy_at(&object_of(self)->function);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef function_methods[] = {
    {"only", function_only, METH_O, "The same function, which gives one output alone."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

bool init_compiled_function(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A captured graph as the user wrote it, compiled.")},
      {Py_tp_new, reinterpret_cast<void*>(function_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_members, function_members},
      {Py_tp_methods, function_methods},
      {0, nullptr},
  };
  PyType_Spec spec = {"flambeau._C._CompiledFunction", sizeof(FunctionObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  FunctionType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return FunctionType && PyModule_AddObjectRef(module, "_CompiledFunction",
                                               reinterpret_cast<PyObject*>(FunctionType)) == 0;
}

}  // namespace flambeau::python
