#include "distributed/store_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace flambeau::distributed {

namespace {
// How long a peer may take to greet, and to end a message that it has begun.
constexpr auto kGreetingTime = std::chrono::seconds(10);
constexpr auto kMessageTime = std::chrono::seconds(60);
// How much is moved for one peer before it is another's turn.
constexpr size_t kTurnBytes = 256 * 1024;

bool add_to(int epoll, int fd, uint32_t events) {
  epoll_event e{};
  e.events = events;
  e.data.fd = fd;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}
}  // namespace

struct StoreServer::Connection {
  Socket socket;
  Digest nonce{};
  bool greeted = false, writing = false;
  std::string in, out;
  size_t sent = 0;  // bytes of `out`
  std::optional<Message> waits;  // a request without answer yet
  std::string waits_for;
  std::optional<Time> limit;
};

StoreServer::StoreServer(Socket listener, std::string secret)
    : listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      secret_(std::move(secret)),
      owner_(::getpid()) {
  // A socket that a user made may block.
  ::fcntl(listener_.fd(), F_SETFL, ::fcntl(listener_.fd(), F_GETFL) | O_NONBLOCK);
  if (!epoll_ || !stop_ || !add_to(epoll_.fd(), listener_.fd(), EPOLLIN) ||
      !add_to(epoll_.fd(), stop_.fd(), EPOLLIN))
    throw Fault(FaultKind::Network,
                std::string("TCPStore: cannot watch sockets: ") + std::strerror(errno));
  // Signals are the main thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::make_unique<std::thread>([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StoreServer::~StoreServer() {
  if (owner_ != ::getpid()) {  // a forked child has no such thread
    (void)thread_.release();
    return;
  }
  uint64_t one = 1;
  (void)!::write(stop_.fd(), &one, sizeof one);
  thread_->join();
}

void StoreServer::run() {
  epoll_event events[64];
  for (;;) {
    int pause = -1;
    if (!limits_.empty()) {
      auto rest = std::chrono::ceil<Milliseconds>(limits_.begin()->first - Deadline::Clock::now());
      pause = static_cast<int>(std::clamp<int64_t>(rest.count(), 0, 1000));
    }
    int n = ::epoll_wait(epoll_.fd(), events, 64, pause);
    for (int i = 0; i < n; ++i) {
      int fd = events[i].data.fd;
      if (fd == stop_.fd()) return;
      if (fd == listener_.fd()) {
        accept_all();
        continue;
      }
      auto at = connections_.find(fd);
      if (at == connections_.end()) continue;  // dropped a moment ago
      Connection& c = *at->second;
      bool good = true;
      try {
        if (events[i].events & EPOLLOUT) good = flush(c);
        if (good && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) good = read(c);
        if (good) good = serve(c);
      } catch (const std::exception&) {
        good = false;  // nonsense, or no memory for what it asks
      }
      if (!good) drop(fd);
    }
    expire();
  }
}

void StoreServer::accept_all() {
  for (;;) {
    Socket s(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!s) {
      // Without a descriptor to spare the listener stays readable: no busy waiting for one.
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(Milliseconds(10));
      return;
    }
    int one = 1, fd = s.fd();
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!add_to(epoll_.fd(), fd, EPOLLIN)) continue;
    auto c = std::make_unique<Connection>();
    c->socket = std::move(s);
    c->nonce = random_bytes();
    ServerHello hello{};
    std::memcpy(hello.magic, kMagic, sizeof kMagic);
    hello.has_secret = !secret_.empty();
    hello.nonce = c->nonce;
    c->out.assign(reinterpret_cast<const char*>(&hello), sizeof hello);
    limit(*c, Deadline::Clock::now() + kGreetingTime);
    Connection& made = *(connections_[fd] = std::move(c));
    if (!flush(made)) drop(fd);
  }
}

void StoreServer::drop(int fd) {
  Connection& c = *connections_.at(fd);
  unlimit(c);
  if (c.waits) unwait(c);
  connections_.erase(fd);
}

void StoreServer::unwait(Connection& c) {
  auto at = waiting_.find(c.waits_for);
  if (at != waiting_.end()) {
    at->second.erase(c.socket.fd());
    if (at->second.empty()) waiting_.erase(at);
  }
  c.waits.reset();
}

bool StoreServer::read(Connection& c) {
  char buffer[65536];
  // A peer that sends before it has read its answers is not read from.
  for (size_t moved = 0; c.out.empty() && moved < kTurnBytes;) {
    ssize_t n = ::recv(c.socket.fd(), buffer, sizeof buffer, 0);
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (c.waits) return false;  // it asks again before it is answered
    c.in.append(buffer, static_cast<size_t>(n));
    if (!c.greeted && c.in.size() > sizeof(ClientHello)) return false;
    if (static_cast<size_t>(n) < sizeof buffer) return true;
    moved += static_cast<size_t>(n);
  }
  return true;
}

bool StoreServer::flush(Connection& c) {
  size_t until = std::min(c.out.size(), c.sent + kTurnBytes);
  while (c.sent < until) {
    ssize_t n = ::send(c.socket.fd(), c.out.data() + c.sent, until - c.sent, MSG_NOSIGNAL);
    if (n >= 0) c.sent += static_cast<size_t>(n);
    else if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    else if (errno != EINTR) return false;
  }
  if (c.sent == c.out.size()) c.out = {}, c.sent = 0;
  watch(c, !c.out.empty());
  return true;
}

void StoreServer::watch(Connection& c, bool writing) {
  if (writing == c.writing) return;
  c.writing = writing;
  epoll_event e{};
  e.events = writing ? EPOLLOUT : EPOLLIN;
  e.data.fd = c.socket.fd();
  ::epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, c.socket.fd(), &e);
}

bool StoreServer::serve(Connection& c) {
  if (!c.greeted && c.in.size() >= sizeof(ClientHello) && !greet(c)) return false;
  size_t at = 0;
  while (c.greeted && !c.waits && c.out.empty()) {
    auto length = whole_message(c.in.data() + at, c.in.size() - at);
    if (!length) break;
    Message request = decode(c.in.data() + at + sizeof(uint32_t), *length);
    if (request.code > kLastRequest) return false;
    at += sizeof(uint32_t) + *length;
    unlimit(c);
    answer(c, request);
    if (!flush(c)) return false;
  }
  c.in.erase(0, at);
  bool begun = c.greeted && !c.waits && (!c.in.empty() || !c.out.empty());
  if (begun && !c.limit) limit(c, Deadline::Clock::now() + kMessageTime);
  if (c.greeted && !begun && !c.waits) unlimit(c);
  return true;
}

bool StoreServer::greet(Connection& c) {
  ClientHello hello;
  std::memcpy(&hello, c.in.data(), sizeof hello);
  c.in.erase(0, sizeof hello);
  if (std::memcmp(hello.magic, kMagic, sizeof kMagic) != 0) return false;
  if (!same_digest(hello.proof, proof(secret_, "client", c.nonce, hello.nonce))) return false;
  Digest mine = proof(secret_, "server", c.nonce, hello.nonce);
  c.greeted = true;
  unlimit(c);
  c.out.append(reinterpret_cast<const char*>(mine.data()), mine.size());
  return flush(c);
}

void StoreServer::reply(Connection& c, const Message& m) {
  try {
    c.out += encode(m);
  } catch (const Fault& f) {  // larger than a message may be
    c.out += encode({Code::Refused, 0, {}, {f.what()}});
  }
}

// The first key for which a request has to wait; empty for one that can be answered.
std::string StoreServer::missing_key(const Message& r) const {
  switch (r.code) {
    case Code::Get:
    case Code::Wait:
    case Code::MultiGet: {
      for (auto& key : r.keys)
        if (!table_.find(key)) return key;
      return {};
    }
    case Code::Pop:
      return table_.length(r.keys.at(0)) ? std::string() : r.keys.at(0);
    default:
      return {};
  }
}

bool StoreServer::try_answer(const Message& r, Message& out) {
  out = {};
  bool blocks = r.code == Code::Get || r.code == Code::Wait || r.code == Code::MultiGet;
  if (blocks && !table_.has_all(r.keys)) return false;
  switch (r.code) {
    case Code::Set: table_.set(r.keys.at(0), r.values.at(0)); break;
    case Code::Get:
    case Code::MultiGet:
      for (auto& key : r.keys) out.values.push_back(*table_.find(key));
      break;
    case Code::Add: out.number = table_.add(r.keys.at(0), r.number); break;
    case Code::Check: out.number = table_.has_all(r.keys); break;
    case Code::Wait: break;
    case Code::CompareSet:
      out.values = {table_.compare_set(r.keys.at(0), r.values.at(0), r.values.at(1))};
      break;
    case Code::Delete: out.number = table_.erase(r.keys.at(0)); break;
    case Code::Count: out.number = table_.count(); break;
    case Code::Keys: out.keys = table_.keys(); break;
    case Code::Append: table_.append(r.keys.at(0), r.values.at(0)); break;
    case Code::MultiSet:
      if (r.keys.size() != r.values.size())
        throw Fault(FaultKind::Network, "store: other numbers of keys and of values");
      for (size_t i = 0; i < r.keys.size(); ++i) table_.set(r.keys[i], r.values[i]);
      break;
    case Code::Push: table_.push(r.keys.at(0), r.values.at(0)); break;
    case Code::Pop: {
      auto value = table_.pop(r.keys.at(0));
      if (!value && r.number >= 0) return false;
      if (!value) out.code = Code::EmptyQueue;
      else out.values = {*value};
      break;
    }
    case Code::Length: out.number = table_.length(r.keys.at(0)); break;
    default: throw Fault(FaultKind::Network, "store: a reply came where a request should");
  }
  return true;
}

void StoreServer::answer(Connection& c, const Message& request) {
  Message out;
  try {
    if (!try_answer(request, out)) {
      std::string key = missing_key(request);
      c.waits = request;
      c.waits_for = key;
      waiting_[key].insert(c.socket.fd());
      constexpr int64_t kMost = int64_t{1} << 40;  // 35 years, in milliseconds
      auto pause = Milliseconds(std::clamp<int64_t>(request.number, 0, kMost));
      limit(c, Deadline::Clock::now() + pause);
      return;
    }
  } catch (const Fault& f) {
    if (f.kind != FaultKind::Store) throw;
    out = {};
    out.code = Code::Refused;
    out.values = {f.what()};
  }
  reply(c, out);
  switch (request.code) {
    case Code::Set:
    case Code::Add:
    case Code::CompareSet:
    case Code::Append:
    case Code::MultiSet:
    case Code::Push: wake(request.keys); break;
    default: break;
  }
}

// Answers those who wait for these keys, or notes them under the next key that they miss.
void StoreServer::wake(const Strings& changed) {
  for (auto& key : changed) {
    auto at = waiting_.find(key);
    if (at == waiting_.end()) continue;
    std::set<int> fds = std::move(at->second);
    waiting_.erase(at);
    for (int fd : fds) {
      Connection& c = *connections_.at(fd);
      Message out;
      if (try_answer(*c.waits, out)) {
        c.waits.reset();
        unlimit(c);
        reply(c, out);
        // Sent when the socket is next ready: this may not drop a connection in use above.
        watch(c, true);
      } else {
        c.waits_for = missing_key(*c.waits);
        waiting_[c.waits_for].insert(fd);
      }
    }
  }
}

void StoreServer::limit(Connection& c, Time until) {
  unlimit(c);
  c.limit = until;
  limits_.emplace(until, c.socket.fd());
}

void StoreServer::unlimit(Connection& c) {
  if (c.limit) limits_.erase({*c.limit, c.socket.fd()});
  c.limit.reset();
}

void StoreServer::expire() {
  auto now = Deadline::Clock::now();
  while (!limits_.empty() && limits_.begin()->first <= now) {
    int fd = limits_.begin()->second;
    Connection& c = *connections_.at(fd);
    if (!c.waits) {
      drop(fd);
      continue;
    }
    Message out;
    out.code = Code::TimedOut;
    if (c.waits->code == Code::Pop) out.keys = c.waits->keys;
    else out.keys = table_.missing(c.waits->keys);
    unlimit(c);
    unwait(c);
    reply(c, out);
    if (!flush(c)) drop(fd);
  }
}

}  // namespace flambeau::distributed
