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
#include <functional>
#include <memory>

#include "dispatch/modes.h"
#include "script/run.h"

namespace flambeau::script {

// A value that arrives later: of a task, or of whoever owns the program.
class Future : public Box {
 public:
  static constexpr Kind kKind = Kind::Future;
  Future() : Box(kKind) {}
  virtual Value wait() = 0;  // the value, or its error
  virtual bool done() const = 0;
};

class Task final : public Future {
 public:
  // Of a function, or of what the host runs under a number.
  Task(std::shared_ptr<const Program> program, const Code* code, uint32_t number, Values args);
  ~Task() override;

  Value wait() override;
  bool done() const noexcept override {
    return state_.load(std::memory_order_acquire) == State::Done;
  }
  void join();  // `wait` without the outcome
  // Runs it in this thread if nobody has begun.
  bool try_run() noexcept;
  // Calls `f`, which throws nothing, once the task is done: in the thread that has run it, or now.
  void when_done(std::function<void()> f);
  std::shared_ptr<void> face;  // what stands for it where it has gone out; of the program's owner

 private:
  enum class State : uint8_t { Queued, Running, Done };
  struct Watcher {
    std::function<void()> call;
    Watcher* next;
  };
  // In the place of watchers: they have been told.
  static Watcher* closed() noexcept {
    static Watcher none{};
    return &none;
  }
  void run() noexcept;
  void tell_watchers() noexcept;

  std::atomic<State> state_{State::Queued};
  std::atomic<Watcher*> watchers_{nullptr};  // the last one first
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
bool fork(Ref<Task> task);
void wake();
// Makes the threads of the pool end what they run, and waits a moment for it.
void end_tasks() noexcept;

}  // namespace flambeau::script
