// The memory that the ranks of one group share, and how a rank waits for another in it.
//
// The memory has no name in any file system: rank 0 makes it, the others open it through rank 0's
// entry in /proc, and it is gone with the last of them, however they end. Each rank has a line of
// its own that it alone writes: how many steps it has come to, what it is doing, and a bell for
// messages. Waiting sleeps in the kernel at once, and looks up now and then to see whether a rank
// died, gave up or left. Knows bytes and steps, no collective.
#pragma once

#include "distributed/link.h"

namespace flambeau::distributed {

struct Line {
  alignas(64) std::atomic<uint32_t> step;  // a futex: steps it has come to
  std::atomic<uint32_t> step_sleepers;
  alignas(64) std::atomic<uint32_t> bell;  // a futex: something was sent to it, or read
  std::atomic<uint32_t> bell_sleepers;
  alignas(64) std::atomic<RankState> state;
  std::atomic<int32_t> pid;
  std::atomic<uint64_t> doing;  // number << 9 | kind << 1 | whether it is in it still
  char reason[232];             // why it gave up; written before the state
  alignas(64) Record records[2];
};

// One direction between two ranks: bytes in a ring.
struct Ring {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> taken;
};

class Region final : public Link {
 public:
  // Rank 0's: makes the memory.
  Region(int size, std::string group);
  // The others': opens what rank 0's `address` says.
  Region(const std::string& address, int rank, int size, std::string group);
  ~Region() override;

  std::string address() const override;  // names the machine too
  void begin(const std::vector<std::string>& addresses, Milliseconds timeout) override;
  void leave(RankState state, const std::string& reason) override;
  void set_doing(uint64_t doing) override { mine().doing.store(doing); }
  std::string trouble(int r) override;
  std::string whereabouts(int r) override;
  size_t put(int r, const char* data, size_t bytes) override;
  size_t waiting(int r) override;
  size_t get(int r, char* data, size_t bytes) override;
  uint32_t bell() override { return mine().bell.load(); }
  void ring_bell(int r) override;
  bool wait_bell(uint32_t seen, const Deadline& deadline) override;

  Line& line(int r) const { return lines_[r]; }
  Line& mine() const { return lines_[rank_]; }
  // Memory of rank r for the step of this parity.
  char* slot(int r, uint32_t step) const;
  size_t slot_bytes() const { return slot_bytes_; }

  // This rank has come to the step; the others that wait for it wake.
  void arrive(uint32_t step);
  // Until all ranks have come to the step. Faults name those that have not, and what they do.
  void wait_all(uint32_t step, const Deadline& deadline, Milliseconds timeout, const char* what);

 private:
  Ring& ring(int from, int to) const { return rings_[from * size_ + to]; }
  char* ring_data(int from, int to) const;
  template <class Copy>
  void in_pieces(int r, std::atomic<uint64_t>& count, size_t n, Copy copy);
  std::string all_trouble(uint32_t step);
  void map(int fd);
  void sleep(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers, uint32_t value,
             Milliseconds most);

  std::string address_;
  int fd_ = -1;
  char* memory_ = nullptr;
  size_t bytes_ = 0, slot_bytes_, ring_bytes_;
  Line* lines_ = nullptr;
  Ring* rings_ = nullptr;
  char *ring_data_ = nullptr, *slots_ = nullptr;
};

// What this process shares with those that can open its memory: machine, numbers of processes and
// user.
std::string machine();

}  // namespace flambeau::distributed
