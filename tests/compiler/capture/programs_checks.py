"""Programs with branches of which one way only raises. In a module of their own, because pytest
writes the assertions of test modules anew."""

import flambeau as torch
from flambeau.distributions import Normal

GOOD, BAD = torch.ones(3), torch.tensor([1.0, -2.0, 3.0])


def if_any(x):
    if (x < 0).any():
        raise ValueError(f"negative: {x.min().item()}")
    return x * 2


def unless_all(x):
    if not (x >= 0).all():
        raise ValueError
    return x * 2


def asserted(x):
    assert (x >= 0).all(), "negative"
    return x * 2


def asserted_numbers(x):
    assert x.min().item() >= 0, f"least {x.min()}"
    assert bool((x > -1).all())
    return x * 2


def asked_by_item(x):
    if torch.any(x < 0).item():
        raise ValueError("negative")
    return x * 2


def numbers_as_python_compares_them(x):
    small = x.abs().to(torch.uint8)
    if small.max().item() > 300 or small.min().item() < -1:
        raise ValueError("what eight bits hold")
    if x.float().min().item() < 0.1:
        raise ValueError("less than a tenth")
    if x.sum().item() == None or (x.sum().item() == "a"):  # noqa: E711
        raise ValueError("no number")
    return x * 2


def raises_at_the_end(x):
    if (x >= 0).all():
        return x * 2
    raise ValueError("negative")


def several(x):
    if x.dim() != 1 or (x < 0).any() or x.max() > 100:
        raise ValueError("negative or large")
    y = x * 2
    if not torch.isfinite(y).all():
        raise ValueError("not finite")
    return y


def one_of_two_messages(x):
    if (x < 0).any():
        raise ValueError("a" if x[0] > 0 else "b") from None
    return x * 2


def by_functions(x):
    torch._assert((x > -1).all(), "assert")
    torch._assert_async((x > -1).all(), "async")
    torch._check_tensor_all(x > -1, lambda: "all")
    return x * 2


def before_a_use(x):
    rows = torch.arange(6.0).view(3, 2)
    index = x.long()
    if (index < 0).any():
        raise IndexError("an index below zero")
    if (index > 2).any():
        raise IndexError("an index above two")
    return rows[index].sum(1) * 2


def in_a_callee(x):
    try:
        return if_any(x) + 1
    finally:
        x = x + 1


def of_shape_one(x):
    if x.sum().view(1, 1) < 0.5:
        raise ValueError("small")
    return x * 2


def of_a_distribution(x):
    return Normal(torch.zeros(3), x).log_prob(x) * 2


def with_gradients(x):
    w = x.detach().clone().requires_grad_()
    if (w < 0).any():
        raise ValueError("negative")
    return w * 2


def caught_within(x):
    try:
        if (x < 0).any():
            raise ValueError("negative")
        return x * 2
    except ValueError as error:
        return x * len(str(error))


PROGRAMS = [
    if_any, unless_all, asserted, asserted_numbers, asked_by_item,
    numbers_as_python_compares_them, raises_at_the_end, several,
    one_of_two_messages, by_functions, before_a_use, in_a_callee, of_shape_one, of_a_distribution,
    with_gradients, caught_within,
]  # fmt: skip
