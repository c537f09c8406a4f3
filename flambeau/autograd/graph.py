"""The graph that backward runs: nodes, edges, what nodes save.

Owns ``flambeau.autograd.graph``. Nodes are objects of the compiled core; ``Node`` is their common
abstract face.
"""

from __future__ import annotations

import abc
import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from flambeau import _C

if TYPE_CHECKING:
    from flambeau import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class Node(abc.ABC):
    """A recorded operation. Every `grad_fn` is an instance."""

    @abc.abstractmethod
    def name(self) -> str:
        """Name, after the operation: "MulBackward0"."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that this one's gradients go to, each with the number of its output."""

    @property
    @abc.abstractmethod
    def metadata(self) -> dict[str, Any]:
        """A dict for the user."""

    @abc.abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> Any:
        """Calls fn(grad_inputs, grad_outputs) after the node ran; a result replaces grad_inputs."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> Any:
        """Calls fn(grad_outputs) before the node runs; a result replaces grad_outputs."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        if cls is Node and issubclass(subclass, (_C._Node, _C._FunctionBase)):
            return True
        return NotImplemented


class GradientEdge(NamedTuple):
    """A place in the graph: an output of a node. Stands for a tensor in `grad` and `backward`."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of a tensor is computed; for a leaf, where it is accumulated."""
    if isinstance(tensor, GradientEdge):
        return tensor
    node, output = _C._gradient_edge(tensor)
    return GradientEdge(cast(Node, node), output)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tells autograd that tensors were changed in place behind its back."""
    for t in (tensor,) if isinstance(tensor, _C.Tensor) else tensor:
        _C._bump_version(t)


class saved_tensors_hooks:
    """What nodes save for backward goes through a pair of functions inside the block.

    Args:
        pack_hook: from a tensor to anything, called when a tensor is saved.
        unpack_hook: from that back to a tensor, called when backward needs it.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
    ...     y = x * x
    >>> y.sum().backward()
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception: Any) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """What nodes save waits in main memory, and comes back to its device for backward.

    Args:
        pin_memory: whether copies on the CPU are pinned.
        device_type: kind of accelerator that pinning is for.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        del device_type

        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            copy = tensor.cpu() if not tensor.is_cpu else tensor.clone()
            return tensor.device, copy.pin_memory() if pin_memory else copy

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, copy = packed
            return copy.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside the block, `saved_tensors_hooks` raises `error_message`."""
    before = _C._saved_tensors_hooks_disabled()
    _C._disable_saved_tensors_hooks(error_message)
    try:
        yield
    finally:
        _C._disable_saved_tensors_hooks(before)


class _Saved:
    """A saved tensor, and later a copy of it as it was."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class _AllowMutation:
    """What was saved inside one `allow_mutation_on_saved_tensors` block, by its memory."""

    def __init__(self) -> None:
        self.open = True
        self._saved: dict[int, weakref.WeakSet[_Saved]] = {}

    def pack(self, tensor: Tensor) -> _Saved:
        saved = _Saved(tensor)
        memory = tensor.untyped_storage()._cdata
        self._saved.setdefault(memory, weakref.WeakSet()).add(saved)
        return saved

    def unpack(self, saved: _Saved) -> Tensor:
        if not self.open:
            raise AssertionError(
                "allow_mutation_on_saved_tensors: backward was run outside of the block in which "
                "the graph was recorded"
            )
        return saved.tensor

    def before_change(self, tensor: Tensor) -> None:
        with _C.no_grad():
            for saved in self._saved.pop(tensor.untyped_storage()._cdata, ()):
                saved.tensor = saved.tensor.clone()

    def clear(self) -> None:
        """Forgets what was saved so far: later changes of it are not seen."""
        self._saved.clear()


_mutation_block: ContextVar[_AllowMutation | None] = ContextVar("mutation_block", default=None)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutation]:
    """Tensors that were saved for backward may be changed in place inside the block.

    A tensor that somebody saved is copied before it is changed, so that backward, which must run
    inside the block too, finds what was saved.

    Raises:
        RuntimeError: blocks cannot be nested.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     out = (y * y).sum()
    ...     _ = y.zero_()
    ...     out.backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if _mutation_block.get() is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    block = _AllowMutation()
    token = _mutation_block.set(block)
    watch = _C._push_change_watch(block.before_change)
    try:
        with saved_tensors_hooks(block.pack, block.unpack):
            yield block
    finally:
        _C._remove_change_watch(watch)
        _mutation_block.reset(token)
        block.clear()
        block.open = False


class _MultiHandle:
    """Handle of one hook on several tensors."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Removes the hook everywhere."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: Literal["all", "any"] = "all"
) -> _MultiHandle:
    """Calls `fn` once per backward for a group of tensors.

    Args:
        tensors: tensors that require grad.
        fn: with mode "all", gets the list of gradients once the last of them is there (None for
            tensors that this backward does not reach); with "any", gets the first gradient.
        mode: "all" or "any".
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    group = _Group(tuple(tensors), fn)
    make = group.any_hook if mode == "any" else group.all_hook
    return _MultiHandle([t.register_hook(make(i)) for i, t in enumerate(group.tensors)])


class _Group:
    """What is known of the gradients of a group, per running backward."""

    def __init__(self, tensors: tuple[Tensor, ...], fn: Callable[..., None]) -> None:
        self.tensors = tensors
        self.fn = fn
        self.lock = threading.Lock()
        self.seen: dict[int, tuple[list[Tensor | None], int]] = {}
        self.called: set[int] = set()
        # Held so that they are the same nodes in every backward.
        self.nodes = [_C._gradient_edge(t)[0] for t in tensors]

    def all_hook(self, i: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            task = _C._current_graph_task_id()
            with self.lock:
                if task not in self.seen:
                    left = sum(map(_C._will_engine_execute_node, self.nodes))
                    self.seen[task] = ([None] * len(self.tensors), left)
                grads, left = self.seen[task]
                grads[i] = grad
                self.seen[task] = (grads, left - 1)
                done = left == 1
                if done:
                    del self.seen[task]
            if done:
                self.fn(grads)

        return hook

    def any_hook(self, i: int) -> Callable[[Tensor], None]:
        del i

        def hook(grad: Tensor) -> None:
            task = _C._current_graph_task_id()
            with self.lock:
                first = task not in self.called
                self.called.add(task)
            if first:
                _C._queue_callback(lambda: self.called.discard(task))
                self.fn(grad)

        return hook
