// A file of `jit.save` as a program holds it: what script/archive.h reads, and the texts that go
// back into a file as they are.
#pragma once

#include "flambeau/script.h"
#include "script/archive.h"

namespace flambeau::jit {

struct Loaded : flambeau::script::Loaded {
  std::vector<std::pair<std::string, std::string>> texts;  // by the names of their entries

  static Module read(const files::Source& from, std::optional<Device> device, ExtraFilesMap* extra);
};

}  // namespace flambeau::jit
