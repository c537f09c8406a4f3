"""The objects in the stored files of PyTorch, made with either library.

Owns one function per file, which takes the library: PyTorch wrote the files by it
(`tools/pytorch_files.py store`), and the tests build what should come back by it.
"""

import argparse
import datetime
import pathlib
from collections import Counter, OrderedDict, defaultdict

import numpy as np

DTYPES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128"
).split()
LEGACY = ("views", "containers", "scalars", "parameters", "optimizer_sgd", "dtypes_old")
OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {"lr": 0.1}, "AdamW": {"lr": 0.1},
    "NAdam": {}, "RAdam": {}, "Adamax": {}, "Adagrad": {}, "Adadelta": {}, "RMSprop": {},
    "ASGD": {}, "Rprop": {},
}  # fmt: skip


def dtypes(torch):
    numbers = torch.arange(6).reshape(2, 3)
    return {name: (numbers % 2).to(getattr(torch, name)) for name in DTYPES}


def dtypes_old(torch):
    return {k: v for k, v in dtypes(torch).items() if not k.startswith("uint") or k == "uint8"}


def views(torch):
    base = torch.arange(24.0).reshape(4, 6)
    return OrderedDict(
        base=base, t=base.t(), part=base[1:, ::2], one=base[2, 3], none=base[:, :0],
        wide=base[0, :1].expand(5, 1), again=base, empty=torch.empty(2, 0, 3),
    )  # fmt: skip


def containers(torch):
    inner, shared = [1], torch.ones(2)
    inner.append(inner)
    state = OrderedDict(w=shared)
    state._metadata = OrderedDict({"": {"version": 1}})
    return {
        "z": 1, "a": (1, (2, [3, {"k": None}])), "cycle": inner, "set": {1, "a"},
        "frozen": frozenset({(1, 2)}), "count": Counter("abca"), "lists": defaultdict(list, a=[1]),
        "state": state, "same": [shared, shared], "range": range(1, 9, 2), "slice": slice(1, None),
    }  # fmt: skip


def scalars(torch):
    return [
        None, True, 0, -1, 255, 65536, 2**40, -(2**70), 10**60, 1.5, float("inf"), 1 + 2j, "",
        "ü\n",
        b"", b"ab\xff", bytearray(b"x"), torch.Size([2, 3]), torch.device("cpu"), torch.float16,
    ]  # fmt: skip


def parameters(torch):
    noted = torch.ones(2)
    noted.note = "kept"
    marked = torch.nn.Parameter(torch.ones(2))
    marked.rank = 3
    return [
        torch.nn.Parameter(torch.ones(2)),
        torch.nn.Parameter(torch.ones(2), requires_grad=False),
        torch.ones(2, requires_grad=True), noted, marked, torch.tensor([1 + 2j, 3j]).conj(),
    ]  # fmt: skip


def meta(torch):
    return torch.empty(3, 4, device="meta").t()


def storages(torch):
    return torch.arange(3, dtype=torch.uint8).untyped_storage()


def numpy_values(torch):
    return {
        "a": np.arange(6).reshape(2, 3), "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.array([1.5, 2.0], ">f8"), "text": np.array(["ab", "c"]), "b": np.array([True]),
        "zero": np.zeros((0, 3), np.float32), "s": np.float64(2.5), "i": np.int32(-3),
        "dtype": np.dtype("float32"), "rng": np.random.RandomState(0).get_state(),
        "pcg": np.random.default_rng(0).bit_generator.state,
    }  # fmt: skip


def objects(torch):
    utc = datetime.UTC
    return {
        "args": argparse.Namespace(lr=0.1, out=pathlib.PurePosixPath("a/b")),
        "when": datetime.datetime(2024, 2, 29, 12, 30, 1, 5, utc),
        "day": datetime.date(2024, 2, 29),
        "time": datetime.time(1, 2, 3, 4), "delta": datetime.timedelta(1, 2, 3),
        "path": pathlib.PurePosixPath("/x/y.pt"),
    }  # fmt: skip


def _trained(torch, name, options):
    model = torch.nn.Linear(3, 2)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 7)
    optimizer = getattr(torch.optim, name)(model.parameters(), **options)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).square().mean().backward()
        optimizer.step()
    return model, optimizer


def scheduler(torch):
    optimizer = _trained(torch, "SGD", {"lr": 0.1})[1]
    kinds = torch.optim.lr_scheduler
    made = [
        kinds.StepLR(optimizer, 2), kinds.MultiStepLR(optimizer, [1, 3, 3]),
        kinds.CosineAnnealingLR(optimizer, 5), kinds.ExponentialLR(optimizer, 0.9),
    ]  # fmt: skip
    for one in made:
        optimizer.step()
        one.step()
    keys = ("last_epoch", "base_lrs", "milestones", "gamma", "T_max", "step_size", "_last_lr")
    return [{k: v for k, v in one.state_dict().items() if k in keys} for one in made]


def _optimizer_case(name, options):
    def case(torch):
        model, optimizer = _trained(torch, name, options)
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()["state"]}

    return case


CASES = {
    f.__name__: f
    for f in (
        dtypes, dtypes_old, views, containers, scalars, parameters, meta, storages, numpy_values,
        objects, scheduler,
    )
} | {f"optimizer_{n.lower()}": _optimizer_case(n, o) for n, o in OPTIMIZERS.items()}  # fmt: skip
