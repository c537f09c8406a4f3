// Scripts, operators and tensors, by the name that programs and extensions include.
#pragma once

#include "flambeau/script.h"
#include "torch/all.h"
