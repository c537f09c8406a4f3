"""Builds a program of `_wrapper_draw` with `compile` the identity and with the real one, calls
both, and compares values, dtypes, which results require gradients, gradients, classes of errors.

Invariant: each way has its own parameters, inputs and functions; nothing of one is seen by the
other. It is not told what the wrappers mean: eager is the measure.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import warnings
from typing import Any

import flambeau as torch
from flambeau.utils.checkpoint import checkpoint

_number = itertools.count()
#: what a compiled program may say, whatever eager does
REFUSALS = ("NotImplementedError",)
#: what a difference of roundings may come to, relative to the largest entry; with autocast, a
#: weight that is used twice is cast once in eager, and its gradients are added in bfloat16
ROUNDED, ROUNDED_HALF = 1e-5, 2e-2


class Way:
    """The program, built once."""

    def __init__(self, text: str, compiled: bool) -> None:
        self.configs: list[Any] = []
        self.file = f"<wrapper_program_{next(_number)}>"
        linecache.cache[self.file] = (len(text), None, text.splitlines(True), self.file)
        space: dict[str, Any] = {
            "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "functools": functools,
            "contextlib": contextlib, "checkpoint": checkpoint, "__name__": "wrapper_program",
        }  # fmt: skip
        exec(compile(text, self.file, "exec"), space)
        self.space = space
        self.calls = space["CALLS"]
        self.error = ""
        try:
            self.f, self.params = space["setup"](self.compile if compiled else lambda f, **_: f)
        except Exception as error:
            self.error = said(error)

    def compile(self, f: Any, **options: Any) -> Any:
        made = torch.compile(f, **options)
        self.configs.append(made._flambeau_config)
        made._flambeau_config.strict = True
        return made

    def call(self, k: int) -> tuple[str, list[Any]]:
        """An error, and what there is to compare: name, tensor or None, in order."""
        if self.error:
            return self.error, []
        mode, requires_grad, shape = self.calls[k]
        torch.manual_seed(k)
        x = torch.randn(shape, requires_grad=requires_grad)
        for p in self.params:
            p.grad = None
        seen: list[Any] = []
        try:
            with eval(mode, self.space):
                out = self.f(x)
            seen.append(("result", out))
            if out.requires_grad:
                out.float().square().sum().backward()
        except Exception as error:
            return said(error), seen
        grads = [x.grad, *(p.grad for p in self.params)]
        names = ("of x", "of w", "of W", "of lin.weight", "of lin.bias")
        seen += [(f"gradient {n}", g) for n, g in zip(names, grads, strict=True)]
        return "", seen

    def close(self) -> None:
        linecache.cache.pop(self.file, None)
        for config in self.configs:
            config.forget()


def said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def difference(name: str, got: Any, want: Any, rounded: float) -> str:
    """How two tensors differ, "" where they do not."""
    if got is None or want is None:
        words = ["is None" if v is None else "is a tensor" for v in (got, want)]
        return "" if got is want else f"{name} {words[0]}, eager's {words[1]}"
    facts = [
        (v.dtype, (*v.shape,), f"requires_grad={v.requires_grad}", f"inference={v.is_inference()}")
        for v in (got, want)
    ]
    if facts[0] != facts[1]:
        here, there = zip(*(p for p in zip(*facts, strict=True) if p[0] != p[1]), strict=True)
        return f"{name} has {', '.join(map(str, here))}, eager's {', '.join(map(str, there))}"
    want = want.detach().double()
    most = want.nan_to_num(0, 0, 0).abs().max().item() if want.numel() else 0.0
    close = torch.allclose(got.detach().double(), want, 0.0, rounded * most, equal_nan=True)
    return "" if close else f"{name} differs: {got.tolist()} for {want.tolist()}"


def failure(text: str) -> str:
    """How the program with `compile` differs from the one without: "" where it does not,
    "both: ..." where both raise, "refused: ..." where the compiled one says what it cannot do."""
    rounded = ROUNDED_HALF if "autocast" in text.partition("def setup")[2] else ROUNDED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, compiled = Way(text, False), Way(text, True)
        raised = ""
        try:
            for k in range(len(plain.calls)):
                want_error, want = plain.call(k)
                got_error, got = compiled.call(k)
                if got_error.startswith(REFUSALS):
                    return f"refused: {got_error}"
                if got_error.partition(":")[0] != want_error.partition(":")[0]:
                    return f"call {k}: {got_error or 'no error'}; eager: {want_error or 'no error'}"
                raised = raised or want_error
                for (name, a), (_, b) in zip(got, want, strict=False):
                    why = difference(name, a, b, rounded)
                    if why:
                        return f"call {k}: {why}"
        finally:
            plain.close()
            compiled.close()
    return f"both: {raised}" if raised else ""
