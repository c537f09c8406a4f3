#include "distributed/mesh.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace flambeau::distributed {

namespace {

constexpr uint64_t kWindow = 1 << 20;  // bytes that a sender may be ahead of its receiver
constexpr size_t kToken = 16;
constexpr size_t kLongestReason = 400;
// How long Gloo has for the last data of a rank whose process has ended. It usually finds for itself
// that a connection is gone, but not where that was in the middle of some data.
constexpr Milliseconds kGrace(2000);
constexpr Milliseconds kGlance(100), kAnswer(1000), kGreeting(2000);

enum FrameType : uint8_t { kData, kHead, kCredit, kState, kAsk, kAnswerTo };

// What a rank says when it connects, and what it is answered.
struct Greeting {
  char token[kToken];
  int32_t rank, pid;
};

[[noreturn]] void fail_backend(const std::string& text) {
  throw Fault(FaultKind::Backend, text);
}

std::string random_token() {
  std::string token(kToken, 0);
  for (size_t at = 0; at < kToken;) {
    ssize_t n = ::getrandom(token.data() + at, kToken - at, 0);
    if (n < 0 && errno != EINTR)
      fail_backend("no random numbers: " + std::string(std::strerror(errno)));
    if (n > 0) at += static_cast<size_t>(n);
  }
  return token;
}

std::string hex(const std::string& bytes) {
  const char* digits = "0123456789abcdef";
  std::string out;
  for (unsigned char c : bytes) out += digits[c >> 4], out += digits[c & 15];
  return out;
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

}  // namespace

struct Mesh::Frame {
  uint8_t type, reserved[3];
  uint32_t bytes;
  uint64_t value;
};

Mesh::Mesh(int rank, int size, std::string group, const std::string& host)
    : Link(rank, size, std::move(group)),
      host_(host),
      token_(random_token()),
      listener_(listen_at(host)),
      peers_(static_cast<size_t>(size)),
      owner_(::getpid()) {
  address_ = host_ + " " + std::to_string(port_at(listener_)) + " " + hex(token_);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    fail_backend("group '" + group_ + "': cannot make a pipe: " + std::strerror(errno));
  bell_in_ = Socket(ends[0]), bell_out_ = Socket(ends[1]);
  for (auto& p : peers_) p.credit = kWindow;
}

Mesh::~Mesh() {
  if (owner_ != ::getpid()) {  // a forked child: it has the descriptors, and no such thread
    (void)thread_.release();
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_) thread_->join();
}

// Each rank connects to those before it and is connected to by those behind it.
void Mesh::begin(const std::vector<std::string>& addresses, Milliseconds timeout) {
  Deadline deadline(timeout);
  Greeting mine{{}, rank_, owner_};
  for (int r = 0; r < rank_; ++r) {
    Address a = parse_address(addresses[static_cast<size_t>(r)]);
    Peer& p = peers_[static_cast<size_t>(r)];
    std::string text = "making group '" + group_ + "': no connection to rank " + std::to_string(r) +
                       " at " + a.host + ": ";
    try {
      p.socket = connect_to(a.host, a.port, deadline);
      for (size_t i = 0; i < kToken; ++i)
        mine.token[i] = static_cast<char>(std::stoi(a.token.substr(2 * i, 2), nullptr, 16));
      send_all(p.socket, &mine, sizeof mine, deadline);
      int32_t pid = 0;
      if (!receive_all(p.socket, &pid, sizeof pid, deadline)) fail_backend("it was closed");
      p.pid = pid;
    } catch (const Fault& f) {
      fail_backend(text + f.what());
    }
  }
  for (int left = size_ - 1 - rank_; left > 0;) {
    pollfd waits{listener_.fd(), POLLIN, 0};
    ::poll(&waits, 1, deadline.poll_ms(200));
    check_interrupt();
    Socket s(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!s) {
      if (!deadline.passed()) continue;
      std::string text = "making group '" + group_ + "': timed out after " + seconds_text(timeout);
      for (int r = rank_ + 1; r < size_; ++r)
        if (!peers_[static_cast<size_t>(r)].socket)
          text += "; rank " + std::to_string(r) + " did not connect to rank " +
                  std::to_string(rank_) + " at " + host_;
      fail_backend(text);
    }
    Greeting theirs{};
    try {
      if (!receive_all(s, &theirs, sizeof theirs, Deadline(kGreeting))) continue;
    } catch (const Fault&) {
      continue;  // no rank of ours
    }
    if (std::memcmp(theirs.token, token_.data(), kToken) != 0 || theirs.rank <= rank_ ||
        theirs.rank >= size_ || peers_[static_cast<size_t>(theirs.rank)].socket)
      continue;
    int one = 1;
    ::setsockopt(s.fd(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int32_t pid = owner_;
    send_all(s, &pid, sizeof pid, deadline);
    Peer& p = peers_[static_cast<size_t>(theirs.rank)];
    p.pid = theirs.pid;
    p.socket = std::move(s);
    --left;
  }
  listener_ = Socket();
  sigset_t all, before;  // signals are the main thread's
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::make_unique<std::thread>([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::vector<std::string> Mesh::exchange(const std::vector<std::string>& texts,
                                        const Deadline& deadline) {
  for (int r = 0; r < size_; ++r)
    if (r != rank_) {
      const std::string& text = texts[static_cast<size_t>(r)];
      uint64_t bytes = text.size();
      put(r, reinterpret_cast<const char*>(&bytes), sizeof bytes);
      put(r, text.data(), text.size());
    }
  std::vector<std::string> out(static_cast<size_t>(size_));
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    uint64_t bytes = 0;
    for (bool sized = false;;) {
      uint32_t seen = bell();
      if (!sized && waiting(r) >= sizeof bytes)
        get(r, reinterpret_cast<char*>(&bytes), sizeof bytes), sized = true;
      if (sized && waiting(r) >= bytes) break;
      std::string why = trouble(r);
      if (!why.empty() || deadline.passed())
        fail_backend("making group '" + group_ + "': rank " + std::to_string(r) + " " +
                     (why.empty() ? "does not answer" : why));
      wait_bell(seen, deadline);
      check_interrupt();
    }
    out[static_cast<size_t>(r)].resize(bytes);
    get(r, out[static_cast<size_t>(r)].data(), bytes);
  }
  return out;
}

// Streams ------------------------------------------------------------------------------------

void Mesh::send_frame(Peer& p, uint8_t type, uint64_t value, const char* data, size_t bytes) {
  if (p.gone || !p.socket) return;
  Frame frame{type, {}, static_cast<uint32_t>(bytes), value};
  p.out.append(reinterpret_cast<const char*>(&frame), sizeof frame);
  p.out.append(data, bytes);
  flush(p);
  if (!p.out.empty()) wake();
}

void Mesh::flush(Peer& p) {
  while (p.out_at < p.out.size()) {
    ssize_t n = ::send(p.socket.fd(), p.out.data() + p.out_at, p.out.size() - p.out_at,
                       MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n < 0) break;  // the thread will read that it is gone
    p.out_at += static_cast<size_t>(n);
  }
  p.out.clear(), p.out_at = 0;
}

size_t Mesh::room(int r) {
  std::lock_guard lock(mutex_);
  return peers_[static_cast<size_t>(r)].credit;
}

size_t Mesh::put(int r, const char* data, size_t bytes) {
  std::lock_guard lock(mutex_);
  Peer& p = peers_[static_cast<size_t>(r)];
  size_t n = std::min<size_t>(bytes, p.credit);
  if (!n) return 0;
  p.credit -= n;
  send_frame(p, kData, 0, data, n);
  return n;
}

size_t Mesh::waiting(int r) {
  std::lock_guard lock(mutex_);
  Peer& p = peers_[static_cast<size_t>(r)];
  return p.in.size() - p.in_at;
}

size_t Mesh::get(int r, char* data, size_t bytes) {
  std::lock_guard lock(mutex_);
  Peer& p = peers_[static_cast<size_t>(r)];
  size_t n = std::min(bytes, p.in.size() - p.in_at);
  if (!n) return 0;
  std::memcpy(data, p.in.data() + p.in_at, n);
  p.in_at += n, p.taken += n;
  if (p.in_at == p.in.size()) p.in.clear(), p.in_at = 0;
  if (p.taken >= kWindow / 4) {
    send_frame(p, kCredit, p.taken, nullptr, 0);
    p.taken = 0;
  }
  return n;
}

void Mesh::rung() {
  ++bell_;
  changed_.notify_all();
}

void Mesh::ring_bell(int r) {
  if (r != rank_) return;  // frames ring others'
  std::lock_guard lock(mutex_);
  rung();
}

bool Mesh::wait_bell(uint32_t seen, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::min(kGlance, deadline.left()), [&] { return bell_ != seen; });
  return bell_ != seen;
}

// Heads --------------------------------------------------------------------------------------

void Mesh::send_head(int r, const char* data, size_t bytes) {
  std::lock_guard lock(mutex_);
  send_frame(peers_[static_cast<size_t>(r)], kHead, 0, data, bytes);
}

bool Mesh::take_heads(std::vector<std::string>& heads, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    bool whole = true, never = closing() || state_ != RankState::Working;
    for (int r = 0; r < size_; ++r) {
      if (r == rank_ || !peers_[static_cast<size_t>(r)].heads.empty()) continue;
      whole = false;
      never = never || !trouble_of(r).empty();
    }
    if (whole) break;
    if (never || deadline.passed()) return false;
    changed_.wait_for(lock, std::min(kGlance, deadline.left()));
  }
  heads.resize(static_cast<size_t>(size_));
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    auto& queue = peers_[static_cast<size_t>(r)].heads;
    heads[static_cast<size_t>(r)] = std::move(queue.front());
    queue.pop_front();
  }
  return true;
}

// Word of others -----------------------------------------------------------------------------

void Mesh::leave(RankState state, const std::string& reason) {
  std::unique_lock lock(mutex_);
  if (state_ != RankState::Working || owner_ != ::getpid()) return;
  state_ = state;
  size_t n = std::min(reason.size(), kLongestReason);
  for (auto& p : peers_)
    send_frame(p, kState, static_cast<uint64_t>(state), reason.data(), n);
  lock.unlock();
  // Once a rank has answered, it has read what was sent to it.
  if (state == RankState::Left && thread_) ask(kAnswer / 2);
}

void Mesh::ask(Milliseconds most) {
  Deadline deadline(most);
  std::unique_lock lock(mutex_);
  for (auto& p : peers_) {
    p.answered = false;
    send_frame(p, kAsk, 0, nullptr, 0);
  }
  changed_.wait_for(lock, deadline.left(), [&] {
    return std::all_of(peers_.begin(), peers_.end(), [](const Peer& p) {
      return p.answered || p.gone || !p.socket || p.state == RankState::Left;
    });
  });
}

std::string Mesh::trouble_of(int r) const {
  const Peer& p = peers_[static_cast<size_t>(r)];
  if (r == rank_) return {};
  if (p.state == RankState::Left) return "has left the group";
  if (p.state == RankState::GaveUp) return "gave up: " + p.reason;
  if (p.gone) return "has died (process " + std::to_string(p.pid) + " is gone)";
  return {};
}

std::string Mesh::trouble(int r) {
  std::lock_guard lock(mutex_);
  return trouble_of(r);
}

std::string Mesh::found_trouble() const {
  std::string text;
  for (int r = 0; r < size_; ++r)
    if (std::string why = trouble_of(r); !why.empty())
      text += (text.empty() ? ": rank " : "; rank ") + std::to_string(r) + " " + why;
  return text;
}

std::string Mesh::all_trouble(Milliseconds most) {
  std::unique_lock lock(mutex_);
  std::string text;
  changed_.wait_for(lock, most, [&] { return !(text = found_trouble()).empty(); });
  return text;
}

std::string Mesh::whereabouts(int r) {
  ask(kAnswer);
  std::lock_guard lock(mutex_);
  const Peer& p = peers_[static_cast<size_t>(r)];
  if (p.answered) return doing_text(p.doing);
  std::string text = trouble_of(r);
  return text.empty() ? "it does not answer, and its process is stopped or cut off" : "it " + text;
}

std::string Mesh::missing(uint32_t number) {
  ask(kAnswer);
  std::lock_guard lock(mutex_);
  std::string text;
  for (int r = 0; r < size_; ++r) {
    const Peer& p = peers_[static_cast<size_t>(r)];
    if (r == rank_ || (p.answered && p.doing >> 9 >= number)) continue;
    text += "; rank " + std::to_string(r) + " did not come: ";
    std::string why = trouble_of(r);
    if (!why.empty()) text += "it " + why;
    else if (p.answered) text += doing_text(p.doing);
    else text += "it does not answer, and its process is stopped or cut off";
  }
  return text.empty() ? "; all ranks came, but not all of the data" : text;
}

void Mesh::when_broken(std::function<void()> call) {
  std::lock_guard lock(call_mutex_);
  broken_ = std::move(call);
}

// The thread ---------------------------------------------------------------------------------

void Mesh::wake() {
  char byte = 0;
  (void)!::write(bell_out_.fd(), &byte, 1);
}

void Mesh::handle(Peer& p, const Frame& frame, const char* data) {
  switch (frame.type) {
    case kData:
      if (p.in_at > kWindow / 4) p.in.erase(0, p.in_at), p.in_at = 0;
      p.in.append(data, frame.bytes);
      return rung();
    case kHead: p.heads.emplace_back(data, frame.bytes); return changed_.notify_all();
    case kCredit: p.credit += frame.value; return rung();
    case kState:
      p.state = static_cast<RankState>(frame.value);
      p.reason.assign(data, frame.bytes);
      return rung();
    case kAsk: return send_frame(p, kAnswerTo, doing_, nullptr, 0);
    case kAnswerTo:
      p.doing = frame.value, p.answered = true;
      return changed_.notify_all();
    default: return;
  }
}

void Mesh::parse(Peer& p) {
  size_t at = 0;
  Frame frame;
  while (p.partial.size() - at >= sizeof frame) {
    std::memcpy(&frame, p.partial.data() + at, sizeof frame);
    if (frame.bytes > 2 * kWindow) {  // no rank of ours says this
      p.gone = true;
      return rung();
    }
    if (p.partial.size() - at - sizeof frame < frame.bytes) break;
    handle(p, frame, p.partial.data() + at + sizeof frame);
    at += sizeof frame + frame.bytes;
  }
  p.partial.erase(0, at);
}

void Mesh::read(Peer& p) {
  char bytes[64 * 1024];
  while (!p.gone) {
    ssize_t n = ::recv(p.socket.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) {
      p.gone = true;
      return rung();
    }
    p.partial.append(bytes, static_cast<size_t>(n));
    parse(p);
  }
}

void Mesh::run() {
  std::unique_lock lock(mutex_);
  std::optional<Deadline> ended;  // a process is gone
  while (!stopping_) {
    std::vector<pollfd> waits{{bell_in_.fd(), POLLIN, 0}};
    std::vector<Peer*> of{nullptr};
    bool broken = state_ == RankState::GaveUp || closing(), gone = false;
    for (auto& p : peers_) {
      broken = broken || p.state == RankState::GaveUp;
      gone = gone || (p.gone && p.state == RankState::Working);
      if (p.gone || !p.socket) continue;
      auto events = static_cast<short>(p.out.empty() ? POLLIN : POLLIN | POLLOUT);
      waits.push_back({p.socket.fd(), events, 0});
      of.push_back(&p);
    }
    if (gone && !ended) ended.emplace(kGrace);
    broken = broken || (ended && ended->passed());
    lock.unlock();
    if (broken) {
      std::lock_guard calls(call_mutex_);
      if (broken_) broken_();
    }
    ::poll(waits.data(), waits.size(), broken ? 20 : 200);
    lock.lock();
    char waste[64];
    while (waits[0].revents && ::read(bell_in_.fd(), waste, sizeof waste) > 0) continue;
    for (size_t i = 1; i < waits.size(); ++i) {
      if (waits[i].revents & POLLOUT) flush(*of[i]);
      if (waits[i].revents & ~POLLOUT) read(*of[i]);
    }
  }
}

}  // namespace flambeau::distributed
