// Storage: a counted piece of memory, shared by the tensors that are views of it. Small storages
// hold their bytes behind themselves: one allocation. The version counter counts in-place changes,
// for autograd.
//
// Note [Ages of storages]
// Memory is marked with the age in which it was made. A transform that must tell what the function
// made from what it captured begins a new age: what is older was there before.
#pragma once

#include <atomic>
#include <utility>

#include "core/allocator.h"
#include "core/device.h"
#include "core/intrusive.h"

namespace flambeau {

// Counts in-place changes. `x.data` detaches from its storage's counter and gets its own; a tensor
// whose memory was exchanged (`x.data = y`) goes on counting with the views of what it had.
struct VersionCounter : Counted<VersionCounter> {
  std::atomic<uint32_t> value{0};
  static void destroy(VersionCounter* v) { delete v; }
};

// The age that storages are made in, and a new one, see Note [Ages of storages].
extern constinit std::atomic<uint64_t> storage_age;  // one in a process
inline uint64_t begin_storage_age() noexcept {
  return storage_age.fetch_add(1, std::memory_order_relaxed) + 1;
}

class Storage : public Counted<Storage> {
 public:
  using Deleter = void (*)(void* context);

  static Ref<Storage> make(int64_t bytes, Device device = {});  // uninitialised
  static Ref<Storage> wrap(void* data, int64_t bytes, Deleter deleter, void* context,
                           Device device = {});
  static void destroy(Storage* s) noexcept;

  void* data() const noexcept { return data_; }
  int64_t nbytes() const noexcept { return nbytes_; }
  Device device() const noexcept { return device_; }
  bool resizable() const noexcept { return !deleter_ && !exports_.load(std::memory_order_relaxed); }
  // Keeps the common prefix. Only memory of its own that nobody outside points into. A storage that
  // shrinks keeps its block, for tensors may be longer, and gives the pages back.
  void resize(int64_t bytes);
  // The bytes are elsewhere now: what was here is given back. Refused while somebody outside holds
  // the address.
  void move_to(void* data, Deleter deleter, void* context);
  // What `wrap` or `move_to` was given, if the memory has that deleter; else null.
  void* context_of(Deleter deleter) const noexcept {
    return deleter && deleter_ == deleter ? context_ : nullptr;
  }
  uint64_t age() const noexcept { return age_; }
  void* pyobj = nullptr;  // borrowed; set and cleared by the binding under the GIL
  // Counts those outside that hold the address: arrays, capsules.
  void add_export() noexcept { exports_.fetch_add(1, std::memory_order_relaxed); }
  void drop_export() noexcept { exports_.fetch_sub(1, std::memory_order_relaxed); }
  uint32_t version() const noexcept { return count().load(std::memory_order_relaxed); }
  void bump_version() noexcept { count().fetch_add(1, std::memory_order_relaxed); }
  // The counter as an object that tensors of other memory can share.
  Ref<VersionCounter> version_counter();

 private:
  void release_bytes() noexcept;
  Storage() = default;
  ~Storage() = default;
  const std::atomic<uint32_t>& count() const noexcept {
    VersionCounter* shared = counter_.load(std::memory_order_acquire);
    return shared ? shared->value : version_;
  }
  std::atomic<uint32_t>& count() noexcept {
    return const_cast<std::atomic<uint32_t>&>(std::as_const(*this).count());
  }
  void* data_ = nullptr;
  int64_t nbytes_ = 0;
  int64_t capacity_ = 0;       // length of the block at data_; 0 of wrapped memory
  Deleter deleter_ = nullptr;  // of wrapped memory
  void* context_ = nullptr;
  std::atomic<uint32_t> version_{0};
  std::atomic<uint32_t> exports_{0};
  std::atomic<VersionCounter*> counter_{nullptr};  // owned; in place of version_ once it is shared
  uint64_t age_ = storage_age.load(std::memory_order_relaxed);
  Device device_;
  bool inline_ = false;  // the bytes follow the object
  uint32_t block_ = 0;   // size of the object's own block
};

}  // namespace flambeau
