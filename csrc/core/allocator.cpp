// The two caches behind allocate/deallocate. Note [High-water cache] is kept here.
//
// Note [High-water cache]
// A large block that is freed stays in the cache: live + cached does not change. A miss that would
// push live + cached beyond the largest value that live ever had, and some slack, evicts cached
// blocks, oldest first, until it does not (or the cache is empty). So the process holds little more
// than its own peak of live memory. A training loop asks for the same sizes again and again, but
// not all of them are there at its peak: without slack, those that are not would be mapped anew,
// page by page, in each step. Blocks are matched by exact rounded size first, then by the next
// larger one within an eighth.
#include "core/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "core/caching.h"
#include "core/error.h"
#include "core/slabs.h"

namespace flambeau {
namespace {

constexpr size_t kSmallLimit = 4096, kSmallStep = 64, kSmallClasses = kSmallLimit / kSmallStep;
constexpr size_t kSmallKept = 256;          // free blocks kept per class and thread
constexpr size_t kLarge = size_t{1} << 16;  // from here on blocks are cached process-wide
constexpr size_t kSlack = size_t{1}
                          << 25;  // cached beyond the peak of live memory, or a tenth of that
// From here on blocks are mapped, in huge pages where there are any; smaller ones share such pages.
constexpr size_t kMapped = Slabs::kHuge;

struct SmallCache {
  struct Free {
    Free* next;
  };
  Free* heads[kSmallClasses] = {};
  uint16_t counts[kSmallClasses] = {};
  ~SmallCache() {
    for (auto& head : heads)
      while (head) std::free(std::exchange(head, head->next));
    alive = false;
  }
  static thread_local bool
      alive;  // blocks freed after the thread's cache is gone go back to malloc
};
thread_local bool SmallCache::alive = true;
thread_local SmallCache small_cache;

void* map(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}

class LargeCache {
 public:
  void* allocate(size_t bytes) {
    std::unique_lock guard(mutex_);
    ++stats_.allocations;
    if (auto it = find(bytes); it != by_size_.end()) return reuse(it);
    evict(bytes);
    void* p = get(bytes);
    if (!p) {
      trim();
      p = get(bytes);
    }
    if (!p) return nullptr;
    try {
      bytes_of_.emplace(p, bytes);
    } catch (const std::bad_alloc&) {
      give_back(p, bytes);
      return nullptr;
    }
    account(bytes);
    return p;
  }

  void deallocate(void* p) noexcept {
    std::lock_guard guard(mutex_);
    size_t size = bytes_of_.at(p);  // a reused block may be larger than was asked for
    stats_.live_bytes -= size;
    try {
      by_size_.emplace(size, by_age_.insert(by_age_.end(), {p, size}));
      stats_.cached_bytes += size;
    } catch (const std::bad_alloc&) {  // no memory even for the cache's own records
      if (!by_age_.empty() && by_age_.back().p == p) by_age_.pop_back();
      bytes_of_.erase(p);
      give_back(p, size);
    }
  }

  // Blocks of another allocator.
  void count(size_t bytes) {
    std::lock_guard guard(mutex_);
    ++stats_.allocations;
    account(bytes);
  }
  void uncount(size_t bytes) noexcept {
    std::lock_guard guard(mutex_);
    stats_.live_bytes -= bytes;
  }

  void trim() noexcept {
    while (!by_age_.empty()) drop(by_age_.begin());
    ++stats_.trims;
  }
  void locked_trim() noexcept {
    std::lock_guard guard(mutex_);
    trim();
  }
  MemoryStats stats() {
    std::lock_guard guard(mutex_);
    return stats_;
  }
  void reset_peak() {
    std::lock_guard guard(mutex_);
    stats_.peak_bytes = stats_.live_bytes + stats_.cached_bytes;
  }

 private:
  struct Block {
    void* p;
    size_t bytes;
  };
  using Age = std::list<Block>;

  void* get(size_t bytes) { return bytes < kMapped ? slabs_.allocate(bytes) : map(bytes); }
  void give_back(void* p, size_t bytes) noexcept {
    if (bytes < kMapped)
      slabs_.free(p, bytes);
    else
      munmap(p, bytes);
  }
  using BySize = std::multimap<size_t, Age::iterator>;

  BySize::iterator find(size_t bytes) {
    auto it = by_size_.lower_bound(bytes);
    if (it != by_size_.end() && it->first > bytes + bytes / 8) return by_size_.end();
    return it;
  }
  void* reuse(BySize::iterator it) {
    auto [size, age] = *it;
    void* p = age->p;
    by_age_.erase(age);
    by_size_.erase(it);
    stats_.cached_bytes -= size;
    ++stats_.cache_hits;
    account(size);
    return p;
  }
  void account(size_t bytes) {
    stats_.live_bytes += bytes;
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
  }
  void evict(size_t incoming) {
    const size_t limit = stats_.peak_bytes + std::max(kSlack, stats_.peak_bytes / 10);
    while (!by_age_.empty() && stats_.live_bytes + stats_.cached_bytes + incoming > limit)
      drop(by_age_.begin());
  }
  void drop(Age::iterator block) noexcept {
    auto [first, last] = by_size_.equal_range(block->bytes);
    for (auto it = first; it != last; ++it)
      if (it->second == block) {
        by_size_.erase(it);
        break;
      }
    stats_.cached_bytes -= block->bytes;
    bytes_of_.erase(block->p);
    give_back(block->p, block->bytes);
    by_age_.erase(block);
  }

  std::mutex mutex_;
  Age by_age_;
  BySize by_size_;
  std::map<void*, size_t> bytes_of_;
  Slabs slabs_;
  MemoryStats stats_{};
};

LargeCache& large_cache() {
  static auto* cache = new LargeCache;  // never destroyed: tensors may outlive static destruction
  return *cache;
}

constexpr size_t rounded(size_t bytes, size_t step) {
  return (bytes + step - 1) / step * step;
}

// Large sizes are rounded so that nearly equal ones share blocks: to 1/16 of their power of two,
// whole pages.
size_t large_size(size_t bytes) {
  size_t power = std::bit_floor(bytes);
  return rounded(bytes, std::max<size_t>(4096, std::min<size_t>(power / 16, size_t{1} << 20)));
}

// Blocks that end where a page begins that cannot be touched. Their alignment is what their size
// allows, which is that of any element they may hold. Filled, so that nobody lives on zeros.
constexpr size_t kPage = 4096;

[[maybe_unused]] void* guarded_allocate(size_t bytes) {
  if (bytes > size_t{2} << 30) return nullptr;
  size_t body = rounded(std::max<size_t>(bytes, 1), kPage);
  void* base = mmap(nullptr, body + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  if (mprotect(base, body, PROT_READ | PROT_WRITE) != 0) return nullptr;
  char* p = static_cast<char*>(base) + body - bytes;
  if (bytes < size_t{1} << 20) std::memset(p, 0xcb, bytes);
  return p;
}

[[maybe_unused]] void guarded_free(void* p, size_t bytes) noexcept {
  size_t body = rounded(std::max<size_t>(bytes, 1), kPage);
  munmap(static_cast<char*>(p) + bytes - body, body + kPage);
}

}  // namespace

void* allocate(size_t bytes) {
  void* p = nullptr;
  if constexpr (kGuardPages) {
    p = guarded_allocate(bytes);
  } else if constexpr (!kCaching) {
    if (posix_memalign(&p, kAlignment, std::max<size_t>(bytes, 1)) != 0) p = nullptr;
  } else if (bytes <= kSmallLimit) {
    size_t c = bytes ? (bytes - 1) / kSmallStep : 0;
    if (auto* block = small_cache.heads[c]) [[likely]] {
      small_cache.heads[c] = block->next;
      --small_cache.counts[c];
      return block;
    }
    p = std::aligned_alloc(kAlignment, (c + 1) * kSmallStep);
  } else if (bytes < kLarge) {
    p = std::aligned_alloc(kAlignment, rounded(bytes, kAlignment));
  } else {
    p = bytes > SIZE_MAX / 4 ? nullptr : large_cache().allocate(large_size(bytes));
  }
  if (!p)
    fail(ErrorKind::OutOfMemory, "allocate: not enough memory: tried to get ", bytes, " bytes");
  if (!kCaching && bytes >= kLarge) large_cache().count(bytes);
  return p;
}

void deallocate(void* p, size_t bytes) noexcept {
  if (!kCaching && bytes >= kLarge) large_cache().uncount(bytes);
  if constexpr (kGuardPages) {
    guarded_free(p, bytes);
  } else if constexpr (!kCaching) {
    std::free(p);
  } else if (bytes <= kSmallLimit) {
    size_t c = bytes ? (bytes - 1) / kSmallStep : 0;
    if (SmallCache::alive && small_cache.counts[c] < kSmallKept) {
      auto* block = static_cast<SmallCache::Free*>(p);
      block->next = small_cache.heads[c];
      small_cache.heads[c] = block;
      ++small_cache.counts[c];
      return;
    }
    std::free(p);
  } else if (bytes < kLarge) {
    std::free(p);
  } else {
    large_cache().deallocate(p);
  }
}

void release_pages(void* from, void* to) noexcept {
  static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t first = (reinterpret_cast<uintptr_t>(from) + page - 1) / page * page;
  uintptr_t last = reinterpret_cast<uintptr_t>(to) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

MemoryStats memory_stats() {
  return large_cache().stats();
}
void reset_peak_memory_stats() {
  large_cache().reset_peak();
}
void empty_cache() {
  large_cache().locked_trim();
}

}  // namespace flambeau
