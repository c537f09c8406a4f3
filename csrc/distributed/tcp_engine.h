// Collectives of ranks that may be on different machines, over connections of their own.
//
// A collective begins with heads that all ranks send to each other: what each calls, and its data
// where that is little. Larger data follows. A sum is made in blocks: each rank gets one part of a
// block from all, joins it in the order of ranks by the loops of shared memory, and sends it to
// all, while the parts of the next blocks are under way. That is as few bytes as in a ring, and
// sums have the same bits on all ranks and over both engines, which a ring would not give. A
// broadcast goes from rank to rank, each passing on what it has. Everything else goes straight to
// where it belongs.
#pragma once

#include "distributed/engine.h"
#include "distributed/traffic.h"

namespace flambeau::distributed {

class TcpEngine final : public Engine {
 public:
  explicit TcpEngine(Mesh& mesh);

 private:
  void perform(const Call& call) override;
  // The heads of all ranks, compared. `data(r)`: what goes to rank r with it.
  template <class Data>
  void begin(const Call& call, const Wait& wait, uint64_t bytes, uint64_t layout, Data data);
  const char* sent_by(int r) const { return heads_[static_cast<size_t>(r)].data() + kHead; }
  // Where all ranks' parts of a small sum are, this rank's being `mine`.
  void join_small(const Call& call, const Span& mine, const Span& out);
  // Straight from rank to rank: in[r] to r, and what comes of r to out[r].
  void direct(const Wait& wait, const std::vector<Span>& in, const std::vector<Span>& out);

  void join(const Call& call, const Wait& wait, bool here);
  void broadcast(const Call& call, const Wait& wait);
  void gather(const Call& call, const Wait& wait, bool here);
  void scatter(const Call& call, const Wait& wait);
  void reduce_scatter(const Call& call, const Wait& wait);
  void all_to_all(const Call& call, const Wait& wait);

  static constexpr size_t kHead = 64;  // so that data behind it is aligned for any element
  struct Heads;
  Mesh& mesh_;
  Traffic traffic_;
  std::vector<std::vector<char>> heads_, own_;
  std::vector<char> scratch_;  // of sums
  size_t small_;               // bytes that go with the head
};

}  // namespace flambeau::distributed
