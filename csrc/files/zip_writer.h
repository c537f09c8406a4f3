// Writes zip archives without compression, each entry's bytes aligned to 64, as those that Python
// writes (flambeau/_serialization/archive.py). Knows nothing of what the entries mean. PKWARE,
// APPNOTE 6.3.9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace flambeau::files {

// Takes all the bytes it is given, or throws.
using Sink = std::function<void(const void*, size_t)>;

class ZipWriter {
 public:
  explicit ZipWriter(Sink to) : to_(std::move(to)) {}
  void add(const std::string& name, const void* data, size_t size);
  void add(const std::string& name, std::string_view text) { add(name, text.data(), text.size()); }
  void close();  // writes the directory, without which there is no archive

 private:
  void write(const void* data, size_t size);

  Sink to_;
  std::string directory_;
  uint64_t written_ = 0, count_ = 0;
};

// Asks the system to begin writing these bytes of a file to its disk, without waiting: who syncs the
// file later waits for the rest alone. A hint; where the system has no such call nothing happens.
void begin_writing(int descriptor, uint64_t start, uint64_t size);

// Opens a file that takes the place of `path` once `fill` has ended without an exception: however
// the process ends there is the old file or the new one, whole. Error(Runtime) where the folder
// does not exist or cannot be written to. `what` begins the messages.
void write_file(const std::string& path, const char* what,
                const std::function<void(const Sink&)>& fill);

}  // namespace flambeau::files
