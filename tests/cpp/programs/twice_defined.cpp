// What cannot be added is an error of the one who loads it.
#include <torch/library.h>

TORCH_LIBRARY(cpptest, m) { m.def("scaled(Tensor x, float by=2.) -> Tensor"); }
TORCH_LIBRARY(cpptest_bad, m) { m.def("no schema at all"); }
