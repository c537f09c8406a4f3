// Anomaly mode: nodes remember where their forward call was, and a failing or NaN-producing node is
// reported with it. Knows no Python: the binding installs what a place is and how a report reaches
// the user.
#pragma once

#include "autograd/node.h"

namespace flambeau {

struct Anomaly {
  static std::atomic<bool> enabled, check_nan;
};
// Text of the current Python stack.
extern std::string (*python_trace)();
// Shows a report (a warning); standard error without a binding.
extern void (*anomaly_report)(const std::string& text);

std::unique_ptr<NodeTrace> make_trace();
// The node failed: reports its forward place and those of the nodes whose backward made it.
void report_failure(const Node& node);
// Error(Runtime) when a gradient that the node made is NaN somewhere.
void check_no_nan(const Node& node, const Tensors& grads);

}  // namespace flambeau
