#include "autograd/inplace_view.h"

#include "autograd/meta.h"
#include "autograd/node.h"

namespace flambeau {

void become_view(const Tensor& x, const char* op, Tensor (*view)(const Tensor&, const void*),
                 const void* arguments) {
  check_inplace(x, needs_grad(x), op);
  Tensor y = view(x, arguments);
  x->sizes = y->sizes;
  x->strides = y->strides;
  x->offset = y->offset;
  x->refresh();
  if (Ref<Node> node = grad_fn(y)) {
    AutogradMeta& meta = materialize_meta(x);
    meta.grad_fn = node;
    meta.output_nr = y->autograd->output_nr;
  }
  x.bump_version();
}

}  // namespace flambeau
