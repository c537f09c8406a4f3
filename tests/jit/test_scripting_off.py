"""`jit` with scripting off (PYTORCH_JIT=0): decorators hand back what they get."""

from typing import List, Optional, Union  # noqa: UP035

import pytest

import flambeau as torch


@pytest.fixture(autouse=True)
def _off(monkeypatch):
    monkeypatch.setenv("PYTORCH_JIT", "0")


def test_functions_and_modules_come_back():
    def f(x):
        return x

    net = torch.nn.Linear(1, 1)
    for mark in (
        torch.jit.script, torch.jit.export, torch.jit.unused, torch.jit.ignore,
        torch.jit.script_method, torch.jit.script_if_tracing, torch.jit._script_if_tracing,
        torch.jit._overload_method, torch.jit._overload, torch.jit.ignore(drop=True),
    ):  # fmt: skip
        assert mark(f) is f
    assert torch.jit.script(net) is net and torch.jit.trace(net, torch.ones(1, 1)) is net
    assert torch.jit.annotate(int, 3) == torch.jit.Attribute(3, int) == 3
    assert not torch.jit.is_scripting() and not torch.jit.is_tracing()


def test_script_modules_are_modules():
    class Net(torch.jit.ScriptModule):
        __constants__ = ("n",)
        n: torch.jit.Final[int]

        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(2, 2)

        @torch.jit.script_method
        def forward(self, x):
            return self.a(x)

    net = Net()
    assert isinstance(net, torch.nn.Module) and net(torch.ones(1, 2)).shape == (1, 2)
    assert torch.ScriptModule is torch.jit.ScriptModule
    assert not isinstance(torch.nn.ReLU(), torch.jit.ScriptModule)


def test_scripts_are_refused():
    for use in (
        lambda: torch.jit.save(torch.nn.ReLU(), "x"),
        lambda: torch.jit.freeze(torch.nn.ReLU()),
    ):
        with pytest.raises(RuntimeError, match="expected a script|not built yet"):
            use()


@pytest.mark.parametrize(
    ("value", "kind", "holds"),
    [
        ([1, 2], list[int], True),
        ([1, "a"], list[int], False),
        ([], List[str], True),  # noqa: UP006
        ({"a": [1.0]}, dict[str, list[float]], True),
        ({"a": [1]}, dict[str, list[float]], False),
        ((1, "a"), tuple[int, str], True),
        ((1,), tuple[int, str], False),
        (None, Optional[int], True),  # noqa: UP045
        ("a", Union[int, str], True),  # noqa: UP007
        (1.5, int | str, False),
        (3, (str, int), True),
    ],
)
def test_isinstance_looks_into_containers(value, kind, holds):
    assert torch.jit.isinstance(value, kind) is holds


def test_annotations_are_importable():
    import flambeau.jit.annotations as annotations

    assert torch.jit.annotations is annotations
    assert annotations.BroadcastingList2[int] == List[int] and annotations.List is List  # noqa: UP006
