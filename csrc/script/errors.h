// Errors of scripts that are of no kind of the library's: exceptions of Python or of the program by
// the names of their classes, and keys that dicts do not have.
#pragma once

#include <string>

#include "core/error.h"
#include "dispatch/value.h"

namespace flambeau::script {

// An exception of that class of Python or of the program; `module.Name` for those of a program.
class Raised : public Error {
 public:
  Raised(ErrorKind kind, std::string cls, const std::string& message)
      : Error(kind, message), cls(std::move(cls)) {}
  std::string cls;
};
[[noreturn]] void raise(const std::string& cls, const std::string& message);
// A dict has no such key.
class MissingKey : public Error {
 public:
  explicit MissingKey(const Value& key);
  Value key;
};

}  // namespace flambeau::script
