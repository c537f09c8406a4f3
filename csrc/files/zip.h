// The directory of a zip archive without compression, checked: every range that it gives lies
// inside the file, belongs to one entry alone, and has the size that the directory states.
// PKWARE, APPNOTE 6.3.9.
#pragma once

#include <string>
#include <vector>

#include "files/source.h"

namespace flambeau::files {

struct Entry {
  std::string name;  // bytes as the archive has them
  bool utf8;         // else code page 437
  uint64_t start, size;
  uint32_t crc;
};

// The entries in the order of the directory; Error(Runtime) where this is no sound archive, with
// the reason alone. Compressed entries are an error, or left out.
std::vector<Entry> read_directory(const Source& from, bool leave_out_compressed = false);

}  // namespace flambeau::files
