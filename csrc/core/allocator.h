// CPU memory: 64-byte aligned blocks from a cache. Small blocks come from per-thread free lists;
// large ones from a process-wide cache that never lets (live + cached) pass the high-water mark of
// live memory, so caching costs no peak memory. Invariant: deallocate gets the size that allocate
// was asked for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flambeau {

inline constexpr size_t kAlignment = 64;

void* allocate(size_t bytes);  // uninitialised; Error(OutOfMemory) when there is none
void deallocate(void* p, size_t bytes) noexcept;
// Gives the whole pages between two addresses of a block back; they stay valid and read as zeros.
void release_pages(void* from, void* to) noexcept;

struct MemoryStats {
  uint64_t live_bytes, cached_bytes, peak_bytes, allocations, cache_hits, trims;
};
MemoryStats memory_stats();
void reset_peak_memory_stats();
void empty_cache();  // gives all cached large blocks back to the system

}  // namespace flambeau
