#include "runtime/library.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace flambeau::runtime {

Library open_library(const std::string& path) {
  void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) fail(ErrorKind::Runtime, dlerror());
  return Library(opened, dlclose);
}

namespace {

// A file in memory.
class Memory {
 public:
  Memory() : descriptor_(memfd_create("flambeau-compiled", MFD_CLOEXEC)) { check(descriptor_ >= 0); }
  ~Memory() { ::close(descriptor_); }
  Memory(const Memory&) = delete;
  void write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
      check(n > 0 || errno == EINTR);
      if (n > 0) bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  static void check(bool ok) {
    FB_CHECK(ok, "there is no memory for a library: ", std::strerror(errno));
  }
  int descriptor_;
};

}  // namespace

// The linker takes libraries of one name for one: the file stays open, and its name its own, while
// the library is.
Library open_library(std::span<const std::byte> bytes) {
  auto memory = std::make_unique<Memory>();
  memory->write(bytes);
  struct Opened {
    std::unique_ptr<Memory> memory;
    Library library;
    ~Opened() { library.reset(); }
  };
  Library library = open_library(memory->path());
  void* handle = library.get();
  auto both = std::make_shared<Opened>(std::move(memory), std::move(library));
  return Library(std::move(both), handle);
}

LibraryFunction function_of(const Library& library, const char* name) {
  const void* address = dlsym(library.get(), name);
  if (!address) fail(ErrorKind::Runtime, "a library: there is no function ", name);
  return LibraryFunction(library, address);
}

}  // namespace flambeau::runtime
