#include "autograd/task.h"

#include <algorithm>

#include "autograd/grad_ops.h"
#include "profiler/events.h"

namespace flambeau {

// NodeMap
// -----------------------------------------------------------------------------------------------------------------

uint32_t NodeMap::find(const Node* node) const noexcept {
  if (slots_.empty()) return kNone;
  for (size_t i = home(node);; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].node == node) return slots_[i].index;
    if (!slots_[i].node) return kNone;
  }
}

uint32_t& NodeMap::insert(const Node* node) {
  if (2 * used_ >= slots_.size()) grow();
  size_t i = home(node);
  while (slots_[i].node && slots_[i].node != node) i = (i + 1) & (slots_.size() - 1);
  if (!slots_[i].node) {
    slots_[i] = {node, kNone};
    ++used_;
  }
  return slots_[i].index;
}

void NodeMap::grow() {
  std::vector<Slot> old(std::max<size_t>(2 * slots_.size(), 64), Slot{nullptr, kNone});
  old.swap(slots_);
  shift_ = 64 - __builtin_ctzll(slots_.size());
  used_ = 0;
  for (const Slot& s : old)
    if (s.node) insert(s.node) = s.index;
}

void NodeMap::clear() {
  if (!used_) return;
  used_ = 0;
  if (slots_.size() > 4096)
    slots_ = {};
  else
    std::fill(slots_.begin(), slots_.end(), Slot{nullptr, kNone});
}

// Discovery
// -----------------------------------------------------------------------------------------------------------------

uint32_t Task::enter(Node* node) {
  uint32_t& place = index_.insert(node);
  if (place != NodeMap::kNone) return place;
  uint32_t i = place = static_cast<uint32_t>(entries_.size());
  entries_.push_back({node, 0, 0, false, false, {}});
  discover(i);
  return i;
}

// Depth first, with a stack of its own; each edge is looked up once and counted.
void Task::discover(uint32_t root) {
  auto open = [&](uint32_t i) {
    entries_[i].first_edge = static_cast<uint32_t>(targets_.size());
    targets_.resize(targets_.size() + entries_[i].node->edges.size(), NodeMap::kNone);
    stack_.push_back({i, 0});
  };
  open(root);
  while (!stack_.empty()) {
    Frame& frame = stack_.back();
    Node* node = entries_[frame.entry].node;
    if (frame.edge == node->edges.size()) {
      if (restricted_) finished_.push_back(frame.entry);
      stack_.pop_back();
      continue;
    }
    uint32_t at = entries_[frame.entry].first_edge + frame.edge;
    Node* next = node->edges[frame.edge++].node.get();
    if (!next) continue;
    uint32_t& place = index_.insert(next);
    uint32_t to = place;
    if (to == NodeMap::kNone) {
      to = place = static_cast<uint32_t>(entries_.size());
      entries_.push_back({next, 0, 0, false, false, {}});
      open(to);
    }
    targets_[at] = to;
    ++entries_[to].dependencies;
  }
}

void Task::ask_for(const std::vector<Edge>& inputs) {
  for (size_t k = 0; k < inputs.size(); ++k) {
    uint32_t i = inputs[k].node ? index_.find(inputs[k].node.get()) : NodeMap::kNone;
    if (i == NodeMap::kNone) continue;
    if (settings.accumulate) {
      entries_[i].needed = true;
    } else {
      entries_[i].captured = true;
      captures_.push_back({i, inputs[k].nr, static_cast<uint32_t>(k)});
    }
  }
}

// A node is applied when it leads to one that is asked for.
void Task::find_needed() {
  for (uint32_t i : finished_) {
    Entry& e = entries_[i];
    for (uint32_t k = 0; k < e.node->edges.size() && !e.needed; ++k) {
      uint32_t to = targets_[e.first_edge + k];
      e.needed = to != NodeMap::kNone && (entries_[to].needed || entries_[to].captured);
    }
  }
}

bool Task::wants(const Node* node) const noexcept {
  return !restricted_ || reaches(node);
}

bool Task::reaches(const Node* node) const noexcept {
  uint32_t i = index_.find(node);
  return i != NodeMap::kNone && (entries_[i].needed || entries_[i].captured);
}

// Gradients on their way
// ------------------------------------------------------------------------------------------------------

// A gradient must have the shape and type of what it is the gradient of; broadcast dims are summed.
static void conform(Tensor& grad, const OutputMeta& meta, const Node* from, size_t i) {
  if (!meta.defined) return;
  if (grad.sizes() != meta.sizes) [[unlikely]] {
    bool fits = grad.sizes().size() >= meta.sizes.size();
    for (size_t k = 1; fits && k <= meta.sizes.size(); ++k) {
      int64_t want = meta.sizes[meta.sizes.size() - k],
              have = grad.sizes()[grad.sizes().size() - k];
      fits = want == have || want == 1;
    }
    FB_CHECK(fits, "Function ", from->name(), " returned an invalid gradient at index ", i,
             " - got ", grad.sizes(), " but expected shape compatible with ", meta.sizes);
    grad = grad_ops::sum_to(grad, meta.sizes);
  }
  if (grad.dtype() != meta.dtype) [[unlikely]]
    grad = grad_ops::to_dtype(grad, meta.dtype);
  FB_CHECK(grad.device() == meta.device || grad.device().type() == meta.device.type(), "Function ",
           from->name(), " returned an invalid gradient at index ", i, " - expected device ",
           meta.device, " but got ", grad.device());
}

void Task::give(uint32_t i, uint32_t nr, Tensor&& grad) {
  Entry& e = entries_[i];
  if (e.grads.empty()) e.grads.resize(std::max(e.node->outputs.size(), nr + 1));
  Tensor& sum = e.grads[nr];
  if (!sum.defined()) {
    sum = std::move(grad);
    return;
  }
  bool ours = !modes.grad && !intercepted() && sum->use_count() == 1 &&
              sum.storage()->use_count() == 1 && sum.dtype() == grad.dtype() && sum.is_dense();
  if (ours)
    grad_ops::add_(sum, grad);
  else
    sum = grad_ops::add(sum, grad);
}

void Task::ready(uint32_t i) {
  heap_.push_back({entries_[i].node->sequence, i});
  std::push_heap(heap_.begin(), heap_.end());
}

// Execution
// --------------------------------------------------------------------------------------------------------------------

// A hook may hand back other values, but not another kind of gradient.
static void check_hooked(const Tensor& before, const Tensor& after) {
  if (!before.defined() || !after.defined()) return;
  FB_CHECK(before.dtype() == after.dtype() && before.device().type() == after.device().type(),
           "a hook changed the type of a gradient: expected ", before.dtype(), " on ",
           before.device(), ", got ", after.dtype(), " on ", after.device());
  FB_CHECK(before.sizes() == after.sizes(), "a hook changed the shape of a gradient: expected ",
           before.sizes(), ", got ", after.sizes());
}

static void check_hooked(const Tensors& before, const Tensors& after) {
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i)
    check_hooked(before[i], after[i]);
}

static void call_hook(const TensorHook& hook, Tensor& grad) {
  if (!grad.defined()) return;
  Tensor changed = hook(grad);
  check_hooked(grad, changed);
  if (changed.defined()) grad = std::move(changed);
}

// Hooks of tensors, in order of registration; those that keep gradients see the outcome.
void Task::before(Entry& e, Tensors& grads) {
  if (TensorHooks* leaf = e.node->leaf_hooks()) [[unlikely]] {
    auto hooks = snapshot(leaf->pre);  // copies: a hook may remove itself
    for (auto& [id, hook] : hooks) call_hook(hook, grads[0]);
  }
  if (!e.node->hooks_) [[likely]]
    return;
  if (!e.node->hooks_->tensor_pre.empty()) {
    auto hooks = snapshot(e.node->hooks_->tensor_pre);
    for (auto& [id, nr, hook] : hooks)
      if (nr < grads.size()) call_hook(hook, grads[nr]);
  }
  auto keep = snapshot(e.node->hooks_->retain_grad);
  for (auto& [nr, hook] : keep)
    if (nr < grads.size()) call_hook(hook, grads[nr]);
}

namespace {
// One thread at a time applies a node: its saved tensors may go afterwards.
class NodeLock {
 public:
  explicit NodeLock(Node& node) : lock_(node.is_shareable() ? nullptr : &node.lock) {
    if (!lock_) return;
    uint32_t free = 0;
    if (lock_->compare_exchange_strong(free, 1, std::memory_order_acquire)) [[likely]]
      return;
    while (lock_->exchange(2, std::memory_order_acquire) != 0) lock_->wait(2);
  }
  ~NodeLock() {
    if (lock_ && lock_->exchange(0, std::memory_order_release) == 2) lock_->notify_one();
  }
  NodeLock(const NodeLock&) = delete;

 private:
  std::atomic<uint32_t>* lock_;
};
}  // namespace

// A node applied, as an event of the profile that is open.
[[gnu::noinline]] static Tensors apply_recorded(Node& node, Tensors&& grads) {
  profiler::Scope event(profiler::open(profiler::Kind::Node, node.name(), {},
                                       static_cast<int64_t>(node.sequence)));
  return node.apply(std::move(grads));
}

Tensors Task::apply(Node& node, Tensors&& grads) {
  NodeLock lock(node);
  Tensors out = profiler::on() ? apply_recorded(node, std::move(grads))
                               : node.apply(std::move(grads));
  if (!settings.keep_graph && !node.held) {
    node.release_saved();
    node.released = true;
  }
  return out;
}

void Task::execute(uint32_t i, Tensors& results) {
  Entry& e = entries_[i];
  Tensors grads = std::move(e.grads);
  size_t outputs = std::max<size_t>(e.node->outputs.size(), 1);
  if (grads.size() < outputs) grads.resize(outputs);
  current = e.node;
  before(e, grads);
  if (e.captured)
    for (const Capture& c : captures_)
      if (c.entry == i && c.nr < grads.size()) results[c.out] = grads[c.nr];
  if (!e.needed) return;
  Node& node = *e.node;
  if (!node.hooks_ || (node.hooks_->pre.empty() && node.hooks_->post.empty())) [[likely]] {
    distribute(e, apply(node, std::move(grads)));
    return;
  }
  auto pre = snapshot(node.hooks_->pre);
  for (auto& [id, hook] : pre) {
    Tensors changed = hook(grads);
    if (changed.empty()) continue;
    FB_CHECK(changed.size() == grads.size(), "a prehook of ", node.name(), " returned ",
             changed.size(), " gradients, expected ", grads.size());
    check_hooked(grads, changed);
    grads = std::move(changed);
  }
  auto post = snapshot(node.hooks_->post);
  Tensors arrived = post.empty() ? Tensors() : grads;
  Tensors made = apply(node, std::move(grads));
  if (made.size() < node.edges.size()) made.resize(node.edges.size());
  for (auto& [id, hook] : post) {
    Tensors changed = hook(made, arrived);
    check_hooked(made, changed);
    if (!changed.empty()) made = std::move(changed);
  }
  distribute(e, std::move(made));
}

void Task::execute_recorded(uint32_t i, Tensors& results) {
  const Node& node = *entries_[i].node;
  profiler::Scope event(profiler::open(profiler::Kind::Evaluation, node.name(), {},
                                       static_cast<int64_t>(node.sequence)));
  execute(i, results);
}

void Task::distribute(Entry& e, Tensors&& grads) {
  Node* node = e.node;
  if (Anomaly::enabled.load(std::memory_order_relaxed) && Anomaly::check_nan) [[unlikely]]
    check_no_nan(*node, grads);
  for (size_t k = node->edges.size(); k < grads.size(); ++k)
    FB_CHECK(!grads[k].defined(), node->name(),
             " returned an invalid number of gradients: expected ", node->edges.size(), ", got ",
             grads.size());
  for (uint32_t k = 0; k < node->edges.size(); ++k) {
    uint32_t to = targets_[e.first_edge + k];
    if (to == NodeMap::kNone) continue;
    Entry& next = entries_[to];
    bool wanted = !restricted_ || next.needed || next.captured;
    if (wanted && k < grads.size() && grads[k].defined()) {
      uint32_t nr = node->edges[k].nr;
      if (nr < next.node->outputs.size()) conform(grads[k], next.node->outputs[nr], node, k);
      give(to, nr, std::move(grads[k]));
    }
    if (--next.dependencies == 0 && wanted) ready(to);
  }
}

Tensors Task::run(const std::vector<Edge>& roots, Tensors&& cotangents,
                  const std::vector<Edge>& inputs, Settings asked) {
  settings = asked;
  restricted_ = !inputs.empty();
  ModeGuard grad_mode(&Modes::grad, settings.create_graph);
  for (auto& root : roots) enter(root.node.get());
  if (restricted_) {
    ask_for(inputs);
    find_needed();
  } else {
    for (Entry& e : entries_) e.needed = true;
  }
  Tensors results(inputs.size());
  std::vector<uint32_t> first;
  for (size_t k = 0; k < roots.size(); ++k) {
    uint32_t i = index_.find(roots[k].node.get());
    give(i, roots[k].nr, std::move(cotangents[k]));
    if (entries_[i].dependencies == 0 && std::find(first.begin(), first.end(), i) == first.end())
      first.push_back(i);
  }
  for (uint32_t i : first) ready(i);
  try {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      uint32_t i = heap_.back().entry;
      heap_.pop_back();
      if (profiler::on()) [[unlikely]]
        execute_recorded(i, results);
      else
        execute(i, results);
    }
  } catch (...) {
    if (Anomaly::enabled && current) report_failure(*current);
    throw;
  }
  current = nullptr;
  for (size_t k = 0; k < callbacks.size(); ++k) {  // one may add others
    auto f = std::move(callbacks[k]);
    f();
  }
  return results;
}

// Keeps what small graphs need again.
void Task::reset() {
  auto drop = [](auto& v) {
    v.clear();
    if (v.capacity() > 4096) v.shrink_to_fit();
  };
  drop(entries_);
  drop(targets_);
  drop(stack_);
  drop(finished_);
  drop(heap_);
  drop(captures_);
  callbacks.clear();
  index_.clear();
  current = nullptr;
}

}  // namespace flambeau
