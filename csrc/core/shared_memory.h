// Memory that several processes see: anonymous memory known by a descriptor, which may be sent to
// another process, and files. Nothing of it has a name in the file system, so nothing stays behind
// when the processes end, however they end.
#pragma once

#include <string>

#include "core/storage.h"

namespace flambeau {

struct SharedMapping {
  void* data = nullptr;
  int64_t bytes = 0;
  int descriptor = -1;    // -1: of a file that was mapped privately
  bool shared = true;     // do others see what is written?
  std::string file_name;  // empty: anonymous
};

// How the storage is mapped; null for memory of its own.
const SharedMapping* mapping_of(const Storage& s) noexcept;
inline bool is_shared(const Storage& s) noexcept {
  const SharedMapping* m = mapping_of(s);
  return m && m->shared;
}
// Moves the bytes of a storage on the CPU to shared memory, in place. Once shared, nothing is done.
void share(Storage& s);
Ref<Storage> make_shared_storage(int64_t bytes);
// The memory behind a descriptor, which is the storage's from now on.
Ref<Storage> map_descriptor(int descriptor, int64_t bytes);
// A file's first bytes; a shared one is made, and made longer, as needed.
Ref<Storage> map_file(const std::string& name, bool shared, int64_t bytes);

}  // namespace flambeau
