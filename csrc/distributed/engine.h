// Collectives of the ranks of one machine, on raw memory.
//
// A collective is a number of steps. In a step each rank writes what others need to its slot, comes
// to the step, waits for all, and reads their slots. A rank is at most one step ahead of another,
// so two slots each, used in turn, are enough, and no rank waits twice in a step. In the first step
// each rank also says what it calls: where ranks disagree, all of them raise the same error, and
// the group goes on. Any other fault ends the group for this rank, and wakes those that wait for
// it. Not thread-safe: a process group calls it from one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "core/dtype.h"
#include "distributed/reduce.h"
#include "distributed/region.h"

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
  explicit Engine(Region& region) : region_(region) {}
  void run(const Call& call);
  const std::string& broken() const { return broken_; }  // why it is of no use any more

 private:
  void perform(const Call& call);
  // The first step: writes and compares records.
  template <class Write>
  void begin(const Call& call, uint64_t bytes, uint64_t layout, Write write);
  template <class Write>
  void step(const Call& call, Write write);
  void compare();
  char* slot(int r) const { return region_.slot(r, step_); }

  void join(const Call& call, bool here);
  void broadcast(const Call& call);
  void all_gather(const Call& call, bool here);
  void scatter(const Call& call);
  void reduce_scatter(const Call& call);
  void all_to_all(const Call& call);
  void exchange(const Call& call, const std::vector<uint64_t>& sizes);

  Region& region_;
  uint32_t step_ = 1, number_ = 0;  // step 1 made the group
  std::string broken_;
};

}  // namespace flambeau::distributed
