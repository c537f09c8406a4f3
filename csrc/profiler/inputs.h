// The arguments of a call as whole numbers: a tag and what it says, parameter after parameter.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/op.h"

namespace flambeau::profiler {

// Tensor: dtype, number of dims, sizes, strides. List: how many, then each as an Input. Ints: how
// many, then they. Int, Bool: the value. Float: its bits. Other: nothing more.
enum class Input : int64_t { None, Tensor, List, Ints, Int, Bool, Float, Other };

// Appends how many parameters `op` has, and those; `given` points to them.
void append_inputs(const OpDesc& op, const void* const* given, std::vector<int64_t>& out);
void append_inputs(const OpDesc& op, const Value* const* given, std::vector<int64_t>& out);

}  // namespace flambeau::profiler
