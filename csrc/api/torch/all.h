// All of the library's headers.
#pragma once

#include "torch/torch.h"
#include "flambeau/library.h"
#include "flambeau/macros.h"
