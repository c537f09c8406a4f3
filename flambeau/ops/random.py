"""Random numbers. The kernels draw from the generator in PyTorch's order, so the same seed gives
the same numbers bit for bit; csrc/kernels/random.cpp says how each distribution is made.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="uniform_", inplace_kernel=True, namespaces=(), method=True, batch=True)
def uniform_(
    self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fills with numbers drawn uniformly from [from, to), both parts of complex ones.

    >>> torch.empty(2).uniform_(3, 3)
    tensor([3., 3.])
    """
    check_not_implemented(
        self.dtype.is_inexact,
        f"\"check_uniform_bounds\" not implemented for '{scalar_type_name(self.dtype)}'",
    )
    check(
        from_ <= to,
        f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}",
    )
    check(
        to - from_ <= largest(self.dtype),
        f"uniform_: expected to - from within the range of {dtype_name(self.dtype)}, got "
        f"from={from_}, to={to}",
    )


@uniform_.vjp
def _(g):
    return zeros(g.shape, dtype=g.dtype)


@structured(kernel="normal_", inplace_kernel=True, namespaces=(), method=True, batch=True)
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fills with numbers drawn from the normal distribution.

    >>> torch.empty(2).normal_(3, 0)
    tensor([3., 3.])
    """
    check(std >= 0.0, f"normal expects std >= 0.0, but found std {std}")
    check_not_implemented(
        self.dtype.is_inexact,
        f"\"normal_kernel_cpu\" not implemented for '{scalar_type_name(self.dtype)}'",
    )


@normal_.vjp
def _(g):
    return zeros(g.shape, dtype=g.dtype)


@structured(
    kernel="random_",
    inplace_kernel=True,
    namespaces=(),
    method=True,
    differentiable=False,
    batch=True,
)
def random_(self: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Fills with whole numbers over the range that the dtype holds exactly.

    >>> torch.empty(2, dtype=torch.bool).random_().dtype
    torch.bool
    """


@random_.overload(
    kernel="random_to_",
    inplace_kernel=True,
    namespaces=(),
    method=True,
    differentiable=False,
    batch=True,
)
def random_(self: Tensor, to: int, *, generator: Generator | None = None) -> Tensor:
    """Fills with whole numbers from [0, to).

    >>> torch.empty(2).random_(1)
    tensor([0., 0.])
    """
    check(to > 0, f"random_ expects 'from' to be less than 'to', but got from=0 >= to={to}")


@random_.overload(
    kernel="random_from_to_",
    inplace_kernel=True,
    namespaces=(),
    method=True,
    differentiable=False,
    batch=True,
)
def random_(
    self: Tensor, from_: int, to: int | None, *, generator: Generator | None = None
) -> Tensor:
    """Fills with whole numbers from [from, to).

    >>> torch.empty(2).random_(3, 4)
    tensor([3., 3.])
    """
    if to is not None:
        check(
            from_ < to,
            f"random_ expects 'from' to be less than 'to', but got from={from_} >= to={to}",
        )


@structured(kernel="bernoulli_", inplace_kernel=True, namespaces=(), method=True, batch=True)
def bernoulli_(self: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fills with ones with probability p, else zeros.

    >>> torch.empty(2).bernoulli_(1.0)
    tensor([1., 1.])
    """
    check(p >= 0.0 and p <= 1.0, f"bernoulli_ expects p to be in [0, 1], but got p={p}")


@bernoulli_.vjp
def _(g):
    return zeros(g.shape, dtype=g.dtype)


@bernoulli_.overload(kernel="bernoulli_tensor_", inplace_kernel=True, namespaces=(), method=True)
def bernoulli_(self: Tensor, p: Tensor, *, generator: Generator | None = None) -> Tensor:
    """With a probability for each place, broadcast to the shape of `self`.

    >>> torch.empty(2).bernoulli_(torch.ones(2))
    tensor([1., 1.])
    """
    check(
        p.is_floating_point(),
        f"expected probabilities tensor to have floating type, got {scalar_type_name(p.dtype)}",
    )


@bernoulli_.vjp
def _(g, p):
    return zeros(g.shape, dtype=g.dtype), zeros(p.shape, dtype=p.dtype)


@bernoulli_.vmap
def _(self, p, generator, p_b):
    return self.bernoulli_(_aligned(p, p_b, self.ndim - 1), generator=generator)


@structured(kernel="exponential_", inplace_kernel=True, namespaces=(), method=True, batch=True)
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fills with numbers drawn from the exponential distribution of rate lambd.

    >>> bool((torch.empty(2).exponential_() >= 0).all())
    True
    """
    check(
        self.is_floating_point(),
        f"exponential_: expected a floating-point dtype, got {dtype_name(self.dtype)}",
    )
    check(lambd > 0.0, f"exponential_ expects lambda > 0.0, but found lambda={lambd}")


@exponential_.vjp
def _(g):
    return zeros(g.shape, dtype=g.dtype)


@structured(kernel="geometric_", inplace_kernel=True, namespaces=(), method=True, batch=True)
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fills with the number of trials until the first success of probability p.

    >>> torch.empty(2).geometric_(0.5).min() >= 1
    tensor(True)
    """
    check(0.0 < p and p < 1.0, f"geometric_ expects p to be in (0, 1), but got p={p}")


@geometric_.vjp
def _(g):
    return zeros(g.shape, dtype=g.dtype)


@structured(kernel="log_normal_", inplace_kernel=True, namespaces=(), method=True, batch=True)
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fills with exponentials of normally distributed numbers.

    >>> bool((torch.empty(2).log_normal_() > 0).all())
    True
    """
    check(std > 0.0, f"log_normal_ expects std > 0.0, but found std={std}")
    check(
        self.is_floating_point(),
        f"'log_normal_cpu' not implemented for '{scalar_type_name(self.dtype)}'",
    )


@log_normal_.vjp
def _(g):
    return zeros(g.shape, dtype=g.dtype)


@structured(kernel="cauchy_", inplace_kernel=True, namespaces=(), method=True, batch=True)
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fills with numbers drawn from the Cauchy distribution.

    >>> torch.empty(2).cauchy_().shape
    torch.Size([2])
    """
    check(sigma > 0.0, f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    check(
        self.is_floating_point(),
        f"cauchy_: expected a floating-point dtype, got {dtype_name(self.dtype)}",
    )


@cauchy_.vjp
def _(g):
    return zeros(g.shape, dtype=g.dtype)


@composite(factory=True, method=False, out=True)
def rand(
    size: Ints,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Uniform numbers from [0, 1).

    >>> torch.rand(2, 3).shape
    torch.Size([2, 3])
    """
    return _empty_samples(size, dtype, device, generator).uniform_(0.0, 1.0, generator=generator)


@composite(factory=True, method=False, out=True)
def randn(
    size: Ints,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Numbers of the standard normal distribution.

    >>> torch.randn(2, 3).shape
    torch.Size([2, 3])
    """
    return _empty_samples(size, dtype, device, generator).normal_(0.0, 1.0, generator=generator)


@composite(factory=True, method=False, out=True, sizes=("low", "high"))
def randint(
    low: int,
    high: int,
    size: Ints,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Whole numbers from [low, high), int64 unless `dtype` is given.

    >>> torch.randint(3, 4, (2,))
    tensor([3, 3])
    """
    d = dtype if dtype is not None else int64
    return _empty_samples(size, d, device, generator).random_(low, high, generator=generator)


@randint.overload(factory=True, method=False, out=True, sizes=("high",))
def randint(
    high: int,
    size: Ints,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Whole numbers from [0, high).

    >>> torch.randint(1, (2,))
    tensor([0, 0])
    """
    d = dtype if dtype is not None else int64
    return _empty_samples(size, d, device, generator).random_(0, high, generator=generator)


@structured(kernel="randperm", factory=True, method=False, differentiable=False, sizes=("n",))
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """The numbers 0 … n - 1 in random order. int64 unless `dtype` is given.

    >>> torch.randperm(1)
    tensor([0])
    """
    check(n >= 0, "n must be non-negative, got" + f"{n}")
    d = dtype if dtype is not None else int64
    check(float(n) <= largest(d) + 1.0, f"n is too large for result tensor type: '{dtype_name(d)}'")
    return empty([n], dtype=d, device=device)


@composite(like_factory=True, method=False)
def rand_like(
    input: Tensor, *, generator: Generator | None = None, dtype: DType | None = None,
    device: Device | None = None, memory_format: MemoryFormat | None = None,
) -> Tensor:  # fmt: skip
    """Uniform numbers in the shape of `input`.

    >>> torch.rand_like(torch.ones(2)).shape
    torch.Size([2])
    """
    return empty_like(input, dtype=dtype, device=device, memory_format=memory_format).uniform_(
        0.0, 1.0, generator=generator
    )


@composite(like_factory=True, method=False)
def randn_like(
    input: Tensor, *, generator: Generator | None = None, dtype: DType | None = None,
    device: Device | None = None, memory_format: MemoryFormat | None = None,
) -> Tensor:  # fmt: skip
    """Standard normal numbers in the shape of `input`.

    >>> torch.randn_like(torch.ones(2)).shape
    torch.Size([2])
    """
    return empty_like(input, dtype=dtype, device=device, memory_format=memory_format).normal_(
        0.0, 1.0, generator=generator
    )


@composite(like_factory=True, method=False, sizes=("low", "high"))
def randint_like(
    input: Tensor, low: int, high: int, *, generator: Generator | None = None,
    dtype: DType | None = None, device: Device | None = None,
    memory_format: MemoryFormat | None = None,
) -> Tensor:  # fmt: skip
    """Whole numbers from [low, high) in the shape of `input`.

    >>> torch.randint_like(torch.ones(2), 3, 4)
    tensor([3., 3.])
    """
    return empty_like(input, dtype=dtype, device=device, memory_format=memory_format).random_(
        low, high, generator=generator
    )


@randint_like.overload(like_factory=True, method=False, sizes=("high",))
def randint_like(
    input: Tensor, high: int, *, generator: Generator | None = None,
    dtype: DType | None = None, device: Device | None = None,
    memory_format: MemoryFormat | None = None,
) -> Tensor:  # fmt: skip
    """Whole numbers from [0, high) in the shape of `input`.

    >>> torch.randint_like(torch.ones(2), 1)
    tensor([0., 0.])
    """
    return empty_like(input, dtype=dtype, device=device, memory_format=memory_format).random_(
        0, high, generator=generator
    )


@composite(out=True, out_any_dtype=True, out_casts=True, out_told=False)
def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Ones with the probabilities that `input` gives, else zeros, laid out by rows.

    >>> torch.bernoulli(torch.ones(2))
    tensor([1., 1.])
    """
    return empty(input.shape, like=input).bernoulli_(input, generator=generator)


@bernoulli.overload()
def bernoulli(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Ones with probability p in the shape of `input`.

    >>> torch.bernoulli(torch.zeros(2), 1.0)
    tensor([1., 1.])
    """
    return empty(input.shape, like=input).bernoulli_(p, generator=generator)


@composite(method=False, out=True, out_casts=True)
def normal(mean: Tensor, std: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Normal numbers with a mean and a deviation for each place.

    >>> torch.normal(torch.ones(2), torch.zeros(2))
    tensor([1., 1.])
    """
    shape = broadcast_shapes(mean.shape, std.shape)
    check(
        std.numel() == 0 or truth((std >= 0).all(), True),
        "normal expects all elements of std >= 0.0",
    )
    return empty(shape, like=mean).normal_(0.0, 1.0, generator=generator).mul_(std).add_(mean)


@normal.overload(method=False, out=True, out_casts=True)
def normal(mean: Tensor, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """One deviation for all.

    >>> torch.normal(torch.ones(2), 0.0)
    tensor([1., 1.])
    """
    return empty_like(mean).normal_(0.0, std, generator=generator).add_(mean)


@normal.overload(method=False, out=True, out_casts=True)
def normal(mean: float, std: Tensor, *, generator: Generator | None = None) -> Tensor:
    """One mean for all.

    >>> torch.normal(1.0, torch.zeros(2))
    tensor([1., 1.])
    """
    check(
        std.numel() == 0 or truth((std >= 0).all(), True),
        "normal expects all elements of std >= 0.0",
    )
    return empty_like(std).normal_(0.0, 1.0, generator=generator).mul_(std).add_(mean)


@normal.overload(factory=True, method=False, out=True, out_casts=True)
def normal(
    mean: float, std: float, size: Ints, *, generator: Generator | None = None,
    dtype: DType | None = None, device: Device | None = None,
) -> Tensor:  # fmt: skip
    """A shape, one mean and one deviation.

    >>> torch.normal(1.0, 0.0, (2,))
    tensor([1., 1.])
    """
    return _empty_samples(size, dtype, device, generator).normal_(mean, std, generator=generator)


@composite(out=True, sizes=("num_samples",), out_told=False)
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Indices drawn with the weights in each row. Shape: (num_samples,) or (rows, num_samples).

    >>> torch.multinomial(torch.tensor([0.0, 1.0]), 1)
    tensor([1])
    """
    check(input.ndim > 0 and input.ndim <= 2, "prob_dist must be 1 or 2 dim")
    check(
        input.is_floating_point(),
        f"multinomial: expected a floating-point dtype, got {dtype_name(input.dtype)}",
    )
    check(num_samples > 0, "cannot sample n_sample <= 0 samples")
    check(
        replacement or num_samples <= input.size(-1),
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    )
    if not replacement or num_samples == 1:
        good = ((input >= 0) & input.isfinite()).all()
        check(truth(good, True), "probability tensor contains either `inf`, `nan` or element < 0")
        check(
            truth((input.sum(-1) != 0).all(), True),
            "invalid multinomial distribution (sum of probabilities <= 0)",
        )
        race = input / empty_like(input).exponential_(1.0, generator=generator)
        if num_samples == 1:
            return race.argmax(-1, keepdim=True)
        values, indices = race.topk(num_samples)
        return indices
    return _multinomial_with_replacement(input.contiguous(), num_samples, generator=generator)


@structured(
    kernel="multinomial_with_replacement",
    namespaces=(),
    method=False,
    differentiable=False,
    out=False,
)
def _multinomial_with_replacement(
    input: Tensor, num_samples: int, *, generator: Generator | None = None
) -> Tensor:
    """The kernel of multinomial with replacement: bisection in the cumulated weights.

    >>> torch.multinomial(torch.tensor([0.0, 1.0]), 2, replacement=True)
    tensor([1, 1])
    """
    shape = input.shape[: input.ndim - 1]
    shape.append(num_samples)
    return empty(shape, dtype=int64)


@structured(kernel="poisson", method=False, out=False, batch=True)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Counts of the Poisson distribution with the rates `input`.

    Source: Knuth, TAOCP 2, 3.4.1 (small rates); Hoermann, Insurance Math. and Economics 12 (1993).

    >>> torch.poisson(torch.zeros(2))
    tensor([0., 0.])
    """
    check(
        input.is_floating_point(),
        f"'poisson_cpu' not implemented for '{scalar_type_name(input.dtype)}'",
    )
    return empty_as(input)


@poisson.vjp
def _(g):
    return zeros(g.shape, dtype=g.dtype)
