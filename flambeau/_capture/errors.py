"""The ways in which following a frame may end early. All derive from BaseException, so that
`except Exception` in code that is being followed or called never sees them."""

from __future__ import annotations

from typing import Any


class Break(BaseException):
    """Here the graph must end: `reason` says why, in words for the user.

    `ends_whole`: `fullgraph=True` refuses it. It allows a second graph for what is made by the size
    of a number that the first one computes.
    """

    def __init__(self, reason: str = "", where: Any = None, ends_whole: bool = True) -> None:
        super().__init__(reason)
        self.reason, self.where, self.ends_whole = reason, where, ends_whole
        self.frames: list[Any] = []  # that it passed, the innermost first
        self.in_loop = False  # of the frame where the graph ends: it does so before that


class End(BaseException):
    """The instruction has come before which this attempt was told to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[Any] = []  # that it passed, the innermost first


class Again(BaseException):
    """The attempt begins again: reading something changed it, as a module that loads what it is
    asked for; or `checks` is false, and branches are not to be taken on trust any more."""

    def __init__(self, checks: bool = True) -> None:
        super().__init__()
        self.checks = checks


class Skip(BaseException):
    """The frame is left to CPython as a whole.

    `depth`: how many frames down the one is that the graph cannot end in; a shallower one may do.
    """

    def __init__(self, reason: str, where: Any = None, depth: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.where, self.depth = reason, where, depth


class Raised(BaseException):
    """An exception of the user's program, on its way through interpreted frames."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def unset_variable(name: str, free: bool) -> NameError:
    """What reading a variable of a function that is not set raises.

    Args:
        name: the variable.
        free: whether it belongs to an enclosing function.
    """
    words = f"variable '{name}' where it is not associated with a value"
    if free:
        return NameError(f"cannot access free {words} in enclosing scope", name=name)
    return UnboundLocalError(f"cannot access local {words}")


class Unsupported(RuntimeError):
    """`compile(fullgraph=True)` met something that ends a graph."""


class ConstraintViolationError(RuntimeError):
    """A dim that `mark_dynamic` names has one size only, by what the program does with it."""


class RecompileError(RuntimeError):
    """A function would be compiled again, and `_dynamo.config.error_on_recompile` is set."""


class FailOnRecompileLimitHit(RuntimeError):
    """The limit is reached, and `_dynamo.config.fail_on_recompile_limit_hit` is set."""


class BackendCompilerFailed(RuntimeError):
    """A back end raised while it compiled a graph; what it raised is the cause.

    Attributes:
        backend_name: the name of the back end.
        inner_exception: what it raised.
    """

    def __init__(self, backend_name: str, inner: Exception, graph: str) -> None:
        super().__init__(
            f"compile: backend={backend_name!r} raised on {graph}:\n"
            f"{type(inner).__name__}: {inner}\n"
            "(flambeau._dynamo.config.suppress_errors = True runs such frames in plain Python)"
        )
        self.backend_name, self.inner_exception = backend_name, inner


class CaptureFailed(Exception):
    """Following a frame met a mistake of capture itself, which is the cause. Never seen by users,
    but for fullgraph, where it is the cause of `Unsupported`."""

    def __init__(self, where: Any) -> None:
        super().__init__(f"capture failed at {where}")
        self.where = where
