#include "core/error_classes.h"

namespace flambeau {

void Part::write_text(std::ostream& out, const void* text) {
  out << static_cast<const char*>(text);
}

std::string join(std::initializer_list<Part> parts) {
  std::ostringstream out;
  out << std::boolalpha;
  for (const Part& part : parts) part.write(out);
  return out.str();
}

void fail_with(ErrorKind kind, std::initializer_list<Part> parts) {
  const std::string message = join(parts);
  switch (kind) {
    case ErrorKind::Value:
      throw ValueError(message);
    case ErrorKind::Type:
      throw TypeError(message);
    case ErrorKind::Index:
      throw IndexError(message);
    case ErrorKind::NotImplemented:
      throw NotImplementedError(message);
    case ErrorKind::OutOfMemory:
      throw OutOfMemoryError(message);
    case ErrorKind::LinAlg:
      throw LinAlgError(message);
    case ErrorKind::Assertion:
      throw AssertionError(message);
    default:
      throw Error(kind, message);
  }
}

}  // namespace flambeau
