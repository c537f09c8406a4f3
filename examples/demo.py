"""Trains both example models, draws their loss curves, compares eager and compiled training steps,
and says what it did."""

from __future__ import annotations

import argparse
import os
import time

import train_digits
import train_gpt
from compare_compiled import compare_both
from plotting import plot_losses, plot_speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="demo_out", help="folder for everything that is written")
    parser.add_argument("--gpt-steps", type=int, default=None, help="default: see train_gpt.py")
    parser.add_argument("--epochs", type=int, default=None, help="default: see train_digits.py")
    parser.add_argument("--pairs", type=int, default=30, help="steps timed eager and compiled")
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
    print("\nThe same training steps, eager and compiled by torch.compile(model):")
    speeds = compare_both(options.pairs)
    pictures = [picture]
    if speeds:
        pictures.append(os.path.join(options.out, "speeds.png"))
        plot_speeds(speeds, pictures[-1])
    report(digits, gpt, speeds, pictures, time.perf_counter() - start)


def report(digits: dict, gpt: dict, speeds: dict, pictures: list[str], seconds: float) -> None:
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
    for name, s in speeds.items():
        print(f"  {name}, compiled: {s['eager'] / s['compiled']:.2f} times as fast as eager.")
    if not speeds:
        print("  Nothing was compiled, see above; everything else ran eagerly.")
    print("Files:")
    for path in (*pictures, digits["checkpoint"], gpt["checkpoint"], gpt["sample_path"]):
        print(f"  {os.path.abspath(path)}  ({os.path.getsize(path):,} bytes)")


if __name__ == "__main__":
    main()
