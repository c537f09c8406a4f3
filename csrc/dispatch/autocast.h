// Autocast: calls of the operations that the table gives an `autocast` option run in the dtype it
// names. Only float tensors on the CPU are cast, never float64, and through a recorded operation,
// so that gradients flow back to the tensors that were given.
#pragma once

#include "dispatch/op.h"

namespace flambeau {

// The call with its tensors cast and autocast off.
Values autocast_call(const OpDesc& op, Values args);
// Lowered leaves that require gradients are kept until the outermost context is left, so that a
// weight is cast once however often it is used.
void clear_autocast_cache();

}  // namespace flambeau
