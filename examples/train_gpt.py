"""Trains a small GPT, character by character, on the source text of Python's standard library.

An ordinary PyTorch program: change the imports of flambeau to torch and it runs there. About a
minute on two cores. Run it with --help for its options.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import sysconfig
import time

from tqdm import tqdm

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from flambeau.utils.data import DataLoader, Dataset, RandomSampler

CHARACTERS = "\n\t" + "".join(chr(code) for code in range(32, 127))


def read_standard_library(limit: int) -> str:
    """The library's modules in the order of their names, indented by tabs, cut at ``limit``."""
    folder = pathlib.Path(sysconfig.get_paths()["stdlib"])
    known, texts, size = set(CHARACTERS), [], 0
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="ignore").replace("    ", "\t")
        text = "".join(c for c in text if c in known)
        texts.append(text)
        size += len(text)
        if size >= limit:
            break
    return "".join(texts)[:limit]


class Windows(Dataset):
    """All windows of ``length`` characters; the target is the window moved on by one."""

    def __init__(self, codes: torch.Tensor, length: int) -> None:
        self.codes, self.length = codes, length

    def __len__(self) -> int:
        return len(self.codes) - self.length

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        window = self.codes[i : i + self.length + 1]
        return window[:-1], window[1:]


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    def __init__(
        self, length: int, width: int = 128, heads: int = 4, layers: int = 3, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.length = length
        self.characters = nn.Embedding(len(CHARACTERS), width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(CHARACTERS), bias=False)
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(codes.shape[1], device=codes.device)
        x = self.characters(codes) + self.positions(positions)
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def write(self, prompt: str, count: int, temperature: float = 0.8) -> str:
        """Continues ``prompt`` by ``count`` characters drawn from the model."""
        self.eval()
        codes = [CHARACTERS.index(c) for c in prompt]
        for _ in range(count):
            logits = self(torch.tensor([codes[-self.length :]]))[0, -1]
            probabilities = F.softmax(logits / temperature, dim=-1)
            codes.append(torch.multinomial(probabilities, 1).item())
        return "".join(CHARACTERS[code] for code in codes).expandtabs(4)


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def validate(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    losses = [loss_of(model, x, y).item() for x, y in loader]
    model.train()
    return sum(losses) / len(losses)


def parameter_groups(model: nn.Module) -> list[dict]:
    """Weight decay for matrices alone."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return [
        {"params": matrices, "weight_decay": 0.1},
        {"params": vectors, "weight_decay": 0.0},
    ]


def train(options: argparse.Namespace) -> dict:
    """Trains, saves a checkpoint, loads it again and lets it write; returns what happened."""
    torch.manual_seed(options.seed)
    text = read_standard_library(options.characters)
    codes = torch.tensor([CHARACTERS.index(c) for c in text])
    split = int(0.95 * len(codes))
    training = Windows(codes[:split], options.length)
    held_back = Windows(codes[split:], options.length)
    draws = RandomSampler(training, num_samples=options.steps * options.batch)
    loader = DataLoader(training, batch_size=options.batch, sampler=draws)
    check = DataLoader(
        torch.utils.data.Subset(held_back, range(0, len(held_back), len(held_back) // 256)),
        batch_size=64,
    )

    model = GPT(options.length)
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=options.lr, betas=(0.9, 0.99))
    warmup = max(1, options.steps // 20)

    def rate(step: int) -> float:
        done = (step - warmup) / max(1, options.steps - warmup)
        return (step + 1) / warmup if step < warmup else 0.1 + 0.45 * (1 + math.cos(math.pi * done))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    count = sum(p.numel() for p in model.parameters())
    print(f"GPT with {count:,} parameters on {len(text):,} characters of Python's standard library")

    losses, checks, start = [], [(0, validate(model, check))], time.perf_counter()
    bar = tqdm(loader, desc="gpt", unit="step", mininterval=0.5)
    for step, (x, y) in enumerate(bar, 1):
        loss = loss_of(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if step % max(1, options.steps // 8) == 0 or step == options.steps:
            checks.append((step, validate(model, check)))
        speed = step * x.numel() / (time.perf_counter() - start)
        bar.set_postfix_str(
            f"loss {losses[-1]:.3f}, validation {checks[-1][1]:.3f}, {speed:,.0f} tokens/s",
            refresh=False,
        )
    seconds = time.perf_counter() - start

    path = os.path.join(options.out, "gpt.pt")
    torch.save({"model": model.state_dict(), "step": options.steps, "loss": losses[-1]}, path)
    checkpoint = torch.load(path)
    restored = GPT(options.length)
    restored.load_state_dict(checkpoint["model"])
    again = validate(restored, check)
    if abs(again - checks[-1][1]) > 1e-5:
        raise RuntimeError(f"the loaded model differs: loss {again}, expected {checks[-1][1]}")
    sample = restored.write("def ", options.sample)
    sample_path = os.path.join(options.out, "gpt_sample.txt")
    pathlib.Path(sample_path).write_text(sample + "\n")
    return {
        "losses": losses,
        "checks": checks,
        "seconds": seconds,
        "tokens_per_second": options.steps * options.batch * options.length / seconds,
        "checkpoint": path,
        "sample": sample,
        "sample_path": sample_path,
        "parameters": count,
    }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--length", type=int, default=64, help="characters the model looks back")
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--characters", type=int, default=1_500_000, help="length of the text")
    parser.add_argument("--sample", type=int, default=300, help="characters to write at the end")
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--out", default="demo_out", help="folder for the checkpoint and the text")
    options = parser.parse_args(arguments)
    os.makedirs(options.out, exist_ok=True)
    return options


if __name__ == "__main__":
    result = train(parse())
    print(f"\n{result['sample']}\n")
    print(f"{result['seconds']:.0f} s, {result['tokens_per_second']:,.0f} tokens/s")
