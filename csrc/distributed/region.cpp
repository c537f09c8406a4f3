#include "distributed/region.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>

namespace flambeau::distributed {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSlotBytes = 256 * 1024;
// Of a ring's bytes, so many at a time are given to the other side, which moves them on meanwhile.
constexpr size_t kPiece = 64 * 1024;
// How long a waiting rank sleeps before it looks whether the others still live.
constexpr Milliseconds kGlance(100);

size_t whole_pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

long futex(std::atomic<uint32_t>& word, int op, uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), op, value, timeout, nullptr, 0);
}

std::string first_word(const char* path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// The letter of a process's state in /proc; 0 where there is none.
char process_state(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  size_t end = text.rfind(')');
  return end == std::string::npos || end + 2 >= text.size() ? 0 : text[end + 2];
}

[[noreturn]] void fail_backend(const std::string& text) {
  throw Fault(FaultKind::Backend, text);
}

}  // namespace

std::string machine() {
  char space[64] = {};
  ssize_t n = ::readlink("/proc/self/ns/pid", space, sizeof space - 1);
  return first_word("/proc/sys/kernel/random/boot_id") + "," + std::string(space, n > 0 ? n : 0) +
         "," + std::to_string(::getuid());
}

Region::Region(int size, std::string group) : Link(0, size, std::move(group)) {
  int fd = ::memfd_create("flambeau group", MFD_CLOEXEC);
  if (fd < 0) fail_backend("group '" + group_ + "': no shared memory: " + std::strerror(errno));
  map(fd);
  address_ = machine() + " /proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd);
}

Region::Region(const std::string& address, int rank, int size, std::string group)
    : Link(rank, size, std::move(group)), address_(address) {
  size_t space = address.find(' ');
  if (address.substr(0, space) != machine())
    fail_backend("group '" + group_ + "': rank " + std::to_string(rank) +
                 " and rank 0 are on different machines, in different containers or of different "
                 "users; this build joins processes of one machine alone, by shared memory");
  std::string path = address.substr(space + 1);
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0)
    fail_backend("group '" + group_ + "': rank " + std::to_string(rank) +
                 " cannot open the memory of rank 0, " + path + ": " + std::strerror(errno));
  map(fd);
}

void Region::map(int fd) {
  fd_ = fd;
  auto n = static_cast<size_t>(size_);
  slot_bytes_ = kSlotBytes;
  ring_bytes_ = std::clamp<size_t>((size_t{16} << 20) / (n * n), 8192, 262144);
  ring_bytes_ = ring_bytes_ / 64 * 64;
  size_t lines = whole_pages(n * sizeof(Line)), rings = whole_pages(n * n * sizeof(Ring));
  size_t data = whole_pages(n * n * ring_bytes_), slots = 2 * n * slot_bytes_;
  bytes_ = lines + rings + data + slots;
  bool made = rank_ != 0 || ::ftruncate(fd, static_cast<off_t>(bytes_)) == 0;
  struct stat info;
  // Beyond the end of what rank 0 made, touching memory would end this process.
  made = made && ::fstat(fd, &info) == 0 && info.st_size == static_cast<off_t>(bytes_);
  void* p = made ? ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (p == MAP_FAILED) {
    std::string why = std::strerror(errno);
    ::close(fd);
    fail_backend("group '" + group_ + "': cannot map " + std::to_string(bytes_) +
                 " bytes of shared memory for " + std::to_string(size_) +
                 " ranks: " + (made ? why : "rank 0 has made another number of bytes"));
  }
  memory_ = static_cast<char*>(p);
  lines_ = reinterpret_cast<Line*>(memory_);
  rings_ = reinterpret_cast<Ring*>(memory_ + lines);
  ring_data_ = memory_ + lines + rings;
  slots_ = ring_data_ + data;
}

Region::~Region() {
  if (memory_) ::munmap(memory_, bytes_);
  if (fd_ >= 0) ::close(fd_);
}

std::string Region::address() const {
  return address_;
}

void Region::begin(const std::vector<std::string>&, Milliseconds timeout) {
  mine().pid.store(::getpid());
  arrive(1);
  wait_all(1, Deadline(timeout), timeout, "making the group");
  // All have opened it.
  ::close(fd_);
  fd_ = -1;
}

void Region::leave(RankState state, const std::string& reason) {
  if (mine().state.load() != RankState::Working) return;
  size_t n = std::min(reason.size(), sizeof mine().reason - 1);
  std::memcpy(mine().reason, reason.data(), n);
  mine().reason[n] = 0;
  mine().state.store(state);
  futex(mine().step, FUTEX_WAKE, INT_MAX, nullptr);
  for (int r = 0; r < size_; ++r)
    if (r != rank_) ring_bell(r);
}

char* Region::slot(int r, uint32_t step) const {
  return slots_ + ((step & 1) * static_cast<size_t>(size_) + static_cast<size_t>(r)) * slot_bytes_;
}

char* Region::ring_data(int from, int to) const {
  return ring_data_ + static_cast<size_t>(from * size_ + to) * ring_bytes_;
}

void Region::arrive(uint32_t step) {
  mine().step.store(step);
  if (mine().step_sleepers.load()) futex(mine().step, FUTEX_WAKE, INT_MAX, nullptr);
}

void Region::sleep(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers, uint32_t value,
                   Milliseconds most) {
  timespec t{most.count() / 1000, most.count() % 1000 * 1000000};
  sleepers.fetch_add(1);
  long status = futex(word, FUTEX_WAIT, value, &t);
  int error = errno;
  sleepers.fetch_sub(1);
  if (status != 0 && error == EINTR) check_interrupt();
}

void Region::wait_all(uint32_t step, const Deadline& deadline, Milliseconds timeout,
                      const char* what) {
  auto name = [&] { return std::string(what) + " (group '" + group_ + "')"; };
  for (int r = 0; r < size_; ++r) {
    auto& word = line(r).step;
    for (;;) {
      uint32_t value = word.load();
      if (static_cast<int32_t>(value - step) >= 0) break;
      sleep(word, line(r).step_sleepers, value, std::min(kGlance, deadline.left()));
      if (word.load() != value) continue;
      check_interrupt();
      if (closing_) fail_backend(name() + ": the group was destroyed meanwhile");
      if (!trouble(r).empty() && word.load() == value) fail_backend(name() + all_trouble(step));
      if (!deadline.passed()) continue;
      std::string text = name() + ": timed out after " + seconds_text(timeout);
      for (int q = r; q < size_; ++q)
        if (static_cast<int32_t>(line(q).step.load() - step) < 0)
          text += "; rank " + std::to_string(q) + " did not come: " + whereabouts(q);
      fail_backend(text);
    }
  }
  // All came, yet one may have given up meanwhile: then it did not read what this rank wrote.
  for (int r = 0; r < size_; ++r)
    if (line(r).state.load(std::memory_order_acquire) == RankState::GaveUp)
      fail_backend(name() + ": rank " + std::to_string(r) + " " + trouble(r));
}

// Of all that will not come to the step: the one that is waited for may have failed over another.
std::string Region::all_trouble(uint32_t step) {
  std::string text;
  for (int r = 0; r < size_; ++r) {
    if (static_cast<int32_t>(line(r).step.load() - step) >= 0) continue;
    if (std::string why = trouble(r); !why.empty())
      text += (text.empty() ? ": rank " : "; rank ") + std::to_string(r) + " " + why;
  }
  return text;
}

size_t Region::waiting(int r) {
  Ring& way = ring(r, rank_);
  return way.written.load() - way.taken.load();
}

size_t Region::put(int r, const char* data, size_t bytes) {
  Ring& way = ring(rank_, r);
  char* memory = ring_data(rank_, r);
  uint64_t taken = way.taken.load(std::memory_order_acquire);
  uint64_t written = way.written.load(std::memory_order_relaxed);
  size_t n = std::min<size_t>(bytes, ring_bytes_ - (written - taken));
  in_pieces(r, way.written, n, [&](size_t at, size_t done, size_t some) {
    std::memcpy(memory + at, data + done, some);
  });
  return n;
}

size_t Region::get(int r, char* data, size_t bytes) {
  Ring& way = ring(r, rank_);
  const char* memory = ring_data(r, rank_);
  uint64_t written = way.written.load(std::memory_order_acquire);
  uint64_t taken = way.taken.load(std::memory_order_relaxed);
  size_t n = std::min<size_t>(bytes, written - taken);
  in_pieces(r, way.taken, n, [&](size_t at, size_t done, size_t some) {
    std::memcpy(data + done, memory + at, some);
  });
  return n;
}

// Copies n bytes from the place where `count` stands; after each piece the count says so to rank r.
template <class Copy>
void Region::in_pieces(int r, std::atomic<uint64_t>& count, size_t n, Copy copy) {
  uint64_t begin = count.load(std::memory_order_relaxed);
  for (size_t done = 0; done < n;) {
    size_t at = (begin + done) % ring_bytes_;
    size_t some = std::min({kPiece, n - done, ring_bytes_ - at});
    copy(at, done, some);
    done += some;
    count.store(begin + done, std::memory_order_release);
    if (done < n) ring_bell(r);
  }
}

void Region::ring_bell(int r) {
  line(r).bell.fetch_add(1);
  if (line(r).bell_sleepers.load()) futex(line(r).bell, FUTEX_WAKE, INT_MAX, nullptr);
}

bool Region::wait_bell(uint32_t seen, const Deadline& deadline) {
  sleep(mine().bell, mine().bell_sleepers, seen, std::min(kGlance, deadline.left()));
  return mine().bell.load() != seen;
}

std::string Region::trouble(int r) {
  Line& l = line(r);
  RankState state = l.state.load();
  if (state == RankState::Left) return "has left the group";
  if (state == RankState::GaveUp) {
    char reason[sizeof l.reason];
    std::memcpy(reason, l.reason, sizeof reason);
    reason[sizeof reason - 1] = 0;
    return "gave up: " + std::string(reason);
  }
  int pid = l.pid.load();
  if (!pid) return {};
  char process = process_state(pid);
  if (process && process != 'Z' && process != 'X') return {};
  return "has died (process " + std::to_string(pid) + " is gone): " + whereabouts(r);
}

std::string Region::whereabouts(int r) {
  Line& l = line(r);
  int pid = l.pid.load();
  if (!pid) return "it has not joined the group";
  uint64_t doing = l.doing.load();
  std::string text = doing_text(doing);
  char process = process_state(pid);
  if (process == 'T' || process == 't') text += ", and its process is stopped";
  return text;
}

}  // namespace flambeau::distributed
