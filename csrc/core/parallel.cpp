#include "core/parallel.h"

#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "core/thread_budget.h"

namespace flambeau {
namespace {

// CPUs that the cgroup's quota amounts to (v2 and v1), or 0 when there is no limit.
int cgroup_cpus() noexcept {
  long long quota = -1, period = 0;
  if (FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    if (std::fscanf(f, "%lld %lld", &quota, &period) != 2) quota = -1;
    std::fclose(f);
  } else {
    if (FILE* q = std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r")) {
      if (std::fscanf(q, "%lld", &quota) != 1) quota = -1;
      std::fclose(q);
    }
    if (FILE* p = std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r")) {
      if (std::fscanf(p, "%lld", &period) != 1) period = 0;
      std::fclose(p);
    }
  }
  return quota > 0 && period > 0 ? static_cast<int>((quota + period - 1) / period) : 0;
}

int initial_threads() noexcept {
  int cpus = available_cpus();
  if (const char* text = std::getenv("OMP_NUM_THREADS"))
    if (int n = std::atoi(text); n > 0) return n;
  return cpus;
}

std::atomic<int> threads{0};

}  // namespace

constinit std::atomic<int> competing_threads{1};

namespace {
std::atomic<int> interop_threads{0};
}

int num_interop_threads_set() noexcept {
  return interop_threads.load(std::memory_order_relaxed);
}
int num_interop_threads() noexcept {
  int n = num_interop_threads_set();
  return n ? n : available_cpus();
}
void set_num_interop_threads(int n) noexcept {
  interop_threads = n;
}

int available_cpus() noexcept {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  int quota = cgroup_cpus();
  return std::max(1, quota ? std::min(n, quota) : n);
}

int num_threads() noexcept {
  int n = threads.load(std::memory_order_relaxed);
  if (!n) threads = n = initial_threads();
  int competing = competing_threads.load(std::memory_order_relaxed);
  return competing > 1 ? std::max(1, n / competing) : n;
}

void set_num_threads(int n) {
  FB_CHECK(n > 0, "set_num_threads: expected a positive integer, got ", n);
  threads = n;
#ifdef _OPENMP
  omp_set_num_threads(n);
#endif
}

}  // namespace flambeau
