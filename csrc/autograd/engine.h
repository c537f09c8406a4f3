// The engine: runs recorded nodes backwards, in order of decreasing sequence number, on the calling thread.
#pragma once

#include "autograd/node.h"

namespace flambeau {

// Gradients of roots (with cotangents; an undefined one means ones for a one-element root) are accumulated into leaves,
// or, when `inputs` is given, returned for those alone (undefined: unused).
Tensors run_backward(const Tensors& roots, const Tensors& cotangents, bool keep_graph, bool create_graph,
                     const std::vector<Edge>& inputs, bool accumulate);

void queue_callback(std::function<void()> f);     // runs at the end of the running backward
bool engine_running() noexcept;                   // on this thread

// Anomaly mode: nodes remember the forward call's place; NaN in a gradient is an error that shows it.
struct Anomaly { static std::atomic<bool> enabled, check_nan; };
// The binding installs this: text of the current Python stack.
extern std::string (*python_trace)();

}  // namespace flambeau
