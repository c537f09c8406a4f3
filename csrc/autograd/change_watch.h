// Who is told of changes in place: each watch on the thread's stack sees a tensor before it is
// changed, and may refuse (by throwing) or keep what is about to go. Every in-place form calls
// `check_inplace`, which calls these; a kernel that changes an argument besides calls them itself.
#pragma once

#include "core/tensor.h"
#include "dispatch/modes.h"

namespace flambeau {

class ChangeWatch {
 public:
  virtual ~ChangeWatch() = default;
  virtual void before(const Tensor& x, const char* op) = 0;
  ChangeWatch* outer = nullptr;
};

inline void push_watch(ChangeWatch& watch) noexcept {
  watch.outer = modes.watch;
  modes.watch = &watch;
}
// Takes it out, wherever it stands.
inline void remove_watch(ChangeWatch& watch) noexcept {
  for (ChangeWatch** at = &modes.watch; *at; at = &(*at)->outer)
    if (*at == &watch) {
      *at = watch.outer;
      return;
    }
}
[[gnu::noinline]] inline void notify_watches(const Tensor& x, const char* op) {
  for (ChangeWatch* w = modes.watch; w; w = w->outer) w->before(x, op);
}
inline void before_change(const Tensor& x, const char* op) {
  if (modes.watch) [[unlikely]]
    notify_watches(x, op);
}

}  // namespace flambeau
