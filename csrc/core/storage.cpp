#include "core/storage.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/caching.h"
#include "core/error.h"

namespace flambeau {
namespace {
constexpr size_t kHeader = (sizeof(Storage) + kAlignment - 1) / kAlignment * kAlignment;
constexpr int64_t kInlineBytes = kCaching ? 1024 : -1;
}  // namespace

Ref<Storage> Storage::make(int64_t bytes, Device device) {
  FB_CHECK_IMPL(device.type != DeviceType::CUDA, "empty: tensors on device ", device,
                " are not supported yet");
  bool no_memory = device.type == DeviceType::Meta;
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
  if (!no_memory) s->capacity_ = bytes;
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
  if (s->deleter_)
    s->deleter_(s->context_);
  else if (!s->inline_ && s->data_)
    deallocate(s->data_, s->capacity_);
  size_t block = s->block_;
  s->~Storage();
  deallocate(s, block);
}

void Storage::resize(int64_t bytes) {
  FB_CHECK(
      !deleter_,
      "resize_: Trying to resize storage that is not resizable: it belongs to another library");
  FB_CHECK(resizable(),
           "resize_: Trying to resize storage that is not resizable: an array or a capsule made of "
           "it is still in use");
  if (device_.type == DeviceType::CPU && bytes > capacity_) {
    void* fresh = allocate(bytes);
    if (nbytes_) std::memcpy(fresh, data_, nbytes_);
    if (!inline_ && data_) deallocate(data_, capacity_);
    inline_ = false;
    data_ = fresh;
    capacity_ = bytes;
  } else if (device_.type == DeviceType::CPU && !inline_) {
    release_pages(static_cast<char*>(data_) + bytes, static_cast<char*>(data_) + capacity_);
  }
  nbytes_ = bytes;
}

}  // namespace flambeau
