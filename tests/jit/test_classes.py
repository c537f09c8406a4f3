"""Classes as programs write them: comparisons of dataclasses, properties, tests of containers."""

import io
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple, Union

import pytest

import flambeau as torch
from flambeau import Tensor, nn
from flambeau._script.runtime import ScriptError

# ruff: noqa: UP006, UP007, UP035, UP045


@torch.jit.script
@dataclass(order=True)
class Version:
    major: int
    minor: int = 0
    note: str = field(default="", compare=False)


def compared(a: Version, b: Version) -> Tuple[bool, bool, bool, bool, bool, bool]:
    return a == b, a != b, a < b, a <= b, a > b, a >= b


def test_dataclasses_compare_their_fields():
    script = torch.jit.script(compared)
    assert type(script._call) is torch._C._ScriptCall
    for a, b in (((1, 2), (1, 2)), ((1, 2), (1, 3)), ((2, 0), (1, 9))):
        x, y = Version(*a, "x"), Version(*b, "y")
        assert script(x, y) == compared(x, y) == script._call.as_python(x, y)


@torch.jit.script
@dataclass(eq=False)
class Plain:
    n: int


def same(a: Plain, b: Plain) -> Tuple[bool, bool]:
    return a is b, a is a


def test_dataclasses_without_comparison():
    assert torch.jit.script(same)(Plain(1), Plain(1)) == (False, True)


class Gain(nn.Module):
    def __init__(self):
        super().__init__()
        self._gain = 3.0
        self.sets = 0

    @property
    def gain(self) -> float:
        return self._gain

    @gain.setter
    def gain(self, value: float):
        self._gain = min(value, 10.0)
        self.sets += 1

    @property
    def fixed(self) -> float:
        return 1.0

    def forward(self, x: Tensor) -> Tensor:
        self.gain = self.gain * 2
        self.gain += 1
        return x * self.gain


def test_properties_are_set_by_their_setters():
    m = Gain()
    script = torch.jit.script(m)
    for _ in range(2):
        assert torch.equal(script(torch.ones(2)), m(torch.ones(2)))
    assert (script._gain, script.sets) == (m._gain, m.sets) == (10.0, 4)
    assert script.gain == 10.0 and script.fixed == 1.0
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Gain()), file)
    file.seek(0)
    loaded = torch.jit.load(file)
    assert loaded(torch.ones(1)).item() == 7 and loaded.gain == 7
    for given in (script, loaded):
        given.gain = 25.0
        assert given.gain == given._gain == 10.0

    class Fixed(Gain):
        def forward(self, x: Tensor) -> Tensor:
            self.fixed = 2.0
            return x

    with pytest.raises(ScriptError, match="property 'fixed' of Fixed has no setter"):
        torch.jit.script(Fixed())


class Half(nn.Module):
    @property
    def share(self) -> float:
        return 0.5

    def forward(self, x: Tensor) -> Tensor:
        return x * self.share


class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(Half())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.inner.share


def test_properties_without_setters():
    script = torch.jit.script(Half())
    with pytest.raises(AttributeError, match="property 'share' of Half has no setter"):
        script.share = 2.0
    assert script.share == 0.5 and torch.jit.script(Halves())(torch.ones(1)).item() == 0.5


@torch.jit.script
class Span:
    def __init__(self, start: int, stop: int):
        self.start = start
        self.stop = stop

    @property
    def width(self) -> int:
        return self.stop - self.start


@torch.jit.script
def span(n: int) -> Tuple[Span, int]:
    s = Span(n, 2 * n + 1)
    return s, s.width


def test_properties_of_objects_of_loaded_scripts():
    file = io.BytesIO()
    torch.jit.save(span, file)
    file.seek(0)
    for f in (span, torch.jit.load(file)):
        made, width = f(3)
        assert (made.width, width) == (4, 4)


def kind(x: Union[Tensor, List[int], Tuple[int, int], Dict[str, int]]) -> int:
    if isinstance(x, tuple):
        return x[0] + x[1]
    if isinstance(x, list):
        return len(x)
    if isinstance(x, (dict, Tensor)):
        return 9
    return -1


def pair(x: Tuple[int, int], y: Optional[List[int]]) -> Tuple[bool, bool, bool]:
    return isinstance(x, tuple), isinstance(x, list), isinstance(y, list)


def of_any(x: Any) -> bool:
    return isinstance(x, list)


def test_isinstance_of_containers():
    script = torch.jit.script(kind)
    for x in ((2, 3), [1], {"a": 1}, torch.ones(1)):
        assert script(x) == kind(x)
    script = torch.jit.script(pair)
    assert script((1, 2), None) == (True, False, False)
    assert script((1, 2), [1]) == (True, False, True)
    with pytest.raises(ScriptError, match="isinstance: list of Any; say of what it is"):
        torch.jit.script(of_any)


def test_examples_of_a_trace_in_a_list():
    traced = torch.jit.trace(lambda x, y: x * y, [torch.ones(2), torch.ones(2)])
    assert traced(torch.ones(3) * 2, torch.ones(3)).tolist() == [2, 2, 2]
    traced = torch.jit.trace(lambda xs: xs[0] + xs[1], [(torch.ones(2), torch.ones(2))])
    assert traced((torch.ones(3), torch.ones(3))).tolist() == [2, 2, 2]
