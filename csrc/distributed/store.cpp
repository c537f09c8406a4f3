#include "distributed/store.h"

#include <charconv>

namespace flambeau::distributed {

int64_t number_of(const std::string& key, const std::string& value) {
  int64_t out = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc() || end != value.data() + value.size())
    throw Fault(FaultKind::Store,
                "add: expected a number under key '" + key + "', got " +
                    std::to_string(value.size()) + " bytes that spell none");
  return out;
}

void fail_waiting(const Strings& missing, Milliseconds timeout) {
  std::string text = "wait timeout after " + std::to_string(timeout.count()) + "ms, keys: ";
  for (size_t i = 0; i < missing.size(); ++i) text += (i ? ", " : "") + missing[i];
  throw Fault(FaultKind::Store, text);
}

void fail_empty_queue(const std::string& key) {
  throw Fault(FaultKind::QueueEmpty, "queue_pop: queue '" + key + "' is empty");
}

Strings Store::multi_get(const Strings& keys) {
  Strings out;
  for (auto& key : keys) out.push_back(get(key));
  return out;
}

void Store::multi_set(const Strings& keys, const Strings& values) {
  for (size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
}

const std::string* KeyTable::find(const std::string& key) const {
  auto at = values_.find(key);
  return at == values_.end() ? nullptr : &at->second;
}

int64_t KeyTable::add(const std::string& key, int64_t amount) {
  const std::string* old = find(key);
  int64_t sum = 0;
  if (__builtin_add_overflow(old ? number_of(key, *old) : 0, amount, &sum))
    throw Fault(FaultKind::Store, "add: the number under key '" + key + "' gets too large");
  values_[key] = std::to_string(sum);
  return sum;
}

Strings KeyTable::missing(const Strings& keys) const {
  Strings out;
  for (auto& key : keys)
    if (!find(key)) out.push_back(key);
  return out;
}

std::string KeyTable::compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) {
  const std::string* old = find(key);
  if (!old && !expected.empty()) return expected;
  if (!old || *old == expected) return values_[key] = desired;
  return *old;
}

bool KeyTable::erase(const std::string& key) {
  bool queue = queues_.erase(key) > 0;
  return values_.erase(key) > 0 || queue;
}

Strings KeyTable::keys() const {
  Strings out;
  for (auto& entry : values_) out.push_back(entry.first);
  return out;
}

std::optional<std::string> KeyTable::pop(const std::string& key) {
  auto at = queues_.find(key);
  if (at == queues_.end()) return std::nullopt;
  std::string value = std::move(at->second.front());
  at->second.pop_front();
  if (at->second.empty()) queues_.erase(at);
  return value;
}

int64_t KeyTable::length(const std::string& key) const {
  auto at = queues_.find(key);
  return at == queues_.end() ? 0 : static_cast<int64_t>(at->second.size());
}

// Wakes once in a while: a signal does not interrupt a condition variable.
template <class Ready>
bool HashStore::wait_until(std::unique_lock<std::mutex>& lock, Milliseconds timeout, Ready ready) {
  Deadline deadline(timeout);
  while (!ready()) {
    if (deadline.passed()) return false;
    changed_.wait_for(lock, Milliseconds(deadline.poll_ms(200)));
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  return true;
}

void HashStore::set(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  table_.set(key, value);
  changed_.notify_all();
}

std::string HashStore::get(const std::string& key) {
  std::unique_lock lock(mutex_);
  if (!wait_until(lock, timeout_, [&] { return table_.find(key); })) fail_waiting({key}, timeout_);
  return *table_.find(key);
}

int64_t HashStore::add(const std::string& key, int64_t amount) {
  std::lock_guard lock(mutex_);
  int64_t sum = table_.add(key, amount);
  changed_.notify_all();
  return sum;
}

bool HashStore::check(const Strings& keys) {
  std::lock_guard lock(mutex_);
  return table_.has_all(keys);
}

void HashStore::wait(const Strings& keys, Milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!wait_until(lock, timeout, [&] { return table_.has_all(keys); }))
    fail_waiting(table_.missing(keys), timeout);
}

std::string HashStore::compare_set(const std::string& key, const std::string& expected,
                                   const std::string& desired) {
  std::lock_guard lock(mutex_);
  std::string value = table_.compare_set(key, expected, desired);
  changed_.notify_all();
  return value;
}

bool HashStore::delete_key(const std::string& key) {
  std::lock_guard lock(mutex_);
  return table_.erase(key);
}

int64_t HashStore::num_keys() {
  std::lock_guard lock(mutex_);
  return table_.count();
}

Strings HashStore::list_keys() {
  std::lock_guard lock(mutex_);
  return table_.keys();
}

void HashStore::append(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  table_.append(key, value);
  changed_.notify_all();
}

void HashStore::queue_push(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  table_.push(key, value);
  changed_.notify_all();
}

std::string HashStore::queue_pop(const std::string& key, bool block) {
  std::unique_lock lock(mutex_);
  auto value = table_.pop(key);
  if (!value && !block) fail_empty_queue(key);
  if (!value && !wait_until(lock, timeout_, [&] { return bool(value = table_.pop(key)); }))
    fail_waiting({key}, timeout_);
  return *value;
}

int64_t HashStore::queue_len(const std::string& key) {
  std::lock_guard lock(mutex_);
  return table_.length(key);
}

}  // namespace flambeau::distributed
