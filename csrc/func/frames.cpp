#include "func/frames.h"

#include <algorithm>

#include "autograd/change_watch.h"
#include "func/vmap.h"

namespace flambeau::func {

namespace {
thread_local constinit Frame* innermost = nullptr;
}

class Frame final : public ChangeWatch {
 public:
  explicit Frame(const Tensors& given) : age(begin_storage_age()) {
    for (const Tensor& x : given) own.push_back(x.storage());
  }

  void before(const Tensor& x, const char* op) override {
    if (x.storage()->age() >= age) return;
    if (std::find(own.begin(), own.end(), x.storage()) != own.end()) return;
    fail(ErrorKind::Runtime, op,
         ": expected a tensor that the transformed function made or was given, got one that it "
         "captured: grad, vjp and jvp cannot mutate a captured Tensor; pass it as an argument");
  }

  const uint64_t age;
  std::vector<Ref<Storage>> own;
  Frame* around = nullptr;
};

Frame* enter_frame(const Tensors& given) {
  auto* frame = new Frame(given);
  frame->around = std::exchange(innermost, frame);
  push_watch(*frame);
  return frame;
}

void leave_frame(Frame* frame) noexcept {
  remove_watch(*frame);
  for (Frame** at = &innermost; *at; at = &(*at)->around)
    if (*at == frame) {
      *at = frame->around;
      break;
    }
  delete frame;
}

bool is_made_inside(const Tensor& x) noexcept {
  return innermost && x.storage()->age() >= innermost->age;
}

bool inside_transform() noexcept {
  return innermost || innermost_level();
}

void refuse_inside(const char* what, const char* instead) {
  FB_CHECK(!inside_transform(), what,
           " was called inside of a function that a transform (vmap, grad, vjp, jvp) runs, which "
           "is not supported; ",
           instead);
}

}  // namespace flambeau::func
