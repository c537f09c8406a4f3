"""Programs that are to be one graph: transforms of `torch.func`, and control flow in the graph. See
`programs_whole_python`."""

import flambeau as torch
from flambeau import nn
from flambeau._higher_order_ops import associative_scan, scan, while_loop
from flambeau._higher_order_ops.map import map as map_
from flambeau.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

WHOLE, REFUSED = [], []


def whole(f):
    WHOLE.append(f)
    return f


def refused(message):
    def file(f):
        REFUSED.append((f, message))
        return f

    return file


def f1(x):
    return (x.sin() * x).sum()


@whole
def grad_(x):
    return grad(f1)(x)


@whole
def grad_and_value_(x):
    g, v = grad_and_value(f1)(x)
    return g * v


@whole
def vjp_(x):
    o, pull = vjp(torch.sin, x)
    return pull(torch.ones_like(x))[0] + o


@whole
def jvp_(x):
    a, b = jvp(torch.sin, (x,), (torch.ones_like(x),))
    return a + b


@whole
def jacrev_(x):
    return jacrev(lambda v: v.sin())(x[0])


@whole
def jacfwd_(x):
    return jacfwd(lambda v: v.sin())(x[0])


@whole
def hessian_(x):
    return hessian(lambda v: (v**3).sum())(x[0])


@whole
def linearize_(x):
    o, push = linearize(torch.sin, x)
    return push(torch.ones_like(x)) + o


@whole
def vmap_(x):
    return vmap(lambda v: v.sin().sum())(x)


@whole
def vmap_in_dims(x):
    return vmap(lambda v, w: v @ w, in_dims=(0, None))(x, x[0])


@whole
def vmap_grad(x):
    return vmap(grad(f1))(x)


@whole
def grad_grad(x):
    return grad(lambda v: grad(f1)(v).sum())(x)


@whole
def grad_aux(x):
    g, a = grad(lambda v: (f1(v), v * 2), has_aux=True)(x)
    return g + a


@whole
def grad_closure(x):
    w = x * 2
    return grad(lambda v: (v * w).sum())(x)


lin = nn.Linear(4, 2)


@whole
def functional_call_(x):
    p = dict(lin.named_parameters())
    return functional_call(lin, p, (x,))


@whole
def functional_call_grad(x):
    p = {k: v.detach() for k, v in lin.named_parameters()}
    return grad(lambda q: functional_call(lin, q, (x,)).sum())(p)["weight"]


@whole
def vmap_randomness(x):
    return vmap(lambda v: v.relu().softmax(0), chunk_size=2)(x)


@whole
def per_sample(x):
    p = {k: v.detach() for k, v in lin.named_parameters()}

    def loss(q, s):
        return functional_call(lin, q, (s,)).square().sum()

    return vmap(grad(loss), in_dims=(None, 0))(p, x)["weight"]


@whole
def autograd_grad(x):
    v = x.detach().requires_grad_(True)
    return torch.autograd.grad(f1(v), v)[0]


@whole
def jacrev_dict(x):
    return jacrev(lambda v: {"a": v.sin(), "b": v.sum()})(x[0])["a"]


@whole
def flow_cond(x):
    return torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))


@whole
def flow_cond_closure(x):
    w = x * 2
    return torch.cond(x.sum() > 0, lambda v: v * w, lambda v: v - w, (x,))


@whole
def flow_cond_noargs(x):
    return torch.cond(x.sum() > 0, lambda: x + 1, lambda: x - 1)


@whole
def flow_cond_nested_out(x):
    r = torch.cond(x.sum() > 0, lambda v: (v, {"a": v + 1}), lambda v: (v * 2, {"a": v - 1}), (x,))
    return r[0] * r[1]["a"]


@whole
def flow_cond_nested(x):
    return torch.cond(
        x.sum() > 0,
        lambda v: torch.cond(v.max() > 1, lambda a: a * 2, lambda a: a * 3, (v,)),
        lambda v: v.cos(),
        (x,),
    )


@whole
def flow_cond_params(x):
    return torch.cond(x.sum() > 0, lambda v: lin(v), lambda v: lin(v) * 2, (x,))


@whole
def flow_cond_bool(x):
    return torch.cond(x.shape[0] > 2, lambda v: v.sin(), lambda v: v.cos(), (x,))


@whole
def flow_cond_dict_operand(x):
    return torch.cond(x.sum() > 0, lambda d: d["a"] * 2, lambda d: d["a"] + 1, ({"a": x},))


@whole
def flow_while(x):
    return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), x))[1]


@whole
def flow_while_data(x):
    return while_loop(lambda v: v.abs().sum() < 50, lambda v: (v * 2,), (x + 1,))[0]


@whole
def flow_while_closure(x):
    w = x.abs() + 1
    return while_loop(lambda v: v.abs().sum() < 50, lambda v: (v + w,), (x + 1,))[0]


@whole
def flow_while_nested(x):
    r = while_loop(
        lambda i, d: i < 3, lambda i, d: (i + 1, {"a": d["a"] * 2}), (torch.tensor(0), {"a": x})
    )
    return r[1]["a"]


@whole
def flow_scan(x):
    c, y = scan(lambda c, v: (c + v, c * v), x[0], x)
    return y + c


@whole
def flow_scan_nested(x):
    c, y = scan(lambda c, v: ({"s": c["s"] + v["a"]}, v["a"] * c["s"]), {"s": x[0]}, {"a": x})
    return y + c["s"]


@whole
def flow_scan_reverse(x):
    c, y = scan(lambda c, v: (c + v, c.clone()), x[0], x, reverse=True)
    return y + c


@whole
def flow_scan_closure(x):
    w = x[1].exp()
    c, y = scan(lambda c, v: (c * 0.5 + v * w, c + w), x[0], x)
    return y + c


@whole
def flow_scan_dim1(x):
    c, y = scan(lambda c, v: (c + v, c * v), x[:, 0], x, dim=1)
    return y.sum() + c


@whole
def flow_assoc(x):
    return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")


@whole
def flow_assoc_rev(x):
    return associative_scan(lambda a, b: a * b, x, 1, reverse=True, combine_mode="generic")


@whole
def flow_assoc_tree(x):
    r = associative_scan(
        lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x + 1), 0, combine_mode="generic"
    )
    return r[0] + r[1]


@whole
def flow_assoc_closure(x):
    k = x.sum()
    return associative_scan(lambda a, b: a + b + k * 0, x, 0, combine_mode="generic")


@whole
def flow_map(x):
    return map_(lambda v: v.sin(), x)


@whole
def flow_map_args(x):
    w = x[0] * 2
    return map_(lambda v, k: v * k + w, x, x[1])


@refused("the functions given to cond return other shapes, dtypes or structures")
def flow_cond_shapes(x):
    return torch.cond(x.sum() > 0, lambda v: v, lambda v: v[0], (x,))


@refused("the function given to while_loop returns .* return the same shapes and dtypes")
def flow_while_shapes(x):
    return while_loop(lambda v: v.sum() < 9, lambda v: (torch.cat([v, v]),), (x.abs() + 1,))


@refused("the function given to vmap changes a tensor from outside")
def changes_outside(x):
    y = x * 2
    return vmap(lambda v: y.add_(1).sum() + v)(x)


@refused("a tensor made by a function that is transformed leaves it")
def leaves(x):
    found = []
    vmap(lambda v: found.append(v * 2) or v)(x)
    return found[0]


@refused("the function given to vjp draws random numbers")
def draws(x):
    return vjp(lambda v: nn.functional.dropout(v), x)[1](x)
