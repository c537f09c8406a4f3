// FileStore: a log of changes in a file that all processes see, locked while it is read or written.
// Each process keeps the keys in memory and reads what others have added since. When as many
// processes as were announced have closed the store, the last one removes the file.
#pragma once

#include <sys/types.h>

#include "distributed/store.h"

namespace flambeau::distributed {

class FileStore final : public Store {
 public:
  FileStore(std::string path, int64_t world_size, Milliseconds timeout);
  ~FileStore() override;
  const std::string& path() const { return path_; }

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
  class Locked;  // the file open and locked, the keys up to date
  template <class Ready>
  bool wait_until(Milliseconds timeout, Ready ready);

  std::string path_;
  int64_t world_size_, read_ = 0;
  pid_t owner_;
  std::mutex mutex_;
  KeyTable table_;
};

}  // namespace flambeau::distributed
