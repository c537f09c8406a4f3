#include "autograd/anomaly.h"

#include <cstdio>

#include "autograd/engine.h"
#include "autograd/grad_ops.h"

namespace flambeau {

std::atomic<bool> Anomaly::enabled{false}, Anomaly::check_nan{true};
std::string (*python_trace)() = nullptr;

static void report_to_stderr(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
}
void (*anomaly_report)(const std::string&) = report_to_stderr;

std::unique_ptr<NodeTrace> make_trace() {
  auto trace = std::make_unique<NodeTrace>();
  if (python_trace) trace->text = python_trace();
  trace->parent = Ref<Node>(running_node());
  return trace;
}

void report_failure(const Node& node) {
  if (!node.trace) {
    anomaly_report(concat("Error detected in ", node.name(),
                          ". No forward pass information available. Enable detect anomaly "
                          "during forward pass for more information."));
    return;
  }
  anomaly_report(concat("Error detected in ", node.name(),
                        ". Traceback of forward call that caused the error:\n", node.trace->text));
  for (const Node* at = &node; at->trace && at->trace->parent;) {
    const Node* parent = at->trace->parent.get();
    std::string where = parent->trace ? parent->trace->text : "";
    anomaly_report(concat(
        "\n\nPrevious calculation was induced by ", parent->name(),
        where.empty() ? "."
                      : ". Traceback of forward call that induced the previous calculation:\n",
        where));
    at = parent;
  }
}

void check_no_nan(const Node& node, const Tensors& grads) {
  NoGradGuard no_grad;
  for (size_t i = 0; i < grads.size(); ++i)
    FB_CHECK(!grads[i].defined() || !grad_ops::has_nan(grads[i]), "Function '", node.name(),
             "' returned nan values in its ", i, "th output.");
}

}  // namespace flambeau
