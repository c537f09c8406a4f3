// Work: a collective or message under way, waited for from any thread, and the tensors that it
// reads and writes, which live as long as it runs. Done once, with or without a fault.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/tensor.h"
#include "distributed/fault.h"

namespace flambeau::distributed {

class Work {
 public:
  explicit Work(Tensors tensors, std::string what)
      : tensors_(std::move(tensors)), what_(std::move(what)) {}

  void finish();
  void fail(FaultKind kind, const std::string& message);
  bool done() const;
  std::optional<Fault> fault() const;
  // Until done; raises its fault, or one where the time is over before.
  void wait(std::optional<Milliseconds> timeout) const;
  // Called once it is done, from whatever thread that is; at once where it is.
  void then(std::function<void()> call);
  int source = -1;  // of a message received: which rank sent it

 private:
  void end(std::optional<Fault> fault);
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool done_ = false;
  std::optional<Fault> fault_;
  std::vector<std::function<void()>> calls_;
  Tensors tensors_;
  std::string what_;
};

}  // namespace flambeau::distributed
