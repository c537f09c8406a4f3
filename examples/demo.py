"""Trains both example models, draws their loss curves, and says what it did."""

from __future__ import annotations

import argparse
import os
import time

import train_digits
import train_gpt
from plotting import plot_losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="demo_out", help="folder for everything that is written")
    parser.add_argument("--gpt-steps", type=int, default=None, help="default: see train_gpt.py")
    parser.add_argument("--epochs", type=int, default=None, help="default: see train_digits.py")
    options = parser.parse_args()
    start = time.perf_counter()

    arguments = ["--out", options.out]
    digits_arguments = [] if options.epochs is None else ["--epochs", str(options.epochs)]
    gpt_arguments = [] if options.gpt_steps is None else ["--steps", str(options.gpt_steps)]
    digits = train_digits.train(train_digits.parse(arguments + digits_arguments))
    print()
    gpt = train_gpt.train(train_gpt.parse(arguments + gpt_arguments))

    picture = os.path.join(options.out, "losses.png")
    plot_losses({"Digits, ConvNet": digits, "Standard library, GPT": gpt}, picture)
    report(digits, gpt, picture, time.perf_counter() - start)


def report(digits: dict, gpt: dict, picture: str, seconds: float) -> None:
    rule = "-" * 78
    print(f"\n{rule}\nText by the GPT, continuing 'def ':\n\n{gpt['sample']}\n{rule}")
    print(f"Done in {seconds:.0f} s.")
    print(
        f"  ConvNet: {digits['parameters']:,} parameters, {len(digits['losses'])} steps in "
        f"{digits['seconds']:.0f} s ({digits['images_per_second']:,.0f} images/s); "
        f"{digits['accuracy']:.1%} of the test images are recognised."
    )
    print(
        f"  GPT: {gpt['parameters']:,} parameters, {len(gpt['losses'])} steps in "
        f"{gpt['seconds']:.0f} s ({gpt['tokens_per_second']:,.0f} tokens/s); validation loss "
        f"{gpt['checks'][0][1]:.2f} -> {gpt['checks'][-1][1]:.2f} nats per character."
    )
    print("  Both checkpoints were loaded again and gave the same validation result.")
    print("Files:")
    for path in (picture, digits["checkpoint"], gpt["checkpoint"], gpt["sample_path"]):
        print(f"  {os.path.abspath(path)}  ({os.path.getsize(path):,} bytes)")


if __name__ == "__main__":
    main()
