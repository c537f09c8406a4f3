// What goes wrong between processes, and how long one waits: errors with their kind, deadlines, and
// the check that lets Ctrl-C end a wait. Knows no store and no engine.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

namespace flambeau::distributed {

enum class FaultKind { Backend, Network, Store, QueueEmpty };

// An error of the processes' joint work. The binding turns the kind into a Python class.
class Fault : public std::runtime_error {
 public:
  Fault(FaultKind kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
  FaultKind kind;
};

using Milliseconds = std::chrono::milliseconds;

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Milliseconds from_now) : at_(Clock::now() + clipped(from_now)) {}
  bool passed() const { return Clock::now() >= at_; }
  Milliseconds left() const {
    auto rest = std::chrono::ceil<Milliseconds>(at_ - Clock::now());
    return rest.count() > 0 ? rest : Milliseconds(0);
  }
  // As poll takes it, and never longer than `most`.
  int poll_ms(int most = 1000) const {
    auto rest = left().count();
    return static_cast<int>(rest < most ? rest : most);
  }

 private:
  // A century stands for ever, and does not overflow.
  static Milliseconds clipped(Milliseconds t) {
    constexpr Milliseconds kMost = std::chrono::hours(24 * 365 * 100);
    return t < Milliseconds(0) ? Milliseconds(0) : t > kMost ? kMost : t;
  }
  Clock::time_point at_;
};

// Called by waits that a signal has interrupted. Throws when the wait should end (Ctrl-C in
// Python). Set once, by the binding, before any wait.
extern void (*check_interrupt)();

std::string seconds_text(Milliseconds t);  // "250 ms", "30 s"

}  // namespace flambeau::distributed
