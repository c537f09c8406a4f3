// Collectives of the ranks of one machine, through memory that they share.
//
// A collective is a number of steps. In a step each rank writes what others need to its slot, comes
// to the step, waits for all, and reads their slots. A rank is at most one step ahead of another,
// so two slots each, used in turn, are enough, and no rank waits twice in a step.
#pragma once

#include "distributed/engine.h"
#include "distributed/region.h"

namespace flambeau::distributed {

class SharedEngine final : public Engine {
 public:
  explicit SharedEngine(Region& region) : Engine(region), region_(region) {}

 private:
  void perform(const Call& call) override;
  // The first step: writes and compares records.
  template <class Write>
  void begin(const Call& call, uint64_t bytes, uint64_t layout, Write write);
  template <class Write>
  void step(const Call& call, Write write);
  char* slot(int r) const { return region_.slot(r, step_); }

  void join(const Call& call, bool here);
  void join_parts(const Call& call, bool here);
  void broadcast(const Call& call);
  void all_gather(const Call& call, bool here);
  void scatter(const Call& call);
  void reduce_scatter(const Call& call);
  void all_to_all(const Call& call);
  void exchange(const Call& call, const std::vector<uint64_t>& sizes);

  Region& region_;
  uint32_t step_ = 1;  // step 1 made the group
};

}  // namespace flambeau::distributed
