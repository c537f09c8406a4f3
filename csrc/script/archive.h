// Files of `jit.save` read without Python: the text of the program, its objects as data, and the
// machine made of both.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "files/source.h"
#include "script/run.h"

namespace flambeau::script {

struct Loaded {
  std::shared_ptr<const Program> program;
  Value root;            // the module; none for a function
  std::string function;  // of the file, if it is one
  Tensors constants;     // that a function is given behind its arguments
  // Buffers that state dicts leave out, by the module that has them.
  std::map<const Object*, std::vector<std::string>> transient;
};

// Error(Runtime) that says why: another file, a damaged one, one that holds modules which run in
// Python alone.
Loaded load(const files::Source& from);

// The code of a function; Error(Runtime) with the reason where it runs in Python alone.
const Code& runnable(const Program& program, const std::string& function);
Object& object_of(const Value& module);

}  // namespace flambeau::script
