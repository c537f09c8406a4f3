"""`max_norm` of compiled embeddings: rows scaled in place, gradients as if nothing had been.

The reference is NumPy: rows that are looked up are scaled to the norm, gradients count look-ups.
"""

import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn

INDICES = np.array([[0, 2], [1, 0]])
TENSOR = torch.from_numpy(INDICES)
TABLE = np.arange(8.0).reshape(4, 2)


def scaled(table, norm=0.5):
    out = table.copy()
    for row in set(INDICES.ravel()):
        length = np.linalg.norm(out[row])
        out[row] *= norm / (length + 1e-7) if length > norm else 1
    return out


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("bag", [False, True])
@pytest.mark.parametrize("factor", [None, 2.0])
def test_max_norm(backend, bag, factor):
    function = F.embedding_bag if bag else F.embedding

    @torch.compile(backend=backend, fullgraph=True)
    def f(w):
        return function(TENSOR, w if factor is None else w * factor, max_norm=0.5)

    w = torch.tensor(TABLE, requires_grad=True)
    y = f(w)
    y.sum().backward()
    rows = scaled(TABLE * (factor or 1))
    looked_up = rows[INDICES]
    np.testing.assert_allclose(y.detach().numpy(), looked_up.mean(1) if bag else looked_up)
    counts = np.bincount(INDICES.ravel(), minlength=4) * (factor or 1) / (2 if bag else 1)
    np.testing.assert_allclose(w.grad.numpy(), np.stack([counts, counts], 1))
    np.testing.assert_allclose(w.detach().numpy(), rows if factor is None else TABLE)


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_modules_train(kind):
    def train(compiled):
        torch.manual_seed(0)
        m = kind(4, 2, max_norm=0.5)
        step = torch.optim.SGD(m.parameters(), lr=0.1)
        run = torch.compile(m, fullgraph=True) if compiled else m
        for _ in range(3):
            step.zero_grad()
            run(TENSOR).pow(2).sum().backward()
            step.step()
        return m.weight.detach().numpy()

    np.testing.assert_allclose(train(True), train(False), rtol=1e-6)
