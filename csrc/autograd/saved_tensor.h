// SavedTensor: a tensor kept for the derivative, and the saved-tensor hooks that may pack it away.
// Invariant: a node never reaches itself through what it saved, whatever becomes of the saved
// tensor later, so graphs are free of cycles.
#pragma once

#include <functional>
#include <memory>

#include "core/tensor.h"

namespace flambeau {

class Node;

// What a pack hook made of a tensor, and how to get it back. `object` is the hook's own (a Python
// object).
struct Packed {
  virtual ~Packed() = default;
  virtual Tensor unpack() = 0;
};
// pack(t) keeps t in its own way; null: as usual.
using PackHook = std::function<std::shared_ptr<Packed>(const Tensor& t)>;
void push_saved_tensor_hooks(PackHook pack);
void pop_saved_tensor_hooks();
// Refuses hooks for this thread while they would be wrong (a transform runs); "" allows them.
void disable_saved_tensor_hooks(const std::string& message);
std::string saved_tensor_hooks_disabled();
bool saved_tensor_hooks_active() noexcept;

// Outputs are kept without their history (no cycle) and get it back on unpacking; other tensors
// with it. Unpacking checks the version counter: a change in place since then is an error that
// names the tensor.
class SavedTensor {
 public:
  SavedTensor() = default;
  // `itself`: the very tensor comes back, not an alias (what users save keeps its identity and
  // class).
  SavedTensor(const Tensor& t, bool is_output, Node* owner = nullptr, uint32_t output_nr = 0,
              bool itself = false);
  SavedTensor(const OptTensor& t, bool is_output, Node* owner = nullptr, uint32_t output_nr = 0)
      : SavedTensor(t ? *t : Tensor(), is_output, owner, output_nr) {}
  // Undefined if none was saved; Error(Runtime) after release. The history is put back when it can
  // matter: in grad mode, or when asked for.
  Tensor unpack(const Node& owner, bool history = false) const;
  bool saved() const noexcept { return saved_; }
  // Hands what is kept to a hook now. Error(Runtime) where there is nothing, or a hook has it.
  void set_hook(const PackHook& hook);
  // A number that stands for a tensor holds no memory worth freeing: it may stay.
  void reset(bool numbers_stay = false);

 private:
  Tensor with_history(const Tensor& x, const Node& owner) const;
  void pack(const PackHook& hook);
  [[noreturn]] void fail_version(const Node& owner) const;

  Tensor data_;        // an alias without history, or a leaf itself
  Ref<Node> grad_fn_;  // of a saved input
  uint32_t version_ = 0, output_nr_ = 0;
  bool is_output_ = false, saved_ = false, itself_ = false, requires_grad_ = false;
  std::shared_ptr<Packed> packed_;  // result of a saved-tensor pack hook
};

}  // namespace flambeau
