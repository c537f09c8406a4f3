// Views in place: x.t_(), x.unsqueeze_(0), … change what x stands for, and make its history that of
// the view.
#pragma once

#include "core/tensor.h"

namespace flambeau {

// x stands for what `view` gives of it; `op` is named where autograd refuses.
void become_view(const Tensor& x, const char* op, Tensor (*view)(const Tensor&, const void*),
                 const void* arguments);
template <class F>
void become_view(const Tensor& x, const char* op, const F& view) {
  become_view(
      x, op,
      [](const Tensor& t, const void* f) -> Tensor { return (*static_cast<const F*>(f))(t); },
      &view);
}

}  // namespace flambeau
