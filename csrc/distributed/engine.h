// Collectives of the ranks of one group, on raw memory: what engines have in common.
//
// In the first exchange of a collective each rank also says what it calls: where ranks disagree,
// all of them raise the same error, and the group goes on. Any other fault ends the group for this
// rank, and is told to those that wait for it. Not thread-safe: a process group calls it from one
// thread at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "distributed/link.h"
#include "distributed/reduce.h"

namespace flambeau::distributed {

// In the order of kKindNames.
enum class Kind : uint8_t {
  Nothing, AllReduce, Broadcast, Reduce, AllGather, Gather, Scatter, ReduceScatter, AllToAll,
  Barrier, MonitoredBarrier,
};

struct Span {
  char* data = nullptr;
  size_t bytes = 0;
};

// One collective as this rank calls it. `in` and `out` have one entry, or one for each rank.
struct Call {
  Kind kind = Kind::Nothing;
  DType dtype = DType::UInt8;
  ReduceOp op = ReduceOp::Sum;
  int root = 0;
  std::vector<Span> in, out;
  Milliseconds timeout{0};
};

class Engine {
 public:
  explicit Engine(Link& link) : link_(link) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  void run(const Call& call);

 protected:
  virtual void perform(const Call& call) = 0;
  // Call and sizes on which all ranks must agree.
  Record record(const Call& call, uint64_t bytes, uint64_t layout) const;
  // One for each rank; throws std::invalid_argument, on all ranks, where they differ.
  void compare(const Record* const* records) const;
  // From rank i to rank j: what i sends, and what j expects, at [i * ranks + j].
  void compare_sizes(const std::vector<uint64_t>& sent,
                     const std::vector<uint64_t>& expected) const;

  Link& link_;
  uint32_t number_ = 0;
  std::string broken_;  // why it is of no use any more
};

// Parts of memory ------------------------------------------------------------------------------
uint64_t digest(const std::vector<Span>& spans);  // only compared, never stored
size_t largest(const std::vector<Span>& spans);
// The part of a span that is `at` bytes into it, at most `most` long.
inline Span part(const Span& s, size_t at, size_t most) {
  if (at >= s.bytes) return {};
  return {s.data + at, std::min(most, s.bytes - at)};
}
inline void copy(char* to, const Span& from) {
  if (from.bytes) std::memcpy(to, from.data, from.bytes);
}
inline void fill(const Span& to, const char* from) {
  if (to.bytes) std::memcpy(to.data, from, to.bytes);
}

}  // namespace flambeau::distributed

namespace flambeau::kernels {
// out[i] = op over r of inputs[r][i], by the loops of this machine's instruction set.
void join_values(distributed::ReduceOp op, DType dtype, void* out, const void* const* inputs,
                 int ranks, size_t n);
}  // namespace flambeau::kernels
