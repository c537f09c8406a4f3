// Collectives of ranks that may be on different machines, by Gloo over TCP.
//
// A collective begins with heads that all ranks send to each other over the mesh: what each calls,
// and its data where that is little. Larger ones follow by Gloo's own collectives. Sums are made in
// the order of ranks, by the loops of shared memory, so both engines give the same bits: each rank
// joins one part of what all have (all_to_all), and the parts are put together (all_gather). Gloo
// does not say which rank has failed: the mesh does.
#pragma once

#include <memory>
#include <mutex>

#include "distributed/engine.h"
#include "distributed/gloo_library.h"
#include "distributed/mesh.h"

namespace flambeau::distributed {

class GlooEngine final : public Engine {
 public:
  GlooEngine(Mesh& mesh, const GlooLibrary& library);
  ~GlooEngine() override;
  void begin(Milliseconds timeout) override;
  bool hears_signals() const override { return false; }
  void interrupt(const std::string& why) override;

 private:
  static constexpr size_t kRecord = 64;  // so that data behind it is aligned for any element
  struct Run;  // one collective
  struct Bytes;
  void perform(const Call& call) override;
  void prepare();
  void checked(const Run& run, bool good, const char* error);
  template <class Fill>
  void begin(Run& run, uint64_t bytes, uint64_t layout, size_t data, Fill fill);
  const char* sent_by(int r) const { return heads_[static_cast<size_t>(r)].data() + kRecord; }
  void all_to_all(Run& run, char* in, const std::vector<uint64_t>& in_bytes, char* out,
                  const std::vector<uint64_t>& out_bytes);
  void all_gather(Run& run, const Span& in, char* out, const std::vector<uint64_t>& out_bytes);

  void join(Run& run, bool here);
  void join_part(Run& run, const Span& data, bool here);
  void broadcast(Run& run);
  void gather_all(Run& run);
  void gather(Run& run);
  void scatter(Run& run);
  void reduce_scatter(Run& run);
  void exchange(Run& run);

  Mesh& mesh_;
  const GlooLibrary& library_;
  void* handle_ = nullptr;
  std::vector<std::string> heads_;
  std::string own_;
  std::vector<char> scratch_;  // of sums
  size_t small_;  // bytes that go with the head
  std::atomic<bool> busy_{false};
  std::mutex why_mutex_;
  std::string interrupted_;
  int owner_;
};

}  // namespace flambeau::distributed
