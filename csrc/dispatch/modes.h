// Modes: the thread's mutable state that changes what an operation call does. The call path of a
// primitive reads two fields of it: `grad` when an input requires gradients, and `active`, which
// counts the interceptors and has a bit for autocast: operations that autocast does not know look
// for interceptors alone, so that it costs them nothing.
#pragma once

#include <array>
#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"

namespace flambeau {

class Interceptor;  // dispatch/op.h
class ChangeWatch;  // autograd/change_watch.h

// The default device before a `with device:` block, and the block around it.
struct EnteredDevice {
  Device before;
  EnteredDevice* outer;
};

// The implementations of attention, numbered as SDPBackend is, that a thread allows.
struct AttentionBackends {
  // Place p of each in the order of preference; ~p: it is not allowed.
  std::array<int8_t, 5> places{2, 0, 1, 3, 4};

  int64_t place(int64_t backend) const noexcept { return places[static_cast<size_t>(backend)]; }
  bool operator==(const AttentionBackends&) const = default;
};

struct Modes {
  bool grad = true;          // record for backward
  bool inference = false;    // inference_mode
  bool forward_grad = true;  // dual numbers are followed
  bool autocast_cache = true;
  bool multithreading = true;  // set_multithreading_enabled
  bool view_replay = false;
  DType autocast_dtype = DType::BFloat16;
  AttentionBackends attention;
  Device device;                            // of factories that are not told one
  EnteredDevice* entered_device = nullptr;  // innermost block
  uint32_t autocast_depth = 0;              // contexts that are open
  uint32_t active = 0;         // kAutocast, and kIntercept for each interceptor (0: the fast path)
  Interceptor* top = nullptr;  // innermost interceptor
  ChangeWatch* watch = nullptr;  // innermost of those who are told of changes in place
};

constexpr uint32_t kAutocast = 1, kIntercept = 2;

// Defined in one file, so that a process has one for a thread, however many libraries read it.
extern thread_local constinit Modes modes;

// Does an interceptor see calls?
inline bool intercepted() noexcept {
  return modes.active >= kIntercept;
}
inline bool autocast_enabled() noexcept {
  return modes.active & kAutocast;
}
inline void set_autocast_enabled(bool on) noexcept {
  modes.active = on ? modes.active | kAutocast : modes.active & ~kAutocast;
}

// Sets one field for a scope.
template <class T>
class ModeGuard {
 public:
  ModeGuard(T Modes::*field, T value) : field_(field), saved_(modes.*field) {
    modes.*field = value;
  }
  ~ModeGuard() { modes.*field_ = saved_; }
  ModeGuard(const ModeGuard&) = delete;

 private:
  T Modes::*field_;
  T saved_;
};

// Inside, factories that are not told a device make tensors on the CPU.
struct CpuFactories : ModeGuard<Device> {
  CpuFactories() : ModeGuard(&Modes::device, Device{}) {}
};
struct NoGradGuard : ModeGuard<bool> {
  NoGradGuard() : ModeGuard(&Modes::grad, false) {}
};
struct GradGuard : ModeGuard<bool> {
  explicit GradGuard(bool on) : ModeGuard(&Modes::grad, on) {}
};

// Inside, calls run in the dtypes they are given.
class NoAutocastGuard {
 public:
  NoAutocastGuard() : on_(autocast_enabled()) { set_autocast_enabled(false); }
  ~NoAutocastGuard() { set_autocast_enabled(on_); }
  NoAutocastGuard(const NoAutocastGuard&) = delete;

 private:
  bool on_;
};

}  // namespace flambeau
