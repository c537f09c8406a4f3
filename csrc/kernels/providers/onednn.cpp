#include "kernels/providers/onednn.h"

#include <dlfcn.h>

#include <string>

#include "core/allocator.h"

namespace flambeau::kernels {

// At release nobody says how much it was: the size stands before the memory.
void* onednn_take(size_t bytes) {
  auto* p = static_cast<char*>(allocate(bytes + 64));
  *reinterpret_cast<size_t*>(p) = bytes + 64;
  return p + 64;
}
void onednn_give(void* x) {
  char* p = static_cast<char*>(x) - 64;
  deallocate(p, *reinterpret_cast<size_t*>(p));
}

namespace {

OneDnn open() {
  OneDnn out{};
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&onednn_give), &info)) return out;
  std::string path = info.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "_onednn.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return out;
  out.convolution =
      reinterpret_cast<decltype(out.convolution)>(dlsym(library, "flambeau_onednn_convolution"));
  out.sgemm = reinterpret_cast<decltype(out.sgemm)>(dlsym(library, "flambeau_onednn_sgemm"));
  return out;
}

}  // namespace

const OneDnn& onednn() {
  static const OneDnn functions = open();
  return functions;
}

}  // namespace flambeau::kernels
