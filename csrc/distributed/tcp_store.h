// TCPStore: the client of a StoreServer, and in one process of a job that server too.
//
// Invariant: one request at a time is on the connection. When a wait was interrupted, or the
// process has forked, the connection is not used again but made anew.
#pragma once

#include <sys/types.h>

#include <memory>

#include "distributed/store_server.h"

namespace flambeau::distributed {

struct TcpStoreOptions {
  std::string host;
  uint16_t port = 0;
  int64_t world_size = -1;  // -1: not known
  bool is_master = false, wait_for_workers = true;
  bool multi_tenant = false;  // a server that listens there already will do
  int listen_fd = -1;         // of a socket that listens already
  Milliseconds timeout{300000};
  std::string secret;  // empty: none, and the server can be reached from its machine alone
};

class TcpStore final : public Store {
 public:
  explicit TcpStore(TcpStoreOptions options);
  uint16_t port() const { return port_; }
  bool has_server() const { return server_ != nullptr; }
  std::unique_ptr<TcpStore> clone() const;  // another connection to the same server

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
  Strings multi_get(const Strings& keys) override;
  void multi_set(const Strings& keys, const Strings& values) override;
  void queue_push(const std::string& key, const std::string& value) override;
  std::string queue_pop(const std::string& key, bool block) override;
  int64_t queue_len(const std::string& key) override;

 private:
  void start_server();
  void connect(Milliseconds timeout);
  void wait_for_workers();
  Message ask(const Message& request, Milliseconds timeout);

  TcpStoreOptions options_;
  uint16_t port_;
  std::unique_ptr<StoreServer> server_;
  std::mutex mutex_;
  Socket socket_;
  pid_t owner_ = -1;
};

}  // namespace flambeau::distributed
