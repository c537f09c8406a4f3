#include "autograd/engine.h"

#include <exception>
#include <memory>
#include <thread>

#include "autograd/grad_ops.h"
#include "autograd/meta.h"
#include "autograd/task.h"
#include "autograd/wanted.h"

namespace flambeau {

// What runs on this thread
// ------------------------------------------------------------------------------------------------

namespace {
constexpr int kDepth = 60;  // nested backwards that share one stack
thread_local constinit Task* running = nullptr;
thread_local constinit WantedAlias* aliases = nullptr;
thread_local constinit int depth = 0;
thread_local std::unique_ptr<Task> spare;  // keeps its memory from run to run
std::atomic<int64_t> tasks{0};

class Running {
 public:
  Running() : task_(spare ? std::move(spare) : std::make_unique<Task>()) {
    task_->outer = running;
    task_->id = tasks.fetch_add(1);
    running = task_.get();
    ++depth;
  }
  ~Running() {
    running = task_->outer;
    --depth;
    task_->reset();
    if (!spare) spare = std::move(task_);
  }
  Running(const Running&) = delete;
  Task& operator*() { return *task_; }

 private:
  std::unique_ptr<Task> task_;
};
}  // namespace

bool engine_running() noexcept {
  return running != nullptr;
}
Node* running_node() noexcept {
  return running ? running->current : nullptr;
}
int64_t running_task_id() noexcept {
  return running ? running->id : -1;
}
bool running_is_restricted() noexcept {
  return running && running->restricted();
}
bool running_keeps_graph() noexcept {
  return !running || running->settings.keep_graph;
}

void queue_callback(std::function<void()> f) {
  FB_CHECK(running, "Final callbacks can only be installed during backward pass.");
  running->callbacks.push_back(std::move(f));
}

bool will_execute(Node* node) {
  FB_CHECK(running, "_will_engine_execute_node: expected to be called during a backward pass");
  return running->reaches(node);
}

WantedAlias::WantedAlias(Node* node, Node* stand_in)
    : node(node), stand_in(stand_in), outer(aliases) {
  aliases = this;
}
WantedAlias::~WantedAlias() {
  aliases = outer;
}

bool Node::wanted(size_t i) const {
  if (!running) return true;
  const Node* node = edges[i].node.get();
  for (WantedAlias* a = aliases; a; a = a->outer)
    if (a->node == node) {
      if (!a->stand_in) return false;
      node = a->stand_in;
      break;
    }
  return running->wants(node);
}

// Deep nesting
// ---------------------------------------------------------------------------------------------------------------

static void on_thread(const std::function<void()>& f) {
  std::thread(f).join();
}
void (*run_elsewhere)(const std::function<void()>& f) = on_thread;

// The thread of the nested backward takes over modes and what is running, and gives modes back.
static Tensors continue_elsewhere(const std::function<Tensors()>& run) {
  Tensors results;
  std::exception_ptr error;
  Modes here = modes;
  Task* outer = running;
  run_elsewhere([&] {
    modes = here;
    running = outer;
    try {
      results = run();
    } catch (...) {
      error = std::current_exception();
    }
    running = nullptr;
  });
  if (error) std::rethrow_exception(error);
  return results;
}

// Entry points
// ---------------------------------------------------------------------------------------------------------------

Tensors run_backward(const std::vector<Edge>& roots, Tensors cotangents, bool keep_graph,
                     bool create_graph, const std::vector<Edge>& inputs, bool accumulate) {
  auto run = [&] {
    Running task;
    return (*task).run(roots, std::move(cotangents), inputs,
                       {keep_graph, create_graph, accumulate});
  };
  return depth >= kDepth ? continue_elsewhere(run) : run();
}

Tensor root_cotangent(const Tensor& root, const Tensor& given, size_t i, bool create_graph) {
  if (!given.defined()) {
    FB_CHECK(root.numel() == 1, "grad can be implicitly created only for scalar outputs");
    FB_CHECK(root.is_floating_point(),
             "grad can be implicitly created only for real scalar outputs but got ", root.dtype());
    return grad_ops::ones_for(root);
  }
  FB_CHECK(given.sizes() == root.sizes(), "Mismatch in shape: grad_output[", i,
           "] has a shape of torch.Size(", given.sizes(), ") and output[", i,
           "] has a shape of torch.Size(", root.sizes(), ").");
  FB_CHECK(given.is_complex() == root.is_complex(),
           "For complex Tensors, both grad_output and output are required to have the "
           "same dtype. Mismatch in dtype: grad_output[",
           i, "] has a dtype of ", given.dtype(), " and output[", i, "] has a dtype of ",
           root.dtype(), ".");
  if (given.dtype() == root.dtype()) return given;
  ModeGuard grad_mode(&Modes::grad, create_graph);
  return grad_ops::to_dtype(given, root.dtype());
}

Tensors run_backward(const Tensors& roots, const Tensors& cotangents, bool keep_graph,
                     bool create_graph, const std::vector<Edge>& inputs, bool accumulate) {
  std::vector<Edge> edges;
  Tensors grads;
  edges.reserve(roots.size());
  grads.reserve(roots.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    grads.push_back(root_cotangent(roots[i], i < cotangents.size() ? cotangents[i] : Tensor(), i,
                                   create_graph));
    edges.push_back(gradient_edge(roots[i]));
    FB_CHECK(edges.back().node, "element ", i,
             " of tensors does not require grad and does not have a grad_fn");
  }
  return run_backward(edges, std::move(grads), keep_graph, create_graph, inputs, accumulate);
}

}  // namespace flambeau
