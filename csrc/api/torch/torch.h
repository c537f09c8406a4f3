// The name under which programs written for PyTorch include the library.
#pragma once

#include "flambeau/data.h"
#include "flambeau/flambeau.h"
#include "flambeau/macros.h"
#include "flambeau/nn.h"
#include "flambeau/optim.h"
#include "flambeau/serialize.h"
