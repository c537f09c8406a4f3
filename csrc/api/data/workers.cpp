// The threads of loaders: one queue of requests, one table of results by number. Knows no types of
// batches.
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "flambeau/data.h"

namespace flambeau::data {

struct Workers::State {
  struct Result {
    Value batch;
    std::exception_ptr error;
  };

  void run(const Make& make) {
    std::unique_lock lock(mutex);
    while (true) {
      job.wait(lock, [&] { return stopped || !jobs.empty(); });
      if (stopped) return;
      auto [number, request] = std::move(jobs.front());
      jobs.pop_front();
      ++busy;
      lock.unlock();
      Result made;
      try {
        made.batch = make(request);
      } catch (...) {
        made.error = std::current_exception();
      }
      request.reset();
      lock.lock();
      --busy;
      results.emplace(number, std::move(made));
      result.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable job, result;
  std::deque<std::pair<size_t, Value>> jobs;
  std::map<size_t, Result> results;
  std::vector<std::thread> threads;
  size_t busy = 0;
  bool stopped = false;
};

Workers::Workers() : state_(std::make_unique<State>()) {}
Workers::~Workers() {
  stop();
}
void Workers::start(Make make) {
  state_->threads.emplace_back(
      [state = state_.get(), make = std::move(make)] { state->run(make); });
}
void Workers::put(size_t number, Value request) {
  {
    std::lock_guard lock(state_->mutex);
    state_->jobs.emplace_back(number, std::move(request));
  }
  state_->job.notify_one();
}
Workers::Value Workers::take(std::optional<size_t> number,
                             const std::optional<std::chrono::milliseconds>& time) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  auto found = s.results.end();
  const auto there = [&] {
    found = number ? s.results.find(*number) : s.results.begin();
    return found != s.results.end();
  };
  if (time)
    FB_CHECK(s.result.wait_for(lock, *time, there), "Timeout in DataLoader queue while waiting ",
             "for next batch (timeout was ", time->count(), " ms)");
  else
    s.result.wait(lock, there);
  State::Result made = std::move(found->second);
  s.results.erase(found);
  lock.unlock();
  if (made.error) throw WorkerException(made.error);
  return std::move(made.batch);
}
void Workers::drop() {
  std::unique_lock lock(state_->mutex);
  state_->jobs.clear();
  state_->result.wait(lock, [&] { return state_->busy == 0; });
  state_->results.clear();
}
void Workers::stop() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopped = true;
    state_->jobs.clear();
  }
  state_->job.notify_all();
  for (std::thread& t : state_->threads) t.join();
  state_->threads.clear();
}

}  // namespace flambeau::data
