// How two ranks of a group find each other and prove that they belong to it.
//
// A rank gives away an address on the store: host, port and a random number. Who connects, and who
// is connected to, each prove by HMAC-SHA256 over a nonce of both sides that they know that number
// and the job's secret, where it has one; neither is sent. A connection that does not, or that says
// nothing, is closed, and holds up nobody meanwhile.
//
//   acceptor: nonce; connector: who it is, a nonce, a proof; acceptor: its process, a proof
#pragma once

#include <list>
#include <optional>

#include "distributed/hmac.h"
#include "distributed/socket.h"

namespace flambeau::distributed {

// What a connection is for: words of the ranks and messages, or the data of collectives.
inline constexpr int kChannels = 2;

struct Introduction {
  int32_t rank, channel, pid;
};

struct Introduced {
  Introduction who;
  Socket socket;
};

class Acceptor {
 public:
  // Listens at this address of this machine, on a free port.
  Acceptor(const std::string& host, std::string secret);
  const std::string& address() const { return address_; }
  // The next that has proved to be of the group; nothing where none comes for a while.
  std::optional<Introduced> next(const Deadline& deadline);
  void close() { listener_ = Socket(), pending_.clear(); }

 private:
  struct Pending;
  bool advance(Pending& p, std::optional<Introduced>& out);
  std::string secret_, address_;
  Socket listener_;
  std::list<Pending> pending_;
};

struct Acceptor::Pending {
  Socket socket;
  Digest nonce;
  Deadline deadline;
  std::string got;
};

// Connects to the rank with this address; `who` is this rank, and `pid` becomes the other's
// process.
Socket introduce(const std::string& address, const std::string& secret, const Introduction& who,
                 const Deadline& deadline, int& pid);
std::string host_of(const std::string& address);

}  // namespace flambeau::distributed
