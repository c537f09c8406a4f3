// Reads files from standard input, each behind 8 bytes of its size and 1 of its kind ('s' for
// safetensors), with the readers of csrc/files, compiled into this program with sanitizers. Prints
// how many loaded and how many were refused. Another end than that is a finding.
#include <cstdio>
#include <cstring>
#include <string>

#include "core/error.h"
#include "files/checkpoint.h"
#include "files/json.h"
#include "files/safetensors.h"
#include "files/zip.h"

using namespace flambeau;

namespace {

void read_one(char kind, const std::string& data) {
  const files::MemorySource source(data.data(), data.size());
  if (kind != 's') {
    files::read_checkpoint(source);
    return;
  }
  FB_CHECK_VALUE(data.size() >= 8, "no size of a header");
  uint64_t size;
  std::memcpy(&size, data.data(), 8);
  FB_CHECK_VALUE(size <= data.size() - 8, "a header of ", size, " bytes");
  const std::string header = data.substr(8, size);
  files::read_safetensors_header(header, data.size() - 8 - size);
}

}  // namespace

int main() {
  long loaded = 0, refused = 0;
  uint64_t size;
  while (std::fread(&size, 8, 1, stdin) == 1) {
    const int kind = std::getchar();
    std::string data(size, '\0');
    if (size && std::fread(data.data(), size, 1, stdin) != 1) return 2;
    try {
      read_one(static_cast<char>(kind), data);
      ++loaded;
    } catch (const Error&) {
      ++refused;
    }
  }
  std::printf("%ld loaded, %ld refused\n", loaded, refused);
}
