// The memory that the ranks of one group share, and how a rank waits for another in it.
//
// The memory has no name in any file system: rank 0 makes it, the others open it through rank 0's
// entry in /proc, and it is gone with the last of them, however they end. Each rank has a line of
// its own that it alone writes: how many steps it has come to, what it is doing, and a bell for
// messages. Waiting sleeps in the kernel at once, and looks up now and then to see whether a rank
// died, gave up or left. Knows bytes and steps, no collective.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "distributed/fault.h"

namespace flambeau::distributed {

inline constexpr int kMostRanks = 256;

// What a rank says it calls, so that others can compare it with their own call.
struct Record {
  uint32_t number;  // of the collective in its group
  uint8_t kind, dtype, op, reserved;
  int32_t root;
  uint32_t reserved2;
  uint64_t bytes;   // what all ranks must agree on, for this kind
  uint64_t layout;  // the same: a digest of a list of sizes
};

enum class RankState : uint32_t { Working, GaveUp, Left };

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

class Region {
 public:
  // Rank 0's: makes the memory.
  Region(int size, std::string group);
  // The others': opens what rank 0's `address` says.
  Region(const std::string& address, int rank, int size, std::string group);
  ~Region();
  Region(const Region&) = delete;

  std::string address() const;  // names the machine too
  void begin(Milliseconds timeout);  // until every rank is here
  void leave(RankState state, const std::string& reason);

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& group() const { return group_; }
  Line& line(int r) const { return lines_[r]; }
  Line& mine() const { return lines_[rank_]; }
  // Memory of rank r for the step of this parity.
  char* slot(int r, uint32_t step) const;
  size_t slot_bytes() const { return slot_bytes_; }
  Ring& ring(int from, int to) const { return rings_[from * size_ + to]; }
  char* ring_data(int from, int to) const;
  size_t ring_bytes() const { return ring_bytes_; }

  // This rank has come to the step; the others that wait for it wake.
  void arrive(uint32_t step);
  // Until all ranks have come to the step. Faults name those that have not, and what they do.
  void wait_all(uint32_t step, const Deadline& deadline, Milliseconds timeout, const char* what);
  void ring_bell(int r);
  // Until the bell has another value than `seen`, or a while has passed; whether it rang.
  bool wait_bell(uint32_t seen, const Deadline& deadline);
  // Why rank r will never come: it died, gave up or left. Empty while it may.
  std::string trouble(int r) const;
  std::string whereabouts(int r) const;
  std::string all_trouble(uint32_t step) const;
  void close() { closing_ = true; }
  bool closing() const { return closing_; }

 private:
  void map(int fd);
  void sleep(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers, uint32_t value,
             Milliseconds most);

  int rank_, size_;
  std::string group_, address_;
  int fd_ = -1;
  char* memory_ = nullptr;
  size_t bytes_ = 0, slot_bytes_, ring_bytes_;
  Line* lines_ = nullptr;
  Ring* rings_ = nullptr;
  char *ring_data_ = nullptr, *slots_ = nullptr;
  std::atomic<bool> closing_{false};
};

extern const char* const kKindNames[];  // of Record::kind; engine.cpp

}  // namespace flambeau::distributed
