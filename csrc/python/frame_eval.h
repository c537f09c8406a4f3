// The hook on the evaluation of Python frames (PEP 523), under which compile() captures functions.
// Supported on CPython 3.11 and 3.12; elsewhere turning it on is an error.
#pragma once

#include "python/pybase.h"

namespace flambeau::python {

// Nothing is in force on this thread while this lives. Needs the GIL.
class CapturePaused {
 public:
  CapturePaused() noexcept;
  ~CapturePaused();
  CapturePaused(const CapturePaused&) = delete;
  PyObject* config() const noexcept { return config_; }

 private:
  PyObject* config_;
  bool strict_;
};

bool init_frame_eval(PyObject* module);

}  // namespace flambeau::python
