"""Operations on lists of tensors: one call for all, each the ordinary operation per tensor.

`NAME` stands for each of the names in `each`. In-place forms return nothing, and go through
`_list_step_`, one loop over all tensors, where those are plain and alike. The steps of SGD and
Adam are here too, because they are single calls over lists.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _check_lists(self: Tensors, other: Tensors) -> None:
    """Refuses an empty list and lists of different lengths."""
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    check(
        len(self) == len(other),
        f"Tensor lists must have the same number of tensors, got {len(self)} and {len(other)}",
    )


@composite(namespaces=(), method=False)
def _check_numbers(self: Tensors, scalars: Numbers) -> None:
    """Refuses an empty list and one that has another length than the list of numbers."""
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    check(
        len(self) == len(scalars), "Tensor list must have same number of elements as scalar list."
    )


@composite(namespaces=(), method=False)
def _check_single(self: Tensors, other: Tensor) -> None:
    """Refuses an empty list, and an operand for all tensors that is not 0-d."""
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    check(
        other.ndim == 0 and other.numel() == 1,
        f"scalar tensor expected to be 0 dim but it has {other.ndim} dimensions and "
        f"{other.numel()} elements.",
    )


@composite(namespaces=(), method=False)
def _unpacked(self: Tensors, scalars: Tensor) -> Numbers:
    """The entries of a 1-d tensor, one for each tensor of the list."""
    check(
        scalars.ndim == 1,
        f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.ndim} instead.",
    )
    check(
        scalars.numel() == len(self),
        f"Expected length of scalars to match input of length {len(self)} but got "
        f"{scalars.numel()} instead.",
    )
    return [scalars.select(0, i).item() for i in range(len(self))]


# One operand -------------------------------------------------------------------------------------


@composite(
    each=(
        "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1",
        "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round",
        "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    )
)  # fmt: skip
def _foreach_NAME(self: Tensors) -> Tensors:
    """`NAME` of every tensor.

    >>> len(torch._foreach_NAME([torch.ones(1)]))
    1
    """
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    return [NAME(x) for x in self]


@composite(
    each=(
        "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1",
        "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round",
        "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "zero",
    )
)  # fmt: skip
def _foreach_NAME_(self: Tensors) -> None:
    """`NAME_` of every tensor.

    >>> torch._foreach_NAME_([torch.ones(1)])
    """
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    for x in self:
        x.NAME_()


# Two operands ------------------------------------------------------------------------------------


@composite(each=("add", "sub"))
def _foreach_NAME(self: Tensors, other: Tensors, *, alpha: Number = 1) -> Tensors:
    """`NAME` of tensors of two lists.

    >>> torch._foreach_NAME([torch.ones(1)], [torch.zeros(1)])
    (tensor([1.]),)
    """
    _check_lists(self, other)
    return [NAME(x, y, alpha=alpha) for x, y in zip(self, other)]


@composite(each=("add", "sub"))
def _foreach_NAME_(self: Tensors, other: Tensors, *, alpha: Number = 1) -> None:  # noqa: F811
    """`NAME_` of tensors of two lists.

    >>> torch._foreach_NAME_([torch.ones(1)], [torch.zeros(1)])
    """
    _check_lists(self, other)
    if _plain(self, [alpha]) and alike(self, other, other):
        _list_step_("NAME", self, other, other, [alpha])
        return
    for x, y in zip(self, other):
        x.NAME_(y, alpha=alpha)


@composite(each=("mul", "div", "clamp_min", "clamp_max", "maximum", "minimum"))
def _foreach_NAME(self: Tensors, other: Tensors) -> Tensors:
    """`NAME` of tensors of two lists.

    >>> torch._foreach_NAME([torch.ones(1)], [torch.ones(1)])
    (tensor([1.]),)
    """
    _check_lists(self, other)
    return [NAME(x, y) for x, y in zip(self, other)]


@composite(each=("mul", "div", "clamp_min", "clamp_max"))
def _foreach_NAME_(self: Tensors, other: Tensors) -> None:  # noqa: F811
    """`NAME_` of tensors of two lists.

    >>> torch._foreach_NAME_([torch.ones(1)], [torch.ones(1)])
    """
    _check_lists(self, other)
    if alike(self, other, other):
        _list_step_("NAME", self, other, other, [1.0])
        return
    for x, y in zip(self, other):
        x.NAME_(y)


@composite()
def _foreach_maximum_(self: Tensors, other: Tensors) -> None:
    """The larger of the entries of two lists, in place of the first.

    >>> torch._foreach_maximum_([torch.ones(1)], [torch.ones(1)])
    """
    _foreach_clamp_min_(self, other)


@composite()
def _foreach_minimum_(self: Tensors, other: Tensors) -> None:
    """The smaller of the entries of two lists, in place of the first.

    >>> torch._foreach_minimum_([torch.ones(1)], [torch.ones(1)])
    """
    _foreach_clamp_max_(self, other)


@_foreach_NAME.overload(
    each=("add", "sub", "mul", "div", "clamp_min", "clamp_max", "maximum", "minimum")
)
def _foreach_NAME(self: Tensors, scalars: Numbers) -> Tensors:
    """With a number for each tensor.

    >>> len(torch._foreach_NAME([torch.ones(1)], [1.0]))
    1
    """
    _check_numbers(self, scalars)
    return [NAME(x, wrapped(c)) for x, c in zip(self, scalars)]


@_foreach_NAME_.overload(each=("add", "sub", "mul", "div", "clamp_min", "clamp_max"))
def _foreach_NAME_(self: Tensors, scalars: Numbers) -> None:
    """With a number for each tensor.

    >>> torch._foreach_NAME_([torch.ones(1)], [1.0])
    """
    _check_numbers(self, scalars)
    if _plain(self, scalars):
        _list_step_("NAME_number", self, self, self, scalars)
        return
    for x, c in zip(self, scalars):
        x.NAME_(wrapped(c))


@_foreach_maximum_.overload()
def _foreach_maximum_(self: Tensors, scalars: Numbers) -> None:
    """With a number for each tensor.

    >>> torch._foreach_maximum_([torch.ones(1)], [1.0])
    """
    _foreach_clamp_min_(self, scalars)


@_foreach_minimum_.overload()
def _foreach_minimum_(self: Tensors, scalars: Numbers) -> None:
    """With a number for each tensor.

    >>> torch._foreach_minimum_([torch.ones(1)], [1.0])
    """
    _foreach_clamp_max_(self, scalars)


@_foreach_add.overload()
def _foreach_add(self: Tensors, other: Tensor, *, alpha: Number = 1) -> Tensors:
    """With a 0-d tensor for all.

    >>> torch._foreach_add([torch.ones(1)], torch.tensor(1.0))
    (tensor([2.]),)
    """
    _check_single(self, other)
    return [add(x, other, alpha=alpha) for x in self]


@_foreach_add_.overload()
def _foreach_add_(self: Tensors, other: Tensor, *, alpha: Number = 1) -> None:
    """With a 0-d tensor for all.

    >>> torch._foreach_add_([torch.ones(1)], torch.tensor(1.0))
    """
    _check_single(self, other)
    for x in self:
        x.add_(other, alpha=alpha)


@_foreach_NAME.overload(each=("mul", "div"))
def _foreach_NAME(self: Tensors, other: Tensor) -> Tensors:
    """With a 0-d tensor for all.

    >>> torch._foreach_NAME([torch.ones(1)], torch.tensor(1.0))
    (tensor([1.]),)
    """
    _check_single(self, other)
    return [NAME(x, other) for x in self]


@_foreach_NAME_.overload(each=("mul", "div"))
def _foreach_NAME_(self: Tensors, other: Tensor) -> None:
    """With a 0-d tensor for all.

    >>> torch._foreach_NAME_([torch.ones(1)], torch.tensor(1.0))
    """
    _check_single(self, other)
    for x in self:
        x.NAME_(other)


@_foreach_NAME.overload(
    each=("add", "sub", "mul", "div", "clamp_min", "clamp_max", "maximum", "minimum")
)
def _foreach_NAME(self: Tensors, scalar: Number) -> Tensors:
    """With one number for all.

    >>> len(torch._foreach_NAME([torch.ones(1)], 1.0))
    1
    """
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    return [NAME(x, wrapped(scalar)) for x in self]


@_foreach_NAME_.overload(each=("add", "sub", "mul", "div", "clamp_min", "clamp_max"))
def _foreach_NAME_(self: Tensors, scalar: Number) -> None:
    """With one number for all.

    >>> torch._foreach_NAME_([torch.ones(1)], 1.0)
    """
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    if _plain(self, [scalar]):
        _list_step_("NAME_number", self, self, self, [scalar])
        return
    for x in self:
        x.NAME_(wrapped(scalar))


@_foreach_maximum_.overload()
def _foreach_maximum_(self: Tensors, scalar: Number) -> None:
    """With one number for all.

    >>> torch._foreach_maximum_([torch.ones(1)], 1.0)
    """
    _foreach_clamp_min_(self, scalar)


@_foreach_minimum_.overload()
def _foreach_minimum_(self: Tensors, scalar: Number) -> None:
    """With one number for all.

    >>> torch._foreach_minimum_([torch.ones(1)], 1.0)
    """
    _foreach_clamp_max_(self, scalar)


@composite()
def _foreach_pow(self: Tensors, exponent: Tensors) -> Tensors:
    """Powers, tensor by tensor.

    >>> torch._foreach_pow([torch.ones(1)], [torch.ones(1)])
    (tensor([1.]),)
    """
    _check_lists(self, exponent)
    return [pow(x, y) for x, y in zip(self, exponent)]


@_foreach_pow.overload()
def _foreach_pow(self: Tensors, exponent: Numbers) -> Tensors:
    """With an exponent for each tensor.

    >>> torch._foreach_pow([torch.ones(1)], [2.0])
    (tensor([1.]),)
    """
    _check_numbers(self, exponent)
    return [pow(x, wrapped(c)) for x, c in zip(self, exponent)]


@_foreach_pow.overload()
def _foreach_pow(self: Tensors, exponent: Number) -> Tensors:
    """With one exponent for all.

    >>> torch._foreach_pow([torch.ones(1)], 2.0)
    (tensor([1.]),)
    """
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    return [pow(x, wrapped(exponent)) for x in self]


@_foreach_pow.overload()
def _foreach_pow(self: Number, exponent: Tensors) -> Tensors:
    """Powers of one number.

    >>> torch._foreach_pow(2.0, [torch.ones(1)])
    (tensor([2.]),)
    """
    check(len(exponent) > 0, "Tensor list must have at least one tensor.")
    return [pow(wrapped(self), y) for y in exponent]


@composite()
def _foreach_pow_(self: Tensors, exponent: Tensors) -> None:
    """Powers in place, tensor by tensor.

    >>> torch._foreach_pow_([torch.ones(1)], [torch.ones(1)])
    """
    _check_lists(self, exponent)
    for x, y in zip(self, exponent):
        x.pow_(y)


@_foreach_pow_.overload()
def _foreach_pow_(self: Tensors, exponent: Numbers) -> None:
    """With an exponent for each tensor.

    >>> torch._foreach_pow_([torch.ones(1)], [2.0])
    """
    _check_numbers(self, exponent)
    for x, c in zip(self, exponent):
        x.pow_(wrapped(c))


@_foreach_pow_.overload()
def _foreach_pow_(self: Tensors, exponent: Number) -> None:
    """With one exponent for all.

    >>> torch._foreach_pow_([torch.ones(1)], 2.0)
    """
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    for x in self:
        x.pow_(wrapped(exponent))


# Three operands ----------------------------------------------------------------------------------


@composite(each=("addcmul", "addcdiv"))
def _foreach_NAME(self: Tensors, tensor1: Tensors, tensor2: Tensors, value: Number = 1) -> Tensors:
    """`NAME` of tensors of three lists.

    >>> torch._foreach_NAME([torch.ones(1)], [torch.ones(1)], [torch.ones(1)])
    (tensor([2.]),)
    """
    _check_lists(self, tensor1)
    _check_lists(self, tensor2)
    return [NAME(x, y, z, value=value) for x, y, z in zip(self, tensor1, tensor2)]


@_foreach_NAME.overload(each=("addcmul", "addcdiv"))
def _foreach_NAME(self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Numbers) -> Tensors:
    """With a factor for each tensor.

    >>> torch._foreach_NAME([torch.ones(1)], [torch.ones(1)], [torch.ones(1)], [2.0])
    (tensor([3.]),)
    """
    _check_lists(self, tensor1)
    _check_lists(self, tensor2)
    _check_numbers(self, scalars)
    return [NAME(x, y, z, value=c) for x, y, z, c in zip(self, tensor1, tensor2, scalars)]


@_foreach_NAME.overload(each=("addcmul", "addcdiv"))
def _foreach_NAME(self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Tensor) -> Tensors:
    """With the factors in a 1-d tensor.

    >>> torch._foreach_NAME([torch.ones(1)], [torch.ones(1)], [torch.ones(1)], torch.ones(1))
    (tensor([2.]),)
    """
    return _foreach_NAME(self, tensor1, tensor2, _unpacked(self, scalars))


@composite(each=("addcmul", "addcdiv"))
def _foreach_NAME_(self: Tensors, tensor1: Tensors, tensor2: Tensors, value: Number = 1) -> None:
    """`NAME_` of tensors of three lists.

    >>> torch._foreach_NAME_([torch.ones(1)], [torch.ones(1)], [torch.ones(1)])
    """
    _check_lists(self, tensor1)
    _check_lists(self, tensor2)
    if _plain(self, [value]) and alike(self, tensor1, tensor2):
        _list_step_("NAME", self, tensor1, tensor2, [value])
        return
    for x, y, z in zip(self, tensor1, tensor2):
        x.NAME_(y, z, value=value)


@_foreach_NAME_.overload(each=("addcmul", "addcdiv"))
def _foreach_NAME_(self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Numbers) -> None:
    """With a factor for each tensor.

    >>> torch._foreach_NAME_([torch.ones(1)], [torch.ones(1)], [torch.ones(1)], [2.0])
    """
    _check_lists(self, tensor1)
    _check_lists(self, tensor2)
    _check_numbers(self, scalars)
    if _plain(self, scalars) and alike(self, tensor1, tensor2):
        _list_step_("NAME", self, tensor1, tensor2, scalars)
        return
    for x, y, z, c in zip(self, tensor1, tensor2, scalars):
        x.NAME_(y, z, value=c)


@_foreach_NAME_.overload(each=("addcmul", "addcdiv"))
def _foreach_NAME_(self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Tensor) -> None:
    """With the factors in a 1-d tensor.

    >>> torch._foreach_NAME_([torch.ones(1)], [torch.ones(1)], [torch.ones(1)], torch.ones(1))
    """
    _foreach_NAME_(self, tensor1, tensor2, _unpacked(self, scalars))


@composite()
def _foreach_lerp(self: Tensors, tensors1: Tensors, weights: Tensors) -> Tensors:
    """Interpolations between two lists, with weights tensor by tensor.

    >>> torch._foreach_lerp([torch.zeros(1)], [torch.ones(1)], [torch.ones(1)])
    (tensor([1.]),)
    """
    _check_lists(self, tensors1)
    _check_lists(self, weights)
    return [lerp(x, y, w) for x, y, w in zip(self, tensors1, weights)]


@_foreach_lerp.overload()
def _foreach_lerp(self: Tensors, tensors1: Tensors, weight: Numbers) -> Tensors:
    """With a weight for each tensor.

    >>> torch._foreach_lerp([torch.zeros(1)], [torch.ones(1)], [0.5])
    (tensor([0.5000]),)
    """
    _check_lists(self, tensors1)
    _check_numbers(self, weight)
    return [lerp(x, y, w) for x, y, w in zip(self, tensors1, weight)]


@_foreach_lerp.overload()
def _foreach_lerp(self: Tensors, tensors1: Tensors, weight: Number) -> Tensors:
    """With one weight for all.

    >>> torch._foreach_lerp([torch.zeros(1)], [torch.ones(1)], 0.5)
    (tensor([0.5000]),)
    """
    _check_lists(self, tensors1)
    return [lerp(x, y, weight) for x, y in zip(self, tensors1)]


@composite()
def _foreach_lerp_(self: Tensors, tensors1: Tensors, weights: Tensors) -> None:
    """Interpolations in place, with weights tensor by tensor.

    >>> torch._foreach_lerp_([torch.zeros(1)], [torch.ones(1)], [torch.ones(1)])
    """
    _check_lists(self, tensors1)
    _check_lists(self, weights)
    for x, y, w in zip(self, tensors1, weights):
        x.lerp_(y, w)


@_foreach_lerp_.overload()
def _foreach_lerp_(self: Tensors, tensors1: Tensors, weight: Numbers) -> None:
    """With a weight for each tensor.

    >>> torch._foreach_lerp_([torch.zeros(1)], [torch.ones(1)], [0.5])
    """
    _check_lists(self, tensors1)
    _check_numbers(self, weight)
    if _plain(self, weight) and alike(self, tensors1, tensors1):
        _list_step_("lerp", self, tensors1, tensors1, weight)
        return
    for x, y, w in zip(self, tensors1, weight):
        x.lerp_(y, w)


@_foreach_lerp_.overload()
def _foreach_lerp_(self: Tensors, tensors1: Tensors, weight: Number) -> None:
    """With one weight for all.

    >>> torch._foreach_lerp_([torch.zeros(1)], [torch.ones(1)], 0.5)
    """
    _check_lists(self, tensors1)
    if _plain(self, [weight]) and alike(self, tensors1, tensors1):
        _list_step_("lerp", self, tensors1, tensors1, [weight])
        return
    for x, y in zip(self, tensors1):
        x.lerp_(y, weight)


# Others ------------------------------------------------------------------------------------------


@composite()
def _foreach_copy_(self: Tensors, src: Tensors, non_blocking: bool = False) -> None:
    """Copies each tensor of `src` into its partner.

    >>> torch._foreach_copy_([torch.zeros(1)], [torch.ones(1)])
    """
    _check_lists(self, src)
    for x, y in zip(self, src):
        x.copy_(y)


@composite()
def _foreach_clone(self: Tensors, *, memory_format: MemoryFormat | None = None) -> Tensors:
    """A copy of every tensor.

    >>> torch._foreach_clone([torch.ones(1)])
    (tensor([1.]),)
    """
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    return [clone(x, memory_format=memory_format) for x in self]


@composite()
def _foreach_norm(self: Tensors, ord: Number = 2, dtype: DType | None = None) -> Tensors:
    """The vector norm of every tensor.

    >>> torch._foreach_norm([torch.ones(4)])
    (tensor(2.),)
    """
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    return [linalg_vector_norm(x, float(ord), dtype=dtype) for x in self]


@composite()
def _foreach_powsum(self: Tensors, ord: Number = 2, dtype: DType | None = None) -> Tensors:
    """The sum of the powers of the magnitudes of every tensor.

    >>> torch._foreach_powsum([torch.ones(4)])
    (tensor(4.),)
    """
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    return [pow(abs(x), wrapped(ord)).sum(dtype=dtype) for x in self]


@composite()
def _foreach_max(self: Tensors) -> Tensors:
    """The largest entry of every tensor.

    >>> torch._foreach_max([torch.ones(4)])
    (tensor(1.),)
    """
    check(len(self) > 0, "Tensor list must have at least one tensor.")
    for x in self:
        check(
            x.numel() > 0,
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero "
            "elements is undefined.",
        )
    return [max(x) for x in self]


@composite()
def _foreach_mm(self: Tensors, mat2: Tensors) -> Tensors:
    """Matrix products, pair by pair.

    >>> torch._foreach_mm([torch.ones(1, 1)], [torch.ones(1, 1)])
    (tensor([[1.]]),)
    """
    _check_lists(self, mat2)
    return [mm(x, y) for x, y in zip(self, mat2)]


# One loop over all tensors -----------------------------------------------------------------------


@composite(namespaces=(), method=False)
def _plain(self: Tensors, scalars: Numbers) -> bool:
    """May `_list_step_` take the tensors with these numbers, as `alike` says of lists?"""
    for c in scalars:
        if c.is_complex() or c.is_bool():
            return False
    return alike(self, self, self)


@structured(kernel="list_step", mutates=("self",), namespaces=(), method=False, out=False)
def _list_step_(
    name: str, self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Numbers
) -> None:
    """Changes every tensor by the operation `name` with its partners, in one loop.

    Numbers are one for all or one for each. `add_number` has them as operands, not as factors.
    """


@structured(kernel="fused_sgd", mutates=("params", "momentum_buffers"), method=False, out=False)
def _fused_sgd_(
    params: Tensors,
    grads: Tensors,
    momentum_buffers: Tensors,
    *,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    first_step: bool,
) -> None:
    """One step of SGD on all parameters; `momentum_buffers` is empty without momentum.

    >>> torch._fused_sgd_([torch.ones(1)], [torch.ones(1)], [], lr=0.1, momentum=0.0,
    ...     dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False, first_step=False)
    """
    n = len(params)
    check(len(grads) == n, f"_fused_sgd_: expected {n} grads, got {len(grads)}")
    buffers = n if momentum != 0.0 else 0
    check(
        len(momentum_buffers) == buffers,
        f"_fused_sgd_: expected {buffers} momentum_buffers, got {len(momentum_buffers)}",
    )


@structured(
    kernel="fused_adam",
    mutates=("params", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "steps"),
    method=False,
    out=False,
)
def _fused_adam_(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    steps: Tensors,
    *,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> None:
    """One step of Adam (`decoupled`: AdamW) on all parameters; counts `steps` up first.

    >>> torch._fused_adam_([torch.ones(1)], [torch.ones(1)], [torch.zeros(1)], [torch.zeros(1)],
    ...     [], [torch.tensor(0.0)], lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.0,
    ...     amsgrad=False, maximize=False, decoupled=False)
    """
    n = len(params)
    check(
        len(grads) == n and len(exp_avgs) == n and len(exp_avg_sqs) == n and len(steps) == n,
        f"_fused_adam_: expected {n} grads, exp_avgs, exp_avg_sqs and steps, got {len(grads)}, "
        f"{len(exp_avgs)}, {len(exp_avg_sqs)} and {len(steps)}",
    )
    largest = n if amsgrad else 0
    check(
        len(max_exp_avg_sqs) == largest,
        f"_fused_adam_: expected {largest} max_exp_avg_sqs, got {len(max_exp_avg_sqs)}",
    )
