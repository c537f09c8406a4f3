#include "distributed/traffic.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace flambeau::distributed {

namespace {

constexpr size_t kBurst = 256 * 1024;  // of one rank before the others' turn
constexpr int kGlance = 100;           // ms
constexpr Milliseconds kHearsay(1000);

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

Traffic::Traffic(Mesh& mesh)
    : mesh_(mesh), out_(static_cast<size_t>(mesh.size())), in_(static_cast<size_t>(mesh.size())) {}

void Traffic::fail(const Wait& wait, bool late, const std::string& why) const {
  std::string name = std::string(wait.name) + " (group '" + mesh_.group() + "')";
  auto raise = [&](const std::string& text) { throw Fault(FaultKind::Backend, name + text); };
  if (mesh_.closing()) raise(": the group was destroyed meanwhile");
  std::string trouble = mesh_.all_trouble(late ? Milliseconds(0) : kHearsay);
  if (!trouble.empty()) raise(trouble);
  if (late) raise(": timed out after " + seconds_text(wait.timeout) + mesh_.missing(wait.number));
  raise(": " + why);
  __builtin_unreachable();
}

// Whether something moved.
bool Traffic::send(Plan& plan, const Wait& wait, int rank) {
  Way& way = out_[static_cast<size_t>(rank)];
  if (way.ended || way.stuck) return false;
  if (!way.open) {
    way.at = 0;
    switch (plan.send_next(rank, way.piece)) {
      case Next::Later: return false;
      case Next::None: way.ended = true; return true;
      case Next::Piece: way.open = true;
    }
  }
  while (way.at < way.piece.bytes) {
    size_t most = std::min(kBurst, way.piece.bytes - way.at);
    ssize_t n = ::send(mesh_.data(rank).fd(), way.piece.data + way.at, most,
                       MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && would_block(errno)) {
      way.stuck = true;
      return false;
    }
    if (n < 0)
      fail(wait, false, "the connection to rank " + std::to_string(rank) + " broke: " +
                            std::strerror(errno));
    way.at += static_cast<size_t>(n);
    way.stuck = static_cast<size_t>(n) < most;
    break;
  }
  if (way.at == way.piece.bytes) way.open = false, plan.sent(rank);
  return true;
}

bool Traffic::receive(Plan& plan, const Wait& wait, int rank) {
  Way& way = in_[static_cast<size_t>(rank)];
  if (way.ended || way.stuck) return false;
  if (!way.open) {
    way.at = 0;
    switch (plan.receive_next(rank, way.piece)) {
      case Next::Later: return false;
      case Next::None: way.ended = true; return true;
      case Next::Piece: way.open = true;
    }
  }
  while (way.at < way.piece.bytes) {
    size_t most = way.piece.bytes - way.at;
    ssize_t n = ::recv(mesh_.data(rank).fd(), way.piece.data + way.at, most, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && would_block(errno)) {
      way.stuck = true;
      return false;
    }
    if (n <= 0)
      fail(wait, false, "the connection to rank " + std::to_string(rank) + " broke: " +
                            (n ? std::strerror(errno) : "it was closed"));
    way.at += static_cast<size_t>(n);
    way.stuck = static_cast<size_t>(n) < most;
    break;
  }
  if (way.at == way.piece.bytes) way.open = false, plan.received(rank);
  return true;
}

// Until a connection that something is wanted of can move.
void Traffic::sleep(const Wait& wait) {
  pollfd waits[kMostRanks];
  int of[kMostRanks];
  nfds_t count = 0;
  for (int r = 0; r < mesh_.size(); ++r) {
    auto i = static_cast<size_t>(r);
    int events = (in_[i].stuck && in_[i].open ? POLLIN : 0) |
                 (out_[i].stuck && out_[i].open ? POLLOUT : 0);
    if (!events) continue;
    of[count] = r;
    waits[count++] = {mesh_.data(r).fd(), static_cast<short>(events), 0};
  }
  int n = ::poll(waits, count, wait.deadline.poll_ms(kGlance));
  if (n <= 0) check_interrupt();
  if (mesh_.closing()) fail(wait, false, "");
  if (n > 0) {
    for (nfds_t i = 0; i < count; ++i) {
      auto r = static_cast<size_t>(of[i]);
      if (waits[i].revents & ~POLLOUT) in_[r].stuck = false;
      if (waits[i].revents & ~POLLIN) out_[r].stuck = false;
    }
  } else {  // what a rank has sent before it left still comes, but it reads no more
    for (nfds_t i = 0; i < count; ++i)
      if (waits[i].events & POLLOUT && !mesh_.trouble(of[i]).empty()) fail(wait, false, "");
  }
  if (wait.deadline.passed()) fail(wait, true, "");
}

void Traffic::run(Plan& plan, const Wait& wait) {
  for (auto& way : out_) way = {};
  for (auto& way : in_) way = {};
  for (;;) {
    bool moved = false, left = false;
    for (int r = 0; r < mesh_.size(); ++r) {
      if (r == mesh_.rank()) continue;
      moved |= send(plan, wait, r);
      moved |= receive(plan, wait, r);
      left |= !out_[static_cast<size_t>(r)].ended || !in_[static_cast<size_t>(r)].ended;
    }
    if (!left) return;
    if (!moved) sleep(wait);
  }
}

}  // namespace flambeau::distributed
