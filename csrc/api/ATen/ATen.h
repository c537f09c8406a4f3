// A name that programs include; everything is in one header here.
#pragma once

#include "torch/all.h"
