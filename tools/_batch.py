"""Many graphs, one call of the C++ compiler: what makes checking thousands of programs feasible.

Inside of `Batch`, libraries that the compiler stack asks for are promised: their texts wait until
the first program that needs one runs, and are then compiled together. Texts keep their contents;
what each exports gets a number behind its name.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

from flambeau._compiler import assemble, toolchain

_ATTRIBUTE = r'(?:\s+__attribute__\(\(visibility\("default"\)\)\))?'
_EXPORTED = re.compile(rf'extern "C"{_ATTRIBUTE}\s+[\w\s*]*?(\w+)\s*\(')


class Promised:
    """A library of a batch, which is made when a function of it is asked for."""

    def __init__(self, batch: Batch, number: int) -> None:
        self._batch, self._number = batch, number

    def result(self) -> Promised:
        """What waiting for the library gives, which is not made yet."""
        return self

    def function(self, name: str) -> Any:
        return self._batch.function(self._number, name)


class Batch:
    """Collects translation units while it is entered; programs run inside of it or later.

    >>> with Batch() as batch:
    ...     f = torch.compile(torch.sin)
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.failed = False
        self._library: Any = None
        self._load: Callable[[str], Any] = toolchain.load
        self._begin: Any = toolchain.begin
        self._assemble: Callable[..., Any] = assemble.assemble

    def __enter__(self) -> Batch:
        toolchain.begin = self.promise
        assemble.assemble = self.assemble
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        toolchain.begin = self._begin
        assemble.assemble = self._assemble

    def promise(self, text: str) -> Any:
        """Stands for `toolchain.begin`."""
        if self._library is not None or self.failed:  # what comes late is compiled alone
            return self._begin(text)
        self.texts.append(text)
        return Promised(self, len(self.texts) - 1)

    def assemble(self, spec: Any, library: Any, attached: Any = ()) -> Any:
        """Stands for `assemble`: the program is put together when it is called first."""
        if not isinstance(library, Promised):
            return self._assemble(spec, library, attached)
        made: list[Any] = []

        def run(*inputs: Any) -> Any:
            if not made:
                made.append(self._assemble(spec, library, attached))
            return made[0](*inputs)

        return run

    def function(self, number: int, name: str) -> Any:
        """A function of a unit; when the whole does not compile, each unit is compiled alone."""
        if self._library is None and not self.failed:
            try:
                self._library = self._load(self.source())
            except (toolchain.CompilerError, OSError) as e:
                self.failed = True
                warnings.warn(f"a batch did not compile: {str(e)[:2000]}", stacklevel=2)
        if self._library is None:
            return self._load(self.texts[number]).function(name)
        return self._library.function(f"{name}_{number}")

    def source(self) -> str:
        """All texts as one: includes once, every text in a namespace of its own."""
        includes: dict[str, None] = {}
        parts: list[str] = []
        for k, text in enumerate(self.texts):
            lines = text.splitlines()
            includes |= dict.fromkeys(x for x in lines if x.startswith("#include"))
            rest = [x for x in lines if not x.startswith("#include")]
            names = sorted(set(_EXPORTED.findall(text)))
            parts += [f"#define {n} {n}_{k}" for n in names]
            parts += [f"namespace unit{k} {{", *rest, f"}}  // namespace unit{k}"]
            parts += [f"#undef {n}" for n in names]
        return "\n".join([*includes, *parts]) + "\n"
