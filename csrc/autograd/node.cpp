#include "autograd/node.h"

#include "autograd/sequence.h"

#include <vector>

#include "autograd/anomaly.h"
#include "autograd/meta.h"
#include "core/caching.h"

namespace flambeau {

// Memory: free lists per thread, by size
// ----------------------------------------------------------------------------

namespace {
constexpr size_t kStep = 32, kClasses = 24, kKept = 256;

struct BlockCache {
  struct Block {
    Block* next;
  };
  Block* free[kClasses] = {};
  size_t count[kClasses] = {};
  ~BlockCache() {
    for (Block* b : free)
      while (b) ::operator delete(std::exchange(b, b->next));
  }
};
// Thread-local memory of a library is scarce: a pointer is all that lies there.
thread_local constinit BlockCache* cache = nullptr;
thread_local constinit bool ended = false;
struct CacheOwner {
  ~CacheOwner() {
    delete std::exchange(cache, nullptr);
    ended = true;
  }
};
[[gnu::noinline]] bool make_cache() {
  if (ended) return false;
  static thread_local CacheOwner owner;
  (void)owner;
  cache = new BlockCache;
  return true;
}
}  // namespace

void* Node::operator new(size_t bytes) {
  size_t k = (bytes + kStep - 1) / kStep;
  if (k >= kClasses) return ::operator new(bytes);
  if (cache && cache->free[k]) [[likely]] {
    --cache->count[k];
    return std::exchange(cache->free[k], cache->free[k]->next);
  }
  return ::operator new(k* kStep);
}

void Node::operator delete(void* p, size_t bytes) noexcept {
  size_t k = (bytes + kStep - 1) / kStep;
  if (!kCaching || k >= kClasses || !(cache || make_cache()) || cache->count[k] >= kKept)
    return ::operator delete(p);
  cache->free[k] = new (p) BlockCache::Block{cache->free[k]};
  ++cache->count[k];
}

// Life
// ---------------------------------------------------------------------------------------------------------------

static std::atomic<uint64_t> recorded{0}, hook_ids{0};

uint64_t next_hook_id() noexcept {
  return hook_ids.fetch_add(1, std::memory_order_relaxed);
}

uint64_t next_sequence() noexcept {
  return recorded.load(std::memory_order_relaxed);
}

Node::Node() : sequence(recorded.fetch_add(1, std::memory_order_relaxed)) {
  if (Anomaly::enabled.load(std::memory_order_relaxed)) [[unlikely]]
    trace = make_trace();
}

bool Node::try_retain() const noexcept {
  uint32_t n = count_.load(std::memory_order_relaxed);
  while (n && !count_.compare_exchange_weak(n, n + 1, std::memory_order_acquire)) {
  }
  return n != 0;
}

// While a node is being destroyed on this thread, those that die with it queue up instead of
// recursing. A dead node needs its sequence number no more: it holds the next in the queue.
namespace {
thread_local constinit Node* dead = nullptr;
thread_local constinit bool destroying = false;
}  // namespace

void Node::destroy(Node* node) noexcept {
  if (destroying) {
    node->sequence = reinterpret_cast<uintptr_t>(dead);
    dead = node;
    return;
  }
  destroying = true;
  delete node;
  while (dead) {
    Node* next = dead;
    dead = reinterpret_cast<Node*>(static_cast<uintptr_t>(next->sequence));
    delete next;
  }
  destroying = false;
}

// Edges and outputs
// ----------------------------------------------------------------------------------------------------

void Node::add_next(const Tensor& input) {
  if (input.defined() && requires_grad(input))
    edges.push_back(gradient_edge(input));
  else
    edges.emplace_back();
}
void Node::add_next(const OptTensor& input) {
  if (input)
    add_next(*input);
  else
    edges.emplace_back();
}
void Node::add_next(const Tensors& inputs) {
  edges.reserve(edges.size() + static_cast<uint32_t>(inputs.size()));
  for (auto& t : inputs) add_next(t);
}
void Node::add_next(const OptTensors& inputs) {
  edges.reserve(edges.size() + static_cast<uint32_t>(inputs.size()));
  for (auto& t : inputs) add_next(t);
}

uint32_t Node::add_output(const Tensor& t) {
  OutputMeta& meta = outputs.emplace_back();
  if (t.defined()) {
    meta.sizes = t.sizes();
    meta.dtype = t.dtype();
    meta.device = t.device();
    meta.defined = true;
  }
  return outputs.size() - 1;
}

// Hooks
// ------------------------------------------------------------------------------------------------------------------

std::mutex& hooks_mutex() noexcept {
  static std::mutex mutex;
  return mutex;
}

NodeHooks& Node::hooks() {
  if (!hooks_) hooks_ = std::make_shared<NodeHooks>();
  return *hooks_;
}

HookHandle Node::add_hook(uint32_t output, TensorHook hook) {
  std::lock_guard guard(hooks_mutex());
  uint64_t id = next_hook_id();
  hooks().tensor_pre.emplace_back(id, output, std::move(hook));
  return {id, {}, hooks_};
}
HookHandle Node::add_pre_hook(NodePreHook hook) {
  std::lock_guard guard(hooks_mutex());
  uint64_t id = next_hook_id();
  hooks().pre.emplace_back(id, std::move(hook));
  return {id, {}, hooks_};
}
HookHandle Node::add_post_hook(NodePostHook hook) {
  std::lock_guard guard(hooks_mutex());
  uint64_t id = next_hook_id();
  hooks().post.emplace_back(id, std::move(hook));
  return {id, {}, hooks_};
}

// What is removed dies after the lock is given back: it may be the user's.
template <class List>
static bool remove_from(List& list, uint64_t id) {
  List removed;
  std::lock_guard guard(hooks_mutex());
  for (auto it = list.begin(); it != list.end(); ++it) {
    if (std::get<0>(*it) != id) continue;
    removed.push_back(std::move(*it));
    list.erase(it);
    return true;
  }
  return false;
}

void HookHandle::remove() const {
  if (auto h = leaf.lock()) (void)(remove_from(h->pre, id) || remove_from(h->post_accumulate, id));
  if (auto h = node.lock())
    (void)(remove_from(h->tensor_pre, id) || remove_from(h->pre, id) || remove_from(h->post, id));
}

// History
// ---------------------------------------------------------------------------------------------------------------

void set_history(const Tensor& result, const Ref<Node>& node) {
  uint32_t nr = node->add_output(result);
  if (!result.defined() || !is_inexact(result.dtype())) return;
  AutogradMeta& meta = materialize_meta(result);
  meta.grad_fn = node;
  meta.output_nr = nr;
  if (meta.view) [[unlikely]]
    meta.view->version = result.version();
  result.set_flag(kRequiresGrad);
}

void set_history(const Tensors& results, const Ref<Node>& node) {
  node->outputs.reserve(static_cast<uint32_t>(results.size()));
  for (auto& r : results) set_history(r, node);
}

namespace {
struct NotDifferentiable final : Node {
  std::string op;
  const char* name() const override { return "NotImplemented"; }
  Tensors apply(Tensors&&) override {
    fail(ErrorKind::NotImplemented, "derivative for ", op, " is not implemented");
  }
};
}  // namespace

Ref<Node> not_differentiable(const char* op) {
  auto node = new_node<NotDifferentiable>();
  node->op = op;
  return node;
}

}  // namespace flambeau
