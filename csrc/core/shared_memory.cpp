#include "core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "core/error.h"

namespace flambeau {

namespace {

// Owns a descriptor until it is handed on.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

void unmap(void* context) {
  auto* m = static_cast<SharedMapping*>(context);
  if (m->data) ::munmap(m->data, static_cast<size_t>(m->bytes));
  if (m->descriptor >= 0) ::close(m->descriptor);
  delete m;
}

std::string reason() {
  int code = errno;
  return concat(std::strerror(code), " (", code, ")");
}

Descriptor anonymous(int64_t bytes) {
  int fd = ::memfd_create("flambeau", MFD_CLOEXEC);
  FB_CHECK(fd >= 0, "share_memory_: no descriptor for ", bytes,
           " bytes of shared memory: ", reason());
  Descriptor owned(fd);
  FB_CHECK(::ftruncate(fd, bytes) == 0, "share_memory_: cannot make ", bytes,
           " bytes of shared memory: ", reason());
  return Descriptor(owned.release());
}

std::unique_ptr<SharedMapping> mapped(Descriptor& fd, int64_t bytes, bool shared,
                                      const std::string& name) {
  auto m = std::make_unique<SharedMapping>();
  m->bytes = bytes;
  m->shared = shared;
  m->file_name = name;
  if (bytes > 0) {
    void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                        shared ? MAP_SHARED : MAP_PRIVATE, fd.get(), 0);
    FB_CHECK(data != MAP_FAILED, "cannot map ", bytes, " bytes of ",
             name.empty() ? "shared memory" : "<" + name + ">", ": ", reason());
    m->data = data;
  }
  m->descriptor = fd.release();
  return m;
}

Ref<Storage> storage_of(std::unique_ptr<SharedMapping> m) {
  SharedMapping* raw = m.release();
  return Storage::wrap(raw->data, raw->bytes, unmap, raw);
}

}  // namespace

const SharedMapping* mapping_of(const Storage& s) noexcept {
  return static_cast<const SharedMapping*>(s.context_of(unmap));
}

void share(Storage& s) {
  FB_CHECK(s.device().type() == DeviceType::CPU,
           "share_memory_: expected memory on the CPU, got a tensor on device ", s.device());
  if (is_shared(s)) return;
  Descriptor fd = anonymous(s.nbytes());
  auto m = mapped(fd, s.nbytes(), true, "");
  if (s.nbytes()) std::memcpy(m->data, s.data(), static_cast<size_t>(s.nbytes()));
  s.move_to(m->data, unmap, m.get());
  m.release();
}

Ref<Storage> make_shared_storage(int64_t bytes) {
  Descriptor fd = anonymous(bytes);
  return storage_of(mapped(fd, bytes, true, ""));
}

Ref<Storage> map_descriptor(int descriptor, int64_t bytes) {
  Descriptor fd(descriptor);
  struct stat info;
  FB_CHECK(::fstat(fd.get(), &info) == 0, "shared memory: cannot look at descriptor ", descriptor,
           ": ", reason());
  FB_CHECK(info.st_size >= bytes, "shared memory: expected at least ", bytes,
           " bytes behind the descriptor, got ", static_cast<int64_t>(info.st_size));
  return storage_of(mapped(fd, bytes, true, ""));
}

Ref<Storage> map_file(const std::string& name, bool shared, int64_t bytes) {
  int flags = (shared ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC;
  Descriptor fd(::open(name.c_str(), flags, 0600));
  FB_CHECK(fd.get() >= 0, "unable to open file <", name, "> in ",
           shared ? "read-write" : "read-only", " mode: ", reason());
  struct stat info;
  FB_CHECK(::fstat(fd.get(), &info) == 0, "unable to stat the file <", name, ">: ", reason());
  if (info.st_size < bytes) {
    FB_CHECK(shared, "from_file: the file <", name, "> has ", static_cast<int64_t>(info.st_size),
             " bytes, expected at least ", bytes, "; a shared file is made longer");
    FB_CHECK(::ftruncate(fd.get(), bytes) == 0, "unable to resize file <", name, "> to ", bytes,
             " bytes: ", reason());
  }
  return storage_of(mapped(fd, bytes, shared, name));
}

}  // namespace flambeau
