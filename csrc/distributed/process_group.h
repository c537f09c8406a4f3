// ProcessGroup: the ranks of one group, and what they have under way.
//
// Collectives run one after another, in the order of their calls. One that is to be waited for
// anyway runs on the calling thread when nothing is queued, for handing it to a thread and back
// takes longer than a small one; others wait in a queue for the group's thread, which is made for
// the first of them. Knows tensors; an engine knows memory.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "distributed/mailbox.h"
#include "distributed/shared_engine.h"
#include "distributed/tcp_engine.h"
#include "distributed/work.h"

namespace flambeau::distributed {

class ProcessGroup {
 public:
  // Ranks of one machine, joined by memory.
  explicit ProcessGroup(std::unique_ptr<Region> region);
  // Ranks that may be on different machines, joined by connections.
  explicit ProcessGroup(std::unique_ptr<Mesh> mesh);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;

  // `addresses`: of all ranks, where each has one of its own.
  void begin(const std::vector<std::string>& addresses, Milliseconds timeout);
  int rank() const { return link_->rank(); }
  int size() const { return link_->size(); }
  std::string address() const { return link_->address(); }

  // Null where it has ended already. `in` and `out` are contiguous; see Engine for how many.
  std::shared_ptr<Work> collective(Kind kind, const Tensors& out, const Tensors& in, ReduceOp op,
                                   int root, Milliseconds timeout, bool async);
  // A message; peer -1 receives from any rank. Null as above, and `source` says from whom.
  std::shared_ptr<Work> message(bool sends, const Tensor& data, int peer, int tag,
                                Milliseconds timeout, bool async, int* source);
  void shutdown();

 private:
  struct Task {
    Call call;
    std::shared_ptr<Work> work;
  };
  void check_alive(const char* op) const;
  void run();
  void fail_queued();

  std::unique_ptr<Link> link_;
  std::unique_ptr<Engine> engine_;
  Mailbox mailbox_;
  pid_t owner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> queue_;
  bool busy_ = false;
  std::atomic<bool> stopping_{false};  // set under the lock
  std::unique_ptr<std::thread> thread_;
};

// Whether values of the type can be joined so; Error(Runtime) names the operator where not.
void check_joins(const char* name, ReduceOp op, DType dtype);

}  // namespace flambeau::distributed
