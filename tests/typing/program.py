"""An ordinary typed program: test_typing checks what mypy makes of it, nothing here is executed.

Each `assert_type` is a promise of the stubs; each `type: ignore` a mistake that they must show
(an ignore that is not needed is an error).
"""

from __future__ import annotations

from typing import assert_type

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from flambeau.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(F.relu(self.hidden(x), inplace=True))  # type: ignore[no-any-return]


def functions(x: torch.Tensor, dtype: torch.dtype) -> None:
    assert_type(torch.add(x, 1.5, alpha=2), torch.Tensor)
    assert_type(torch.zeros(2, 3, dtype=torch.float32), torch.Tensor)
    assert_type(torch.zeros((2, 3), device="cpu", requires_grad=True), torch.Tensor)
    assert_type(torch.nn.functional.relu(x), torch.Tensor)
    assert_type(F.cross_entropy(x, x.argmax(1), label_smoothing=0.1), torch.Tensor)
    assert_type(F.gelu(x, approximate="tanh"), torch.Tensor)
    assert_type(torch.linalg.norm(x), torch.Tensor)
    assert_type(torch.special.expit(x), torch.Tensor)
    assert_type(torch.fft.fft(x), torch.Tensor)
    assert_type(torch.split(x, 2), tuple[torch.Tensor, ...])
    assert_type(torch.promote_types(torch.int, float), torch.dtype)
    assert_type(torch.is_tensor(x), bool)
    assert_type(torch.Generator().manual_seed(0), torch.Generator)
    assert_type(torch.memory_stats(), dict[str, int])


def methods(x: torch.Tensor) -> None:
    assert_type(x.sum(1, keepdim=True), torch.Tensor)
    assert_type(x.sum(), torch.Tensor)
    assert_type(x.permute(1, 0).reshape(-1), torch.Tensor)
    assert_type(x.float() + 1 - x.int(), torch.Tensor)
    assert_type(1 / x @ x.T, torch.Tensor)
    assert_type(x[:, 0] == 2, torch.Tensor)
    assert_type(x.shape, torch.Size)
    assert_type(x.size(0), int)
    assert_type(x.dtype, torch.dtype)
    assert_type(x.to("cpu", torch.float64), torch.Tensor)
    assert_type(x.to(torch.float64), torch.Tensor)
    assert_type(x.grad, torch.Tensor | None)
    assert_type(x.type(), str)
    values, indices = x.max(dim=0)
    assert_type(values, torch.Tensor)
    assert_type(x.sort().indices, torch.Tensor)
    assert_type(list(x), list[torch.Tensor])
    total: float = x.sum().item()
    print(total, indices)


def mistakes(x: torch.Tensor) -> None:
    torch.ad(x, x)  # type: ignore[attr-defined]
    x.sum(keepdim="yes")  # type: ignore[arg-type]
    x.softmax()  # type: ignore[call-arg]
    torch.add(x, "1")  # type: ignore[arg-type]
    x.shape = (1, 2)  # type: ignore[misc, assignment]


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, ...]]) -> float:
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return float(right)


def train() -> float:
    data = TensorDataset(torch.randn(8, 4), torch.randint(2, (8,)))
    model = Net(16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for x, y in DataLoader(data, batch_size=4, shuffle=True):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), "model.pt")
    model.load_state_dict(torch.load("model.pt"))
    return accuracy(model, DataLoader(data, batch_size=8))
