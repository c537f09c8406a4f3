"""Function transforms: ``vmap`` and derivatives that nest in any order.

Owns the names of ``flambeau.func``. Batches are the core's levels (csrc/func), derivatives are
autograd's: reverse mode through aliases of the inputs, forward mode through nested dual levels.
"""

from .batch_norm import replace_all_batch_norm_modules_
from .modules import functional_call, stack_module_state
from .rearrange import rearrange
from .reverse import grad, grad_and_value, jacrev, vjp
from .tangents import hessian, jacfwd, jvp, linearize
from .vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
