#include "autograd/transpose.h"

#include "autograd/engine.h"
#include "autograd/grad_ops.h"
#include "autograd/meta.h"
#include "gen/ops.h"

namespace flambeau {

namespace {

// Results as a flat list, in the order in which a vjp takes cotangents.
Tensors flat_results(const Values& results) {
  Tensors out;
  for (const Value& v : results) {
    if (auto* x = v.get_if<Tensor>())
      out.push_back(*x);
    else if (auto* xs = v.get_if<Tensors>())
      out.insert(out.end(), xs->begin(), xs->end());
    else
      out.emplace_back();
  }
  return out;
}

}  // namespace

Tensors transposed_jvp(const OpDesc& op, const Values& args, const Tensors& tangents,
                       const Values& results) {
  FB_CHECK_IMPL(op.vjp, op.name,
                ": forward-mode differentiation is not available, the operation has no derivative");
  bool create_graph = modes.grad;
  GradGuard record(true);
  Tensors outputs = flat_results(results), cotangents(outputs.size());
  std::vector<Edge> edges;
  std::vector<size_t> places;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !is_inexact(outputs[i].dtype())) continue;
    // Any point will do, the vjp is linear there.
    cotangents[i] = grad_ops::zeros_for(outputs[i]);
    set_requires_grad(cotangents[i], true);
    edges.push_back(gradient_edge(cotangents[i]));
    places.push_back(i);
  }
  Tensors pulled = op.vjp(op, args, cotangents, results, ~0u), roots, seeds;
  for (size_t i = 0; i < pulled.size() && i < tangents.size(); ++i) {
    if (!tangents[i].defined() || !pulled[i].defined() || !pulled[i].requires_grad()) continue;
    roots.push_back(pulled[i]);
    seeds.push_back(tangents[i]);
  }
  Tensors out(outputs.size());
  if (roots.empty()) return out;
  Tensors pushed = run_backward(roots, seeds, /*keep_graph=*/create_graph, create_graph, edges,
                                /*accumulate=*/false);
  for (size_t i = 0; i < places.size(); ++i) out[places[i]] = pushed[i];
  return out;
}

Tensors jvp_of(const OpDesc& op, const Values& args, const Tensors& tangents,
               const Values& results) {
  if (!op.jvp) return transposed_jvp(op, args, tangents, results);
  Tensors found = op.jvp(op, args, tangents, results), outputs = flat_results(results);
  // A rule that does not look at arguments without tangents does not see their shapes and types.
  for (size_t i = 0; i < found.size() && i < outputs.size(); ++i) {
    if (!found[i].defined() || !outputs[i].defined() || op.kind != OpKind::Pointwise) continue;
    if (found[i].dtype() != outputs[i].dtype() && is_inexact(outputs[i].dtype()))
      found[i] = grad_ops::to_dtype(found[i], outputs[i].dtype());
    if (found[i].sizes() != outputs[i].sizes())
      found[i] = ops::expand(found[i], outputs[i].sizes());
  }
  return found;
}

}  // namespace flambeau
