"""Capture of one frame: follows it, restarts where the graph has to end, and makes the entry that
the hook will run. Owns the order of attempts; knows no instruction.

A graph that must end before step n of the root frame is found by trying: the attempt that meets the
obstacle is thrown away with all it changed, the next one stops before that step.
"""

from __future__ import annotations

import functools
import threading
import types
import warnings
from dataclasses import dataclass, field
from typing import Any

import flambeau
from flambeau import _C
from flambeau._dynamo import config as dynamo
from flambeau._ir.enumerations import CheckKind
from flambeau._ir.logs import log

from . import (
    builtin_calls,
    calls,
    copying,
    inlined,
    kinds,
    library_calls,
    modules,
    opcodes,
    operators,
    ops_control,
    ops_stack,
    resume,
)
from .entry import Entry
from .errors import (
    Again,
    BackendCompilerFailed,
    Break,
    CaptureFailed,
    ConstraintViolationError,
    End,
    Raised,
    Skip,
    Unsupported,
)
from .interpreter import Frame, Interpreter, Pending, Position
from .kinds import UNSET
from .shadow_state import ShadowState
from .sources import Sources
from .tensors import Tensors

_lock = threading.RLock()
# They fill the tables of handlers.
_LOADED = (builtin_calls, copying, library_calls, modules, operators, ops_control, ops_stack)


# Note [Ends in callees]
# A break in a function that is followed inside others ends the graph in that function: it goes on
# by a step, and so does each function around it, with what the one inside gives as the result of
# its call. So the others are not followed again up to the same place, as they would be if the graph
# ended before the outermost call, and what they did before is in one graph. That takes calls whose
# result is the inner frame's (`Frame.result_of`: a function, a method, a module; not a class, not a
# key function of `sorted`), none of them in a loop, and frames whose state can be built. Else the
# graph ends less deep, in the last resort in the frame that was to be compiled.

#: how many calls down from the frame that is compiled a graph may end
_DEEPEST_END = 64
#: one is to find the end, one to compile up to there; each module that loads itself costs one more
_MOST_TRIES = 64


@dataclass
class Captured:
    """One compiled part of a frame, as `explain` shows it."""

    name: str
    graph: Any
    guards: list[str]
    symbols: list[str]
    reason: str | None  # why it ended; None: at the end of the frame
    where: Position | None
    because: str | None = None  # which guard failed, for a recompile
    text: str = field(default="", repr=False)

    @property
    def nodes(self) -> int:
        return 0 if self.graph is None else len(self.graph.nodes)


def capture(
    config: Any,
    code: types.CodeType,
    function: Any,
    namespace: dict[str, Any],
    values: tuple[Any, ...],
) -> tuple[Any, Any] | None:
    """What the hook asks for on a miss: (guards, callable), or None to run the frame plainly."""
    if kinds.never_captured(code):
        _C._skip_code(code)
        return None
    if kinds.importing():
        return None
    with _lock:
        because = _why_again(config, code, function, namespace, values)
        if because is not None and not config.may_recompile(code, because):
            return None
        state = _State()
        try:
            return _capture(config, code, function, namespace, values, because)
        except (ConstraintViolationError, Unsupported):
            raise
        except Skip as skip:
            _left(config, code, skip.reason, skip.where)
        except BackendCompilerFailed as error:
            if not dynamo.suppress_errors:
                raise
            _left(config, code, str(error), None)
        except CaptureFailed as error:
            _gave_up(config, code, error)
        finally:
            state.restore()
    return None


def _gave_up(config: Any, code: types.CodeType, error: CaptureFailed) -> None:
    """A mistake of capture itself costs speed, never the user's program; but it is told."""
    cause, at = error.__cause__, error.where
    if config.strict:
        assert cause is not None
        raise cause
    reason = f"capture failed, which is a mistake of the compiler: {type(cause).__name__}: {cause}"
    if config.fullgraph:
        raise Unsupported(f"compile(fullgraph=True): {reason}\n  at {at}") from cause
    _left(config, code, reason, at)
    message = f"compile: {code.co_qualname} runs in plain Python: {reason} ({at})"
    warnings.warn_explicit(message, RuntimeWarning, at.file, at.line)


def _left(config: Any, code: types.CodeType, reason: str, where: Any) -> None:
    """The frame runs in plain Python from now on, and that is reported."""
    at = where or _origin(code)
    if config.fullgraph:
        raise Unsupported(f"compile(fullgraph=True): {reason}\n  at {at}") from None
    log("graph_breaks", f"{code.co_qualname} runs in plain Python: {reason} ({at})")
    config.report(Captured(code.co_qualname, None, [], [], reason, at))
    config.leave(code)


def _origin(code: types.CodeType) -> Position:
    return Position(code.co_filename, code.co_firstlineno, code.co_qualname)


def _autocast_decrement() -> None:
    if flambeau.autocast_decrement_nesting() == 0:
        flambeau.clear_autocast_cache()


def _place_in(frame: Frame, broken: Break) -> int:
    """Where on its way through a frame the graph would end: before the instruction that failed, or
    the comprehension that it is in; before a loop around it, so that what leads to the loop is
    compiled."""
    path, decoded = frame.path, frame.decoded
    step = len(path) - 1
    whole = inlined.comprehension(decoded, path[step])
    while whole is not None and step and path[step] != whole.first:
        step -= 1
    broken.in_loop = decoded.in_loop(path[step])
    while step and decoded.in_loop(path[step]):
        step -= 1
        while step and not decoded.in_loop(path[step]) and _reads_local(decoded, path[step]):
            step -= 1
    return step or len(path) - 1


def _reads_local(decoded: Any, at: int) -> bool:
    return decoded.instructions[at].name in ("LOAD_FAST", "LOAD_CLOSURE")


class _State:
    """The modes that following a program changes while it lasts."""

    def __init__(self) -> None:
        self.grad = flambeau.is_grad_enabled()
        self.inference = flambeau.is_inference_mode_enabled()
        self.autocast = (
            flambeau.is_autocast_enabled("cpu"),
            flambeau.get_autocast_dtype("cpu"),
            flambeau.is_autocast_cache_enabled(),
        )
        self.device = flambeau.get_default_device()
        self.attention = _C._attention_backends()

    def current(self) -> tuple[Any, ...]:
        return (
            flambeau.is_grad_enabled(),
            flambeau.is_autocast_enabled("cpu"),
            flambeau.get_autocast_dtype("cpu"),
            flambeau.is_autocast_cache_enabled(),
        )

    def restore(self) -> None:
        if flambeau.is_inference_mode_enabled() != self.inference:
            flambeau.inference_mode(self.inference).__enter__()
        _C._set_grad_enabled(self.grad)
        flambeau.set_autocast_enabled("cpu", self.autocast[0])
        flambeau.set_autocast_dtype("cpu", self.autocast[1])
        flambeau.set_autocast_cache_enabled(self.autocast[2])
        flambeau.set_default_device(self.device)
        _C._set_attention_backends(self.attention)


def _why_again(
    config: Any, code: types.CodeType, function: Any, namespace: Any, values: Any
) -> str | None:
    """Which guard of what was compiled before failed; None the first time."""
    locals_ = tuple(None if v is NotImplemented else v for v in values)
    reasons: dict[str, None] = {}
    for owner, guards, _ in _C._code_entries(code):
        if owner is config:
            failed = guards.run(function, namespace, locals_)
            reasons[failed if isinstance(failed, str) else "a guard that changed meanwhile"] = None
    return "; ".join(reasons) or None


def _capture(
    config: Any,
    code: types.CodeType,
    function: Any,
    namespace: dict[str, Any],
    values: tuple[Any, ...],
    because: str | None,
) -> tuple[Any, Any] | None:
    stop_at, broken, stand_ins, deepest = -1, None, True, _DEEPEST_END
    checks = config.takes_on_trust(code)
    state = _State()
    for _ in range(_MOST_TRIES):
        attempt = Attempt(config, code, function, namespace, values, stop_at)
        attempt.tensors.recorder.may_stand_in = stand_ins
        attempt.tensors.may_check = checks
        try:
            return attempt.run(broken, because)
        except Again as again:
            stop_at, broken, checks = -1, None, checks and again.checks
        except Break as b:
            if attempt.tensors.recorder.stand_ins_seen:
                stand_ins = False  # see Note [Views at traced places]
                continue
            whole = config.fullgraph or attempt.interpreter.errors_on_break
            if whole and b.ends_whole and (b.reason or broken is None):
                at = b.where or attempt.interpreter.where or _origin(code)
                by = "compile(fullgraph=True)" if config.fullgraph else "error_on_graph_break"
                raise Unsupported(f"{by}: {b.reason}\n  at {at}") from None
            broken = Break(b.reason, b.where)  # b itself refers to all frames that it passed
            stop_at = attempt.last_place(broken, b.frames, deepest)
        except Skip as skip:
            if not skip.depth:
                raise
            stop_at, broken, deepest = -1, None, skip.depth - 1
        except (BackendCompilerFailed, ConstraintViolationError, Unsupported):
            raise
        except RecursionError:  # of a program without end, or of values nested too deeply
            raise Skip("following it takes more of the stack than there is") from None
        except Exception as error:
            at = attempt.interpreter.mistake_at(error) or _origin(code)
            raise CaptureFailed(at) from error
        finally:
            state.restore()
            attempt.clear()
    raise Skip("the frame does not behave the same each time it is followed")


class Attempt:
    """One try at following a frame, up to its end or until `stop_at` instructions have run."""

    def __init__(
        self,
        config: Any,
        code: types.CodeType,
        function: Any,
        namespace: dict[str, Any],
        values: tuple[Any, ...],
        stop_at: int,
    ) -> None:
        if config.fullgraph:
            from . import gradients  # noqa: F401  as above; nothing else asks for its meanings
        builtin_calls.notice_modules()
        self.config, self.code, self.namespace = config, code, namespace
        self.sources = Sources()
        self.tensors = Tensors(self.sources, config.dynamic_shapes(code))
        self.shadow_state = ShadowState(self.sources, self.tensors)
        self.shadow_state.home = namespace
        self.interpreter = Interpreter(self.shadow_state, config, calls.call)
        self.interpreter.stop_at = stop_at
        self.tensors.interpreter = self.interpreter
        self.tensors.recorder.takes_unbacked = bool(config.fullgraph)
        self.state = _State()
        self.frame = self._frame(function, values)

    def _frame(self, function: Any, values: tuple[Any, ...]) -> Frame:
        code, names = self.code, opcodes.decoded(self.code).names
        slots: list[Any] = [
            UNSET if v is NotImplemented else Pending(v, self.sources.local(k, names[k]))
            for k, v in enumerate(values)
        ]
        free = code.co_freevars
        for k, (name, cell) in enumerate(zip(free, function.__closure__ or (), strict=True)):
            source = self.sources.closure(k, name)
            slots[len(slots) - len(free) + k] = self.shadow_state.outside_cell(cell, source)
        found = self.namespace.get("__builtins__", __builtins__)
        builtins = found if isinstance(found, dict) else found.__dict__
        frame = Frame(self.interpreter, code, self.namespace, builtins, slots, function)
        frame.is_root = True
        return frame

    def run(self, broken: Break | None, because: str | None) -> tuple[Any, Any] | None:
        frame = self.frame
        entry = Entry(self.shadow_state)
        reason: str | None
        try:
            result = frame.run()
        except Raised as raised:
            words = f"{type(raised.error).__name__}: {raised.error}"
            if self.interpreter.said_compiling:  # plain Python takes the other branch, and may pass
                raise Skip(f"after `is_compiling()` was True: {words}") from None
            raise Break(words) from None
        except End as end:
            assert broken is not None
            text = self._go_on(entry, broken, end.frames[::-1])
            reason, where = broken.reason, broken.where
        else:
            if broken is not None:
                raise Skip("the frame does not behave the same each time it is followed")
            reason, where = None, None
            text = entry.value(result)
            if not self.tensors.inputs and not self.tensors.graph.nodes:
                if not self.config.is_root(self.code):
                    self.config.leave(self.code)  # nothing to compile
                    return None
        self._mode_effects(entry)
        entry.side_effects()
        return self._finish(entry, text, reason, where, because)

    def _go_on(self, entry: Entry, broken: Break, frames: list[Frame]) -> str:
        """The call of the step that runs the instruction before which the graph ended, in the
        innermost of these frames; what it gives is what the calls give that the others make."""
        steps: list[tuple[types.FunctionType, str]] = []
        for depth, frame in enumerate(frames):
            try:
                steps.append(self._step(entry, broken, frame, frame is not frames[-1]))
            except Skip as skip:
                words = f"{broken.reason}; a graph cannot end here: {skip.reason}"
                raise Skip(words, broken.where, depth) from None
        function, values = steps.pop()
        text = f"{entry.constant(function)}({values})"
        while steps:
            partial = entry.constant(functools.partial)
            text = f"{partial}({entry.constant(function)}, {values})"
            function, outer = steps.pop()
            values = f"{outer}None, {text}, "
            text = f"{entry.constant(function)}({values})"
        return text

    def _step(
        self, entry: Entry, broken: Break, frame: Frame, calls: bool
    ) -> tuple[types.FunctionType, str]:
        """How a frame goes on, and the state that it does so from.

        Args:
            calls: it is in a call, whose result the frame inside of it gives.
        """
        code, at = frame.code, frame.pc - calls
        if broken.in_loop and not self.tensors.graph.nodes:
            raise Skip("inside a loop")
        first = next(n for n, i in enumerate(frame.decoded.instructions) if i.name == "RESUME")
        self._check_place(frame, at, first)
        live = resume.live_slots(code, at)
        frame.slots = [v if k in live else UNSET for k, v in enumerate(frame.slots)]
        depth = len(frame.stack)
        nulls = {k for k, v in enumerate(frame.stack) if v is kinds.NULL}
        if calls:
            nulls.add(depth)
        state = resume.State(
            depth + 2 * calls,
            frozenset(nulls),
            frozenset(k for k, v in enumerate(frame.slots) if v is UNSET),
        )
        make = resume.step_over if calls else resume.step
        function = make(code, frame.globals, at, state)
        return function, entry.values((*frame.slots, *frame.stack))

    def _check_place(self, frame: Frame, at: int, first: int) -> None:
        """Raises Skip where a graph cannot end."""
        if at <= first:
            raise Skip("the frame has not begun")
        if _reads_local(frame.decoded, at):
            raise Skip("a local cannot be followed")
        if frame.decoded.in_loop(at):
            raise Skip("inside a loop")
        if self.interpreter.handled_at_end is not None:
            raise Skip("an exception is being handled")
        if resume.uses_super(frame.code, at) or any(v is super for v in frame.stack):
            raise Skip("super() is used after it")

    def last_place(self, broken: Break, frames: list[Frame], deepest: int) -> int:
        """The instruction before which the graph is to end, as how many run before it: see Note
        [Ends in callees]."""
        inwards = frames[::-1] or [self.frame]
        for frame, inner in zip(inwards, [*inwards[1 : deepest + 1], None], strict=False):
            step = _place_in(frame, broken)
            whole = step == len(frame.path) - 1
            if inner is None or inner.result_of is not frame or not whole:
                return frame.stamps[step]
        raise AssertionError

    def _mode_effects(self, entry: Entry) -> None:
        now, before = self.state.current(), self.state
        if flambeau.is_inference_mode_enabled() != before.inference:
            entered = entry.constant(flambeau.inference_mode(not before.inference))
            entry.effects += [f"{entered}.clone().__enter__()", f"set_grad({now[0]})"]
        if now[0] != before.grad:
            entry.effects.append(f"set_grad({now[0]})")
        for value, was, setter in zip(
            now[1:],
            before.autocast,
            ("set_autocast_enabled", "set_autocast_dtype", "set_autocast_cache_enabled"),
            strict=True,
        ):
            if value != was:
                function = entry.constant(getattr(flambeau, setter))
                device = "" if "cache" in setter else "'cpu', "
                entry.effects.append(f"{function}({device}{entry.value(value)})")
        attention = _C._attention_backends()
        if attention != before.attention:
            function = entry.constant(_C._set_attention_backends)
            entry.effects.append(f"{function}({attention})")
        devices = self.interpreter.entered_devices
        entry.effects += [f"{entry.constant(d)}.__enter__()" for d, _ in devices]
        nested = self.interpreter.autocast_depth
        count = flambeau.autocast_increment_nesting if nested > 0 else _autocast_decrement
        entry.effects += [f"{entry.constant(count)}()"] * abs(nested)

    def _finish(
        self, entry: Entry, text: str, reason: str | None, where: Any, because: str | None
    ) -> tuple[Any, Any]:
        tensors = self.tensors
        tensors.check_marks()
        if tensors.failed is not None:
            if not tensors.may_run_again():
                raise Again(checks=False)
            trust = self.config.trust(self.code)
            self.sources.globals().check(CheckKind.Truth, trust, "checks hold as a rule")
            entry.check(tensors.failed, trust.note, tensors.draws())
        graph = tensors.finish(entry.outputs)
        compiled = None
        if graph.nodes or entry.outputs:
            examples = [v for _, v in tensors.inputs]
            self.state.restore()
            flambeau.set_autocast_enabled("cpu", False)  # the graph holds its casts
            flambeau.set_default_device("cpu")  # and its devices
            names = [source.name for source, _ in tensors.inputs]
            compiled = self.config.compile(graph, examples, _origin(self.code), names)
        symbols, relations = tensors.relations()
        self.sources.globals().check(CheckKind.Identity, self.namespace, "globals() is the same")
        self.state.restore()  # the modes of the call are guarded, not those of its end
        guards = _C._Guards(self.sources.spec(symbols, relations))
        around = self._around(entry, graph)
        callable_ = entry.function(text, compiled, len(self.sources.slots), around)
        self.config.report(
            Captured(
                self.code.co_qualname,
                graph,
                self.sources.texts() + [r[2] for r in relations] + tensors.checks,
                tensors.symbol_texts(),
                reason,
                where,
                because,
                entry.text,
            )
        )
        return guards, callable_

    def _around(self, entry: Entry, graph: Any) -> list[tuple[str, str]]:
        """What is switched before the graph and back after it, in the modes of the call.

        Each node knows whether it records and where it puts what it makes, and casts are nodes:
        the graph runs with gradients on where one records, with autocast off, and on the CPU.
        """
        out: list[tuple[str, str]] = []
        start = self.state
        if not start.grad and any(n.grad for n in graph.nodes):
            if start.inference:
                mode = entry.constant(flambeau.inference_mode(False))
                out.append((f"{mode}.__enter__()", f"{mode}.__exit__(None, None, None)"))
            out.append(("set_grad(True)", "set_grad(False)"))
        if start.autocast[0]:
            setter = entry.constant(flambeau.set_autocast_enabled)
            out.append((f"{setter}('cpu', False)", f"{setter}('cpu', True)"))
        if start.device.type != "cpu":
            setter, device = (entry.constant(v) for v in (_C.set_default_device, start.device))
            out.append((f"{setter}('cpu')", f"{setter}({device})"))
        return out

    def clear(self) -> None:
        """Releases references to user objects, which would outlive the frames in a cycle."""
        self.frame.slots, self.frame.stack = [], []
        self.sources.clear()
        self.shadow_state.clear()
        self.tensors.clear()
