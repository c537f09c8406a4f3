// Views and changes in place, among autograd's own files: regeneration of a view's history.
#pragma once

#include "autograd/meta.h"

namespace flambeau {

// The node that a view's gradient comes from, made anew when its base changed in place since.
Ref<Node> view_grad_fn(const Tensor& t, AutogradMeta& meta);

}  // namespace flambeau
