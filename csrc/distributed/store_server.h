// The server of a TCPStore: one thread that holds the keys and serves all connections.
//
// Invariant: the thread never waits for one client, and moves a bounded number of bytes before it is
// another's turn. Clients that wait for keys are noted under the first key that is missing; those
// that are slow in the middle of a message, or do not greet, are dropped after a while; those that
// talk nonsense at once. Must not know who its clients are.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>

#include "distributed/socket.h"
#include "distributed/wire.h"

namespace flambeau::distributed {

class StoreServer {
 public:
  StoreServer(Socket listener, std::string secret);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;

 private:
  using Time = Deadline::Clock::time_point;
  struct Connection;

  void run();
  void watch(Connection& c, bool writing);
  void accept_all();
  void drop(int fd);
  void unwait(Connection& c);
  bool read(Connection& c);   // false: drop it
  bool flush(Connection& c);  // the same
  bool serve(Connection& c);
  bool greet(Connection& c);
  void answer(Connection& c, const Message& request);
  bool try_answer(const Message& request, Message& reply);
  std::string missing_key(const Message& request) const;
  void reply(Connection& c, const Message& m);
  void wake(const Strings& changed);
  void limit(Connection& c, Time until);
  void unlimit(Connection& c);
  void expire();

  Socket listener_, epoll_, stop_;
  std::string secret_;
  KeyTable table_;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;
  std::unordered_map<std::string, std::set<int>> waiting_;
  std::set<std::pair<Time, int>> limits_;
  int owner_;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace flambeau::distributed
