#include "files/source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "files/crc32.h"

namespace flambeau::files {

FileSource::FileSource(int descriptor) : descriptor_(descriptor) {
  struct stat found;
  FB_CHECK(::fstat(descriptor, &found) == 0,
           "load: the file cannot be read: ", std::strerror(errno));
  size_ = static_cast<uint64_t>(found.st_size);
}

size_t FileSource::read(uint64_t at, void* to, size_t count) const {
  size_t done = 0;
  while (done < count && at < size_) {
    ssize_t n = ::pread(descriptor_, static_cast<char*>(to) + done, count - done,
                        static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    FB_CHECK(n >= 0, "load: the file cannot be read: ", std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

size_t MemorySource::read(uint64_t at, void* to, size_t count) const {
  if (at >= size_ || count == 0) return 0;
  count = std::min(count, size_ - static_cast<size_t>(at));
  std::memcpy(to, data_ + at, count);
  return count;
}

uint32_t read_checked(const Source& from, uint64_t at, void* to, size_t size) {
  constexpr size_t kChunk = 1 << 18;  // is still near when its checksum is taken
  uint32_t crc = 0;
  for (size_t done = 0; done < size;) {
    char* part = static_cast<char*>(to) + done;
    const size_t wanted = std::min(kChunk, size - done);
    FB_CHECK(from.read(at + done, part, wanted) == wanted, "load: the file ends after ", done,
             " of ", size, " bytes");
    crc = crc32(crc, part, wanted);
    done += wanted;
  }
  return crc;
}

}  // namespace flambeau::files
