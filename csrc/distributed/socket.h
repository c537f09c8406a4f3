// Sockets as the store needs them: an owned descriptor, connecting and moving bytes before a
// deadline. Every failure is a Fault(Network) that says which peer. Knows no message.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "distributed/fault.h"

namespace flambeau::distributed {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Socket& operator=(Socket&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Socket();
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Tries again until the deadline: the other side may not have begun to listen.
Socket connect_to(const std::string& host, uint16_t port, const Deadline& deadline);
// `loopback`: reachable from this machine alone. Port 0: a free one.
Socket listen_on(uint16_t port, bool loopback);
uint16_t port_of(const Socket& s);

void send_all(const Socket& s, const void* data, size_t bytes, const Deadline& deadline);
// False where the peer closed before the first byte.
bool receive_all(const Socket& s, void* data, size_t bytes, const Deadline& deadline);

}  // namespace flambeau::distributed
