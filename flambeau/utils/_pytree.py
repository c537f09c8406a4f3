"""Trees of Python containers: flatten to leaves, rebuild, map.

Owns the registry of node types and ``TreeSpec``. Invariant: ``tree_unflatten(*tree_flatten(t))``
rebuilds ``t``; what is not registered is a leaf; None is a leaf. A type is registered once,
before its use. Must not know tensors. Serialising specs is in ``_pytree_json``.
"""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

PyTree = Any
Context = Any
Leaf = Callable[[Any], bool]

__all__ = [
    "Context",
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]

# ---- steps of a path ------------------------------------------------------------------------


class SequenceKey(NamedTuple):
    """Position in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, parent: Any) -> Any:
        """The child at this step."""
        return parent[self.idx]


class MappingKey(NamedTuple):
    """Key of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, parent: Any) -> Any:
        """The child at this step."""
        return parent[self.key]


class GetAttrKey(NamedTuple):
    """Attribute of an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, parent: Any) -> Any:
        """The child at this step."""
        return getattr(parent, self.name)


KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


def keystr(kp: KeyPath) -> str:
    """A path as the expression that reaches it, e.g. ``['a'][0].x``."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What a path leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


# ---- node types ----------------------------------------------------------------------------


class NodeDef(NamedTuple):
    """How a container type is taken apart and rebuilt."""

    type: type
    flatten_fn: Callable[[Any], tuple[list[Any], Context]]
    unflatten_fn: Callable[[Iterable[Any], Context], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[KeyEntry, Any]], Context]] | None


SUPPORTED_NODES: dict[type, NodeDef] = {}
_SERIALIZED: dict[type, tuple[str, Any, Any]] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Context]],
    unflatten_fn: Callable[[Iterable[Any], Context], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], Any] | None = None,
    from_dumpable_context: Callable[[Any], Context] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[KeyEntry, Any]], Context]] | None = None,
) -> None:
    """Make ``cls`` a node.

    Args:
        cls: the container type; subclasses are not included.
        flatten_fn: container to (children, context); the context must be comparable.
        unflatten_fn: (children, context) to container.
        serialized_type_name: name in serialised specs.
        to_dumpable_context: context to something JSON can hold.
        from_dumpable_context: the inverse.
        flatten_with_keys_fn: container to ((key, child) pairs, context).

    Raises:
        ValueError: ``cls`` is registered already, or one of the two converters is missing.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
            "registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    _SERIALIZED[cls] = (name, to_dumpable_context, from_dumpable_context)


_register_pytree_node = register_pytree_node


def _sequence_keys(flatten: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def with_keys(tree: Any) -> Any:
        children, context = flatten(tree)
        return [(SequenceKey(i), child) for i, child in enumerate(children)], context

    return with_keys


def _mapping_keys(tree: Mapping[Any, Any]) -> list[tuple[KeyEntry, Any]]:
    return [(MappingKey(k), v) for k, v in tree.items()]


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class was made by ``namedtuple``."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields := getattr(cls, "_fields", None), tuple)
        and all(type(field) is str for field in fields)
        and callable(getattr(cls, "_make", None))
    )


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether an object is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is a structured sequence of the interpreter, e.g. ``time.struct_time``."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(
            isinstance(getattr(cls, name, None), int)
            for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields")
        )
    )


def is_structseq_instance(obj: Any) -> bool:
    """Whether an object is a structured sequence."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether an object is a structured sequence, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _flatten_list(tree: Any) -> tuple[list[Any], Context]:
    return list(tree), None


def _dict_flatten(tree: Any) -> tuple[list[Any], Context]:
    return list(tree.values()), list(tree.keys())


def _dict_flatten_with_keys(
    d: Mapping[Any, Any],
) -> tuple[list[tuple[KeyEntry, Any]], Context]:
    return _mapping_keys(d), list(d.keys())


def _flatten_defaultdict(tree: Any) -> tuple[list[Any], Context]:
    return list(tree.values()), [tree.default_factory, list(tree.keys())]


register_pytree_node(
    tuple,
    _flatten_list,
    lambda children, _: tuple(children),
    serialized_type_name="builtins.tuple",
    flatten_with_keys_fn=_sequence_keys(_flatten_list),
)
register_pytree_node(
    list,
    _flatten_list,
    lambda children, _: list(children),
    serialized_type_name="builtins.list",
    flatten_with_keys_fn=_sequence_keys(_flatten_list),
)
register_pytree_node(
    dict,
    _dict_flatten,
    lambda children, keys: dict(zip(keys, children, strict=True)),
    serialized_type_name="builtins.dict",
    flatten_with_keys_fn=_dict_flatten_with_keys,
)
register_pytree_node(
    OrderedDict,
    _dict_flatten,
    lambda children, keys: OrderedDict(zip(keys, children, strict=True)),
    serialized_type_name="collections.OrderedDict",
    flatten_with_keys_fn=_dict_flatten_with_keys,
)
register_pytree_node(
    defaultdict,
    _flatten_defaultdict,
    lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
    flatten_with_keys_fn=lambda tree: (_mapping_keys(tree), _flatten_defaultdict(tree)[1]),
)
register_pytree_node(
    deque,
    lambda tree: (list(tree), tree.maxlen),
    lambda children, maxlen: deque(children, maxlen=maxlen),
    serialized_type_name="collections.deque",
    flatten_with_keys_fn=_sequence_keys(lambda tree: (list(tree), tree.maxlen)),
)
register_pytree_node(
    namedtuple,  # type: ignore[arg-type]  # stands for all classes it makes; the context says which
    lambda tree: (list(tree), type(tree)),
    lambda children, cls: cls(*children),
    serialized_type_name="collections.namedtuple",
    flatten_with_keys_fn=lambda tree: (
        [(GetAttrKey(n), v) for n, v in zip(tree._fields, tree, strict=True)],
        type(tree),
    ),
)

_DICT_TYPES = (dict, OrderedDict, defaultdict)


def _get_node_type(tree: Any) -> Any:
    cls = type(tree)
    if cls not in SUPPORTED_NODES and is_namedtuple_class(cls):
        return namedtuple
    if cls not in SUPPORTED_NODES and _is_return_type(cls):
        _register_return_type(cls)
    return cls


def _is_return_type(cls: Any) -> bool:
    # What sort, max and their like return. Other structured sequences, such as times, are leaves.
    return is_structseq_class(cls) and cls.__module__.endswith(".return_types")


def _register_return_type(cls: Any) -> None:
    register_pytree_node(
        cls,
        _flatten_list,
        lambda children, _: cls(tuple(children)),
        serialized_type_name=f"torch.return_types.{cls.__name__}",
        flatten_with_keys_fn=_sequence_keys(_flatten_list),
    )


def tree_is_leaf(tree: PyTree, is_leaf: Leaf | None = None) -> bool:
    """Whether ``tree`` is a leaf: of no registered type, or declared one by ``is_leaf``."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


# ---- specs ---------------------------------------------------------------------------------


class TreeSpec:
    """The shape of a tree: node type (None at a leaf), context and the children's specs."""

    __slots__ = ("_children", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self._children = children_specs
        self.num_children = len(children_specs)
        self.num_nodes: int = 1 + sum(c.num_nodes for c in children_specs)
        self.num_leaves: int = 1 if type is None else sum(c.num_leaves for c in children_specs)

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The specs of the children."""
        return self._children

    def children(self) -> list[TreeSpec]:
        """The specs of the children."""
        return self._children.copy()

    def child(self, index: int) -> TreeSpec:
        """The spec of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether this is the spec of a leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this shape with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The sub-trees of ``tree`` at the places of this spec's leaves.

        Raises:
            ValueError: ``tree`` has another shape above those places.
        """
        out: list[PyTree] = []
        self._flatten_up_to(tree, out)
        return out

    def _flatten_up_to(self, tree: PyTree, out: list[PyTree]) -> None:
        if self.type is None:
            out.append(tree)
            return
        for spec, child in zip(self._children, self._match(tree), strict=True):
            spec._flatten_up_to(child, out)

    def _match(self, tree: PyTree) -> list[PyTree]:
        """The children of ``tree`` in this spec's order."""
        kind = _get_node_type(tree)
        if self.type in _DICT_TYPES and kind in _DICT_TYPES:
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {keys!r}, got {list(tree)!r}.")
            return [tree[key] for key in keys]
        if kind != self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if kind is not deque and context != self.context:
            raise ValueError(
                f"Node context mismatch for custom node type {kind!r}; expected "
                f"{self.context!r}, got {context!r}."
            )
        return children

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type == other.type
            and self.context == other.context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        context = self.context
        if self.type in (dict, OrderedDict):
            context = tuple(context)
        elif self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        hashable = context if isinstance(context, Hashable) else None
        return hash((self.type, hashable, tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        children = ""
        if self._children:
            indent += 2
            parts = [child.__repr__(indent) for child in self._children]
            children = (",\n" + " " * indent).join(parts)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"

    def __getstate__(self) -> tuple[Any, Context, list[TreeSpec]]:
        return (self.type, self.context, self._children)

    def __setstate__(self, state: tuple[Any, Context, list[TreeSpec]]) -> None:
        self.__init__(*state)  # type: ignore[misc]


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    __slots__ = ()

    def __init__(self, *_: Any) -> None:
        super().__init__(None, None, [])


PyTreeSpec = TreeSpec
_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> TreeSpec:
    """The spec of a leaf."""
    return _LEAF_SPEC


# ---- flatten, unflatten --------------------------------------------------------------------


def tree_flatten(tree: PyTree, is_leaf: Leaf | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves from left to right, and the shape.

    Args:
        tree: any nesting of registered containers.
        is_leaf: declares further leaves.
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: Leaf | None) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a shape with these leaves.

    Raises:
        TypeError: ``treespec`` is none.
        ValueError: the number of leaves differs.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but "
            f"got item of type {type(treespec)}."
        )
    if not isinstance(leaves, (list, tuple)):
        leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec "
            f"refers to a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return _unflatten(iter(leaves), treespec)


def _unflatten(leaves: Any, spec: TreeSpec) -> PyTree:
    if spec.type is None:
        return next(leaves)
    children = [_unflatten(leaves, child) for child in spec._children]
    return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec.context)


def tree_iter(tree: PyTree, is_leaf: Leaf | None = None) -> Iterable[Any]:
    """Iterate over the leaves."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: Leaf | None = None) -> list[Any]:
    """The leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Leaf | None = None) -> TreeSpec:
    """The shape."""
    return tree_flatten(tree, is_leaf)[1]


# ---- maps ----------------------------------------------------------------------------------


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Leaf | None = None
) -> PyTree:
    """The tree with each leaf ``x`` replaced by ``func(x, *xs)``.

    Args:
        func: the function.
        tree: gives the shape.
        rests: trees that begin with the same shape; ``xs`` are what they hold at the leaf's place.
        is_leaf: declares further leaves.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [spec.flatten_up_to(rest) for rest in rests]
    return _unflatten(iter([func(*xs) for xs in zip(*columns, strict=True)]), spec)


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Leaf | None = None
) -> PyTree:
    """Call ``func`` on each leaf for its effect; return ``tree`` itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for xs in zip(leaves, *[spec.flatten_up_to(rest) for rest in rests], strict=True):
        func(*xs)
    return tree


def _test_of(kind: Any) -> Callable[[Any], bool]:
    """A predicate from a type, a tuple or union of types, or a predicate."""
    if isinstance(kind, (type, tuple)) or hasattr(kind, "__args__"):
        return lambda x: isinstance(x, kind)
    if callable(kind):
        return kind
    raise TypeError(
        f"Argument must be a type, a tuple of types, or a callable predicate, got {kind!r}."
    )


def map_only(kind: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorator: apply a function to values of a kind and pass others through."""
    test = _test_of(kind)

    def wrap(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: func(x) if test(x) else x

    return wrap


def tree_map_only(
    kind: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: Leaf | None = None
) -> PyTree:
    """Map the leaves of a type (or types, or for which a predicate holds); keep the others."""
    return tree_map(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    kind: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: Leaf | None = None
) -> PyTree:
    """Call ``func`` for its effect on leaves of a type; return ``tree`` itself."""
    return tree_map_(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Leaf, tree: PyTree, is_leaf: Leaf | None = None) -> bool:
    """Whether a predicate holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Leaf, tree: PyTree, is_leaf: Leaf | None = None) -> bool:
    """Whether a predicate holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(kind: Any, /, pred: Leaf, tree: PyTree, is_leaf: Leaf | None = None) -> bool:
    """Whether a predicate holds for all leaves of a type."""
    test = _test_of(kind)
    return all(pred(x) for x in tree_iter(tree, is_leaf) if test(x))


def tree_any_only(kind: Any, /, pred: Leaf, tree: PyTree, is_leaf: Leaf | None = None) -> bool:
    """Whether a predicate holds for some leaf of a type."""
    test = _test_of(kind)
    return any(pred(x) for x in tree_iter(tree, is_leaf) if test(x))


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: Leaf | None = None
) -> list[Any] | None:
    """Leaves of ``tree`` repeated to the shape of ``treespec``; None where it does not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) != treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    out: list[Any] = []
    for child, spec in zip(children, treespec._children, strict=True):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        out += flat
    return out


# ---- paths ---------------------------------------------------------------------------------


def tree_leaves_with_path(tree: PyTree, is_leaf: Leaf | None = None) -> list[tuple[KeyPath, Any]]:
    """(path, leaf) pairs."""
    return list(_with_path((), tree, is_leaf))


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Leaf | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """(path, leaf) pairs, and the shape."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def _with_path(path: KeyPath, tree: PyTree, is_leaf: Leaf | None) -> Iterable[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_path((*path, key), child, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Leaf | None = None
) -> PyTree:
    """``tree_map`` with the path as first argument of ``func``."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    mapped = [func(path, x, *xs) for (path, x), *xs in zip(pairs, *others, strict=True)]
    return tree_unflatten(mapped, spec)


def __getattr__(name: str) -> Any:
    if name in ("treespec_dumps", "treespec_loads", "treespec_pprint"):
        return getattr(importlib.import_module("flambeau.utils._pytree_json"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
