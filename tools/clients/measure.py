"""What is measured of a case: outputs, loss, gradients and the losses of five optimiser steps.

A tensor is kept as its shape, dtype, norm and two projections on fixed waves, so that a reference
is small and every entry counts. Runs under either library and must not know which; whatever differs
between them by design (devices, dispatch modes) is not used here, but for `mixed`, which is asked
of PyTorch alone.
"""

from __future__ import annotations

import math
import random
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from .registry import Case, Program

STEPS = 5
#: of Adam: gradients that are zero but for rounding must not move weights by whole steps
EPSILON = 1e-5


def seed(name: str) -> None:
    """Puts the global generators at the start of this case."""
    number = zlib.crc32(name.encode())
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number % 2**32)  # noqa: NPY002 (what packages draw from)


def leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The tensors and numbers inside of containers, with the way to each."""
    if depth > 6:
        return
    if isinstance(value, torch.Tensor | float | int | bool | complex | np.ndarray | np.number):
        yield path, value
    elif isinstance(value, dict) or hasattr(value, "items"):
        for key, entry in value.items():
            yield from leaves(entry, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, entry in enumerate(value):
            yield from leaves(entry, f"{path}.{index}", depth + 1)
    elif hasattr(value, "__dataclass_fields__"):
        for key in value.__dataclass_fields__:
            yield from leaves(getattr(value, key), f"{path}.{key}", depth + 1)


def summary(value: Any) -> list[Any]:
    """Shape, dtype, count of entries that are not finite, norm and two projections of a tensor."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        if tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        kind = str(tensor.dtype).rpartition(".")[2]
        if kind in ("bfloat16", "float16"):
            tensor = tensor.float()
        array = tensor.resolve_conj().resolve_neg().cpu().numpy()
    else:
        array = np.asarray(value)
        kind = "number"
    if array.dtype.kind == "c":
        array = np.stack((array.real, array.imag), -1)
    shape = list(array.shape)
    flat = array.astype(np.float64).ravel()
    finite = np.isfinite(flat)
    flat = np.where(finite, flat, 0.0)
    at = np.arange(flat.size)
    return [
        shape,
        kind,
        int(flat.size - finite.sum()),
        float(np.sqrt(np.square(flat).sum())),
        float((flat * np.cos(0.37 * at + 0.1)).sum()),
        float((flat * np.sin(1.3 * at + 0.2)).sum()),
    ]


def summaries(value: Any) -> dict[str, list[Any]]:
    return {path: summary(entry) for path, entry in leaves(value)}


def default_loss(outputs: Any) -> Any:
    """The model's own loss where it has one, else a fixed projection of its floating outputs."""
    own = getattr(outputs, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    total: Any = None
    for _, entry in leaves(outputs):
        if not isinstance(entry, torch.Tensor) or not entry.requires_grad:
            continue
        part = torch.view_as_real(entry) if entry.is_complex() else entry
        flat = part.reshape(-1)
        wave = torch.cos(torch.arange(flat.numel(), dtype=torch.float64) * 0.37).to(flat.dtype)
        term = (flat * wave).mean() + (flat * flat).mean()
        total = term if total is None else total + term
    if total is None:
        raise ValueError("case: expected an output that requires grad")
    return total


class Run:
    """A case, built: what is called, what is trained, and the name of each of those."""

    def __init__(
        self, case: Case, nudge: float = 0.0, wave: float = 0.9, dtype: str | None = None
    ) -> None:
        self.case = case
        seed(case.name)
        program: Program = case.build()
        self.program = program
        call = program.call
        if isinstance(call, torch.nn.Module):
            if (dtype or case.dtype) == "float64":
                call.double()
            named = dict(call.named_parameters())
        elif program.parameters is not None:
            named = {str(index): entry for index, entry in enumerate(program.parameters)}
        else:
            named = {
                path: entry
                for path, entry in leaves(program.args)
                if isinstance(entry, torch.Tensor)
                and entry.is_floating_point()
                and entry.requires_grad
            }
        self.named = {name: entry for name, entry in named.items() if entry.requires_grad}
        self.modules = [call] if isinstance(call, torch.nn.Module) else []
        if nudge:
            with torch.no_grad():
                for entry in self.named.values():
                    signs = torch.cos(torch.arange(entry.numel()) * wave).to(entry.dtype)
                    entry.mul_(1 + nudge * signs.reshape(entry.shape))

    def state(self) -> list[float]:
        """What all weights and inputs are before the run, in four numbers."""
        states = [module.state_dict() for module in self.modules]
        trained = {key: value.detach() for key, value in self.named.items()}
        found = [
            summary(entry)
            for _, entry in leaves((states, trained, self.program.args, self.program.kwargs))
            if isinstance(entry, torch.Tensor)
        ]
        return [float(len(found)), *(sum(entry[at] for entry in found) for at in (3, 4, 5))]

    def outputs(self, call: Any) -> Any:
        return call(*self.program.args, **self.program.kwargs)

    def loss(self, outputs: Any) -> Any:
        return (self.program.loss or default_loss)(outputs)

    def inference(self, call: Any) -> Callable[[], Any]:
        """One call without gradients, in evaluation."""
        for module in self.modules:
            module.eval()

        def infer() -> Any:
            with torch.no_grad():
                return self.outputs(call)

        return infer

    def training(self, call: Any, after: Callable[[], None] = lambda: None) -> Callable[[], Any]:
        """One step of training that returns its loss; `after` sees the gradients."""
        for module in self.modules:
            module.train()
        trained = list(self.named.values())
        kind = zlib.crc32(self.case.name.encode()) % 3
        optimizer: Any = (
            torch.optim.Adam(trained, lr=1e-3, eps=EPSILON)
            if kind == 0
            else torch.optim.SGD(trained, lr=1e-2, momentum=0.9)
            if kind == 1
            else torch.optim.AdamW(trained, lr=1e-3, eps=EPSILON)
        )

        def step() -> float:
            optimizer.zero_grad()
            loss = self.loss(self.outputs(call))
            loss.backward()
            after()
            optimizer.step()
            return float(loss.detach())

        return step

    def infer(self, call: Any) -> dict[str, list[Any]]:
        seed(self.case.name)
        found = self.inference(call)()
        return summaries((self.program.outputs or (lambda same: same))(found))

    def train(self, call: Any) -> dict[str, Any]:
        """The first loss, its gradients, the losses of the steps and the weights after them."""
        seed(self.case.name)
        grads: dict[str, list[Any]] = {}

        def keep() -> None:
            if not grads:
                for name, entry in self.named.items():
                    if entry.grad is not None:
                        grads[name] = summary(entry.grad)

        step = self.training(call, keep)
        losses = [step() for _ in range(STEPS)]
        after = math.sqrt(sum(summary(entry)[3] ** 2 for entry in self.named.values()))
        return {"grads": grads, "losses": losses, "weights": after}


def measure(
    case: Case, *, compiled: bool = False, nudge: float = 0.0, wave: float = 0.9
) -> dict[str, Any]:
    """Numbers of a case by section; a section that raised is under `errors` with its traceback."""
    torch.set_default_dtype(getattr(torch, case.dtype))
    record: dict[str, Any] = {"errors": {}}
    sections = ["infer", "train"] if case.train else ["infer"]
    for section in sections:
        try:
            run = Run(case, nudge, wave)
            if section == "infer":
                record["state"] = run.state()
            call = run.program.call
            if compiled:
                torch.compiler.reset()
                call = torch.compile(call)
            record[section] = getattr(run, section)(call)
        except Exception as error:  # whatever a client raises is a result of the run
            lines = traceback.format_exception(error)
            record["errors"][section] = "".join(lines)[-6000:]
    return record


def graph_breaks(case: Case) -> dict[str, Any]:
    """How many breaks capture meets in a call without gradients and in a step, with the reasons."""
    from torch._dynamo.utils import counters

    torch.set_default_dtype(getattr(torch, case.dtype))
    record: dict[str, Any] = {"errors": {}}
    for section in ["infer", "train"] if case.train else ["infer"]:
        try:
            run = Run(case)
            torch.compiler.reset()
            counters.clear()
            seed(case.name)
            call = torch.compile(run.program.call, backend="eager")
            if section == "infer":
                run.inference(call)()
            else:
                run.loss(run.outputs(call)).backward()
            found = Counter[str]()
            for why, n in counters["graph_break"].items():
                found[str(why)[:200]] += n  # what follows tells places apart, not reasons
            record[section] = dict(found)
        except Exception as error:  # whatever a client raises is a result of the run
            record["errors"][section] = "".join(traceback.format_exception(error))[-6000:]
    return record


def rounds_to_single(case: Case) -> bool:
    """Whether a float64 case makes tensors of fewer digits on its way. Asked of PyTorch alone."""
    from torch.utils._python_dispatch import TorchDispatchMode

    small = (torch.float32, torch.float16, torch.bfloat16, torch.complex64)

    class Watch(TorchDispatchMode):
        found = False

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = function(*args, **(kwargs or {}))
            for _, entry in leaves(result):
                if isinstance(entry, torch.Tensor) and entry.dtype in small:
                    self.found = True
            return result

    torch.set_default_dtype(getattr(torch, case.dtype))
    with Watch() as watch:
        run = Run(case)
        run.outputs(run.program.call)
    return watch.found
