// All of the library's headers.
#pragma once

#include "flambeau/library.h"
#include "flambeau/macros.h"
#include "torch/torch.h"
