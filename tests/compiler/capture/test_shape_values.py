"""Shapes as values, texts that are walked, read-only mappings: what packages do between tensors."""

import inspect
import types

import pytest

import flambeau as torch


def test_a_shape_from_outside_is_read_and_its_sizes_are_guarded():
    def reshaped(x, size):
        return x.reshape(size) * 2, size.numel(), size[1:], size

    compiled = torch.compile(reshaped, fullgraph=True)
    for n in (4, 6, 8):
        size = torch.ones(n, 3).shape
        y, count, rest, same = compiled(torch.arange(3.0 * n), size)
        assert torch.equal(y, torch.arange(3.0 * n).reshape(n, 3) * 2)
        assert (count, rest, same) == (3 * n, (3,), size)
        assert type(rest) is torch.Size
        assert same is size


def test_shapes_in_lists_are_read():
    compiled = torch.compile(lambda x, sizes: [x.reshape(s) for s in sizes], fullgraph=True)
    sizes = [torch.Size([2, 3]), torch.Size([6])]
    assert [y.shape for y in compiled(torch.ones(6), sizes)] == sizes


SHAPES = {
    "isinstance": lambda s: (isinstance(s, torch.Size), isinstance(s, tuple)),
    "type": lambda s: (type(s) is torch.Size, type(s[1:]), type(s + (2,)), type(s * 2)),
    "slices": lambda s: (s[1:], s[::-1], s[-1]),
    "sums": lambda s: (s + (2,), s[1:] + s[:1], s + s, (1, *s), [*s]),
    "before": lambda s: ((1,) + s, type((1,) + s)),  # noqa: RUF005
    "repeats": lambda s: (s * 2, 2 * s, s * 0),
    "texts": lambda s: (repr(s), str(s), f"{s}", "%s" % (s,)),  # noqa: UP031
    "equal": lambda s: (s == tuple(s), hash(s) == hash(tuple(s)), s.count(3), s.numel()),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_of_varying_sizes_is_a_size(name):
    compiled = torch.compile(lambda x: SHAPES[name](x.shape), dynamic=True)
    for n in (4, 5):
        found, expected = compiled(torch.ones(n, 3)), SHAPES[name](torch.ones(n, 3).shape)
        assert found == expected
        assert [type(v) for v in found] == [type(v) for v in expected]


@pytest.mark.parametrize("text", ["abc", "a…c", "ααα"])
def test_texts_are_walked_whatever_their_characters(text):
    def walked(x, text):
        total = 0
        for character in text:
            total = total * 7 + ord(character) % 5
        rest = iter(text)
        next(rest)
        return x * total, rest

    found, rest = torch.compile(walked, fullgraph=True)(torch.ones(2), text)
    assert torch.equal(found, walked(torch.ones(2), text)[0])
    assert list(rest) == list(text)[1:]


def test_signatures_are_read():
    layer = torch.nn.Linear(3, 3)

    def chunk(x, *, scale=2.0):
        return layer(x) * scale

    def counted(x):
        return chunk(x) * len(inspect.signature(chunk).parameters)

    x = torch.ones(2, 3)
    assert torch.equal(torch.compile(counted, fullgraph=True)(x), counted(x))


def test_a_read_only_mapping_shows_what_is_written_to_its_base():
    def shown(x, base):
        proxy = types.MappingProxyType(base)
        total = sum(proxy.values())
        base["new"] = 5
        return x * total * len(proxy) + proxy["a"], list(proxy), "new" in proxy, proxy.get("b", 3)

    compiled = torch.compile(shown, fullgraph=True)
    for base in ({"a": 1, "b": 2}, {"a": 3, "b": 2}, {"a": 1.5}):
        (found, *rest), (y, *expected) = (f(torch.ones(2), dict(base)) for f in (compiled, shown))
        assert torch.equal(found, y)
        assert rest == expected


def _of_class(kind):
    return {
        "item": lambda x: x * kind.__dict__["y"],
        "get": lambda x: x * vars(kind).get("z", 1),
        "in": lambda x: x * (1 + ("z" in kind.__dict__)),
        "length": lambda x: x * len([*kind.__dict__]),
        "items": lambda x: x * dict(kind.__dict__.items())["y"],
        "again": lambda x: x * types.MappingProxyType(kind.__dict__)["y"],
    }


@pytest.mark.parametrize("how", _of_class(None))
def test_namespaces_of_classes_are_read_anew(how):
    class Kind:
        y = 3

    function = _of_class(Kind)[how]
    compiled, x = torch.compile(function), torch.ones(1)
    assert compiled(x).item() == function(x).item()
    Kind.y, Kind.z = 4, 9
    assert compiled(x).item() == function(x).item()
