// Storage: a counted piece of memory, shared by the tensors that are views of it. Small storages
// hold their bytes behind themselves: one allocation. The version counter counts in-place changes,
// for autograd.
#pragma once

#include "core/allocator.h"
#include "core/device.h"
#include "core/intrusive.h"

namespace flambeau {

// Counts in-place changes. `x.data` detaches from its storage's counter and gets its own.
struct VersionCounter : Counted<VersionCounter> {
  std::atomic<uint32_t> value{0};
  static void destroy(VersionCounter* v) { delete v; }
};

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
  // Counts those outside that hold the address: arrays, capsules.
  void add_export() noexcept { exports_.fetch_add(1, std::memory_order_relaxed); }
  void drop_export() noexcept { exports_.fetch_sub(1, std::memory_order_relaxed); }
  uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  Storage() = default;
  void* data_ = nullptr;
  int64_t nbytes_ = 0;
  int64_t capacity_ = 0;       // length of the block at data_; 0 of wrapped memory
  Deleter deleter_ = nullptr;  // of wrapped memory
  void* context_ = nullptr;
  std::atomic<uint32_t> version_{0};
  std::atomic<uint32_t> exports_{0};
  Device device_;
  bool inline_ = false;  // the bytes follow the object
  uint32_t block_ = 0;   // size of the object's own block
};

}  // namespace flambeau
