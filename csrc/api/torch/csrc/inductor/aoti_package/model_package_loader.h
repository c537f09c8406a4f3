// Compiled functions, by the name that programs include.
#pragma once

#include "flambeau/compiled.h"
#include "torch/all.h"
