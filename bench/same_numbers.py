"""Same seed, same numbers: initial weights, random streams and a training run beside PyTorch.

Needs PyTorch in the same environment. Weights, masks and streams must agree bit for bit; the losses
of the demo's GPT over 100 steps at float64 to 1e-9. Exits with 1 when something differs.

    python bench/same_numbers.py [--steps 100]
"""

from __future__ import annotations

import argparse
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent

MODELS: dict[str, Callable[[Any], Any]] = {
    "Linear": lambda t: t.nn.Linear(1000, 1000),
    "Bilinear": lambda t: t.nn.Bilinear(4, 5, 6),
    "Conv2d": lambda t: t.nn.Conv2d(3, 16, 3),
    "ConvTranspose2d": lambda t: t.nn.ConvTranspose2d(16, 4, 3),
    "Embedding": lambda t: t.nn.Embedding(100, 33),
    "EmbeddingBag": lambda t: t.nn.EmbeddingBag(50, 7),
    "LSTM": lambda t: t.nn.LSTM(10, 20, 2, bidirectional=True),
    "GRU": lambda t: t.nn.GRU(10, 20),
    "MultiheadAttention": lambda t: t.nn.MultiheadAttention(32, 4),
    "Transformer": lambda t: t.nn.Transformer(32, 4, 1, 1, 64),
}
INITIALISERS: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {
    "uniform_": ((30, 50), ()),
    "normal_": ((30, 50), ()),
    "trunc_normal_": ((30, 50), ()),
    "xavier_uniform_": ((30, 50), ()),
    "xavier_normal_": ((30, 50), ()),
    "kaiming_uniform_": ((30, 50), ()),
    "kaiming_normal_": ((30, 50), ()),
    "sparse_": ((30, 50), (0.1,)),
    "dirac_": ((3, 5, 3), ()),
}
STREAMS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda t: t.rand(1001),
    "rand bfloat16": lambda t: t.rand(100, dtype=t.bfloat16).float(),
    "randn of 7": lambda t: t.randn(7),
    "randn of 10007": lambda t: t.randn(10007),
    "randn float64": lambda t: t.randn(333, dtype=t.float64),
    "randn float16": lambda t: t.randn(100, dtype=t.float16).float(),
    "randn complex": lambda t: t.view_as_real(t.randn(50, dtype=t.complex64)),
    "normal_ transposed": lambda t: t.empty(40, 50).t().normal_(),
    "randint": lambda t: t.randint(0, 100, (77,)),
    "randint of 40 bits": lambda t: t.randint(0, 2**40, (77,)),
    "random_": lambda t: t.empty(100, dtype=t.int64).random_(),
    "randperm": lambda t: t.randperm(1000),
    "bernoulli": lambda t: t.bernoulli(t.full((1001,), 0.3)),
    "bernoulli_": lambda t: t.empty(1001).bernoulli_(0.3),
    "uniform_": lambda t: t.empty(100).uniform_(-3, 5),
    "normal": lambda t: t.normal(t.zeros(100), t.ones(100)),
    "exponential_": lambda t: t.empty(1001).exponential_(),
    "geometric_": lambda t: t.empty(100).geometric_(0.3),
    "multinomial": lambda t: t.multinomial(t.arange(1.0, 11.0), 5),
    "multinomial with replacement": lambda t: t.multinomial(t.arange(1.0, 11.0), 50, True),
    "poisson": lambda t: t.poisson(t.full((50,), 4.0)),
    "dropout of 1000": lambda t: t.nn.functional.dropout(t.ones(1000), 0.1),
    "dropout of 100000": lambda t: t.nn.functional.dropout(t.ones(100000), 0.5),
    "dropout float64": lambda t: t.nn.functional.dropout(t.ones(1000, dtype=t.float64), 0.3),
    "dropout2d": lambda t: t.nn.functional.dropout2d(t.ones(4, 8, 3, 3)),
    "alpha_dropout": lambda t: t.nn.functional.alpha_dropout(t.ones(100), 0.4, True),
    "rrelu": lambda t: t.nn.functional.rrelu(-t.ones(100), training=True),
}


def _weights(t: Any) -> Iterator[tuple[str, np.ndarray]]:
    for name, make in MODELS.items():
        t.manual_seed(1234567)
        for key, value in make(t).state_dict().items():
            yield f"{name}.{key}", value.numpy()


def _initialisers(t: Any) -> Iterator[tuple[str, np.ndarray]]:
    for name, (shape, extra) in INITIALISERS.items():
        for dtype in ("float32", "float64"):
            t.manual_seed(3)
            x = t.empty(shape, dtype=getattr(t, dtype))
            getattr(t.nn.init, name)(x, *extra)
            yield f"init.{name} {dtype}", x.numpy()


def _streams(t: Any) -> Iterator[tuple[str, np.ndarray]]:
    for name, draw in STREAMS.items():
        t.manual_seed(42)
        t.rand(3)
        yield name, draw(t).numpy()
        yield f"{name}, what follows", t.rand(2).numpy()


def _example(t: Any) -> types.ModuleType:
    """The GPT example as a module over library `t`."""
    source = (ROOT / "examples" / "train_gpt.py").read_text()
    module = types.ModuleType(f"train_gpt_{t.__name__}")
    exec(compile(source.replace("flambeau", t.__name__), "train_gpt.py", "exec"), module.__dict__)
    return module


def losses(t: Any, steps: int) -> list[float]:
    """Losses of `steps` steps of the demo's GPT at float64, data order and dropout included."""
    example = _example(t)
    t.set_default_dtype(t.float64)
    try:
        t.manual_seed(0)
        text = example.read_standard_library(100_000)
        codes = t.tensor([example.CHARACTERS.index(c) for c in text])
        windows = example.Windows(codes, 64)
        sampler = t.utils.data.RandomSampler(windows, num_samples=steps * 8)
        loader = t.utils.data.DataLoader(windows, batch_size=8, sampler=sampler)
        model = example.GPT(64, dropout=0.1)
        optimizer = t.optim.AdamW(example.parameter_groups(model), lr=1e-3, betas=(0.9, 0.99))
        out = []
        for x, y in loader:
            loss = example.loss_of(model, x, y)
            optimizer.zero_grad()
            loss.backward()
            t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            out.append(loss.item())
        return out
    finally:
        t.set_default_dtype(t.float32)


def main() -> int:
    """Entry point; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="steps of the GPT (default: 100)")
    options = parser.parse_args()
    a, b = importlib.import_module("torch"), importlib.import_module("flambeau")
    differing = 0
    for part in (_weights, _initialisers, _streams):
        ours = dict(part(b))
        theirs = dict(part(a))
        wrong = [n for n in theirs if not np.array_equal(theirs[n], ours.get(n))]
        good = len(theirs) - len(wrong)
        print(f"{part.__name__.strip('_')}: {good} of {len(theirs)} equal bit for bit")
        for name in wrong:
            print(f"  differs: {name}")
        differing += len(wrong)
    x, y = np.array(losses(a, options.steps)), np.array(losses(b, options.steps))
    gap = float(np.abs(x - y).max())
    print(f"GPT, {options.steps} steps at float64: loss {x[0]:.6f} to {x[-1]:.6f}, "
          f"largest difference {gap:.2g}")  # fmt: skip
    return int(differing > 0 or not gap <= 1e-9)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
