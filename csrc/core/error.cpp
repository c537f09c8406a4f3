#include "core/error.h"

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
  throw Error(kind, join(parts));
}

}  // namespace flambeau
