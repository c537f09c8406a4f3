#include "core/storage.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/caching.h"
#include "core/error.h"
#include "core/memory_hook.h"

namespace flambeau {

constinit std::atomic<uint64_t> storage_age{0};
constinit std::atomic<MemoryHook> memory_hook{nullptr};

namespace {
constexpr size_t kHeader = (sizeof(Storage) + kAlignment - 1) / kAlignment * kAlignment;
constexpr int64_t kInlineBytes = kCaching ? 1024 : -1;

// Memory of tensors, told to who wants to know.
void tell(const void* p, int64_t bytes) noexcept {
  if (MemoryHook hook = memory_hook.load(std::memory_order_relaxed); hook && bytes) [[unlikely]]
    hook(p, bytes);
}
}  // namespace

Ref<Storage> Storage::make(int64_t bytes, Device device) {
  FB_CHECK_IMPL(device.type() != DeviceType::CUDA, "empty: tensors on device ", device,
                " are not supported yet");
  bool no_memory = device.type() == DeviceType::Meta;
  bool inside = bytes <= kInlineBytes && !no_memory;
  size_t block = kHeader + (inside ? bytes : 0);
  auto* s = new (allocate(block)) Storage;
  s->block_ = static_cast<uint32_t>(block);
  s->nbytes_ = bytes;
  s->device_ = device;
  s->inline_ = inside;
  auto ref = Ref<Storage>::adopt(s);
  if (inside)
    s->data_ = reinterpret_cast<char*>(s) + kHeader;
  else if (!no_memory)
    s->data_ = allocate(bytes);
  if (!no_memory) {
    s->capacity_ = bytes;
    tell(s->data_, bytes);
  }
  return ref;
}

Ref<Storage> Storage::wrap(void* data, int64_t bytes, Deleter deleter, void* context,
                           Device device) {
  auto* s = new (allocate(kHeader)) Storage;
  s->block_ = kHeader;
  s->data_ = data;
  s->nbytes_ = bytes;
  s->deleter_ = deleter;
  s->context_ = context;
  s->device_ = device;
  return Ref<Storage>::adopt(s);
}

void Storage::destroy(Storage* s) noexcept {
  s->release_bytes();
  if (VersionCounter* shared = s->counter_.load(std::memory_order_acquire)) shared->release();
  size_t block = s->block_;
  s->~Storage();
  deallocate(s, block);
}

void Storage::release_bytes() noexcept {
  if (deleter_) return deleter_(context_);
  if (!data_) return;
  tell(data_, -capacity_);
  if (!inline_) deallocate(data_, capacity_);
}

void Storage::move_to(void* data, Deleter deleter, void* context) {
  FB_CHECK(!exports_.load(std::memory_order_relaxed),
           "the memory cannot move: an array or a capsule made of it is still in use");
  release_bytes();
  data_ = data;
  deleter_ = deleter;
  context_ = context;
  capacity_ = 0;
  inline_ = false;
}

Ref<VersionCounter> Storage::version_counter() {
  VersionCounter* known = counter_.load(std::memory_order_acquire);
  if (!known) {
    auto fresh = Ref<VersionCounter>::adopt(new VersionCounter);
    fresh->value = version_.load(std::memory_order_relaxed);
    if (counter_.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel))
      known = fresh.detach();
  }
  return Ref<VersionCounter>(known);
}

void Storage::resize(int64_t bytes) {
  FB_CHECK(
      !deleter_,
      "resize_: Trying to resize storage that is not resizable: it belongs to another library");
  FB_CHECK(resizable(),
           "resize_: Trying to resize storage that is not resizable: an array or a capsule made of "
           "it is still in use");
  if (device_.type() == DeviceType::CPU && bytes > capacity_) {
    void* fresh = allocate(bytes);
    if (nbytes_) std::memcpy(fresh, data_, nbytes_);
    if (data_) tell(data_, -capacity_);
    if (!inline_ && data_) deallocate(data_, capacity_);
    tell(fresh, bytes);
    inline_ = false;
    data_ = fresh;
    capacity_ = bytes;
  } else if (device_.type() == DeviceType::CPU && !inline_) {
    release_pages(static_cast<char*>(data_) + bytes, static_cast<char*>(data_) + capacity_);
  }
  nbytes_ = bytes;
}

}  // namespace flambeau
