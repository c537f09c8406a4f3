"""Small programs about the library: modes, tensors, autograd functions, see `programs_table`."""

from __future__ import annotations

import flambeau as torch
import flambeau.nn.functional as F

from .programs_table import program

# Modes --------------------------------------------------------------------------------------------


@program()
def no_grad_context(x):
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
    return y, z, y.requires_grad, torch.is_grad_enabled()


@torch.no_grad()
def frozen_part(t):
    return t * 2


@torch.enable_grad()
def live_part(t):
    return t * 3


@torch.inference_mode()
def inference_part(t):
    return t * 2


@program()
def grad_mode_decorators(x):
    return frozen_part(x) + x, live_part(x)


@program()
def decorated_in_place(x):
    @torch.no_grad()
    def f(t):
        return t + 1

    g = torch.no_grad()(lambda t: t * 2)
    return f(x), g(x), x * 2


@program()
def set_grad_enabled(x):
    with torch.set_grad_enabled(False):
        y = x + 1
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    z = x * 2
    torch.set_grad_enabled(before)
    return y, z, x * 3


@program()
def inference_mode_context(x):
    with torch.inference_mode():
        y = x * 2
    with torch.inference_mode(False):
        z = x * 3
    return y.sum() * 0 + 1, z


@program()
def autocast_context(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        z = F.softmax(y, -1)
    return y, z, x @ x.T


@program()
def autocast_nested(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ x.T
        with torch.autocast("cpu", enabled=False):
            b = x @ x.T
        c = F.linear(x, x)
    return a, b, c, torch.is_autocast_enabled("cpu")


@program()
def autocast_decorator(x):
    return cast_part(x)


@torch.autocast("cpu", dtype=torch.bfloat16)
def cast_part(t):
    return t @ t.T


@program(None)
def checkpointed(x):
    return torch.utils.checkpoint.checkpoint(lambda t: (t * 2).sin(), x, use_reentrant=False)


# Tensors ------------------------------------------------------------------------------------------


@program()
def detach_and_data(x):
    y = (x * 2).detach()
    return y * x, x.detach().requires_grad


@program()
def views_and_in_place(x):
    y = x.clone()
    y[0] += 1
    y[:, 1:].mul_(2)
    y.t().add_(1)
    v = y.view(-1)
    v[::2] = 0
    return y


@program()
def boolean_masks(x):
    y = torch.where(x > 0, x, -x)
    z = x.masked_fill(x < 0, 0.5)
    w = x.clone()
    w[w < 0] = 0
    return y, z, w


@program()
def indices(x):
    i = torch.tensor([0, 2])
    return x[i], x[:, i], x[[0, 1]], x[..., -1], x[None, :, 0], x[i, i]


@program()
def factories_of_shape(x):
    n = x.shape[-1]
    pos = torch.arange(n, device=x.device, dtype=x.dtype)
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    return (
        x * pos,
        torch.full_like(x, 2.0),
        x.new_zeros(2, n) + 1,
        mask.sum(),
        torch.eye(n) * x[0, 0],
    )


@program()
def multiple_outputs(x):
    values, at = x.max(dim=1)
    top = x.topk(2)
    a, b = x.split(2, dim=1)
    u, s = torch.var_mean(x, 0)
    return values, at, top.values, top[1], a + b, u, s


@program()
def random_operations(x):
    return x + torch.rand(3, 4), F.dropout(x, 0.5), torch.randn_like(x)


@program()
def tensor_attributes(x):
    return x.T, x.mT, x.shape, x.ndim, x.numel(), x.stride(), x.is_contiguous(), len(x), x.nbytes


@program()
def iteration_over_rows(x):
    total = 0
    for row in x:
        total = total + row * 2
    a, b, c = x
    return total, a + b + c


@program()
def einops_like(x):
    return (
        torch.einsum("ij,kj->ik", x, x),
        torch.cat([x, x]).chunk(2)[1],
        x.unsqueeze(0).expand(2, -1, -1),
    )


@program()
def complex_numbers(x):
    z = torch.complex(x, x * 2)
    return z.abs(), z.real, (z * 1j).imag


@program()
def constant_tensors(x):
    return x + torch.tensor([1.0, 2.0, 3.0, 4.0]) + CONSTANT


CONSTANT = torch.arange(4.0)


@program()
def casts(x):
    return x.double(), x.to(torch.int64), x.to("cpu", torch.bfloat16).float(), x.type_as(CONSTANT)


@program()
def requires_grad_is_asked(x):
    return x * 2 if x.requires_grad else x * 3


# autograd.Function --------------------------------------------------------------------------------


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


class Scaled(torch.autograd.Function):
    """Several inputs and outputs, plain values, setup_context."""

    @staticmethod
    def forward(x, k, y):
        return x * k, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.k, _ = inputs
        ctx.save_for_backward(output[0])

    @staticmethod
    def backward(ctx, ga, gb):
        (a,) = ctx.saved_tensors
        assert ctx.needs_input_grad[1] is False
        return ga * ctx.k + gb + 0 * a, None, gb * 7


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.weight * g, None


@program()
def function_of_ones_own(x):
    return Cube.apply(x * 2) + 1


@program()
def function_with_setup(x):
    a, b = Scaled.apply(x, 3.0, x * 2)
    return a * 2 + b


@program()
def function_straight_through(x):
    return Straight.apply(x) * x


@program()
def function_gradient_reversal(x):
    return Reversal.apply(x, 0.5).sum()


@program()
def functions_nested(x):
    return Cube.apply(Straight.apply(x) + Cube.apply(x))


@program()
def function_result_unused(x):
    a, _ = Scaled.apply(x, 3.0, x)
    return a
