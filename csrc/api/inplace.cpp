// Methods that change what a tensor stands for: views in place, resize_, set_.
#include "flambeau/flambeau.h"

#include "autograd/inplace_view.h"
#include "gen/ops.h"

namespace flambeau {

static Tensor& itself(const Tensor& x) {
  return const_cast<Tensor&>(x);
}

Tensor& Tensor::t_() const {
  become_view(*this, "t_", [](const Tensor& x) { return ops::t(x); });
  return itself(*this);
}
Tensor& Tensor::transpose_(int64_t dim0, int64_t dim1) const {
  become_view(*this, "transpose_", [&](const Tensor& x) { return ops::transpose(x, dim0, dim1); });
  return itself(*this);
}
Tensor& Tensor::unsqueeze_(int64_t dim) const {
  become_view(*this, "unsqueeze_", [&](const Tensor& x) { return ops::unsqueeze(x, dim); });
  return itself(*this);
}
Tensor& Tensor::squeeze_() const {
  become_view(*this, "squeeze_", [](const Tensor& x) { return ops::squeeze(x); });
  return itself(*this);
}
Tensor& Tensor::squeeze_(IntArrayRef dim) const {
  become_view(*this, "squeeze_", [&](const Tensor& x) { return ops::squeeze(x, dim.ints()); });
  return itself(*this);
}
Tensor& Tensor::as_strided_(IntArrayRef size, IntArrayRef stride,
                            std::optional<int64_t> storage_offset) const {
  become_view(*this, "as_strided_", [&](const Tensor& x) {
    return ops::as_strided(x, size.ints(), stride.ints(), storage_offset);
  });
  return itself(*this);
}

Tensor& Tensor::resize_(IntArrayRef size) const {
  FB_CHECK(!requires_grad(), "cannot resize variables that require grad");
  resize(*this, size.ints());
  return itself(*this);
}
Tensor& Tensor::resize_as_(const Tensor& other) const {
  return resize_(other.sizes());
}
Tensor& Tensor::set_() const {
  return set_(ops::empty(Ints{0}, dtype()));
}
Tensor& Tensor::set_(const Tensor& source) const {
  FB_CHECK(source.defined(), "set_: the source is undefined");
  FB_CHECK(dtype() == source.dtype(), "set_: expected a source of dtype ", dtype(), ", got ",
           source.dtype());
  FB_CHECK(!requires_grad() || is_leaf(),
           "set_: expected a leaf or a tensor that does not require grad");
  flambeau::set_data(*this, source);
  return itself(*this);
}

}  // namespace flambeau
