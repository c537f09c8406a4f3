"""Hooks of modules in scripts: eager = scripted = saved and loaded, and what is refused."""

import io
from typing import Optional, Tuple

import pytest

import flambeau as torch
from flambeau import Tensor, nn

# ruff: noqa: UP006, UP045


def shifted(self, args: Tuple[Tensor]) -> Tuple[Tensor]:
    return (args[0] + 1,)


def doubled(self, args):  # types of what it is given; one value stands for a tuple of it
    return args[0] * 2


def negated(self, args) -> Optional[Tuple[Tensor]]:
    if bool(args[0].sum() > 0):
        return None
    return (-args[0],)


def checked(self, args, out):
    assert out.size(0) == args[0].size(0), "rows"


def with_weight(self, args, out):
    return out + args[0].sum() + self.weight.sum()


def rows(self, args, out: Tensor) -> Tuple[Tensor, int]:
    return out, args[0].size(0)


def counted(self, args, out) -> None:
    self.calls += 1


def clipped(self, args, out: Tensor) -> Optional[Tensor]:
    return out.clamp(max=1) if bool(out.max() > 1) else None


class Counting(nn.Linear):
    def __init__(self):
        super().__init__(2, 2)
        self.calls: int = 0

    def forward(self, input, scale: float = 2.0, *, shift: int = 3):
        return nn.functional.linear(input, self.weight) * scale + shift


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hooked, self.same, self.counting = nn.Linear(2, 2), nn.Linear(2, 2), Counting()
        for hook in (shifted, doubled, negated):
            self.hooked.register_forward_pre_hook(hook)
        self.hooked.register_forward_pre_hook(doubled, prepend=True)
        for hook in (checked, with_weight, clipped, rows):
            self.hooked.register_forward_hook(hook)
        self.counting.register_forward_hook(counted)

    def forward(self, x):
        y, n = self.hooked(x)
        z = self.counting(x, 0.5) + self.counting(x, 1.5, shift=1)
        return y * n + self.same(x) + self.hooked.forward(x) + z, self.counting.calls


def made():
    torch.manual_seed(0)
    return Net()


@pytest.mark.parametrize("scale", [1.0, -5.0])
def test_hooks_run_in_order_where_the_module_is_called(scale):
    net, x = made(), torch.rand(3, 2) * scale
    script = torch.jit.script(net)
    loaded = torch.jit.load(io.BytesIO(script.save_to_buffer()))
    want, calls = net(x)
    assert calls == 2
    for f in (script, loaded):
        got, counts = f(x)
        assert torch.equal(got, want) and counts == 2 and f.counting.calls == 2
    assert script._script_program.machine.reason(script._script_record.methods["forward"]) is None


def test_gradients_flow_through_hooks():
    net, x = made(), torch.rand(3, 2, requires_grad=True)
    script = torch.jit.script(net)
    grads = []
    for f in (net, script):
        grads.append(torch.autograd.grad(f(x)[0].sum(), [x, net.hooked.weight]))
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True))


def test_hooks_of_the_outermost_module_of_containers_and_of_scripts_in_scripts():
    x = torch.rand(3, 2)
    seq = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    seq.register_forward_pre_hook(doubled)
    seq[0].register_forward_hook(with_weight)
    script = torch.jit.script(seq)
    assert torch.equal(script(x), seq(x))
    holder = nn.Sequential(script, nn.Tanh())
    assert torch.equal(torch.jit.script(holder)(x), holder(x))
    frozen = torch.jit.freeze(torch.jit.script(seq.eval()))
    assert torch.equal(frozen(x), seq(x))


def test_modules_with_other_hooks_are_other_classes():
    a, b, c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
    a.register_forward_hook(with_weight)
    c.register_forward_hook(with_weight)
    net = nn.ModuleList([a, b, c])
    x = torch.rand(1, 2)

    class All(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = net

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    script = torch.jit.script(All())
    assert torch.equal(script(x), All()(x))
    names = [m._script_record.name for m in script.layers]
    assert names[0] == names[2] != names[1]


def wrong(self, args: Tuple[int]):
    return args


def widened(self, args):
    return args[0], 1


def torn(self, args, out) -> Optional[int]:
    return None


def short(self, args):
    return args


def raising(self, args, out):
    raise ValueError("no " + str(args[0].size(0)))


class Callable_:
    def __call__(self, *args):
        return None


@pytest.mark.parametrize(
    ("register", "hook", "message"),
    [
        (
            "pre",
            wrong,
            r"the hook wrong: 'args' is declared Tuple\[int\], and given Tuple\[Tensor\]",
        ),
        ("pre", widened, r"give Tuple\[Tensor, int\], and forward takes Tuple\[Tensor\]"),
        ("post", torn, "the hook torn gives int | None, and Tensor where that is None"),
        ("post", short, r"a hook takes \(module, args, output\)"),
        (
            "pre",
            Callable_(),
            "Linear has a Callable_ as a hook; hooks of scripts are functions made",
        ),
        ("kwargs", shifted, "with_kwargs=True; in scripts hooks take the arguments as a tuple"),
        ("always", rows, "always_call=True; a script that raises runs no more hooks"),
        ("back", rows, "Linear has backward hooks, which scripts do not run"),
    ],
)
def test_refused(register, hook, message):
    net = nn.Linear(2, 2)
    match register:
        case "pre":
            net.register_forward_pre_hook(hook)
        case "kwargs":
            net.register_forward_pre_hook(hook, with_kwargs=True)
        case "always":
            net.register_forward_hook(hook, always_call=True)
        case "back":
            net.register_full_backward_hook(hook)
        case _:
            net.register_forward_hook(hook)
    with pytest.raises(RuntimeError, match=message):
        torch.jit.script(nn.Sequential(net))


def test_errors_of_hooks_show_their_line():
    net = nn.Linear(2, 2)
    net.register_forward_hook(raising)
    with pytest.raises(ValueError, match="no 3"):
        torch.jit.script(net)(torch.rand(3, 2))
