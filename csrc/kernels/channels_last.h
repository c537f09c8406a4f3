// Planes whose channels lie last in memory, which some kernels have loops of their own for.
#pragma once

#include "core/tensor.h"

namespace flambeau::kernels {

// The format that has the channels of planes, or of volumes, last.
inline MemoryFormat channels_last(const Tensor& x) {
  return x.dim() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
}

// In that format, and not row-major as well.
inline bool is_channels_last(const Tensor& x) {
  return (x.dim() == 4 || x.dim() == 5) && !x.is_contiguous() && x.is_contiguous(channels_last(x));
}

}  // namespace flambeau::kernels
