// Threads of the program that compute at once, as far as the library has made them: each takes its
// part of `num_threads()` for its kernels.
#pragma once

#include <atomic>

namespace flambeau {

extern constinit std::atomic<int> competing_threads;  // 1 until somebody makes more

// Threads for tasks that programs fork; as many as there are CPUs until it is set.
int num_interop_threads() noexcept;
int num_interop_threads_set() noexcept;  // 0 until then
void set_num_interop_threads(int n) noexcept;

}  // namespace flambeau
