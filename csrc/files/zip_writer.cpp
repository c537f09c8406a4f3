#include "files/zip_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "files/crc32.h"

namespace flambeau::files {

namespace {

constexpr uint64_t kAlignment = 64, kMax32 = 0xffffffff, kMax16 = 0xffff;
constexpr uint16_t kDate = 0x21;         // 1980-01-01
constexpr uint16_t kPaddingId = 0xfbfb;  // an extra field that only fills up to the alignment

void put(std::string& out, uint64_t n, int bytes) {
  for (int k = 0; k < bytes; ++k) out += static_cast<char>(n >> (8 * k) & 0xff);
}

}  // namespace

void ZipWriter::write(const void* data, size_t size) {
  if (size) to_(data, size);
  written_ += size;
}

void ZipWriter::add(const std::string& name, const void* data, size_t size) {
  FB_CHECK_VALUE(name.size() <= kMax16, "save: a name of ", name.size(), " bytes in an archive");
  const bool ascii =
      std::all_of(name.begin(), name.end(), [](char c) { return static_cast<signed char>(c) > 0; });
  const uint64_t header = written_;
  const bool wide = size >= kMax32;
  std::string common;  // of the header and of the directory
  put(common, wide ? 45 : 20, 2);
  put(common, ascii ? 0 : 0x800, 2);
  put(common, 0, 2);
  put(common, 0, 2);
  put(common, kDate, 2);
  put(common, crc32(0, data, size), 4);
  for (int k = 0; k < 2; ++k) put(common, std::min<uint64_t>(size, kMax32), 4);
  put(common, name.size(), 2);

  std::string extra;
  if (wide) {
    put(extra, 1, 2);
    put(extra, 16, 2);
    for (int k = 0; k < 2; ++k) put(extra, size, 8);
  }
  const uint64_t before = header + 30 + name.size() + extra.size() + 4;
  const uint64_t fill = (kAlignment - before % kAlignment) % kAlignment;
  put(extra, kPaddingId, 2);
  put(extra, fill, 2);
  extra.append(fill, '\0');
  std::string local = "PK\3\4" + common;
  put(local, extra.size(), 2);
  local += name + extra;
  write(local.data(), local.size());
  write(data, size);

  std::string more;
  const bool far = header >= kMax32;
  if (wide || far) {
    put(more, 1, 2);
    put(more, (wide ? 16 : 0) + (far ? 8 : 0), 2);
    for (int k = 0; wide && k < 2; ++k) put(more, size, 8);
    if (far) put(more, header, 8);
  }
  directory_ += "PK\1\2";
  put(directory_, more.empty() ? 20 : 45, 2);
  directory_ += common;
  put(directory_, more.size(), 2);
  for (int k = 0; k < 3; ++k) put(directory_, 0, 2);
  put(directory_, 0644u << 16, 4);
  put(directory_, std::min(header, kMax32), 4);
  directory_ += name + more;
  ++count_;
}

void ZipWriter::close() {
  const uint64_t start = written_, size = directory_.size();
  std::string end;
  if (count_ > kMax16 || size >= kMax32 || start >= kMax32) {
    end = "PK\6\6";
    put(end, 44, 8);
    put(end, 45, 2);
    put(end, 45, 2);
    put(end, 0, 8);
    put(end, count_, 8);
    put(end, count_, 8);
    put(end, size, 8);
    put(end, start, 8);
    end += "PK\6\7";
    put(end, 0, 4);
    put(end, start + size, 8);
    put(end, 1, 4);
  }
  end += "PK\5\6";
  put(end, 0, 4);
  for (int k = 0; k < 2; ++k) put(end, std::min(count_, kMax16), 2);
  put(end, std::min(size, kMax32), 4);
  put(end, std::min(start, kMax32), 4);
  put(end, 0, 2);
  write(directory_.data(), directory_.size());
  write(end.data(), end.size());
}

void begin_writing([[maybe_unused]] int descriptor, [[maybe_unused]] uint64_t start,
                   [[maybe_unused]] uint64_t size) {
#ifdef SYNC_FILE_RANGE_WRITE
  ::sync_file_range(descriptor, static_cast<off64_t>(start), static_cast<off64_t>(size),
                    SYNC_FILE_RANGE_WRITE);
#endif
}

namespace {

// What one call writes: for larger ones the system takes large pages, which may be memory that it
// has never had; for smaller ones small pages, which are read slower. Python's writer has the same
// sizes (flambeau/_serialization/archive.py); docs/design/performance.md has the measurements.
constexpr size_t kPiece = 1 << 20;
constexpr size_t kStretch = 16 << 20;  // bytes after which a file that is synced begins to be written

// A file that is open for writing; it goes again unless it was kept.
class Part {
 public:
  Part(const std::string& near, const char* what) : what_(what) {
    const std::string pattern = near + ".XXXXXX.part";
    name_.assign(pattern.begin(), pattern.end());
    name_.push_back('\0');
    descriptor_ = ::mkostemps(name_.data(), 5, O_CLOEXEC);
    FB_CHECK(descriptor_ >= 0, what_, ": cannot write beside ", near, ": ", std::strerror(errno));
  }
  ~Part() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!kept_) ::unlink(name_.data());
  }
  int descriptor() const { return descriptor_; }
  void replace(const std::string& path) {
    struct stat old;
    const bool there = ::stat(path.c_str(), &old) == 0;
    mode_t mode = 0666;
    if (there) {
      mode = old.st_mode & 07777;
      // The new bytes are on the disk before the old ones go.
      FB_CHECK(::fsync(descriptor_) == 0, what_, ": cannot write ", path, ": ",
               std::strerror(errno));
    } else {
      const mode_t mask = ::umask(0);
      ::umask(mask);
      mode &= ~mask;
    }
    FB_CHECK(::fchmod(descriptor_, mode) == 0 && ::rename(name_.data(), path.c_str()) == 0, what_,
             ": cannot write ", path, ": ", std::strerror(errno));
    kept_ = true;
  }

 private:
  const char* what_;
  std::vector<char> name_;
  int descriptor_;
  bool kept_ = false;
};

void write_all(int descriptor, const void* data, size_t size, const char* what) {
  auto* at = static_cast<const char*>(data);
  while (size) {
    const ssize_t n = ::write(descriptor, at, std::min(size, kPiece));
    if (n < 0 && errno == EINTR) continue;
    FB_CHECK(n > 0, what, ": cannot write: ", std::strerror(errno));
    at += n;
    size -= static_cast<size_t>(n);
  }
}

}  // namespace

void write_file(const std::string& path, const char* what,
                const std::function<void(const Sink&)>& fill) {
  struct stat found;
  if (::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    // A device or a pipe cannot be replaced.
    FB_CHECK(!S_ISDIR(found.st_mode), what, ": ", path, " is a folder");
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    FB_CHECK(descriptor >= 0, what, ": cannot open ", path, ": ", std::strerror(errno));
    struct Close {
      int descriptor;
      ~Close() { ::close(descriptor); }
    } close{descriptor};
    fill([&](const void* data, size_t size) { write_all(descriptor, data, size, what); });
    return;
  }
  // A link is followed: what it names is replaced.
  std::string target = path;
  if (char* real = ::realpath(path.c_str(), nullptr)) {
    target = real;
    std::free(real);
  }
  const size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : target.substr(0, slash + 1);
  FB_CHECK(::access(folder.c_str(), F_OK) == 0, what, ": Parent directory ", folder,
           " does not exist.");
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  Part part(target.substr(0, name) + "." + target.substr(name, 100), what);
  const bool synced = ::access(target.c_str(), F_OK) == 0;
  uint64_t written = 0, begun = 0;
  fill([&](const void* data, size_t size) {
    auto* at = static_cast<const char*>(data);
    while (size) {
      const size_t n = std::min(size, kStretch);
      write_all(part.descriptor(), at, n, what);
      at += n, size -= n, written += n;
      if (!synced || written - begun < kStretch) continue;
      begin_writing(part.descriptor(), begun, written - begun);
      begun = written;
    }
  });
  part.replace(target);
}

}  // namespace flambeau::files
