// The kernels of flambeau/ops/copying.py, over copy.h.
#include "gen/kernels.h"
#include "kernels/copy.h"

namespace flambeau::kernels {

void copy_(const Tensor& self, const Tensor& src, bool) {
  if (self.numel() == 0 || self.is_same(src)) return;
  if (self.shares_storage(src) && overlap(self, src) != Overlap::None) {
    if (overlap(self, src) == Overlap::Full) return;
    return copy(self, clone(src));
  }
  copy(self, src);
}

void copy_into(Tensor& out, const Tensor& self, std::optional<DType>, std::optional<MemoryFormat>,
               std::optional<Device>) {
  copy(out, self);
}

void fill_(const Tensor& self, const Scalar& value) {
  fill(self, value);
}
void fill_tensor_(const Tensor& self, const Tensor& value) {
  fill(self, value.item());
}

}  // namespace flambeau::kernels
