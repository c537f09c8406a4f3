// Everything of flambeau::nn.
#pragma once

#include "flambeau/nn/containers.h"
#include "flambeau/nn/init.h"
#include "flambeau/nn/layers.h"
#include "flambeau/nn/module.h"
#include "flambeau/nn/rnn.h"
