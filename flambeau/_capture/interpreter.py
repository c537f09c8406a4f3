"""The interpreter of bytecode: a `Frame` runs one code object over wrapped values.

Owns the loop, the stack, exceptions and suspension (generators). What an instruction means is in
`ops_*.py`, which fill `HANDLERS`; how objects behave is in `objects` and `calls`. An `Interpreter`
is one attempt to follow one root frame.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from flambeau import _C
from flambeau._ir.symbols import UnbackedError
from flambeau._trace.run_numbers import RunNumber

from . import opcodes
from .errors import Break, End, Raised, unset_variable
from .kinds import NULL, UNSET, in_library
from .opcodes import Instruction
from .shadow_state import ShadowState

Handler = Callable[["Frame", Instruction], int | None]
#: what a call means: (frame, function, arguments, keyword arguments) to the result
Call = Callable[["Frame", Any, list[Any], dict[str, Any]], Any]
HANDLERS: dict[str, Handler] = {}

_DEEPEST = 90  # frames; each takes several of CPython's
_LONGEST = 3_000_000  # instructions of one attempt: some seconds


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Files a function as the meaning of instructions."""

    def file(function: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = function
        return function

    return file


def _unknown(frame: Frame, i: Instruction) -> None:
    raise Break(f"the instruction {i.name} is not followed")


class Pending:
    """An argument of the root frame that nobody has read yet."""

    __slots__ = ("source", "value")

    def __init__(self, value: Any, source: Any) -> None:
        self.value, self.source = value, source


class Position:
    """A line of the user's program."""

    __slots__ = ("file", "function", "line")

    def __init__(self, file: str, line: int, function: str) -> None:
        self.file, self.line, self.function = file, line, function

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


class Interpreter:
    """One attempt: the shadow state it sees, the frames that run, the exception being handled."""

    def __init__(self, shadow_state: ShadowState, config: Any, call: Call) -> None:
        self.shadow_state, self.tensors, self.config = shadow_state, shadow_state.tensors, config
        self.call = call
        self.frames: list[Frame] = []
        self.handling: BaseException | None = None
        self.handled_at_end: BaseException | None = None  # where the graph ends
        self.work = 0  # instructions of all frames so far
        self.stop_at = -1  # how many there are before the graph is to end
        self.errors_on_break = False  # see `_dynamo.error_on_graph_break`
        self.said_compiling = False  # the program asked `is_compiling()`
        self.autocast_depth = 0  # contexts of autocast entered and not left
        self.entered_devices: list[Any] = []  # `with device:` not left: it, and the one before
        self._mistake: tuple[Exception, Any] | None = None

    def note_mistake(self, error: Exception) -> None:
        """Remembers the innermost line that an error of capture itself passed."""
        if self._mistake is None or self._mistake[0] is not error:
            self._mistake = error, self.where

    def mistake_at(self, error: Exception) -> Any:
        """The line of the program at which an error arose; None if it was outside any."""
        found = self._mistake
        return found[1] if found is not None and found[0] is error else None

    @property
    def where(self) -> Position | None:
        """The line of the user's program that runs; of a library, where there is nothing else."""
        if not self.frames:
            return None
        users = (f for f in reversed(self.frames) if not in_library(f.code.co_filename))
        frame = next(users, self.frames[-1])
        code = frame.code
        return Position(code.co_filename, frame.line, code.co_qualname)

    def direct(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs C code on the values as they are; what it raises is the program's exception."""
        return self._run(function, args, kwargs)

    def vouched(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Runs a function that the user allowed in graphs."""
        return self._run(function, args, kwargs, _freely)

    def _run(self, function: Any, args: Any, kwargs: Any, *how: Any) -> Any:
        try:
            return self.tensors.traced(function, args, kwargs, *how)
        except self.tensors.refusals as e:
            raise Break(str(e)) from None
        except RecursionError:
            raise Break("C code recurses too deeply") from None
        except Exception as e:
            if any(type(a) is RunNumber for a in (*args, *kwargs.values())):
                words = "a function that is not followed is given a number that only the run tells"
                raise Break(words, ends_whole=False) from None
            raise Raised(e) from None

    def throw(self, error: BaseException) -> Any:
        """Raises an exception in the program."""
        raise Raised(error)


class Frame:
    """A frame of the program that is followed."""

    def __init__(
        self,
        interpreter: Interpreter,
        code: types.CodeType,
        namespace: dict[str, Any],
        builtins: dict[str, Any],
        slots: list[Any],
        function: Any = None,
    ) -> None:
        self.interpreter, self.shadow_state = interpreter, interpreter.shadow_state
        self.code, self.globals, self.builtins = code, namespace, builtins
        self.function = function
        self.decoded = opcodes.decoded(code)
        self.slots = slots
        self.stack: list[Any] = []
        self.pc = 0
        self.keywords: tuple[str, ...] = ()
        self.result: Any = UNSET
        self.yielded: Any = UNSET
        self.is_root = False
        self.path: list[int] = []  # instructions that began here
        self.stamps: list[int] = []  # how many of all frames had begun before each of them
        #: the frame whose call gives what this one gives, and whether a call that a frame is about
        #: to make is such a one, see Note [Ends in callees]
        self.result_of: Frame | None = None
        self.hands_on = False

    # -- the stack ---------------------------------------------------------------------------------

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def resolve(self, value: Any) -> Any:
        """A value that is about to be used; arguments are guarded only then."""
        if type(value) is Pending:
            return self.shadow_state.wrap(value.value, value.source)
        return value

    def pop(self) -> Any:
        return self.resolve(self.stack.pop())

    def top(self) -> Any:
        value = self.stack[-1] = self.resolve(self.stack[-1])
        return value

    def at(self, n: int) -> Any:
        """The value n places down the stack, counted from 1."""
        value = self.stack[-n] = self.resolve(self.stack[-n])
        return value

    def pop_many(self, n: int) -> list[Any]:
        if not n:
            return []
        out = self.stack[-n:]
        del self.stack[-n:]
        return [self.resolve(v) for v in out] if self.is_root else out

    @property
    def instruction(self) -> Instruction:
        return self.decoded.instructions[self.pc - 1]

    @property
    def line(self) -> int:
        return self.instruction.line if self.pc else self.code.co_firstlineno

    # -- locals ------------------------------------------------------------------------------------

    def load(self, index: int) -> Any:
        value = self.slots[index]
        if value is UNSET:
            raise Raised(unset_variable(self.decoded.names[index], False))
        return value

    # -- running -----------------------------------------------------------------------------------

    def run(self) -> Any:
        """Runs to the end, or to the next yield; the result is what was returned or yielded."""
        interpreter = self.interpreter
        if len(interpreter.frames) > _DEEPEST:
            raise Break("calls are nested too deeply")
        interpreter.frames.append(self)
        instructions, stop_at = self.decoded.instructions, interpreter.stop_at
        passes, stamps = self.path.append, self.stamps.append
        handling = interpreter.handling
        try:
            while True:
                pc, work = self.pc, interpreter.work
                i = instructions[pc]
                if work == stop_at:
                    interpreter.handled_at_end = interpreter.handling
                    raise End
                passes(pc)
                stamps(work)
                self.pc = pc + 1
                interpreter.work = work + 1
                if work >= _LONGEST:
                    raise Break(f"a graph would follow more than {_LONGEST:,} instructions")
                try:
                    run = i.run
                    if run is None:
                        run = i.run = HANDLERS.get(i.name, _unknown)
                    jump = run(self, i)
                    if jump is not None:
                        if jump < 0:
                            break
                        self.pc = jump
                except Raised as raised:
                    self.unwind(i, raised)
        except Break as e:
            if e.where is None:
                e.where = interpreter.where
            e.frames.append(self)
            raise
        except End as e:
            e.frames.append(self)
            raise
        except UnbackedError as e:  # the program asks what only the run tells
            raise Break(str(e), interpreter.where) from None
        except Exception as e:
            interpreter.note_mistake(e)
            raise
        finally:
            interpreter.frames.pop()
            interpreter.handling = handling
        if self.yielded is not UNSET:
            value, self.yielded = self.yielded, UNSET
            return value
        return self.result

    def unwind(self, i: Instruction, raised: Raised) -> None:
        """Goes to the handler of an exception, or leaves the frame with it."""
        handler = self.decoded.handler(i.offset)
        if handler is None:
            raise raised
        error = raised.error
        handling = self.interpreter.handling
        if error.__context__ is None and handling is not None and handling is not error:
            error.__context__ = handling
        error.__traceback__ = None
        del self.stack[handler.depth :]
        if handler.lasti:
            self.push(i.offset // 2)
        self.push(error)
        self.pc = self.decoded.index[handler.target]

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A call on the way of something else."""
        self.hands_on = False
        return self.interpreter.call(self, function, args, kwargs)

    def call_here(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The call that the instruction is."""
        self.hands_on = True
        return self.interpreter.call(self, function, args, kwargs)


class Generator:
    """A generator of the program: a suspended frame, iterable by C code as well."""

    def __init__(self, frame: Frame) -> None:
        self._frame: Frame | None = frame
        self._name = frame.code.co_qualname
        self._started = False

    def __iter__(self) -> Generator:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """Resumes with the value of the yield; StopIteration at the end."""
        frame = self._frame
        if frame is None:
            raise StopIteration
        if self._started:
            frame.push(value)
        elif value is not None:
            raise TypeError("can't send non-None value to a just-started generator")
        self._started = True
        return self._resume(frame.run)

    def throw(self, error: Any, *rest: Any) -> Any:
        """Raises an exception where the generator stands."""
        if rest and rest[0] is not None:
            error = rest[0]
        if isinstance(error, type):
            error = error()
        frame = self._frame
        if frame is None or not self._started:
            self._frame = None
            raise Raised(error)
        following = frame.decoded.instructions[frame.pc]
        if following.name == "RESUME" and following.arg & 3 == 2:
            raise Break("an exception is thrown into a generator that delegates to another")

        def resume() -> Any:
            frame.unwind(frame.decoded.instructions[frame.pc - 1], Raised(error))
            return frame.run()

        return self._resume(resume)

    def close(self) -> None:
        """Raises GeneratorExit where it stands."""
        if self._frame is not None and self._started:
            try:
                self.throw(GeneratorExit())
            except Raised as raised:
                if not isinstance(raised.error, (GeneratorExit, StopIteration)):
                    raise
            except StopIteration:
                pass
            else:
                raise Raised(RuntimeError("generator ignored GeneratorExit"))
        self._frame = None

    def _resume(self, run: Callable[[], Any]) -> Any:
        frame = self._frame
        assert frame is not None
        strict = _C._set_strict(False)
        self._frame = None  # while it runs it cannot be entered again
        try:
            value = run()
        except Raised as raised:
            if isinstance(raised.error, StopIteration):
                error = RuntimeError("generator raised StopIteration")
                error.__cause__ = raised.error
                raise Raised(error) from None
            raise
        finally:
            _C._set_strict(strict)
        if frame.result is not UNSET:
            raise StopIteration(frame.result)
        self._frame = frame
        return value


class Followed:
    """A function of the program, given to C code: calling it is followed."""

    def __init__(self, frame: Frame, function: Any) -> None:
        self.frame, self.function = frame, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        strict = _C._set_strict(False)
        try:
            return self.frame.call(self.function, list(args), kwargs)
        finally:
            _C._set_strict(strict)


class TensorMethod:
    """A method of a fake, to be run by the tracer."""

    __slots__ = ("__name__", "bound")

    def __init__(self, bound: types.MethodType, name: str) -> None:
        self.bound, self.__name__ = bound, name

    @property
    def __self__(self) -> Any:
        return self.bound.__self__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.bound(*args, **kwargs)


__all__ = [
    "HANDLERS",
    "NULL",
    "Followed",
    "Frame",
    "Generator",
    "Interpreter",
    "Pending",
    "TensorMethod",
    "handles",
]


def _freely(function: Any, args: Any, kwargs: Any) -> Any:
    """A call in which any code may run: what the user vouches for."""
    strict = _C._set_strict(False)
    try:
        return function(*args, **kwargs)
    finally:
        _C._set_strict(strict)
