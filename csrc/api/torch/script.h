// Scripts, operators and tensors, by the name that programs and extensions include.
#pragma once

#include "torch/all.h"
#include "flambeau/script.h"
