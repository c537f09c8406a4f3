#include "kernels/providers/onednn.h"

#include <dlfcn.h>

#include <string>

#include "core/allocator.h"

namespace flambeau::kernels {

void* onednn_take(size_t bytes) {
  return allocate(bytes);
}
void onednn_give(void* p, size_t bytes) {
  deallocate(p, bytes);
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
