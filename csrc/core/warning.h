// Warnings: shown by whoever runs the program; the binding gives a UserWarning, and throws where
// the user made warnings errors.
#pragma once

#include <string>

namespace flambeau {

// Installed by the binding; without one, warnings go to the standard error stream.
extern void (*show_warning)(const std::string& message);
[[gnu::cold]] inline void warn(const std::string& message) {
  show_warning(message);
}

}  // namespace flambeau
