"""Interfaces: attributes whose module can be another one after scripting."""

import copy
import io

import pytest

import flambeau as torch
from flambeau import Tensor, nn


@torch.jit.interface
class Head(nn.Module):
    def forward(self, x: Tensor, scale: float = 2.0) -> Tensor:
        pass

    def label(self, n: int) -> str:
        pass


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.calls: int = 0

    def forward(self, x: Tensor, scale: float = 2.0) -> Tensor:
        self.calls += 1
        return self.linear(x) * scale

    @torch.jit.export
    def label(self, n: int) -> str:
        return "first" * n


class Second(nn.Module):
    def forward(self, x: Tensor, scale: float = 2.0) -> Tensor:
        return -x * scale

    @torch.jit.export
    def label(self, n: int) -> str:
        return "second" + str(n)


class Swapped(nn.Module):
    head: Head

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.head = First()
        self.linear = nn.Linear(2, 2)

    def run(self, head: Head, x: Tensor):
        return head.forward(x, scale=0.5)

    def forward(self, x):
        return self.head(self.linear(x)) + self.run(self.head, x), self.head.label(2)


class Other(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x

    @torch.jit.export
    def label(self, n: int) -> str:
        return ""


class Short(nn.Module):
    def forward(self, x: Tensor, scale: float = 2.0) -> Tensor:
        return x


def reload(script):
    return torch.jit.load(io.BytesIO(script.save_to_buffer()))


def same(a, b):
    return torch.equal(a[0], b[0]) and a[1] == b[1]


def test_a_module_is_swapped_after_scripting():
    net, x = Swapped(), torch.rand(3, 2)
    script = torch.jit.script(net)
    assert same(script(x), net(x)) and script.head.calls == 2
    assert same(reload(script)(x), net(x))
    script.head = torch.jit.script(Second())
    net.head = Second()
    assert script(x)[1] == "second2" and same(script(x), net(x))
    again = reload(script)
    assert same(again(x), net(x))
    again.head = torch.jit.script(First())
    again.head.linear.load_state_dict(script.linear.state_dict())
    assert again(x)[1] == "firstfirst"
    assert same(copy.deepcopy(again)(x), again(x))
    assert same(reload(again)(x), again(x))
    reason = script._script_program.machine.reason(script._script_record.methods["forward"])
    assert reason is None


def test_gradients_flow_through_what_was_swapped_in():
    script = torch.jit.script(Swapped())
    head = torch.jit.script(First())
    script.head = head
    script(torch.ones(1, 2))[0].sum().backward()
    assert head.linear.weight.grad is not None
    assert {n for n, _ in script.named_parameters()} == {
        "head.linear.weight", "head.linear.bias", "linear.weight", "linear.bias"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: First(), "Swapped.head: expected a scripted module of Head, got First; make one"),
        (lambda: torch.jit.script(Other()),
         r"Other.forward is \(x: Tensor\) -> Tensor, and \(x: Tensor, scale: float\) -> Tensor in Head"),
        (lambda: torch.jit.script(Short()), "Short has no method 'label', which Head has"),
    ],
)  # fmt: skip
def test_what_is_not_of_the_interface_is_refused(made, message):
    script = torch.jit.script(Swapped())
    with pytest.raises(TypeError, match=message):
        script.head = made()


def test_refused_while_scripting():
    net = Swapped()
    net.head = Short()
    with pytest.raises(RuntimeError, match="Swapped.head: Short has no method 'label'"):
        torch.jit.script(net)
    with pytest.raises(RuntimeError, match="interface: expected a class, got int"):
        torch.jit.interface(3)

    class Calls(nn.Module):
        head: Head

        def __init__(self):
            super().__init__()
            self.head = First()

        def forward(self, x):
            return self.head.more(x)

    with pytest.raises(RuntimeError, match="Head has no method 'more'"):
        torch.jit.script(Calls())


@torch.jit.interface
class Adds(nn.Module):
    def forward(self, xs: list[int]) -> int: ...


class AddsThree(nn.Module):
    def forward(self, xs: list[int]) -> int:
        xs.append(3)
        return len(xs)


class Forks(nn.Module):
    head: Head
    adds: Adds

    def __init__(self):
        super().__init__()
        self.head, self.adds = Second(), AddsThree()

    def forward(self, x):
        tasks = [torch.jit.fork(self.head, x) for _ in range(3)]
        xs = [1]
        n = self.adds(xs)
        return torch.jit.wait(tasks[0]) + torch.jit.wait(tasks[2]), xs, n


def test_tasks_and_lists_go_through_interfaces():
    script, x = torch.jit.script(Forks()), torch.ones(2)
    for f in (script, reload(script), torch.jit.script(nn.Sequential(script))):
        out, xs, n = f(x)
        assert torch.equal(out, -4 * x) and xs == [1, 3] and n == 2


def test_modules_with_interfaces_are_not_frozen():
    with pytest.raises(RuntimeError, match="freeze: a module is given to core.invoke_forward"):
        torch.jit.freeze(torch.jit.script(Swapped().eval()))
