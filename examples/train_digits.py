"""Trains a convolutional network on scikit-learn's handwritten digits.

An ordinary PyTorch program: change the imports of flambeau to torch and it runs there. Well under a
minute on two cores. Run it with --help for its options.
"""

from __future__ import annotations

import argparse
import os
import time

from sklearn.datasets import load_digits
from tqdm import tqdm

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from flambeau.utils.data import DataLoader, TensorDataset, random_split


class ConvNet(nn.Module):
    """Two blocks of two convolutions each, for images of 8 by 8 pixels."""

    def __init__(self, channels: int = 32, classes: int = 10) -> None:
        super().__init__()
        self.features = nn.Sequential(
            self.block(1, channels),
            nn.MaxPool2d(2),
            self.block(channels, 2 * channels),
            nn.AdaptiveAvgPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Dropout(0.3), nn.Linear(2 * channels * 4, classes)
        )

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            layers += [
                nn.Conv2d(channels, outputs, 3, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
            ]
        return nn.Sequential(*layers)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(images))


def load_data(seed: int) -> tuple:
    """Training and test images, scaled to 0..1, of shape (n, 1, 8, 8)."""
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 16
    labels = torch.from_numpy(digits.target).long()
    generator = torch.Generator().manual_seed(seed)
    return tuple(random_split(TensorDataset(images, labels), [0.8, 0.2], generator=generator))


@torch.no_grad()
def validate(model: nn.Module, loader: DataLoader) -> tuple[float, float]:
    """Mean loss and share of right answers."""
    model.eval()
    loss, right, seen = 0.0, 0, 0
    for images, labels in loader:
        logits = model(images)
        loss += F.cross_entropy(logits, labels, reduction="sum").item()
        right += (logits.argmax(1) == labels).sum().item()
        seen += len(labels)
    model.train()
    return loss / seen, right / seen


def train(options: argparse.Namespace) -> dict:
    """Trains, saves a checkpoint and loads it again; returns what happened."""
    torch.manual_seed(options.seed)
    training, held_back = load_data(options.seed)
    loader = DataLoader(training, batch_size=options.batch, shuffle=True, drop_last=True)
    check = DataLoader(held_back, batch_size=256)
    model = ConvNet()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=options.lr, momentum=0.9, weight_decay=1e-4, nesterov=True
    )
    steps = options.epochs * len(loader)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    count = sum(p.numel() for p in model.parameters())
    print(f"ConvNet with {count:,} parameters on {len(training):,} images of handwritten digits")

    losses, checks, start = [], [(0, *validate(model, check))], time.perf_counter()
    with tqdm(total=steps, desc="digits", unit="step", mininterval=0.5) as bar:
        for _ in range(options.epochs):
            for images, labels in loader:
                loss = F.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scheduler.step()
                losses.append(loss.item())
                bar.update()
            checks.append((len(losses), *validate(model, check)))
            speed = len(losses) * options.batch / (time.perf_counter() - start)
            bar.set_postfix_str(
                f"loss {losses[-1]:.3f}, test {checks[-1][2]:.1%}, {speed:,.0f} images/s",
                refresh=False,
            )
    seconds = time.perf_counter() - start

    path = os.path.join(options.out, "digits.pt")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    restored = ConvNet()
    restored.load_state_dict(torch.load(path)["model"])
    _, accuracy = validate(restored, check)
    if accuracy != checks[-1][2]:
        raise RuntimeError(f"the loaded model differs: {accuracy}, expected {checks[-1][2]}")
    return {
        "losses": losses,
        "checks": checks,
        "seconds": seconds,
        "images_per_second": steps * options.batch / seconds,
        "accuracy": accuracy,
        "checkpoint": path,
        "parameters": count,
    }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="demo_out", help="folder for the checkpoint")
    options = parser.parse_args(arguments)
    os.makedirs(options.out, exist_ok=True)
    return options


if __name__ == "__main__":
    result = train(parse())
    print(f"{result['accuracy']:.1%} of the test images right after {result['seconds']:.0f} s")
