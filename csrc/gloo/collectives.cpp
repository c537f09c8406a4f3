// Collectives between machines by Gloo over TCP, as a library of its own that gloo_library.cpp opens
// on first use, so that importing does not load Gloo and a machine without it lacks nothing but
// groups across machines. No C++ type and no exception crosses: functions of memory, sizes and
// texts, which return whether they succeeded. Ranks meet by addresses that the caller carries.
#include <gloo/allgatherv.h>
#include <gloo/alltoallv.h>
#include <gloo/broadcast.h>
#include <gloo/context.h>
#include <gloo/gather.h>
#include <gloo/scatter.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace {

using std::chrono::milliseconds;

// What Gloo waits for a connection: five times the time of its context.
constexpr int64_t kConnects = 5;
constexpr size_t kErrorBytes = 512;

class Group final : public gloo::Context {
 public:
  Group(int rank, int size, const char* host, int64_t connect_ms) : gloo::Context(rank, size) {
    gloo::transport::tcp::attr where;
    where.hostname = host;
    device_ = gloo::transport::tcp::CreateDevice(where);
    transportContext_ = device_->createContext(rank, size);
    milliseconds time(connect_ms / kConnects + 1);
    transportContext_->setTimeout(time);
    setTimeout(time);
    for (int r = 0; r < size; ++r)
      if (r != rank) transportContext_->createPair(r);
  }
  gloo::transport::Pair& pair(int r) { return *transportContext_->getPair(r); }

  // A buffer of the collective under way: only through it can a wait in another thread be ended.
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer(void* data, uint64_t bytes) {
    auto out = createUnboundBuffer(data, bytes);
    std::lock_guard lock(mutex_);
    buffers_.push_back(out.get());
    return out;
  }
  // Ends the waits that there are; the next ones go on.
  void end_waits() {
    std::lock_guard lock(mutex_);
    aborted_ = true;
    for (auto* b : buffers_) b->abortWaitSend(), b->abortWaitRecv();
  }
  // `collective` with options whose buffers are this group's. Gloo takes waits that were ended for
  // ones that went well.
  template <class Options, class Run>
  void run(Options& options, Run collective) {
    struct Forget {
      Group& group;
      ~Forget() {
        std::lock_guard lock(group.mutex_);
        group.buffers_.clear();
      }
    } forget{*this};
    collective(options);
    std::lock_guard lock(mutex_);
    if (aborted_) throw std::runtime_error("the group failed");
  }

 private:
  std::mutex mutex_;
  std::vector<gloo::transport::UnboundBuffer*> buffers_;
  bool aborted_ = false;
};

template <class Run>
bool guarded(char* error, Run run) {
  const char* text = "unknown error";
  try {
    run();
    return true;
  } catch (const std::exception& e) {
    text = e.what();
    std::strncpy(error, text, kErrorBytes - 1);
  } catch (...) {
    std::strncpy(error, text, kErrorBytes - 1);
  }
  error[kErrorBytes - 1] = 0;
  return false;
}

// The thread's signals are the main thread's: Gloo's own are made with all of them blocked.
struct Quiet {
  Quiet() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~Quiet() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  sigset_t before;
};

std::shared_ptr<Group>& group_of(void* handle) {
  return *static_cast<std::shared_ptr<Group>*>(handle);
}

template <class Options>
void common(Options& o, uint32_t tag, int64_t ms) {
  o.setTag(tag);
  o.setTimeout(milliseconds(ms));
}

uint64_t total(const uint64_t* sizes, int ranks) {
  return std::accumulate(sizes, sizes + ranks, uint64_t{0});
}

std::vector<int64_t> counts(const uint64_t* sizes, int ranks) {
  return std::vector<int64_t>(sizes, sizes + ranks);
}

}  // namespace

#define FB_EXPORT extern "C" __attribute__((visibility("default")))

FB_EXPORT void* flambeau_gloo_make(int rank, int size, const char* host, int64_t connect_ms,
                                   char* error) {
  std::shared_ptr<Group>* out = nullptr;
  guarded(error, [&] {
    Quiet quiet;
    out = new std::shared_ptr<Group>(std::make_shared<Group>(rank, size, host, connect_ms));
  });
  return out;
}

FB_EXPORT void flambeau_gloo_free(void* handle) {
  char error[kErrorBytes];
  guarded(error, [&] { delete &group_of(handle); });
}

// Where rank r is to find this one; the number of its bytes, or 0 where they are more than `most`.
FB_EXPORT uint64_t flambeau_gloo_address(void* handle, int r, char* out, uint64_t most) {
  auto bytes = group_of(handle)->pair(r).address().bytes();
  if (bytes.size() > most) return 0;
  std::memcpy(out, bytes.data(), bytes.size());
  return bytes.size();
}

FB_EXPORT bool flambeau_gloo_connect(void* handle, int r, const char* address, uint64_t bytes,
                                     char* error) {
  return guarded(error, [&] {
    group_of(handle)->pair(r).connect(std::vector<char>(address, address + bytes));
  });
}

// What is under way fails, from any thread; to be called until it has.
FB_EXPORT void flambeau_gloo_abort(void* handle) {
  group_of(handle)->end_waits();
}

// `in` holds what goes to each rank, one after another, and `out` what comes from each.
FB_EXPORT bool flambeau_gloo_all_to_all(void* handle, char* in, const uint64_t* in_bytes, char* out,
                                        const uint64_t* out_bytes, uint32_t tag, int64_t ms,
                                        char* error) {
  return guarded(error, [&] {
    auto& group = group_of(handle);
    gloo::AlltoallvOptions o(group);
    o.setInput<char>(group->buffer(in, total(in_bytes, group->size)), counts(in_bytes, group->size));
    o.setOutput<char>(group->buffer(out, total(out_bytes, group->size)),
                      counts(out_bytes, group->size));
    common(o, tag, ms);
    group->run(o, gloo::alltoallv);
  });
}

FB_EXPORT bool flambeau_gloo_all_gather(void* handle, char* in, uint64_t in_bytes, char* out,
                                        const uint64_t* out_bytes, uint32_t tag, int64_t ms,
                                        char* error) {
  return guarded(error, [&] {
    auto& group = group_of(handle);
    gloo::AllgathervOptions o(group);
    o.setInput<char>(group->buffer(in, in_bytes));
    o.setOutput<char>(group->buffer(out, total(out_bytes, group->size)),
                      std::vector<size_t>(out_bytes, out_bytes + group->size));
    common(o, tag, ms);
    group->run(o, gloo::allgatherv);
  });
}

FB_EXPORT bool flambeau_gloo_broadcast(void* handle, char* data, uint64_t bytes, int root,
                                       uint32_t tag, int64_t ms, char* error) {
  return guarded(error, [&] {
    auto& group = group_of(handle);
    gloo::BroadcastOptions o(group);
    o.setOutput<char>(group->buffer(data, bytes));
    o.setRoot(root);
    common(o, tag, ms);
    group->run(o, gloo::broadcast);
  });
}

// `out` is the root's alone: as many bytes of each rank, one after another.
FB_EXPORT bool flambeau_gloo_gather(void* handle, char* in, uint64_t bytes, char* out, int root,
                                    uint32_t tag, int64_t ms, char* error) {
  return guarded(error, [&] {
    auto& group = group_of(handle);
    gloo::GatherOptions o(group);
    o.setInput<char>(group->buffer(in, bytes));
    if (group->rank == root)
      o.setOutput<char>(group->buffer(out, bytes * static_cast<uint64_t>(group->size)));
    o.setRoot(root);
    common(o, tag, ms);
    group->run(o, gloo::gather);
  });
}

// `in` is the root's alone: where the part of each rank is.
FB_EXPORT bool flambeau_gloo_scatter(void* handle, char* const* in, uint64_t bytes, char* out,
                                     int root, uint32_t tag, int64_t ms, char* error) {
  return guarded(error, [&] {
    auto& group = group_of(handle);
    gloo::ScatterOptions o(group);
    if (group->rank == root) {
      std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> parts;
      for (int r = 0; r < group->size; ++r) parts.push_back(group->buffer(in[r], bytes));
      o.setInputs<char>(std::move(parts));
    }
    o.setOutput<char>(group->buffer(out, bytes));
    o.setRoot(root);
    common(o, tag, ms);
    group->run(o, gloo::scatter);
  });
}
