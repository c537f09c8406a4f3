#include "script/future.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "autograd/node.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/thread_budget.h"

namespace flambeau::script {

namespace {

// Threads that take tasks in the order in which they came. Never destroyed: they may run as long
// as the process does.
class Pool {
 public:
  static Pool& get() {
    static Pool* const pool = [] {
      auto* made = new Pool;
      ::pthread_atfork(nullptr, nullptr, [] { Pool::get().forget(); });
      std::atexit([] { end_tasks(); });
      return made;
    }();
    return *pool;
  }

  bool add(Ref<Task> task) {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    return sleeping_ > 0 || threads_ < size();
  }
  // Takes back a task that is run elsewhere.
  void take_back(const Task* task) {
    std::lock_guard lock(mutex_);
    if (!tasks_.empty() && tasks_.back().get() == task) {
      tasks_.pop_back();
      return;
    }
    // The others that were run meanwhile are at the front sooner or later.
    while (!tasks_.empty() && tasks_.front()->done()) tasks_.pop_front();
  }
  void wake() {
    std::unique_lock lock(mutex_);
    if (tasks_.empty() || ending_) return;
    if (sleeping_ > 0) {
      lock.unlock();
      work_.notify_one();
    } else if (threads_ < size()) {
      ++threads_;
      try {
        std::thread([this] { serve(); }).detach();
      } catch (const std::system_error&) {
        --threads_;  // whoever waits runs the tasks
      }
    }
  }

  // Waits until a task is done, asking now and then whether to go on.
  void wait(const Task& task) {
    competing_threads.fetch_sub(1, std::memory_order_relaxed);
    struct Back {
      ~Back() { competing_threads.fetch_add(1, std::memory_order_relaxed); }
    } back;
    std::unique_lock lock(mutex_);
    ++waiting_;
    struct Gone {
      int& n;
      ~Gone() { --n; }
    } gone{waiting_};
    while (!task.done()) {
      if (finished_.wait_for(lock, std::chrono::milliseconds(50)) == std::cv_status::timeout &&
          poll) {
        lock.unlock();
        try {
          poll();
        } catch (...) {
          lock.lock();
          throw;
        }
        lock.lock();
      }
    }
  }
  void tell() {
    std::lock_guard lock(mutex_);
    if (waiting_ > 0) finished_.notify_all();
  }

  void end() noexcept {
    std::unique_lock lock(mutex_);
    ending_ = true;
    stop_runs = running_ > 0;
    tasks_.clear();
    finished_.wait_for(lock, std::chrono::seconds(1), [this] { return running_ == 0; });
    stop_runs = false;
  }

 private:
  static int size() noexcept {
    static const int cpus = std::max(1, available_cpus());  // which takes a look at files
    int n = num_interop_threads_set();
    return n ? n : cpus;
  }
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++sleeping_;
      work_.wait(lock, [this] { return !tasks_.empty() && !ending_; });
      --sleeping_;
      Ref<Task> task = std::move(tasks_.front());
      tasks_.pop_front();
      ++running_;
      // The next thread is woken by this one: who forks need not.
      bool more = !tasks_.empty() && sleeping_ > 0;
      lock.unlock();
      if (more) work_.notify_one();
      competing_threads.fetch_add(1, std::memory_order_relaxed);
      task->try_run();
      task = nullptr;
      competing_threads.fetch_sub(1, std::memory_order_relaxed);
      lock.lock();
      if (--running_ == 0 && ending_) finished_.notify_all();
    }
  }
  // In a process that was forked the threads are gone.
  void forget() {
    new (&mutex_) std::mutex;
    new (&work_) std::condition_variable;
    new (&finished_) std::condition_variable;
    threads_ = sleeping_ = running_ = waiting_ = 0;
    competing_threads = 1;
  }

  std::mutex mutex_;
  std::condition_variable work_, finished_;
  std::deque<Ref<Task>> tasks_;
  int threads_ = 0, sleeping_ = 0, running_ = 0, waiting_ = 0;
  bool ending_ = false;
};

}  // namespace

Task::Task(std::shared_ptr<const Program> program, const Code* code, uint32_t number,
               Values args)
    : program_(std::move(program)),
      code_(code),
      number_(number),
      args_(std::move(args)),
      modes_(modes) {
  modes_.entered_device = nullptr;  // a block of the thread that forked
}

void Task::run() noexcept {
  struct Restore {
    Modes before = modes;
    ~Restore() { modes = before; }
  } restore;
  modes = modes_;
  try {
    if (code_) {
      Invocation call(*code_);
      for (size_t i = 0; i < args_.size(); ++i) call[i] = std::move(args_[i]);
      result_ = call.run();
    } else {
      std::vector<const Value*> places;
      for (const Value& v : args_) places.push_back(&v);
      program_->host->call(number_, places.data(), places.size(), &result_);
    }
  } catch (...) {
    error_ = std::current_exception();
    passed_ = take_passed();
  }
  args_.clear();
}

bool Task::try_run() noexcept {
  State queued = State::Queued;
  if (!state_.compare_exchange_strong(queued, State::Running, std::memory_order_acq_rel))
    return false;
  run();
  program_ = nullptr;
  state_.store(State::Done, std::memory_order_release);
  Pool::get().tell();
  tell_watchers();
  return true;
}

Task::~Task() {
  if (watchers_.load(std::memory_order_relaxed) == closed()) return;
  for (Watcher* w = watchers_.load(std::memory_order_acquire); w;)
    delete std::exchange(w, w->next);
}

void Task::when_done(std::function<void()> f) {
  auto* w = new Watcher{std::move(f), watchers_.load(std::memory_order_acquire)};
  do {
    if (w->next == closed()) {
      std::unique_ptr<Watcher> own(w);
      return w->call();
    }
  } while (!watchers_.compare_exchange_weak(w->next, w, std::memory_order_acq_rel));
}

void Task::tell_watchers() noexcept {
  Watcher *w = watchers_.exchange(closed(), std::memory_order_acq_rel), *first = nullptr;
  while (w) w = std::exchange(w->next, std::exchange(first, w));
  while (first) {
    std::unique_ptr<Watcher> own(std::exchange(first, first->next));
    own->call();
  }
}

void Task::join() {
  if (done()) return;
  if (try_run())
    Pool::get().take_back(this);
  else
    Pool::get().wait(*this);
}

Value Task::wait() {
  join();
  if (error_) {
    passed_through(passed_);
    std::rethrow_exception(error_);
  }
  return result_;
}

bool fork(Ref<Task> task) {
  // What watches the calls of a thread does not see those of another.
  if (intercepted() || modes.watch || saved_tensor_hooks_active()) return task->try_run(), false;
  return Pool::get().add(std::move(task));
}

void wake() {
  Pool::get().wake();
}

void end_tasks() noexcept {
  Pool::get().end();
}

}  // namespace flambeau::script
