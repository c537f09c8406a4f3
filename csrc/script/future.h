// Tasks: calls that `fork` hands to a pool of threads, and what becomes of them.
//
// Note [Who runs a task]
// A task waits in the pool's queue until a thread of the pool takes it, or until somebody waits for
// it: then that thread runs it in place. So whoever waits, waits for a task that another thread is
// running, and forks in forks cannot block each other, however few threads there are. A sleeping
// thread is woken when the one that forked goes on to an operation, a call or another fork: a task
// that is waited for at once costs no switch.
#pragma once

#include <atomic>
#include <exception>
#include <memory>

#include "dispatch/modes.h"
#include "script/run.h"

namespace flambeau::script {

class Future final : public Box {
 public:
  static constexpr Kind kKind = Kind::Future;
  // Of a function, or of what the host runs under a number.
  Future(std::shared_ptr<const Program> program, const Code* code, uint32_t number, Values args);

  Value wait();  // the result; raises what the task raised
  bool done() const noexcept { return state_.load(std::memory_order_acquire) == State::Done; }
  // Runs it in this thread if nobody has begun.
  bool try_run() noexcept;

 private:
  enum class State : uint8_t { Queued, Running, Done };
  void run() noexcept;

  std::atomic<State> state_{State::Queued};
  std::shared_ptr<const Program> program_;
  const Code* code_;
  const uint32_t number_;
  Values args_;
  Modes modes_;
  Value result_;
  std::exception_ptr error_;
  std::vector<Passed> passed_;
};

// Forks a task; true where a sleeping thread should be woken before long, by `wake`.
bool fork(Ref<Future> task);
void wake();
// Makes the threads of the pool end what they run, and waits a moment for it.
void end_tasks() noexcept;

}  // namespace flambeau::script
