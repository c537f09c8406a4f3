// The file that LAPACK's routines come from: which one, found and opened on first use.
//
// Note [Where LAPACK is found]
// FLAMBEAU_OPENBLAS names the library, or is `off`, which leaves the plain routines. Else whoever
// holds the core may say where it is (`set_finder`: Python looks for the installed package
// scipy-openblas32, see flambeau/_openblas.py); else the loader looks for a system's. No path is
// compiled in: a package is built on one machine and used on another.
#pragma once

#include <string>

namespace flambeau::kernels::lapack {

struct Library {
  void* handle = nullptr;   // null: there is none
  const char* prefix = "";  // of the names in it
  std::string path;

  void* symbol(const std::string& name) const;  // of the routine `name`, with its prefix
};

// Looks for it unless that was done. In a parallel region it does not look, and there is none: the
// finder may have to wait for the thread that started the region.
const Library& library();

// A function that tells a path, or an empty string. Called at most once at a time, with no lock.
void set_finder(std::string (*finder)());

}  // namespace flambeau::kernels::lapack
