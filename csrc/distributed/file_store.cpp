#include "distributed/file_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

namespace flambeau::distributed {

namespace {

// Counts the processes that have closed the store; no key of a user, for those begin with '/'.
const std::string kClosed = "closed";

std::string own(const std::string& key) {
  return "/" + key;
}
Strings own(const Strings& keys) {
  Strings out;
  for (auto& key : keys) out.push_back(own(key));
  return out;
}

void put(std::string& out, const std::string& text) {
  auto n = static_cast<uint32_t>(text.size());
  out.append(reinterpret_cast<const char*>(&n), sizeof n).append(text);
}
// Reads a text at `at`; false where the log ends before it does.
bool take(const std::string& log, size_t& at, std::string& out) {
  uint32_t n = 0;
  if (log.size() - at < sizeof n) return false;
  std::memcpy(&n, log.data() + at, sizeof n);
  if (log.size() - at - sizeof n < n) return false;
  out = log.substr(at + sizeof n, n);
  at += sizeof n + n;
  return true;
}

}  // namespace

class FileStore::Locked {
 public:
  explicit Locked(FileStore& store) : store_(store), lock_(store.mutex_) {
    fd_ = ::open(store.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) refuse("cannot open");
    try {
      while (::flock(fd_, LOCK_EX) != 0) {
        if (errno != EINTR) refuse("cannot lock");
        check_interrupt();
      }
      read();
    } catch (...) {
      ::close(fd_);
      throw;
    }
  }
  ~Locked() { ::close(fd_); }  // also unlocks
  Locked(const Locked&) = delete;
  KeyTable& operator*() { return store_.table_; }
  KeyTable* operator->() { return &store_.table_; }

  // Written in one piece: a process that dies leaves it whole, or an end that `read` cuts off.
  void write(char what, const std::string& key, const std::string& value) {
    std::string record(1, what);
    put(record, key);
    put(record, value);
    size_t done = 0;
    while (done < record.size()) {
      ssize_t n = ::pwrite(fd_, record.data() + done, record.size() - done,
                           store_.read_ + static_cast<int64_t>(done));
      if (n < 0 && errno != EINTR) refuse("cannot write to");
      if (n > 0) done += static_cast<size_t>(n);
    }
    store_.read_ += static_cast<int64_t>(record.size());
    apply(what, key, value);
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw Fault(FaultKind::Store, std::string("FileStore: ") + what + " file '" + store_.path_ +
                                      "': " + std::strerror(errno));
  }

  void read() {
    struct stat info;
    if (::fstat(fd_, &info) != 0) refuse("cannot look at");
    if (info.st_size < store_.read_)
      throw Fault(FaultKind::Store, "FileStore: file '" + store_.path_ +
                                        "' was made shorter or replaced while in use");
    std::string log(static_cast<size_t>(info.st_size - store_.read_), 0);
    size_t have = 0;
    while (have < log.size()) {
      ssize_t n = ::pread(fd_, log.data() + have, log.size() - have,
                          store_.read_ + static_cast<int64_t>(have));
      if (n == 0) break;
      if (n < 0 && errno != EINTR) refuse("cannot read");
      if (n > 0) have += static_cast<size_t>(n);
    }
    log.resize(have);
    size_t at = 0;
    while (at < log.size()) {
      size_t next = at + 1;
      std::string key, value;
      if (!take(log, next, key) || !take(log, next, value)) break;
      apply(log[at], key, value);
      at = next;
    }
    store_.read_ += static_cast<int64_t>(at);
    if (at < log.size() && ::ftruncate(fd_, store_.read_) != 0) refuse("cannot shorten");
  }

  void apply(char what, const std::string& key, const std::string& value) {
    KeyTable& table = store_.table_;
    if (what == 's') table.set(key, value);
    else if (what == 'a') table.append(key, value);
    else if (what == 'd') table.erase(key);
    else if (what == 'q') table.push(key, value);
    else if (what == 'o') table.pop(key);
    else throw Fault(FaultKind::Store, "FileStore: file '" + store_.path_ + "' is not of a store");
  }

  FileStore& store_;
  std::lock_guard<std::mutex> lock_;
  int fd_ = -1;
};

FileStore::FileStore(std::string path, int64_t world_size, Milliseconds timeout)
    : Store(timeout), path_(std::move(path)), world_size_(world_size), owner_(::getpid()) {
  Locked file(*this);
}

FileStore::~FileStore() {
  if (world_size_ < 1 || owner_ != ::getpid()) return;
  try {
    Locked file(*this);
    const std::string* before = file->find(kClosed);
    int64_t closed = (before ? number_of(kClosed, *before) : 0) + 1;
    file.write('s', kClosed, std::to_string(closed));
    if (closed >= world_size_) ::unlink(path_.c_str());
  } catch (const std::exception&) {
    // Nobody is left to be told; the file was taken away, or its folder.
  }
}

void FileStore::set(const std::string& key, const std::string& value) {
  Locked(*this).write('s', own(key), value);
}

std::string FileStore::get(const std::string& key) {
  std::string out;
  bool found = wait_until(timeout_, [&](KeyTable& table) {
    const std::string* value = table.find(own(key));
    if (value) out = *value;
    return value != nullptr;
  });
  if (!found) fail_waiting({key}, timeout_);
  return out;
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  Locked file(*this);
  KeyTable sum;
  if (const std::string* old = file->find(own(key))) sum.set(key, *old);
  int64_t out = sum.add(key, amount);
  file.write('s', own(key), std::to_string(out));
  return out;
}

bool FileStore::check(const Strings& keys) {
  return Locked(*this)->has_all(own(keys));
}

void FileStore::wait(const Strings& keys, Milliseconds timeout) {
  Strings all = own(keys), missing;
  bool found = wait_until(timeout, [&](KeyTable& table) {
    missing = table.missing(all);
    return missing.empty();
  });
  for (auto& key : missing) key.erase(0, 1);
  if (!found) fail_waiting(missing, timeout);
}

std::string FileStore::compare_set(const std::string& key, const std::string& expected,
                                   const std::string& desired) {
  Locked file(*this);
  const std::string* old = file->find(own(key));
  if (!old && !expected.empty()) return expected;
  if (old && *old != expected) return *old;
  file.write('s', own(key), desired);
  return desired;
}

bool FileStore::delete_key(const std::string& key) {
  Locked file(*this);
  bool there = file->find(own(key)) || file->length(own(key));
  if (there) file.write('d', own(key), "");
  return there;
}

int64_t FileStore::num_keys() {
  return static_cast<int64_t>(list_keys().size());
}

Strings FileStore::list_keys() {
  Strings out;
  for (auto& key : Locked(*this)->keys())
    if (key != kClosed) out.push_back(key.substr(1));
  return out;
}

void FileStore::append(const std::string& key, const std::string& value) {
  Locked(*this).write('a', own(key), value);
}

void FileStore::queue_push(const std::string& key, const std::string& value) {
  Locked(*this).write('q', own(key), value);
}

std::string FileStore::queue_pop(const std::string& key, bool block) {
  Deadline deadline(timeout_);
  for (;;) {
    bool there = wait_until(block ? deadline.left() : Milliseconds(0),
                            [&](KeyTable& table) { return table.length(own(key)) > 0; });
    if (!there && !block) fail_empty_queue(key);
    if (!there) fail_waiting({key}, timeout_);
    Locked file(*this);
    KeyTable before = *file;
    auto value = before.pop(own(key));
    if (!value) continue;  // another was faster
    file.write('o', own(key), "");
    return *value;
  }
}

int64_t FileStore::queue_len(const std::string& key) {
  return Locked(*this)->length(own(key));
}

// A file tells nobody that it has changed: looked at again after 1 ms, then up to every 20 ms.
template <class Ready>
bool FileStore::wait_until(Milliseconds timeout, Ready ready) {
  Deadline deadline(timeout);
  Milliseconds pause(1);
  for (;;) {
    if (Locked file(*this); ready(*file)) return true;
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(std::min(pause, deadline.left()));
    check_interrupt();
    pause = std::min(pause * 2, Milliseconds(20));
  }
}

}  // namespace flambeau::distributed
