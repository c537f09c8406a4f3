// A name that extensions include for operations and tensors; scripts themselves are not there yet.
#pragma once

#include "torch/all.h"
