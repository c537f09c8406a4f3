"""Functions called with inputs that vary as programs vary them, for `variation_programs`: batches
cut by slices, with offsets, steps and strides; sizes; integers of Python and NumPy; floats; lists;
flags; dtypes; requires_grad; train and eval.

A program is text that runs on PyTorch as well: `setup` makes what it needs, `call(k)` gives the
arguments of the k-th call. Knows nothing of how it is judged.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

#: the tensor of call k, how many numbers of it vary, and in how many ways it varies in kind
TENSORS = (
    ("X[8 * k : 8 * k + 8]", 0, 1),
    ("X[k]", 0, 1),
    ("X[:, k % 6]", 0, 1),
    ("X[k : k + 4, 1:5]", 0, 1),
    ("X.split(8)[k]", 0, 1),
    ("X.unbind(0)[k]", 0, 1),
    ("X.t()[k % 6, 2:9]", 0, 1),
    ("X[: 3 + k]", 1, 1),
    ("X[k : 2 * k + 5]", 1, 1),
    ("X[:, : 2 + k % 4]", 1, 1),
    ("X[: 2 * (k + 2) : k + 2]", 1, 1),
    ("X[:: k + 2, 0]", 2, 1),
    ("torch.ones(4, 6 + k)[:, :5]", 1, 1),
    ("torch.ones(3 + k, 6)", 1, 1),
    ("X[:4].to((torch.float32, torch.float64)[k % 2])", 0, 2),
    ("X[:4].clone().requires_grad_(k % 2 == 0)", 0, 2),
    ("X[k : k + 1]", 0, 1),
    ("X[k, : 3 + k % 3]", 1, 1),
    ("X.view(8, 12, 6)[k % 8]", 0, 1),
    ("X.view(8, 12, 6)[:, k, :5]", 0, 1),
)  # fmt: skip
#: another argument: text, numbers that vary, kinds
OTHERS = (
    ("1.5", 0, 1), ("3 + k", 1, 1), ("0.5 + k", 1, 1), ("np.int64(3 + k)", 1, 1),
    ("k % 2 == 0", 0, 2), ("[X[k]] * (1 + k % 2)", 0, 2), ("(2, 3 + k)", 1, 1),
    ("{'a': X[k], 'b': 2.0}", 0, 1), ("'ab'[k % 2]", 0, 2), ("None", 0, 1),
    ("np.float64(0.5 + k)", 1, 1), ("torch.tensor(1.0 + k)", 0, 1),
)  # fmt: skip
#: what is done with x and with the other argument y
BODIES = (
    "(x * 2).sin()", "x.sum(-1) + 1", "torch.softmax(x.float(), -1)", "x.mean() + x.relu()",
    "x @ x.T if x.dim() == 2 else x", "x.reshape(-1) * 3", "torch.cat([x, x], 0)", "x.amax(0)",
    "x.flip(0) + x", "x - x.mean(-1, keepdim=True)", "x.cumsum(0)", "m(x)", "x[..., :1] + x",
    "F.layer_norm(x.float(), x.shape[-1:])", "x.unsqueeze(0).expand(2, *x.shape).sum(0)",
    "x.t() if x.dim() == 2 else x",
)  # fmt: skip
USES = (
    "{0}", "{0} * use(y)", "{0} + use(y)",
)  # fmt: skip
USE = """
def use(y):
    if y is None:
        return 1.0
    if isinstance(y, (list, tuple)):
        return sum(use(v) for v in y)
    if isinstance(y, dict):
        return sum(use(v) for v in y.values())
    if isinstance(y, str):
        return 2.0 if y == "a" else 3.0
    if isinstance(y, bool):
        return 4.0 if y else 5.0
    return y.sum() if isinstance(y, torch.Tensor) else y
"""


@dataclass
class Program:
    seed: int
    tensor: tuple[str, int, int]
    other: tuple[str, int, int]
    body: str
    modes: bool  # train and eval by turns

    @property
    def most(self) -> int:
        """Compilations at most: for each kind one, and one for each number seen to vary."""
        kinds = self.tensor[2] * self.other[2] * (2 if self.modes else 1)
        return kinds * (1 + self.tensor[1] + self.other[1])

    def text(self) -> str:
        mode = "m.train(k % 2 == 0)" if self.modes else "pass"
        return (
            "torch.manual_seed(0)\nX = torch.randn(96, 6)\nm = nn.Dropout(0.0)\n" + USE
            + f"def f(x, y):\n    return {self.body}\n"
            f"def call(k):\n    {mode}\n    return {self.tensor[0]}, {self.other[0]}\n"
        )  # fmt: skip


def generate(seed: int) -> Program:
    r = random.Random(seed)
    body = r.choice(USES).format(f"({r.choice(BODIES)})")
    other = r.choice(OTHERS) if "use(y)" in body else OTHERS[0]
    return Program(seed, r.choice(TENSORS), other, body, "m(x)" in body and r.random() < 0.5)
