"""Three ways to load data: a text pipeline, a folder of images, resumable training on shards.

    python examples/data_pipelines.py --out FOLDER

Makes its own small data sets in the folder, so that nothing is downloaded. Needs Pillow for the
images and tqdm for the progress bar.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import random
from collections import Counter

import flambeau as fb
from flambeau import nn
from flambeau.nn import functional as F
from flambeau.utils.data import DataLoader, Dataset
from flambeau.utils.data.datapipes.iter import FileLister, FileOpener
from flambeau.utils.data.datapipes.utils import to_text, watch

GOOD = "a fine warm bright moving honest film".split()
BAD = "a dull cold flat tired hollow film".split()


# A text pipeline ---------------------------------------------------------------------------------


def make_reviews(path: pathlib.Path, count: int = 400) -> None:
    """A file of sentences and labels, as SST-2 has them."""
    rng = random.Random(0)
    with path.open("w") as file:
        file.write("sentence\tlabel\n")
        for _ in range(count):
            label = rng.randrange(2)
            words = rng.choices(GOOD if label else BAD, k=rng.randrange(3, 9))
            file.write(f"{' '.join(words)}\t{label}\n")


def reviews(path: pathlib.Path, vocabulary: dict[str, int] | None = None):
    """Pairs of words and label; with a vocabulary, batches of tensors."""
    rows = FileOpener([str(path)], mode="r").parse_csv(skip_lines=1, delimiter="\t")
    pipe = rows.map(str.split, input_col=0).map(int, input_col=1)
    if vocabulary is None:
        return pipe

    def numbers(words):
        return fb.tensor([vocabulary[word] for word in words])

    def padded(samples):
        texts, labels = zip(*samples, strict=True)
        return nn.utils.rnn.pad_sequence(list(texts), batch_first=True), fb.tensor(labels)

    pipe = pipe.shuffle(buffer_size=1000).sharding_filter().map(numbers, input_col=0)
    return pipe.batch(32).map(padded)


class Bag(nn.Module):
    """The mean of the words' vectors, and a line through it."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.vectors = nn.EmbeddingBag(words, 16, padding_idx=0)
        self.line = nn.Linear(16, 2)

    def forward(self, texts):
        return self.line(self.vectors(texts))


def text_pipeline(folder: pathlib.Path) -> float:
    """Trains on the reviews; returns how many of them are told apart."""
    path = folder / "reviews.tsv"
    make_reviews(path)
    counts = Counter(word for words, _ in reviews(path) for word in words)
    vocabulary = {word: i for i, (word, _) in enumerate(counts.most_common(), 1)}
    pipe = reviews(path, vocabulary)
    print(to_text(pipe))
    fb.manual_seed(0)
    model = Bag(len(vocabulary) + 1)
    optimizer = fb.optim.Adam(model.parameters(), lr=0.05)
    loader = DataLoader(pipe, batch_size=None, shuffle=True, num_workers=2)
    for _ in range(4):
        for texts, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(texts), labels).backward()
            optimizer.step()
    right = total = 0
    with fb.no_grad(), watch(pipe) as times:
        for texts, labels in pipe:
            right += int((model(texts).argmax(1) == labels).sum())
            total += len(labels)
    print(times)
    return right / total


# A folder of images ------------------------------------------------------------------------------


def make_images(folder: pathlib.Path, count: int = 24) -> None:
    """Two classes of PNG files in a folder each: lines that lie, and lines that stand."""
    from PIL import Image

    rng = random.Random(1)
    for name in ("lying", "standing"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            image = Image.new("L", (16, 16))
            at = rng.randrange(16)
            for k in range(16):
                image.putpixel((k, at) if name == "lying" else (at, k), 255)
            image.save(folder / name / f"{i:03d}.png")


class ImageFolder(Dataset):
    """Images by the folder that they lie in."""

    def __init__(self, root: pathlib.Path) -> None:
        self.classes = sorted(each.name for each in root.iterdir() if each.is_dir())
        self.samples = [
            (str(path), label)
            for label, name in enumerate(self.classes)
            for path in sorted((root / name).glob("*.png"))
        ]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int):
        from PIL import Image

        path, label = self.samples[i]
        with Image.open(path) as image:
            pixels = fb.frombuffer(bytearray(image.tobytes()), dtype=fb.uint8)
        return pixels.reshape(1, 16, 16).float() / 255, label


def image_folder(folder: pathlib.Path) -> float:
    """Trains on the images, which threads decode; returns how many are told apart."""
    make_images(folder / "images")
    images = ImageFolder(folder / "images")
    fb.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(64, 2)
    )
    optimizer = fb.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(
        images, 8, shuffle=True, num_workers=2, worker_backend="thread", persistent_workers=True
    )
    right = 0
    for _ in range(12):
        right = 0
        for pixels, labels in loader:
            logits = model(pixels)
            optimizer.zero_grad()
            F.cross_entropy(logits, labels).backward()
            optimizer.step()
            right += int((logits.argmax(1) == labels).sum())
    return right / len(images)


# Training on compressed shards that goes on where it stopped -------------------------------------


def make_shards(folder: pathlib.Path, shards: int = 6, rows: int = 40) -> None:
    """Files of points near a line, compressed."""
    rng = random.Random(2)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(shards):
        with gzip.open(folder / f"points{number}.jsonl.gz", "wt") as file:
            for _ in range(rows):
                x = rng.uniform(-1, 1)
                file.write(json.dumps({"x": x, "y": 3 * x + 1 + rng.gauss(0, 0.01)}) + "\n")


def points(folder: pathlib.Path):
    """The points of all shards, in a new order each pass, each worker its share of the files."""

    def lines(path):
        with gzip.open(path, "rt") as file:
            return [json.loads(line) for line in file]

    files = FileLister(str(folder), "*.gz").shuffle().sharding_filter()
    return files.flatmap(lines).shuffle(buffer_size=64)


def train_on_shards(folder: pathlib.Path, stop_after: int | None = None) -> list[float]:
    """Three passes over the shards; goes on from `state.pt` if there is one.

    Args:
        folder: where shards and states lie.
        stop_after: write the state and stop after so many steps.

    Returns:
        the line that was fitted: slope and intercept.
    """
    from tqdm import tqdm

    saved = folder / "state.pt"
    fb.manual_seed(0)
    model = nn.Linear(1, 1)
    optimizer = fb.optim.SGD(model.parameters(), lr=0.3)
    generator = fb.Generator().manual_seed(5)
    loader = DataLoader(points(folder), 16, shuffle=True, num_workers=2, generator=generator)
    epoch = steps = 0
    if saved.exists():
        state = fb.load(saved)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
        epoch, steps = state["epoch"], state["steps"]
    while epoch < 3:
        bar = tqdm(loader, desc=f"epoch {epoch}", unit="batch", leave=False, disable=None)
        for batch in bar:
            loss = F.mse_loss(model(batch["x"].float()[:, None]), batch["y"].float()[:, None])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            bar.set_postfix(loss=f"{loss.item():.4f}")
            if steps == stop_after:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                state |= {"loader": loader.state_dict(), "epoch": epoch, "steps": steps}
                fb.save(state, saved)
                return [model.weight.item(), model.bias.item()]
        epoch += 1
    saved.unlink(missing_ok=True)
    return [model.weight.item(), model.bias.item()]


def resumable_training(folder: pathlib.Path) -> tuple[list[float], list[float]]:
    """The line of training at one go, and of training that was stopped three times."""
    make_shards(folder / "shards")
    at_one_go = train_on_shards(folder / "shards")
    for steps in (5, 17, 30):
        train_on_shards(folder / "shards", stop_after=steps)
    return at_one_go, train_on_shards(folder / "shards")


def main(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    print(f"reviews told apart: {text_pipeline(folder):.0%}")
    print(f"images told apart: {image_folder(folder):.0%}")
    whole, in_parts = resumable_training(folder)
    print(f"line at one go {whole}, in four parts {in_parts}: the same is {whole == in_parts}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("data_out"))
    main(parser.parse_args().out)
