"""Small composites of `nn.functional`: gated units."""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=("nn.functional",), method=False)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """First half along `dim` times the logistic sigmoid of the second (Dauphin et al., 2016).

    >>> F.glu(torch.tensor([2.0, 0.0]))
    tensor([1.])
    """
    check(input.ndim > 0, "glu does not support scalars because halving size must be even")
    d = wrap_dim(dim, input.ndim)
    n = input.size(d)
    check(n % 2 == 0, f"Halving dimension must be even, but dimension {d} is size {n}")
    check_not_implemented(
        input.dtype.is_floating_point,
        f"\"glu_cpu\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    return input.narrow(d, 0, n // 2) * input.narrow(d, n // 2, n // 2).sigmoid()
