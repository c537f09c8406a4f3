// The order of recording, for who looks at nodes from outside.
#pragma once

#include <cstdint>

namespace flambeau {

uint64_t next_sequence() noexcept;  // `sequence` of the next node of the process

}  // namespace flambeau
