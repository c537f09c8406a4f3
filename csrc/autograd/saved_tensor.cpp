#include "autograd/saved_tensor.h"

#include <string>

#include "autograd/forward_mode.h"
#include "autograd/meta.h"

namespace flambeau {

// Hooks of the thread
// ----------------------------------------------------------------------------------------------------

namespace {
struct SavedHooks {
  std::vector<PackHook> stack;
  std::string disabled;
};
thread_local std::unique_ptr<SavedHooks> saved_hooks;  // null until first used
thread_local constinit bool hooks_active = false;

SavedHooks& thread_hooks() {
  if (!saved_hooks) saved_hooks = std::make_unique<SavedHooks>();
  return *saved_hooks;
}
}  // namespace

void push_saved_tensor_hooks(PackHook pack) {
  SavedHooks& hooks = thread_hooks();
  FB_CHECK(hooks.disabled.empty(), hooks.disabled);
  hooks.stack.push_back(std::move(pack));
  hooks_active = true;
}

void pop_saved_tensor_hooks() {
  SavedHooks& hooks = thread_hooks();
  if (!hooks.stack.empty()) hooks.stack.pop_back();
  hooks_active = !hooks.stack.empty();
}

void disable_saved_tensor_hooks(const std::string& message) {
  SavedHooks& hooks = thread_hooks();
  FB_CHECK(message.empty() || hooks.stack.empty(), message);
  hooks.disabled = message;
}

std::string saved_tensor_hooks_disabled() {
  return saved_hooks ? saved_hooks->disabled : "";
}
bool saved_tensor_hooks_active() noexcept {
  return hooks_active;
}

// Saving
// ------------------------------------------------------------------------------------------------------------------

static void set_history(Tensor& x, Ref<Node> grad_fn, uint32_t output_nr) {
  AutogradMeta& meta = materialize_meta(x);
  meta.grad_fn = std::move(grad_fn);
  meta.output_nr = output_nr;
  x.set_flag(kRequiresGrad);
}

SavedTensor::SavedTensor(const Tensor& t, bool is_output, Node*, uint32_t output_nr, bool itself) {
  if (!t.defined()) return;
  FB_CHECK(!t.has_flag(kInference) || modes.inference,
           "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
           "inference mode in "
           "computation tracked by autograd. To work around this, you can make a clone to get a "
           "normal tensor and use it "
           "in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.");
  saved_ = true;
  is_output_ = is_output;
  version_ = t.version();
  output_nr_ = output_nr;
  AutogradMeta* meta = t->autograd;
  bool leaf = !is_output && meta && meta->requires_grad && !meta->grad_fn;
  if (!is_output && !leaf && requires_grad(t)) {
    grad_fn_ = grad_fn(t);
    output_nr_ = t->autograd->output_nr;
    requires_grad_ = bool(grad_fn_);
  }
  // A leaf is kept itself: it cannot change in place while its gradient is wanted. Anything else
  // might, and would then lead back to the node that saved it.
  itself_ = leaf || (itself && !is_output);
  if (hooks_active && !t.is_wrapped_number()) [[unlikely]] {
    if (leaf) {
      grad_fn_ = gradient_edge(t).node;
      output_nr_ = 0;
      requires_grad_ = true;
    }
    // A hook sees what the program has: a leaf itself, an input with its history. An output comes
    // without, for a hook that kept it would keep the node that it belongs to.
    data_ = itself_ ? t : alias(t);
    if (!itself_ && grad_fn_) set_history(data_, grad_fn_, output_nr_);
    pack(saved_hooks->stack.back());
    if (packed_) return;
    grad_fn_ = leaf ? Ref<Node>() : grad_fn_;
  }
  data_ = itself_ ? t : alias(t);
  if (!itself_ && dual_level() >= 0 && is_inexact(t.dtype())) [[unlikely]]
    packed_ = tangent_cell(t);
}

void SavedTensor::pack(const PackHook& hook) {
  NoGradGuard no_grad;
  uint32_t before = data_.version();
  packed_ = hook(data_);
  FB_CHECK(data_.version() == before,
           "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
           "to pack hook can not be modified by in-place operations as this can lead to unexpected "
           "side-effects. Please "
           "open an issue if you need to perform in-place operations on the input to a pack hook.");
  if (packed_) data_ = Tensor();
}

void SavedTensor::set_hook(const PackHook& hook) {
  FB_CHECK(saved_, "register_hooks: expected a saved tensor, got one with value None");
  FB_CHECK(data_.defined() || packed_,
           "register_hooks: the saved tensor has been freed; register hooks before backward");
  FB_CHECK(data_.defined(), "register_hooks: the saved tensor has hooks already");
  FB_CHECK(data_.version() == version_,
           "register_hooks: the saved tensor was changed in place since it was saved");
  if (itself_ && !is_output_) {
    Edge edge = gradient_edge(data_);
    grad_fn_ = edge.node;
    output_nr_ = edge.nr;
    requires_grad_ = bool(grad_fn_);
  }
  pack(hook);
}

void SavedTensor::reset(bool numbers_stay) {
  if (numbers_stay && data_.defined() && data_.is_wrapped_number()) return;
  data_ = Tensor();
  grad_fn_ = {};
  packed_.reset();
}

// Unpacking
// ---------------------------------------------------------------------------------------------------------------

// Beside data_, packed_ is the cell of its tangent. That of an output is filled only after the
// output was saved.
static Tensor with_tangent(Tensor x, std::shared_ptr<Tangent> tangent) {
  if (!has_live_tangent(*tangent)) return x;
  materialize_meta(x).tangent = std::move(tangent);
  x.set_flag(kHasTangent);
  return x;
}

Tensor SavedTensor::unpack(const Node& owner, bool history) const {
  if (!saved_) return {};
  FB_CHECK(data_.defined() || packed_,
           "Trying to backward through the graph a second time (or directly access saved tensors "
           "after they have already "
           "been freed). Saved intermediate values of the graph are freed when you call "
           ".backward() or autograd.grad(). "
           "Specify retain_graph=True if you need to backward through the graph a second time or "
           "if you need to access "
           "saved tensors after calling backward.");
  if (packed_ && !data_.defined()) {
    Tensor x = packed_->unpack();
    FB_CHECK(x.defined(), "an unpack hook of saved tensors returned no tensor");
    return history || modes.grad ? with_history(x, owner) : x;
  }
  if (data_.version() != version_) [[unlikely]]
    fail_version(owner);
  if (itself_) return data_;
  Tensor x = history || modes.grad ? with_history(data_, owner) : data_;
  if (!packed_) [[likely]]
    return x;
  return with_tangent(x.is_same(data_) ? alias(x) : x, std::static_pointer_cast<Tangent>(packed_));
}

Tensor SavedTensor::with_history(const Tensor& x, const Node& owner) const {
  bool output = is_output_ && is_inexact(x.dtype());
  if (!output && !requires_grad_) return x;
  Tensor out = alias(x);
  set_history(out, output ? Ref<Node>(const_cast<Node*>(&owner)) : grad_fn_, output_nr_);
  return out;
}

void SavedTensor::fail_version(const Node& owner) const {
  std::string source;
  if (grad_fn_ || is_output_) {
    source = grad_fn_ ? grad_fn_->name() : owner.name();
    source = source.substr(0, source.rfind("Backward"));
    source = concat(", which is output ", output_nr_, " of ", source, ",");
  }
  fail(ErrorKind::Runtime,
       "one of the variables needed for gradient computation has been modified by an inplace "
       "operation: [",
       "torch.", scalar_type_name(data_.dtype()), "Tensor ", data_.sizes(), "]", source,
       " is at version ", data_.version(), "; expected version ", version_,
       " instead. Hint: enable anomaly detection to find the operation that failed to "
       "compute its gradient, with torch.autograd.set_detect_anomaly(True).");
}

}  // namespace flambeau
