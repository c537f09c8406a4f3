"""Specs of trees as JSON text, and as readable text.

Invariant: ``treespec_loads(treespec_dumps(s)) == s``. Nothing is imported or executed on loading:
types are found among the registered ones by name. Must not know how trees are flattened.
"""

from __future__ import annotations

import json
from collections import defaultdict, namedtuple
from typing import Any

from ._pytree import _SERIALIZED, LeafSpec, TreeSpec, tree_unflatten

PROTOCOL = 1
_PLAIN = (str, int, float, bool, type(None))


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec as JSON.

    Raises:
        TypeError: it is no spec.
        ValueError: the protocol is unknown.
        NotImplementedError: a context holds something JSON cannot say.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec "
            f"but got item of type {type(treespec)}."
        )
    _check_protocol(PROTOCOL if protocol is None else protocol)
    return json.dumps((PROTOCOL, _to_json(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec that ``treespec_dumps`` wrote.

    Raises:
        ValueError: the protocol is unknown.
        NotImplementedError: a node type is not registered here.
    """
    protocol, tree = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(tree)


def treespec_pprint(treespec: TreeSpec) -> str:
    """A spec as a container of stars."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


class _Star:
    def __repr__(self) -> str:
        return "*"


def _check_protocol(protocol: Any) -> None:
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    children = [_to_json(child) for child in spec.children_specs]
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    name, dump, _ = _SERIALIZED[spec.type]
    context = dump(spec.context) if dump is not None else _plain_context(spec)
    return {"type": name, "context": context, "children_spec": children}


def _plain_context(spec: TreeSpec) -> Any:
    if spec.type in (defaultdict, namedtuple):
        raise NotImplementedError(
            f"treespec_dumps: the context of {spec.type.__name__} names a Python object "
            f"({spec.context!r}), which JSON cannot hold"
        )
    context = spec.context
    items = context if isinstance(context, list) else [context]
    if not all(isinstance(item, _PLAIN) for item in items):
        raise NotImplementedError(f"treespec_dumps: context {context!r} does not fit JSON")
    return context


def _from_json(tree: dict[str, Any]) -> TreeSpec:
    if tree["type"] is None:
        return LeafSpec()
    for kind, (name, _, load) in _SERIALIZED.items():
        if name == tree["type"]:
            context = tree["context"] if load is None else load(tree["context"])
            return TreeSpec(kind, context, [_from_json(c) for c in tree["children_spec"]])
    raise NotImplementedError(f"Deserializing {tree['type']} in pytree is not registered.")
