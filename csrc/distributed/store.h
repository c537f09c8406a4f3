// Store: keys and bytes that the processes of a job share, on which they meet.
//
// Every kind has the same meaning: `get` and `wait` return once the keys are there, or raise a
// Fault that names the missing ones when the time is over. Numbers that `add` counts are stored as
// decimal text. Stores may be used from several threads. Knows no tensor and no process group.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "distributed/fault.h"

namespace flambeau::distributed {

using Strings = std::vector<std::string>;

class Store {
 public:
  explicit Store(Milliseconds timeout) : timeout_(timeout) {}
  virtual ~Store() = default;
  Store(const Store&) = delete;

  virtual void set(const std::string& key, const std::string& value) = 0;
  virtual std::string get(const std::string& key) = 0;
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  virtual bool check(const Strings& keys) = 0;
  virtual void wait(const Strings& keys, Milliseconds timeout) = 0;
  virtual std::string compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) = 0;
  virtual bool delete_key(const std::string& key) = 0;
  virtual int64_t num_keys() = 0;
  virtual Strings list_keys() = 0;
  virtual void append(const std::string& key, const std::string& value) = 0;
  virtual Strings multi_get(const Strings& keys);
  virtual void multi_set(const Strings& keys, const Strings& values);
  virtual void queue_push(const std::string& key, const std::string& value) = 0;
  virtual std::string queue_pop(const std::string& key, bool block) = 0;
  virtual int64_t queue_len(const std::string& key) = 0;

  Milliseconds timeout() const { return timeout_; }
  virtual void set_timeout(Milliseconds timeout) { timeout_ = timeout; }

 protected:
  Milliseconds timeout_;
};

// The keys themselves: what each operation does to them, without waiting or locking.
class KeyTable {
 public:
  void set(const std::string& key, std::string value) { values_[key] = std::move(value); }
  const std::string* find(const std::string& key) const;
  int64_t add(const std::string& key, int64_t amount);  // Fault(Store) where no number is
  bool has_all(const Strings& keys) const { return missing(keys).empty(); }
  Strings missing(const Strings& keys) const;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired);
  bool erase(const std::string& key);
  int64_t count() const { return static_cast<int64_t>(values_.size()); }
  Strings keys() const;
  void append(const std::string& key, const std::string& value) { values_[key] += value; }
  void push(const std::string& key, std::string value) { queues_[key].push_back(std::move(value)); }
  std::optional<std::string> pop(const std::string& key);
  int64_t length(const std::string& key) const;

 private:
  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::deque<std::string>> queues_;
};

// Of one process: threads share it.
class HashStore final : public Store {
 public:
  explicit HashStore(Milliseconds timeout) : Store(timeout) {}
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool check(const Strings& keys) override;
  void wait(const Strings& keys, Milliseconds timeout) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  Strings list_keys() override;
  void append(const std::string& key, const std::string& value) override;
  void queue_push(const std::string& key, const std::string& value) override;
  std::string queue_pop(const std::string& key, bool block) override;
  int64_t queue_len(const std::string& key) override;

 private:
  template <class Ready>
  bool wait_until(std::unique_lock<std::mutex>& lock, Milliseconds timeout, Ready ready);
  std::mutex mutex_;
  std::condition_variable changed_;
  KeyTable table_;
};

// The number that a value spells; Fault(Store) for other values.
int64_t number_of(const std::string& key, const std::string& value);
[[noreturn]] void fail_waiting(const Strings& missing, Milliseconds timeout);
[[noreturn]] void fail_empty_queue(const std::string& key);

}  // namespace flambeau::distributed
