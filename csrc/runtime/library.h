// Compiled libraries that programs run. A library is closed when the last program that has a
// function of it is gone, so that compiling and forgetting leaves nothing in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace flambeau::runtime {

// Note [Closing libraries]
// A library's code may run only while somebody holds one of its functions: a program holds them,
// and whoever calls a program (a frame's entry, a node of the graph) holds the program until it
// has returned. The threads of a parallel region have left the region's function when the region
// ends: the caller passes its last barrier after all of them. Generated code has no thread-local
// objects and no static ones, so nothing of it is run at the end of a thread or process.
using Library = std::shared_ptr<void>;                // the handle of the dynamic linker
using LibraryFunction = std::shared_ptr<const void>;  // its address; keeps the library open

Library open_library(const std::string& path);  // Error(Runtime) where that fails
// One of which there are the bytes alone: no file of a folder has them.
Library open_library(std::span<const std::byte> bytes);
LibraryFunction function_of(const Library& library, const char* name);  // Error(Runtime): there is none

}  // namespace flambeau::runtime
