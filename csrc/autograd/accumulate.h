// AccumulateGrad: the node at a leaf. It adds what arrives to the leaf's `.grad`, which it makes in
// the leaf's layout.
#pragma once

#include "autograd/meta.h"

namespace flambeau {

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& leaf);
  ~AccumulateGrad() override;
  const char* name() const override { return "AccumulateGrad"; }
  Tensors apply(Tensors&& grads) override;
  bool is_accumulator() const override { return true; }
  bool is_shareable() const override {
    return true;
  }  // locks for itself: its hooks must run unlocked
  TensorHooks* leaf_hooks() override;
  void refresh();  // the leaf's shape may have changed since

  const Tensor leaf;

 private:
  std::mutex adding_;
};

// The hook that keeps the gradient of a result: adds it to the `.grad` behind the cell.
TensorHook retain_hook(std::shared_ptr<RetainCell> cell);

}  // namespace flambeau
