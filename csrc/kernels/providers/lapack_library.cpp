#include "kernels/providers/lapack_library.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "core/error.h"
#include "core/parallel.h"

namespace flambeau::kernels::lapack {
namespace {

std::atomic<std::string (*)()> finder_of_path = nullptr;
std::atomic<const Library*> opened = nullptr;

// The library at `path`, if it is one: that of the wheel has a prefix before its names.
Library open(const std::string& path) {
  Library out;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const char* prefix : {"scipy_", ""})
    if (handle && !out.handle && dlsym(handle, (prefix + std::string("zgesdd_")).c_str()))
      out = {handle, prefix, path};
  if (!out.handle) return out;
  Dl_info info;
  if (dladdr(out.symbol("zgesdd_"), &info)) out.path = info.dli_fname;
  // One thread: see lapack.cpp.
  if (auto* set = reinterpret_cast<void (*)(int)>(out.symbol("openblas_set_num_threads"))) set(1);
  return out;
}

Library find() {
  if (const char* wanted = std::getenv("FLAMBEAU_OPENBLAS"); wanted && *wanted) {
    if (wanted == std::string("off")) return {};
    Library out = open(wanted);
    FB_CHECK(out.handle,
             "linalg: expected FLAMBEAU_OPENBLAS to be 'off' or a library with LAPACK, got ",
             wanted, ", which cannot be opened or lacks its routines");
    return out;
  }
  auto* finder = finder_of_path.load();
  const std::string found = finder ? finder() : "";
  if (!found.empty())
    if (Library out = open(found); out.handle) return out;
  for (const char* name : {"libscipy_openblas.so", "libopenblas.so.0"})
    if (Library out = open(name); out.handle) return out;
  return {};
}

}  // namespace

void* Library::symbol(const std::string& name) const {
  return dlsym(handle, (prefix + name).c_str());
}

const Library& library() {
  static const Library none;
  if (const Library* known = opened.load(std::memory_order_acquire)) return *known;
  if (in_parallel()) return none;
  // Two threads may look at once, for the finder must be called without a lock; the first result
  // stays.
  auto found = std::make_unique<const Library>(find());
  static std::mutex lock;
  std::lock_guard guard(lock);
  if (!opened.load()) opened.store(found.release(), std::memory_order_release);
  return *opened.load();
}

void set_finder(std::string (*finder)()) {
  finder_of_path = finder;
}

}  // namespace flambeau::kernels::lapack
