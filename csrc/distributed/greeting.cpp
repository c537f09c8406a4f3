#include "distributed/greeting.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "distributed/wire.h"

namespace flambeau::distributed {

namespace {

constexpr Milliseconds kGreeting(2000);  // how long one that connects may take
constexpr size_t kMostPending = 1024;

struct Hello {
  char magic[8];
  Digest nonce;
};
struct Claim {
  Introduction who;
  Digest nonce, proof;
};
struct Answer {
  int32_t pid;
  Digest proof;
};
constexpr char kRankMagic[8] = {'F', 'B', 'R', 'A', 'N', 'K', 'S', '1'};

[[noreturn]] void fail_backend(const std::string& text) {
  throw Fault(FaultKind::Backend, text);
}

std::string hex(const Digest& bytes) {
  const char* digits = "0123456789abcdef";
  std::string out;
  for (unsigned char c : bytes) out += digits[c >> 4], out += digits[c & 15];
  return out;
}

// What each side proves it knows, said of this rank and channel.
Digest proves(const std::string& secret, const char* side, const Introduction& who,
              const Digest& acceptor, const Digest& connector) {
  std::string text = std::string(side) + " " + std::to_string(who.rank) + " " +
                     std::to_string(who.channel) + " " + std::to_string(who.pid);
  return proof(secret, text.c_str(), acceptor, connector);
}

Socket listen_at(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0) fail_backend("cannot resolve '" + host + "': " + ::gai_strerror(code));
  std::string why = "no address";
  Socket out;
  for (addrinfo* a = found; a && !out; a = a->ai_next) {
    Socket s(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (s && ::bind(s.fd(), a->ai_addr, a->ai_addrlen) == 0 && ::listen(s.fd(), 1024) == 0)
      out = std::move(s);
    else
      why = std::strerror(errno);
  }
  ::freeaddrinfo(found);
  if (!out) fail_backend("cannot listen at '" + host + "' of this machine: " + why);
  return out;
}

uint16_t port_at(const Socket& s) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(s.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

struct Address {
  std::string host, token;
  uint16_t port = 0;
};

Address parse_address(const std::string& text) {
  size_t first = text.find(' '), second = text.find(' ', first + 1);
  if (first == std::string::npos || second == std::string::npos)
    fail_backend("expected the address of a rank, got '" + text + "'");
  return {text.substr(0, first), text.substr(second + 1),
          static_cast<uint16_t>(std::stoi(text.substr(first + 1, second - first - 1)))};
}

void no_delay(const Socket& s) {
  int one = 1;
  ::setsockopt(s.fd(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

}  // namespace

std::string host_of(const std::string& address) {
  return address.substr(0, address.find(' '));
}

Acceptor::Acceptor(const std::string& host, std::string secret) : listener_(listen_at(host)) {
  std::string token = hex(random_bytes());
  address_ = host + " " + std::to_string(port_at(listener_)) + " " + token;
  secret_ = token + secret;
}

// Reads what has come of one; false once it is of no more use.
bool Acceptor::advance(Pending& p, std::optional<Introduced>& out) {
  while (p.got.size() < sizeof(Claim)) {
    char bytes[sizeof(Claim)];
    ssize_t n = ::recv(p.socket.fd(), bytes, sizeof(Claim) - p.got.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return !p.deadline.passed();
    if (n <= 0) return false;
    p.got.append(bytes, static_cast<size_t>(n));
  }
  Claim claim;
  std::memcpy(&claim, p.got.data(), sizeof claim);
  if (!same_digest(claim.proof, proves(secret_, "connects", claim.who, p.nonce, claim.nonce)))
    return false;
  Answer answer{::getpid(), proves(secret_, "accepts", claim.who, p.nonce, claim.nonce)};
  try {
    send_all(p.socket, &answer, sizeof answer, Deadline(kGreeting));
  } catch (const Fault&) {
    return false;
  }
  no_delay(p.socket);
  out = Introduced{claim.who, std::move(p.socket)};
  return false;
}

std::optional<Introduced> Acceptor::next(const Deadline& deadline) {
  std::vector<pollfd> waits{{listener_.fd(), POLLIN, 0}};
  for (auto& p : pending_) waits.push_back({p.socket.fd(), POLLIN, 0});
  ::poll(waits.data(), waits.size(), deadline.poll_ms(200));
  std::optional<Introduced> out;
  for (auto at = pending_.begin(); at != pending_.end() && !out;)
    at = advance(*at, out) ? std::next(at) : pending_.erase(at);
  while (pending_.size() < kMostPending) {
    Socket s(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!s) break;
    Hello hello{{}, random_bytes()};
    std::memcpy(hello.magic, kRankMagic, sizeof kRankMagic);
    if (::send(s.fd(), &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello)
      pending_.push_back({std::move(s), hello.nonce, Deadline(kGreeting), {}});
  }
  return out;
}

Socket introduce(const std::string& address, const std::string& secret, const Introduction& who,
                 const Deadline& deadline, int& pid) {
  Address a = parse_address(address);
  std::string known = a.token + secret;
  Socket s = connect_to(a.host, a.port, deadline);
  Hello hello;
  Claim mine{who, random_bytes(), {}};
  Answer answer;
  if (!receive_all(s, &hello, sizeof hello, deadline)) fail_backend("it was closed");
  if (std::memcmp(hello.magic, kRankMagic, sizeof kRankMagic) != 0)
    fail_backend("what answers there is no rank");
  mine.proof = proves(known, "connects", who, hello.nonce, mine.nonce);
  send_all(s, &mine, sizeof mine, deadline);
  if (!receive_all(s, &answer, sizeof answer, deadline))
    fail_backend("it was closed: the secrets of the ranks may differ");
  if (!same_digest(answer.proof, proves(known, "accepts", who, hello.nonce, mine.nonce)))
    fail_backend("what answers there does not know the secret");
  no_delay(s);
  pid = answer.pid;
  return s;
}

}  // namespace flambeau::distributed
