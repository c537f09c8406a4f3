// Everything of flambeau::nn.
#pragma once

#include "flambeau/nn/attention.h"
#include "flambeau/nn/composed.h"
#include "flambeau/nn/containers.h"
#include "flambeau/nn/functional.h"
#include "flambeau/nn/init.h"
#include "flambeau/nn/layers.h"
#include "flambeau/nn/module.h"
#include "flambeau/nn/rnn.h"
#include "flambeau/nn/rnn_cells.h"
#include "flambeau/nn/utils.h"
