// Who is told of the memory that tensors take and give back; what kernels use for a while is not
// among it.
#pragma once

#include <atomic>
#include <cstdint>

namespace flambeau {

// bytes < 0: given back. Null: nobody wants to know.
using MemoryHook = void (*)(const void* p, int64_t bytes) noexcept;
[[gnu::visibility("hidden")]] extern std::atomic<MemoryHook> memory_hook;

}  // namespace flambeau
