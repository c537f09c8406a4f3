// The engine: runs recorded nodes backwards, in order of decreasing sequence number, on the calling
// thread.
#pragma once

#include "autograd/anomaly.h"
#include "autograd/node.h"

namespace flambeau {

// Gradients of roots (with cotangents; an undefined one means ones for a one-element root) are
// accumulated into leaves, or, when `inputs` is given, returned for those alone (undefined:
// unused). With both `inputs` and `accumulate`, gradients go to the `.grad` of those alone.
Tensors run_backward(const Tensors& roots, const Tensors& cotangents, bool keep_graph,
                     bool create_graph, const std::vector<Edge>& inputs, bool accumulate);
// The same from places in the graph instead of tensors.
Tensors run_backward(const std::vector<Edge>& roots, Tensors cotangents, bool keep_graph,
                     bool create_graph, const std::vector<Edge>& inputs, bool accumulate);
// The cotangent of a root that was given none, or the given one checked against the root.
Tensor root_cotangent(const Tensor& root, const Tensor& given, size_t index, bool create_graph);

void queue_callback(std::function<void()> f);  // runs at the end of the running backward
bool engine_running() noexcept;                // on this thread
Node* running_node() noexcept;                 // null outside one
// Identifies the running backward (-1: none); counts up over the process.
int64_t running_task_id() noexcept;
bool running_keeps_graph() noexcept;
// Does the running backward go to some inputs only?
bool running_is_restricted() noexcept;
// Will the running backward execute this node? Error(Runtime) outside one.
bool will_execute(Node* node);

// Runs f on another thread and waits for it: a reentrant backward continues there before the stack
// is full. The binding installs one that gives up the GIL meanwhile.
extern void (*run_elsewhere)(const std::function<void()>& f);

}  // namespace flambeau
