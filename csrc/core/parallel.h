// Threads: one OpenMP pool, sized by affinity and cgroup quota. `parallel_for` splits [begin, end)
// in chunks of at least `grain`; nested calls run in the calling thread; an exception in a chunk
// reaches the caller.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace flambeau {

int num_threads() noexcept;
void set_num_threads(int n);
int available_cpus() noexcept;  // affinity and cgroup quota

inline constexpr int64_t kGrain = 32768;  // elements of light work worth a thread

inline bool in_parallel() noexcept {
#ifdef _OPENMP
  return omp_in_parallel();
#else
  return false;
#endif
}

template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  int64_t n = end - begin;
  if (n <= 0) return;
#ifdef _OPENMP
  int64_t threads = std::min<int64_t>(num_threads(), (n + grain - 1) / (grain > 0 ? grain : 1));
  if (threads > 1 && !in_parallel()) {
    std::exception_ptr error;
    std::mutex lock;
#pragma omp parallel num_threads(static_cast <int>(threads))
    {
      int64_t count = omp_get_num_threads(), i = omp_get_thread_num();
      int64_t chunk = (n + count - 1) / count;
      int64_t from = begin + i * chunk, to = std::min(end, from + chunk);
      if (from < to) {
        try {
          f(from, to);
        } catch (...) {
          std::lock_guard guard(lock);
          if (!error) error = std::current_exception();
        }
      }
    }
    if (error) std::rethrow_exception(error);
    return;
  }
#endif
  f(begin, end);
}

}  // namespace flambeau
