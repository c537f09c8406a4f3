"""Back ends by name. A back end is `f(gm, example_inputs) -> callable`: `gm` is a `fx.GraphModule`,
and the callable takes the graph's inputs and returns its outputs."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

Backend = Callable[..., Callable[..., Any]]

_BUILT_IN = {
    "eager": "flambeau._capture.back_ends:run_eagerly",
    "aot_eager": "flambeau._capture.back_ends:run_ahead_of_time",
    "inductor": "flambeau._capture.back_ends:run_compiled",
}
_registered: dict[str, Backend] = {}


def list_backends() -> list[str]:
    """Names that `compile(backend=...)` takes.

    >>> "eager" in torch.compiler.list_backends()
    True
    """
    return sorted({*_BUILT_IN, *_registered})


_default: list[str | Backend] = ["inductor"]


def set_default_backend(backend: str | Backend | None) -> None:
    """The back end of `compile` where a call names none; None is "inductor" again.

    Raises:
        ValueError: there is none of that name.

    >>> torch.compiler.set_default_backend("eager")
    >>> torch.compiler.get_default_backend()
    'eager'
    >>> torch.compiler.set_default_backend(None)
    """
    if backend is not None:
        find(backend, None, None)
    _default[0] = "inductor" if backend is None else backend


def get_default_backend() -> str | Backend:
    """The back end of `compile` where a call names none.

    >>> torch.compiler.get_default_backend()
    'inductor'
    """
    return _default[0]


def register_backend(
    compiler_fn: Backend | None = None, *, name: str | None = None
) -> Backend | Callable[[Backend], Backend]:
    """Files a back end under a name; also a decorator.

    Args:
        compiler_fn: `f(graph, example_inputs)`, which returns a callable.
        name: its name; by default the function's.

    Raises:
        ValueError: the name is taken.

    >>> @torch.compiler.register_backend(name="shown_in_docs")
    ... def backend(graph, example_inputs):
    ...     raise NotImplementedError
    >>> "shown_in_docs" in torch.compiler.list_backends()
    True
    """
    if compiler_fn is None:
        return lambda f: register_backend(f, name=name)
    key = name or compiler_fn.__name__
    known = _registered.get(key)
    same = known is not None and known.__qualname__ == compiler_fn.__qualname__
    if key in _BUILT_IN or (known is not None and not same):
        raise ValueError(f"register_backend: the name {key!r} is taken")
    _registered[key] = compiler_fn
    return compiler_fn


def lookup_backend(compiler_fn: str | Backend) -> Backend:
    """The back end of a name, which may be called in one's own; a function is itself.

    Raises:
        ValueError: there is none of that name.

    >>> eager = torch._dynamo.lookup_backend("eager")
    >>> own = torch.compile(lambda x: x + 1, backend=lambda gm, examples: eager(gm, examples))
    >>> own(torch.zeros(1))
    tensor([1.])
    """
    found = find(compiler_fn, None, None)
    if not getattr(found, "takes_graph", False):
        return found

    def back_end(gm: Any, example_inputs: Any, **more: Any) -> Callable[..., Any]:
        from flambeau.fx._captured import graph_of

        return found(graph_of(gm, example_inputs), example_inputs, **more)

    back_end.takes_graph = True  # type: ignore[attr-defined]
    return back_end


def find(backend: str | Backend, mode: str | None, options: dict[str, Any] | None) -> Backend:
    """The back end of a name, or the function itself, with the mode and options it is to be told.

    Raises:
        ValueError: there is none of that name, or it has no options.
        RuntimeError: this build has no such back end.
    """
    told: dict[str, Any] = {"mode": mode} if mode not in (None, "default") else {}
    told |= {"options": options} if options else {}
    if not isinstance(backend, str):
        return functools.partial(backend, **told) if told else backend
    if backend in _registered:
        return functools.partial(_registered[backend], **told) if told else _registered[backend]
    if backend not in _BUILT_IN:
        raise ValueError(
            f"compile: expected backend to be one of {', '.join(list_backends())} or a function, "
            f"got {backend!r}"
        )
    home, name = _BUILT_IN[backend].split(":")
    try:
        module = importlib.import_module(home)
    except ModuleNotFoundError as e:
        if e.name != home:
            raise
        raise RuntimeError(
            f"compile: the back end {backend!r} is not part of this build; backend='eager' runs "
            "captured graphs without compiling them"
        ) from None
    found: Backend = getattr(module, name)
    if not told:
        return found
    if backend != "inductor":
        raise ValueError(f"compile: the back end {backend!r} has no options, got {told}")
    from flambeau import _inductor

    set_by_mode = _inductor.list_mode_options(mode) if mode else {}
    return functools.partial(found, options=_inductor.config.checked(options or set_by_mode))
