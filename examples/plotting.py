"""Draws the loss curves of the examples, and their speed eager and compiled."""

from __future__ import annotations


def smoothed(values: list[float], weight: float = 0.9) -> list[float]:
    """Running mean with exponentially falling weights, corrected for the short start."""
    result, mean, total = [], 0.0, 0.0
    for value in values:
        mean = weight * mean + (1 - weight) * value
        total = weight * total + (1 - weight)
        result.append(mean / total)
    return result


def plot_losses(curves: dict[str, dict], path: str) -> None:
    """Writes a picture with one panel per run.

    Args:
        curves: by title: "losses", one number per step, and "checks", tuples that start with (step,
            validation loss).
        path: the PNG to write.
    """
    import matplotlib

    matplotlib.use("Agg")  # a picture file, no window
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, len(curves), figsize=(6 * len(curves), 4), squeeze=False, layout="constrained"
    )
    for axes, (title, run) in zip(panels[0], curves.items(), strict=True):
        steps = range(1, len(run["losses"]) + 1)
        axes.plot(steps, run["losses"], alpha=0.25, color="tab:blue")
        axes.plot(steps, smoothed(run["losses"]), color="tab:blue", label="training")
        axes.plot(
            [check[0] for check in run["checks"]],
            [check[1] for check in run["checks"]],
            marker="o",
            markersize=3,
            color="tab:orange",
            label="validation",
        )
        axes.set(title=title, xlabel="step", ylabel="cross entropy (nats)")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def plot_speeds(speeds: dict[str, dict], path: str) -> None:
    """Writes a picture of training steps per second.

    Args:
        speeds: by model: the seconds of a step, "eager" and "compiled".
        path: the PNG to write.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, len(speeds), figsize=(3.5 * len(speeds), 4), squeeze=False, layout="constrained"
    )
    for axes, (name, run) in zip(panels[0], speeds.items(), strict=True):
        bars = axes.bar(["eager", "compiled"], [1 / run["eager"], 1 / run["compiled"]])
        bars[1].set_color("tab:orange")
        axes.bar_label(bars, fmt="%.0f")
        axes.set(title=f"{name}: {run['eager'] / run['compiled']:.2f}x", ylabel="steps per second")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
