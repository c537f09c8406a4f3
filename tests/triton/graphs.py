"""Graphs that are measured: compositions of primitives and networks, in full and in small size.

Full sizes are for compiling, nothing of them is computed; small ones are for the interpreter.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flambeau as torch
from flambeau import nn

F = nn.functional


@dataclass(frozen=True)
class Case:
    """A function or module, its inputs, and what gradients are asked for."""

    f: Callable[..., Any]
    inputs: list[Any]

    @property
    def leaves(self) -> list[Any]:
        params = list(self.f.parameters()) if isinstance(self.f, nn.Module) else []
        return [x for x in (*self.inputs, *params) if x.requires_grad]

    def doubled(self) -> Case:
        """The same in float64."""
        f = copy.deepcopy(self.f).double() if isinstance(self.f, nn.Module) else self.f
        wide = [x.detach().double() if x.is_floating_point() else x for x in self.inputs]
        pairs = zip(wide, self.inputs, strict=True)
        return Case(f, [x.requires_grad_(was.requires_grad) for x, was in pairs])


def _random(*shape: int, seed: int = 0) -> Any:
    g = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=g).mul_(2).sub_(1).requires_grad_()


def _softmax(x: Any) -> Any:
    e = (x - x.amax(-1, True)).exp()
    return e / e.sum(-1, True)


def _layer_norm(x: Any, w: Any, b: Any) -> Any:
    centred = x - x.mean(-1, True)
    return centred * ((centred * centred).mean(-1, True) + 1e-5).rsqrt() * w + b


def _rms_norm(x: Any, w: Any) -> Any:
    return x * ((x * x).mean(-1, True) + 1e-6).rsqrt() * w


def _chain(x: Any) -> Any:
    y = (((x * 0.5 + 1.0).sin() * x).tanh() - x).abs().sqrt()
    return torch.maximum((-y).exp().sigmoid(), x)


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ v


def _mlp(*widths: int) -> nn.Module:
    layers: list[nn.Module] = []
    for a, b in zip(widths, widths[1:], strict=False):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class _Residual(nn.Module):
    def __init__(self, a: int, b: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(),
            nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b),
        )  # fmt: skip
        short = [nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)]
        self.short = nn.Sequential(*(short if a != b else []))

    def forward(self, x: Any) -> Any:
        return F.relu(self.main(x) + self.short(x))


class _ResNet18(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        w = [width, width, 2 * width, 4 * width, 8 * width]
        self.stem = nn.Sequential(
            nn.Conv2d(3, w[0], 7, 2, 3, bias=False), nn.BatchNorm2d(w[0]), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        pairs = zip(w, w[1:], strict=False)
        stages = [(_Residual(a, b, 1 + (a != b)), _Residual(b, b, 1)) for a, b in pairs]
        self.body = nn.Sequential(*(block for stage in stages for block in stage))
        self.head = nn.Linear(w[-1], 10)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(self.stem(x)).mean((2, 3)))


class _Block(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: Any) -> Any:
        b, t, d = x.shape
        parts = self.qkv(self.before(x)).split(d, 2)
        q, k, v = (p.view(b, t, self.heads, d // self.heads).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.after(x))))


class _GPT(nn.Module):
    def __init__(self, d: int, layers: int, heads: int, context: int) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(65, d), nn.Embedding(context, d)
        self.blocks = nn.Sequential(*(_Block(d, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 65, bias=False)

    def forward(self, tokens: Any) -> Any:
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def _double(a: int, b: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
        nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
    )  # fmt: skip


class _UNet(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        w = [width, 2 * width, 4 * width]
        self.down = nn.ModuleList([_double(a, b) for a, b in zip([3, *w], w, strict=False)])
        self.bottom = _double(w[-1], 2 * w[-1])
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * a, a, 2, stride=2) for a in w[::-1]])
        self.join = nn.ModuleList([_double(2 * a, a) for a in w[::-1]])
        self.head = nn.Conv2d(w[0], 2, 1)

    def forward(self, x: Any) -> Any:
        kept = []
        for block in self.down:
            kept.append(block(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.bottom(x)
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.head(x)


def cases(full: bool) -> dict[str, Callable[[], Case]]:
    """Name -> maker of the case, in full or small size."""
    n, m = (4096, 1024) if full else (6, 40)
    q = (4, 8, 512, 64) if full else (2, 2, 9, 8)
    gpt = (384, 6, 6, 256) if full else (16, 2, 2, 12)
    picture = (8, 3, 64, 64) if full else (2, 3, 32, 32)
    tokens = torch.arange(8 * 256 if full else 2 * 12) % 65
    return {
        "softmax": lambda: Case(_softmax, [_random(n, m)]),
        "layer_norm": lambda: Case(_layer_norm, [_random(n, m), _random(m), _random(m)]),
        "rms_norm": lambda: Case(_rms_norm, [_random(n, m), _random(m)]),
        "chain12": lambda: Case(_chain, [_random(n, n)]),
        "attention": lambda: Case(_attention, [_random(*q, seed=i) for i in range(3)]),
        "MLP": lambda: Case(
            _mlp(784, 512, 256, 10) if full else _mlp(20, 16, 12, 5),
            [_random(64, 784 if full else 20).detach()],
        ),
        "GPT": lambda: Case(_GPT(*gpt), [tokens.view(-1, gpt[-1])]),
        "ResNet-18": lambda: Case(_ResNet18(64 if full else 4), [_random(*picture).detach()]),
        "U-Net": lambda: Case(_UNet(16 if full else 4), [_random(*picture).detach()]),
    }
