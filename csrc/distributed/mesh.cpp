#include "distributed/mesh.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace flambeau::distributed {

namespace {

constexpr uint64_t kWindow = 1 << 20;  // bytes of no known place that a sender may be ahead
constexpr size_t kLongestFrame = 256 * 1024, kLongestReason = 400;
constexpr size_t kBurst = 4 << 20;  // of one rank before others' turn
constexpr Milliseconds kGlance(100), kAnswer(1000);

enum FrameType : uint8_t { kData, kCredit, kState, kAsk, kAnswerTo };

[[noreturn]] void fail_backend(const std::string& text) {
  throw Fault(FaultKind::Backend, text);
}

}  // namespace

struct Mesh::Frame {
  uint8_t type, reserved[3];
  uint32_t bytes;
  uint64_t value;
};

Mesh::Mesh(int rank, int size, std::string group, const std::string& host,
           const std::string& secret)
    : Link(rank, size, std::move(group)),
      secret_(secret),
      acceptor_(host, secret),
      peers_(static_cast<size_t>(size)),
      owner_(::getpid()) {
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

void Mesh::add(Introduced from, int pid) {
  Peer& p = peers_[static_cast<size_t>(from.who.rank)];
  p.pid = pid;
  (from.who.channel ? p.data : p.socket) = std::move(from.socket);
}

// Each rank connects to those before it and is connected to by those behind it.
void Mesh::begin(const std::vector<std::string>& addresses, Milliseconds timeout) {
  Deadline deadline(timeout);
  for (int r = 0; r < rank_; ++r) {
    const std::string& address = addresses[static_cast<size_t>(r)];
    try {
      for (int channel = 0; channel < kChannels; ++channel) {
        int pid = 0;
        Socket s = introduce(address, secret_, {rank_, channel, owner_}, deadline, pid);
        add({{r, channel, pid}, std::move(s)}, pid);
      }
    } catch (const Fault& f) {
      fail_backend("making group '" + group_ + "': no connection to rank " + std::to_string(r) +
                   " at " + host_of(address) + ": " + f.what());
    }
  }
  for (int left = kChannels * (size_ - 1 - rank_); left > 0;) {
    auto from = acceptor_.next(deadline);
    check_interrupt();
    if (!from && deadline.passed()) {
      std::string text = "making group '" + group_ + "': timed out after " + seconds_text(timeout);
      for (int r = rank_ + 1; r < size_; ++r)
        if (!peers_[static_cast<size_t>(r)].data)
          text += "; rank " + std::to_string(r) + " did not connect to rank " +
                  std::to_string(rank_) + " at " + host_of(address());
      fail_backend(text);
    }
    if (!from) continue;
    Introduction who = from->who;
    if (who.rank <= rank_ || who.rank >= size_ || who.channel < 0 || who.channel >= kChannels)
      continue;
    const Peer& p = peers_[static_cast<size_t>(who.rank)];
    if (who.channel ? p.data : p.socket) continue;  // it is there already
    add(std::move(*from), who.pid);
    --left;
  }
  acceptor_.close();
  sigset_t all, before;  // signals are the main thread's
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::make_unique<std::thread>([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Streams ------------------------------------------------------------------------------------

void Mesh::send_frame(Peer& p, uint8_t type, uint64_t value, const char* data, size_t bytes) {
  if (p.gone || p.deaf || !p.socket) return;
  Frame frame{type, {}, static_cast<uint32_t>(bytes), value};
  auto head = reinterpret_cast<const char*>(&frame);
  size_t sent = 0;
  if (p.out.empty()) {  // from where it lies; only what the connection does not take is copied
    iovec parts[] = {{&frame, sizeof frame}, {const_cast<char*>(data), bytes}};
    msghdr message{};
    message.msg_iov = parts, message.msg_iovlen = bytes ? 2 : 1;
    ssize_t n = ::sendmsg(p.socket.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) sent = static_cast<size_t>(n);
    if (sent == sizeof frame + bytes) return;
  }
  if (sent < sizeof frame) p.out.append(head + sent, sizeof frame - sent);
  size_t at = sent > sizeof frame ? sent - sizeof frame : 0;
  p.out.append(data + at, bytes - at);
  flush(p);
  if (!p.out.empty()) wake();
}

void Mesh::flush(Peer& p) {
  while (p.out_at < p.out.size()) {
    ssize_t n = ::send(p.socket.fd(), p.out.data() + p.out_at, p.out.size() - p.out_at,
                       MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n < 0) {  // the thread will read that it is gone
      p.deaf = true;
      break;
    }
    p.out_at += static_cast<size_t>(n);
  }
  p.out.clear(), p.out_at = 0;
}

// No more than the connection takes at once, and the rest of one frame.
size_t Mesh::put(int r, const char* data, size_t bytes) {
  std::lock_guard lock(mutex_);
  Peer& p = peers_[static_cast<size_t>(r)];
  size_t done = 0;
  while (done < bytes && p.credit && p.out.empty() && !p.gone && !p.deaf) {
    size_t n = std::min({bytes - done, kLongestFrame, static_cast<size_t>(p.credit)});
    p.credit -= n;
    send_frame(p, kData, 0, data + done, n);
    done += n;
  }
  return done;
}

size_t Mesh::waiting(int r) {
  std::lock_guard lock(mutex_);
  Peer& p = peers_[static_cast<size_t>(r)];
  return p.in.size() - p.in_at;
}

// The sender may send so many more.
void Mesh::grant(Peer& p, size_t bytes) {
  size_t before = std::min<size_t>(bytes, p.advance);
  p.advance -= before;
  p.taken += bytes - before;
  if (p.taken < kWindow / 4) return;
  send_frame(p, kCredit, p.taken, nullptr, 0);
  p.taken = 0;
}

size_t Mesh::take(Peer& p, char* data, size_t bytes) {
  size_t n = std::min(bytes, p.in.size() - p.in_at);
  if (!n) return 0;
  std::memcpy(data, p.in.data() + p.in_at, n);
  p.in_at += n;
  if (p.in_at == p.in.size()) p.in.clear(), p.in_at = 0;
  grant(p, n);
  return n;
}

size_t Mesh::get(int r, char* data, size_t bytes) {
  std::lock_guard lock(mutex_);
  return take(peers_[static_cast<size_t>(r)], data, bytes);
}

// What has a place needs no room here: its sender need not wait for it to be taken.
size_t Mesh::get_lasting(int r, char* data, size_t bytes) {
  std::lock_guard lock(mutex_);
  Peer& p = peers_[static_cast<size_t>(r)];
  if (p.place) {
    size_t n = std::exchange(p.placed, 0);
    if (!p.place_bytes) p.place = nullptr;
    return n;
  }
  size_t n = take(p, data, bytes);
  if (n == bytes || p.gone) return n;
  p.place = data + n, p.place_bytes = bytes - n;
  grant(p, p.place_bytes);
  return n;
}

size_t Mesh::forget(int r) {
  std::lock_guard lock(mutex_);
  Peer& p = peers_[static_cast<size_t>(r)];
  p.advance += std::exchange(p.place_bytes, 0);  // its sender was told of this room
  p.place = nullptr;
  return std::exchange(p.placed, 0);
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

// Word of others -----------------------------------------------------------------------------

void Mesh::leave(RankState state, const std::string& reason) {
  std::unique_lock lock(mutex_);
  if (state_ != RankState::Working || owner_ != ::getpid()) return;
  state_ = state;
  size_t n = std::min(reason.size(), kLongestReason);
  for (auto& p : peers_)
    send_frame(p, kState, static_cast<uint64_t>(state), reason.data(), n);
  for (auto& p : peers_)
    if (p.data) ::shutdown(p.data.fd(), SHUT_WR);
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

// The thread ---------------------------------------------------------------------------------

void Mesh::wake() {
  char byte = 0;
  (void)!::write(bell_out_.fd(), &byte, 1);
}

void Mesh::handle(Peer& p, const Frame& frame, const char* data) {
  switch (frame.type) {
    case kCredit: p.credit += frame.value; return rung();
    case kState:
      p.state = static_cast<RankState>(frame.value);
      p.reason.assign(data, frame.bytes);
      troubled_ = true;
      return rung();
    case kAsk: return send_frame(p, kAnswerTo, doing_, nullptr, 0);
    case kAnswerTo:
      p.doing = frame.value, p.answered = true;
      return changed_.notify_all();
    default: return;
  }
}

// Bytes of the stream: to their place, or here until somebody asks for them.
void Mesh::store(Peer& p, const char* data, size_t bytes) {
  size_t n = std::min(bytes, p.place_bytes);
  if (n) {
    std::memcpy(p.place, data, n);
    p.place += n, p.place_bytes -= n, p.placed += n;
  }
  if (n < bytes) {
    if (p.in_at > kWindow / 4) p.in.erase(0, p.in_at), p.in_at = 0;
    p.in.append(data + n, bytes - n);
  }
  p.rest -= bytes;
  if (!p.place_bytes) rung();  // before, nobody needs to know
}

void Mesh::parse(Peer& p, const char* data, size_t bytes) {
  while (bytes > 0) {
    size_t n;
    if (p.rest) {
      n = std::min(bytes, p.rest);
      store(p, data, n);
    } else {
      Frame frame;
      size_t most = sizeof frame;
      if (p.partial.size() >= sizeof frame) {
        std::memcpy(&frame, p.partial.data(), sizeof frame);
        most += frame.bytes;
      }
      n = std::min(bytes, most - p.partial.size());
      p.partial.append(data, n);
      if (p.partial.size() < sizeof frame) return;
      std::memcpy(&frame, p.partial.data(), sizeof frame);
      bool is_data = frame.type == kData;
      if (frame.bytes > (is_data ? kLongestFrame : kLongestReason)) {  // no rank of ours says this
        p.gone = troubled_ = true;
        return rung();
      }
      if (is_data) {
        p.rest = frame.bytes;
        p.partial.clear();
      } else if (p.partial.size() == sizeof frame + frame.bytes) {
        handle(p, frame, p.partial.data() + sizeof frame);
        p.partial.clear();
      }
    }
    data += n, bytes -= n;
  }
}

void Mesh::read(Peer& p) {
  char bytes[64 * 1024];
  for (size_t all = 0; !p.gone && all < kBurst;) {
    // What has a place is read there, and with it the head of the next frame.
    size_t direct = std::min(p.rest, p.place_bytes);
    iovec parts[] = {{p.place, direct}, {bytes, direct ? sizeof(Frame) : sizeof bytes}};
    msghdr message{};
    message.msg_iov = direct ? parts : parts + 1, message.msg_iovlen = direct ? 2 : 1;
    ssize_t n = ::recvmsg(p.socket.fd(), &message, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) {
      p.gone = troubled_ = true;
      return rung();
    }
    size_t came = static_cast<size_t>(n), there = std::min(came, direct);
    all += came;
    p.place += there, p.place_bytes -= there, p.placed += there, p.rest -= there;
    if (there && !p.place_bytes) rung();
    parse(p, bytes, came - there);
  }
}

void Mesh::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::vector<pollfd> waits{{bell_in_.fd(), POLLIN, 0}};
    std::vector<Peer*> of{nullptr};
    for (auto& p : peers_) {
      if (p.gone || !p.socket) continue;
      auto events = static_cast<short>(p.out.empty() ? POLLIN : POLLIN | POLLOUT);
      waits.push_back({p.socket.fd(), events, 0});
      of.push_back(&p);
    }
    lock.unlock();
    ::poll(waits.data(), waits.size(), -1);
    lock.lock();
    char waste[64];
    while (waits[0].revents && ::read(bell_in_.fd(), waste, sizeof waste) > 0) continue;
    for (size_t i = 1; i < waits.size(); ++i) {
      if (waits[i].revents & POLLOUT) {
        flush(*of[i]);
        if (of[i]->out.empty()) rung();  // there is room for more
      }
      if (waits[i].revents & ~POLLOUT) read(*of[i]);
    }
  }
}

}  // namespace flambeau::distributed
