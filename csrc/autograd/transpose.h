// Forward mode from reverse mode: the vjp of an operation is linear in its cotangents, so
// transposing it (a vjp of the vjp) gives the jvp. Used where an operation has no jvp of its own.
#pragma once

#include "dispatch/op.h"

namespace flambeau {

// Tangents of the results, given those of the tensor parameters (lists flattened; undefined: zero).
// A result without a tangent (integral, or depending on no tangent) is undefined. The operation
// must have a vjp.
Tensors transposed_jvp(const OpDesc& op, const Values& args, const Tensors& tangents,
                       const Values& results);

// op.jvp where there is one, else the transposed vjp.
Tensors jvp_of(const OpDesc& op, const Values& args, const Tensors& tangents,
               const Values& results);

}  // namespace flambeau
