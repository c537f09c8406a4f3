// All of the library's headers.
#pragma once

#include "flambeau/custom_class.h"
#include "flambeau/library.h"
#include "flambeau/macros.h"
#include "torch/torch.h"
