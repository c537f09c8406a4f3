#include "distributed/gloo_library.h"

#include <dlfcn.h>

#include <string>

namespace flambeau::distributed {

namespace {

void here() {}

template <class Function>
bool find(void* library, const char* name, Function& out) {
  std::string whole = std::string("flambeau_gloo_") + name;
  out = reinterpret_cast<Function>(::dlsym(library, whole.c_str()));
  return out != nullptr;
}

const GlooLibrary* open() {
  Dl_info info;
  if (!::dladdr(reinterpret_cast<void*>(&here), &info)) return nullptr;
  std::string path = info.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "_gloo.so";
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  static GlooLibrary g;
  bool whole = find(library, "make", g.make) && find(library, "free", g.free) &&
               find(library, "address", g.address) && find(library, "connect", g.connect) &&
               find(library, "abort", g.abort) && find(library, "all_to_all", g.all_to_all) &&
               find(library, "all_gather", g.all_gather) &&
               find(library, "broadcast", g.broadcast) && find(library, "gather", g.gather) &&
               find(library, "scatter", g.scatter);
  return whole ? &g : nullptr;
}

}  // namespace

const GlooLibrary* gloo_library() {
  static const GlooLibrary* const library = open();
  return library;
}

}  // namespace flambeau::distributed
