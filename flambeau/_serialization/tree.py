"""Python objects as JSON and back: containers, numbers, text, and tensors by reference.

Owns the vocabulary of what counts as data. A file describes objects only, it never names code to
run.
Invariant: a node refers only to nodes before it, so that reading is one pass forwards, without
recursion, and a hostile file cannot describe a cycle. Objects met twice are stored once.
"""

from __future__ import annotations

import base64
import contextlib
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import flambeau as fb

from . import storages

_MAX_JSON_INT = 1 << 63
_FACTORIES = {kind.__name__: kind for kind in (list, dict, set, int, float, str, bool, tuple)}
_SEQUENCES = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_MAPPINGS = {
    "dict": dict,
    "OrderedDict": OrderedDict,
    "Counter": Counter,
    "defaultdict": defaultdict,
}
_KINDS: dict[type, str] = {kind: name for name, kind in (_SEQUENCES | _MAPPINGS).items()}


class Encoder:
    """Turns an object into a list of JSON nodes; tensors go to the storage table."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.table = storages.StorageTable()
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # ids stay unique as long as their objects live

    def encode(self, root: Any) -> Any:
        """The JSON value that stands for ``root``.

        Raises:
            TypeError: something inside is not data.
            ValueError: a container contains itself.
        """
        # An explicit stack: nesting is limited by memory, not by the interpreter's recursion limit.
        open_ids: set[int] = set()
        stack: list[tuple[Any, str, bool]] = [(root, "", False)]
        while stack:
            obj, path, done = stack.pop()
            if not _is_container(obj) or id(obj) in self._numbers:
                continue
            if done:
                open_ids.discard(id(obj))
                self._add(obj, self._container(obj, path))
                continue
            if id(obj) in open_ids:
                raise ValueError(f"save: the object{path} contains itself")
            open_ids.add(id(obj))
            stack.append((obj, path, True))
            for child, where in _children(obj):
                if id(child) in open_ids:
                    raise ValueError(f"save: the object{path} contains itself")
                if _is_container(child):
                    stack.append((child, path + where, False))
        return self._value(root, "")

    def _add(self, obj: Any, node: Any) -> int:
        self._numbers[id(obj)] = len(self.nodes)
        self._alive.append(obj)
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _container(self, obj: Any, path: str) -> Any:
        name = _KINDS[type(obj)]
        if name in _SEQUENCES:
            return [name, [self._value(v, f"{path}[{i}]") for i, v in enumerate(obj)]]
        pairs = [
            [self._value(k, f"{path} (a key)"), self._value(v, f"{path}[{k!r}]")]
            for k, v in obj.items()
        ]
        extra: dict[str, Any] = {}
        attributes = getattr(obj, "__dict__", None)
        if attributes:  # such as the versions that a state_dict carries beside its items
            extra["attributes"] = self._value(attributes, path)
        if name == "defaultdict" and obj.default_factory is not None:
            factory = getattr(obj.default_factory, "__name__", "")
            if _FACTORIES.get(factory) is not obj.default_factory:
                raise _not_data(obj.default_factory, f"{path} (default_factory)")
            extra["factory"] = factory
        return [name, pairs, extra] if extra else [name, pairs]

    def _value(self, obj: Any, path: str) -> Any:
        kind = type(obj)
        if obj is None or kind is bool or kind is str:
            return obj
        if kind is int:
            return obj if abs(obj) < _MAX_JSON_INT else {"int": hex(obj)}
        if kind is float:
            return obj if obj - obj == 0 else {"float": str(obj)}
        if id(obj) in self._numbers:
            return {"node": self._numbers[id(obj)]}
        if isinstance(obj, fb.Tensor):
            return {"node": self._add(obj, ["tensor", self._tensor(obj, path)])}
        return self._leaf(obj, path)

    def _leaf(self, obj: Any, path: str) -> Any:
        kind = type(obj)
        if kind is complex:
            return {"complex": [self._value(obj.real, path), self._value(obj.imag, path)]}
        if kind in (bytes, bytearray):
            return {kind.__name__: base64.b64encode(obj).decode("ascii")}
        if kind is fb.Size:
            return {"Size": [int(n) for n in obj]}
        if isinstance(obj, fb.dtype):
            return {"dtype": storages.dtype_name(obj)}
        if isinstance(obj, fb.device):
            return {"device": str(obj)}
        if kind.__module__ == "numpy" and hasattr(obj, "item") and getattr(obj, "ndim", 1) == 0:
            item = obj.item()  # a NumPy scalar: the Python number it stands for
            if type(item) in (bool, int, float, complex):
                return self._value(item, path)
        raise _not_data(obj, path)

    def _tensor(self, tensor: Any, path: str) -> dict[str, Any]:
        record = {"parameter": False}
        if type(tensor) is fb.nn.Parameter:
            record["parameter"] = True
        elif type(tensor) is not fb.Tensor:
            raise _not_data(tensor, path)
        return self.table.describe(tensor) | record


class Decoder:
    """Builds the object that nodes describe.

    Args:
        storage: gives the flat tensor of bytes of a storage number (None where there is no data)
            and the device that tensors in it go to.
    """

    def __init__(self, storage: Callable[[int], tuple[Any, str]]) -> None:
        self._storage = storage
        self._objects: list[Any] = []

    def decode(self, nodes: Any, root: Any) -> Any:
        """The object.

        Raises:
            ValueError: the description is malformed.
        """
        if not isinstance(nodes, list):
            raise ValueError("load: the index has no list of nodes")
        for number, node in enumerate(nodes):
            with _named_errors(f"node {number}"):
                self._objects.append(self._node(node))
        with _named_errors("the root"):
            return self._value(root)

    def _node(self, node: Any) -> Any:
        name, content, *rest = node
        if name == "tensor":
            return self._tensor(content)
        if name in _SEQUENCES:
            return _SEQUENCES[name]([self._value(v) for v in content])
        if name not in _MAPPINGS:
            raise ValueError(f"load: unknown kind of node {name!r}")
        extra = rest[0] if rest else {}
        mapping = _MAPPINGS[name]()
        if "factory" in extra:
            mapping.default_factory = _FACTORIES[extra["factory"]]
        for key, value in content:
            mapping[self._value(key)] = self._value(value)
        if "attributes" in extra:
            attributes = self._value(extra["attributes"])
            if name != "OrderedDict" or any(not isinstance(k, str) for k in attributes):
                raise ValueError(f"load: a {name} with attributes")
            vars(mapping).update(attributes)
        return mapping

    def _value(self, value: Any) -> Any:
        if not isinstance(value, (dict, list)):
            return value
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError(f"load: expected one value, got {str(value)[:80]}")
        ((name, content),) = value.items()
        if name == "node":
            if type(content) is not int or not 0 <= content < len(self._objects):
                raise ValueError(f"load: reference to node {content!r}, which is not known yet")
            return self._objects[content]
        reader = _LEAVES.get(name)
        if reader is None:
            raise ValueError(f"load: unknown kind of value {name!r}")
        return reader(content)

    def _tensor(self, record: Any) -> Any:
        flat, device = self._storage(record["storage"])
        tensor = storages.view_of(flat, record)
        requires_grad = record["requires_grad"] is True
        if requires_grad and not (tensor.is_floating_point() or tensor.is_complex()):
            raise ValueError(f"load: a tensor of dtype {tensor.dtype} cannot require gradients")
        if record["parameter"] is True:
            return fb.nn.Parameter(tensor, requires_grad=requires_grad)
        return tensor.requires_grad_() if requires_grad else tensor


@contextlib.contextmanager
def _named_errors(what: str) -> Iterator[None]:
    """Gives the errors that malformed descriptions provoke one class and a text that says where."""
    try:
        yield
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
        if str(error).startswith("load: "):
            raise
        raise ValueError(f"load: {what} is malformed ({error})") from error


def _special_float(text: Any) -> float:
    if text not in ("inf", "-inf", "nan"):
        raise ValueError(f"load: {text!r} is not a special number")
    return float(text)


def _complex(parts: Any) -> complex:
    real, imag = (_special_float(p["float"]) if isinstance(p, dict) else p for p in parts)
    return complex(real, imag)


def _device(text: Any) -> Any:
    try:
        return fb.device(text)
    except RuntimeError as error:
        raise ValueError(f"load: unknown device {text!r}") from error


_LEAVES: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "float": _special_float,
    "complex": _complex,
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "bytearray": lambda text: bytearray(base64.b64decode(text, validate=True)),
    "Size": lambda sizes: fb.Size(sizes),
    "dtype": storages.dtype_of,
    "device": _device,
}


def _is_container(obj: Any) -> bool:
    return type(obj) in _KINDS


def _children(obj: Any) -> Iterator[tuple[Any, str]]:
    if isinstance(obj, dict):
        for key, value in obj.items():
            yield key, " (a key)"
            yield value, f"[{key!r}]"
        attributes = getattr(obj, "__dict__", None)
        if attributes:
            yield attributes, ".__dict__"
    else:
        for i, value in enumerate(obj):
            yield value, f"[{i}]"


def _not_data(obj: Any, path: str) -> TypeError:
    kind = type(obj)
    name = f"{kind.__module__}.{kind.__qualname__}"
    hint = "only tensors, numbers, text and the built-in containers of these can be saved"
    if callable(getattr(obj, "state_dict", None)):
        hint = f"save its state_dict() instead and restore it with load_state_dict(); {hint}"
    where = f" at object{path}" if path else ""
    return TypeError(f"save: expected data, got {name}{where}; {hint}")
