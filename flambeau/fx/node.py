"""`Node`: one step of a `Graph`, and what arguments are made of.

A node is in a doubly linked ring whose head is the graph's root. Invariant: `users` of a node are
exactly the nodes in whose arguments it is; only `_set_args` and erasing change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flambeau._ir.own import own_module

if TYPE_CHECKING:
    from .graph import Graph

OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """The argument with `fn(node)` for each node in it; containers of Python are made anew.

    Args:
        a: a node, a number, text, or tuples, lists, dicts and slices of these.
        fn: gives what stands for a node.
    """
    if isinstance(a, Node):
        return fn(a)
    if isinstance(a, tuple):
        items = [map_arg(x, fn) for x in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return [map_arg(x, fn) for x in a]
    if isinstance(a, dict):
        return {k: map_arg(v, fn) for k, v in a.items()}
    if isinstance(a, slice):
        return slice(map_arg(a.start, fn), map_arg(a.stop, fn), map_arg(a.step, fn))
    return a


class Node:
    """A step: an input, a call, a read of an attribute, or the output.

    Attributes:
        op: "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        target: the function; the name of the method, module, attribute or input.
        args, kwargs: of the call; other nodes stand for their values.
        users: the nodes that take this one, in order, as the keys of a dict.
        name: its variable in generated code.
        meta: what passes know of it; captured graphs have "val" (a tensor on "meta" of its shape)
            and "stack_trace".
        graph: where it belongs.
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Any, args: Any, kwargs: Any
    ) -> None:
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self.type: Any = None
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set_args(args, kwargs)

    def __repr__(self) -> str:
        return self.name

    # -- arguments ---------------------------------------------------------------------------------

    @property
    def args(self) -> tuple[Any, ...]:
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._set_args(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set_args(self._args, kwargs)

    def _set_args(self, args: Any, kwargs: Any) -> None:
        for n in self.all_input_nodes:
            n.users.pop(self, None)
        self._args, self._kwargs = tuple(args), dict(kwargs)
        for n in self.all_input_nodes:
            n.users.setdefault(self)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in its arguments, each once, in order."""
        found: dict[Node, None] = {}
        map_arg((self._args, self._kwargs), lambda n: found.setdefault(n))
        return list(found)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Sets one argument."""
        self.args = (*self._args[:idx], arg, *self._args[idx + 1 :])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Sets one argument by name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Puts another node in the place of one that it takes."""
        put = lambda n: new_input if n is old_input else n  # noqa: E731
        self._set_args(map_arg(self._args, put), map_arg(self._kwargs, put))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Puts another node in its place with all who take it.

        Args:
            replace_with: the other node.
            delete_user_cb: of each user, whether it is to be changed.
            propagate_meta: the other node takes over `meta`, of which it must have none.

        Returns:
            The nodes that took it before.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("replace_all_uses_with: the new node has meta of its own")
            replace_with.meta.update(self.meta)
        users = list(self.users)
        for user in users:
            if delete_user_cb(user):
                user.replace_input_with(self, replace_with)
        return users

    # -- place -------------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The node after it."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Moves `x` right before this node, in the same graph."""
        if x is self:
            return
        if x.graph is not self.graph:
            raise AssertionError("prepend: the nodes are of two graphs")
        x._leave()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Moves `x` right after this node."""
        self._next.prepend(x)

    def _leave(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # -- facts -------------------------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """The user's line it came from."""
        return self.meta.get("stack_trace")

    def is_impure(self) -> bool:
        """Whether it may do more than give a value, so that it stays though nobody takes it."""
        if self.op in ("placeholder", "output", "call_module"):
            return True
        name = self.target if isinstance(self.target, str) else getattr(self.target, "__name__", "")
        changes = name.endswith("_") and not name.endswith("__")
        return changes or name in ("setitem", "_set_grad_enabled") or "out" in self._kwargs

    def format_node(self) -> str:
        """The node as a line of text."""
        if self.op == "placeholder":
            return (
                f"%{self.name} : [num_users={len(self.users)}] = placeholder[target={self.target}]"
            )
        if self.op == "output":
            return f"return {self._args[0]}"
        target = self.target if isinstance(self.target, str) else named(self.target)
        words = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target}]"
        show = lambda n: _Percent(n.name)  # noqa: E731
        return (
            f"{words}(args = {map_arg(self._args, show)}, kwargs = {map_arg(self._kwargs, show)})"
        )


class _Percent(str):
    def __repr__(self) -> str:
        return f"%{self}"


def named(function: Any) -> str:
    """A function as text shows it."""
    name = getattr(function, "__name__", None) or type(function).__name__
    module = getattr(function, "__module__", None) or ""
    ours = own_module(module)
    if ours is not None:  # our own inside is not a name that programs know
        module = "torch" if not ours or ours.startswith("_") else f"torch.{ours}"
    return f"{module.lstrip('_')}.{name}" if module and module != "builtins" else str(name)


def following(root: Node) -> Iterator[Node]:
    """The nodes of a ring in order; the one at hand may be erased meanwhile."""
    at = root._next
    while at is not root:
        after = at._next
        if not at._erased:
            yield at
        at = after if not after._erased or after is root else _alive(after, root)


def _alive(node: Node, root: Node) -> Node:
    while node is not root and node._erased:
        node = node._next
    return node
