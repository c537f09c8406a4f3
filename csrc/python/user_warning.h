// Warnings of the core as Python's.
#pragma once

#include <string>

namespace flambeau::python {

// A UserWarning, from any thread; thrown when the program makes warnings errors.
void warn_user(const std::string& message);

}  // namespace flambeau::python
