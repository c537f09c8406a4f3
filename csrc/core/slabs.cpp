#include "core/slabs.h"

#include <sys/mman.h>

#include <cstdint>
#include <iterator>
#include <new>

namespace flambeau {
namespace {

char* rounded_up(char* p, size_t to) {
  return p + (to - reinterpret_cast<uintptr_t>(p) % to) % to;
}
char* rounded_down(char* p, size_t to) {
  return p - reinterpret_cast<uintptr_t>(p) % to;
}

}  // namespace

void Slabs::insert(char* at, size_t bytes) {
  auto place = free_.emplace(at, bytes).first;
  try {
    by_size_.emplace(bytes, at);
  } catch (...) {
    free_.erase(place);
    throw;
  }
}

void Slabs::erase(char* at, size_t bytes) {
  free_.erase(at);
  by_size_.erase({bytes, at});
}

// Maps more than a slab, to cut one out that begins at a huge page.
bool Slabs::grow() {
  void* got = mmap(nullptr, kSlab + kHuge, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return false;
  char *from = static_cast<char*>(got), *first = rounded_up(from, kHuge), *last = first + kSlab;
  if (first > from) munmap(from, first - from);
  munmap(last, from + kSlab + kHuge - last);
  madvise(first, kSlab, MADV_HUGEPAGE);
  try {
    auto slab = slabs_.emplace(first, last).first;
    try {
      insert(first, kSlab);
    } catch (...) {
      slabs_.erase(slab);
      throw;
    }
  } catch (const std::bad_alloc&) {
    munmap(first, kSlab);
    return false;
  }
  return true;
}

void* Slabs::allocate(size_t bytes) noexcept {
  auto fit = by_size_.lower_bound({bytes, nullptr});
  if (fit == by_size_.end()) {
    if (!grow()) return nullptr;
    fit = by_size_.lower_bound({bytes, nullptr});
  }
  auto [size, at] = *fit;
  try {
    // The rest first: were there no memory for its record, the range would stay as it is.
    if (size > bytes) insert(at + bytes, size - bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  erase(at, size);
  return at;
}

void Slabs::free(void* p, size_t bytes) noexcept {
  char *first = static_cast<char*>(p), *last = first + bytes;
  auto slab = std::prev(slabs_.upper_bound(first));
  auto next = free_.lower_bound(first);
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == first && before->first >= slab->first) {
      first = before->first;
      erase(before->first, before->second);
    }
  }
  if (next != free_.end() && next->first == last && last < slab->second) {
    last += next->second;
    erase(next->first, next->second);
  }
  if (first == slab->first && last == slab->second) {
    munmap(first, last - first);
    slabs_.erase(slab);
    return;
  }
  // Whole pages go back to the system; the range stays.
  char *from = rounded_up(first, kHuge), *to = rounded_down(last, kHuge);
  if (from < to) madvise(from, to - from, MADV_DONTNEED);
  try {
    insert(first, last - first);
  } catch (const std::bad_alloc&) {
    // No memory for its record: the range is lost, its pages are not.
    madvise(first, last - first, MADV_DONTNEED);
  }
}

}  // namespace flambeau
