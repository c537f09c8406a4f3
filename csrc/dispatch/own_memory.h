// In-place forms that work in the memory of their first argument, for callers of boxed values: they
// check their arguments before they write, and copy nothing (option `own_memory` of the table).
#pragma once

#include "dispatch/op.h"

namespace flambeau {

struct OwnMemory {
  const char* uid;   // of the in-place form
  const OpDesc* op;  // the entry
  Values (*call)(const Values& args);
};

std::span<const OwnMemory> own_memory_forms();  // generated

}  // namespace flambeau
