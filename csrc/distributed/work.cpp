#include "distributed/work.h"

namespace flambeau::distributed {

void Work::finish() {
  end(std::nullopt);
}

void Work::fail(FaultKind kind, const std::string& message) {
  end(Fault(kind, message));
}

void Work::end(std::optional<Fault> fault) {
  std::vector<std::function<void()>> calls;
  {
    std::lock_guard lock(mutex_);
    if (done_) return;
    fault_ = std::move(fault);
    tensors_.clear();
    done_ = true;
    calls.swap(calls_);
    ended_.notify_all();
  }
  for (auto& call : calls) call();
}

bool Work::done() const {
  std::lock_guard lock(mutex_);
  return done_;
}

std::optional<Fault> Work::fault() const {
  std::lock_guard lock(mutex_);
  return fault_;
}

void Work::wait(std::optional<Milliseconds> timeout) const {
  Deadline deadline(timeout.value_or(std::chrono::hours(24 * 365)));
  std::unique_lock lock(mutex_);
  while (!done_) {
    if (deadline.passed())
      throw Fault(FaultKind::Backend,
                  what_ + ": not done after " + seconds_text(*timeout) + "; it goes on");
    // A signal does not wake a condition variable.
    ended_.wait_for(lock, Milliseconds(deadline.poll_ms(200)));
    if (done_) break;
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  if (fault_) throw *fault_;
}

void Work::then(std::function<void()> call) {
  {
    std::lock_guard lock(mutex_);
    if (!done_) {
      calls_.push_back(std::move(call));
      return;
    }
  }
  call();
}

}  // namespace flambeau::distributed
