#include "core/warning.h"

#include <cstdio>

namespace flambeau {

void (*show_warning)(const std::string&) = [](const std::string& message) {
  std::fprintf(stderr, "flambeau: warning: %s\n", message.c_str());
};

}  // namespace flambeau
