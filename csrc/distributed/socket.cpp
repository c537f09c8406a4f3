#include "distributed/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace flambeau::distributed {

namespace {

[[noreturn]] void fail_network(const std::string& what) {
  throw Fault(FaultKind::Network, what);
}

struct FreeAddresses {
  void operator()(addrinfo* p) const { ::freeaddrinfo(p); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string& host, uint16_t port, std::string& why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) why = "cannot resolve the name: " + std::string(::gai_strerror(code));
  return Addresses(code == 0 ? found : nullptr);
}

// Waits for `events`; false when the deadline has passed.
bool ready(int fd, short events, const Deadline& deadline) {
  for (;;) {
    pollfd p{fd, events, 0};
    int n = ::poll(&p, 1, deadline.poll_ms());
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) fail_network("poll: " + std::string(std::strerror(errno)));
    check_interrupt();
    if (deadline.passed()) return false;
  }
}

// Is this address one of this machine's? Then a server that listens on loopback alone is meant.
bool is_own(const addrinfo& a) {
  sockaddr_storage with_any_port{};
  std::memcpy(&with_any_port, a.ai_addr, a.ai_addrlen);
  if (a.ai_family == AF_INET) reinterpret_cast<sockaddr_in*>(&with_any_port)->sin_port = 0;
  else if (a.ai_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(&with_any_port)->sin6_port = 0;
  else return false;
  Socket probe(::socket(a.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return probe &&
         ::bind(probe.fd(), reinterpret_cast<sockaddr*>(&with_any_port), a.ai_addrlen) == 0;
}

Socket try_address(int family, const sockaddr* address, socklen_t size, const Deadline& deadline,
                   std::string& why) {
  Socket s(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s) {
    why = std::strerror(errno);
    return {};
  }
  int status = ::connect(s.fd(), address, size);
  if (status != 0 && errno == EINPROGRESS) {
    if (!ready(s.fd(), POLLOUT, deadline)) {
      why = "no answer";
      return {};
    }
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    errno = error;
    status = error ? -1 : 0;
  }
  if (status != 0) {
    why = std::strerror(errno);
    return {};
  }
  int one = 1;
  ::setsockopt(s.fd(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return s;
}

Socket try_all(const addrinfo* list, uint16_t port, const Deadline& deadline, std::string& why) {
  for (const addrinfo* a = list; a; a = a->ai_next) {
    if (Socket s = try_address(a->ai_family, a->ai_addr, a->ai_addrlen, deadline, why)) return s;
    if (is_own(*a)) {
      sockaddr_in loopback{};
      loopback.sin_family = AF_INET;
      loopback.sin_port = htons(port);
      loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      auto* address = reinterpret_cast<const sockaddr*>(&loopback);
      if (Socket s = try_address(AF_INET, address, sizeof loopback, deadline, why)) return s;
    }
  }
  return {};
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Socket connect_to(const std::string& host, uint16_t port, const Deadline& deadline) {
  std::string why = "no address";
  Milliseconds pause(2);
  for (;;) {
    Addresses found = resolve(host, port, why);
    if (Socket s = try_all(found.get(), port, deadline, why)) return s;
    if (deadline.passed())
      fail_network("The client socket has timed out while trying to connect to (" + host + ", " +
                   std::to_string(port) + "): " + why);
    std::this_thread::sleep_for(std::min(pause, deadline.left()));
    check_interrupt();
    pause = std::min(pause * 2, Milliseconds(200));
  }
}

Socket listen_on(uint16_t port, bool loopback) {
  Socket s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s) fail_network("cannot make a socket: " + std::string(std::strerror(errno)));
  int one = 1;
  ::setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
  if (::bind(s.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(s.fd(), 2048) != 0)
    fail_network("The server socket has failed to listen on port " + std::to_string(port) + ": " +
                 std::strerror(errno));
  return s;
}

uint16_t port_of(const Socket& s) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(s.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      address.sin_family != AF_INET)
    fail_network("expected a descriptor of a listening IPv4 socket");
  return ntohs(address.sin_port);
}

void send_all(const Socket& s, const void* data, size_t bytes, const Deadline& deadline) {
  auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t n = ::send(s.fd(), at, bytes, MSG_NOSIGNAL);
    if (n >= 0) {
      at += n, bytes -= static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!ready(s.fd(), POLLOUT, deadline)) fail_network("the store's server takes no more data");
    } else if (errno != EINTR) {
      fail_network("the connection to the store's server broke: " +
                   std::string(std::strerror(errno)));
    }
  }
}

bool receive_all(const Socket& s, void* data, size_t bytes, const Deadline& deadline) {
  auto* at = static_cast<char*>(data);
  bool begun = false;
  while (bytes > 0) {
    ssize_t n = ::recv(s.fd(), at, bytes, 0);
    if (n > 0) {
      at += n, bytes -= static_cast<size_t>(n), begun = true;
    } else if (n == 0) {
      if (!begun) return false;
      fail_network("the store's server closed the connection in the middle of a message");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!ready(s.fd(), POLLIN, deadline)) fail_network("the store's server does not answer");
    } else if (errno != EINTR) {
      fail_network("the connection to the store's server broke: " +
                   std::string(std::strerror(errno)));
    }
  }
  return true;
}

}  // namespace flambeau::distributed
