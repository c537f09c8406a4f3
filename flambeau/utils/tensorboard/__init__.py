"""`SummaryWriter`: event files that TensorBoard shows. Needs neither it nor protocol buffers.

Owns what is recorded and under which tags; the bytes are `_events`', pictures are `_images`'.
"""

from __future__ import annotations

import itertools
import math
import os
import socket
import time
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from . import _events, _images

__all__ = ["SummaryWriter"]

_numbers = itertools.count()  # of the files that this process opened


def _array(x: Any) -> Any:
    """Numbers of a tensor, an array or a nested sequence."""
    if hasattr(x, "detach"):
        x = x.detach()
        if str(x.dtype).endswith("bfloat16"):
            x = x.float()
        x = x.cpu().numpy()
    return np.asarray(x)


def _number(x: Any, op: str) -> float:
    values = _array(x)
    if values.size != 1:
        raise ValueError(f"{op}: expected one number, got shape {list(values.shape)}")
    return float(values.reshape(-1)[0])


class _File:
    """One event file, opened when the first event comes."""

    def __init__(self, folder: str, suffix: str, max_queue: int, flush_secs: float) -> None:
        self.folder, self.suffix = folder, suffix
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self.waiting, self.flushed = 0, time.monotonic()
        self.stream: Any = None

    def add(self, summary: bytes, step: int | None, walltime: float | None) -> None:
        now = time.time() if walltime is None else walltime
        self._open(now).write(_events.record(_events.event(now, int(step or 0), summary)))
        self.waiting += 1
        if self.waiting >= self.max_queue or time.monotonic() - self.flushed > self.flush_secs:
            self.flush()

    def _open(self, now: float) -> Any:
        if self.stream is None:
            os.makedirs(self.folder, exist_ok=True)
            name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}"
            name = f"{name}.{next(_numbers)}{self.suffix}"
            self.stream = open(os.path.join(self.folder, name), "wb")
            self.stream.write(_events.record(_events.event(now, 0)))
        return self.stream

    def flush(self) -> None:
        if self.stream is not None:
            self.stream.flush()
        self.waiting, self.flushed = 0, time.monotonic()

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()
        self.stream = None


class SummaryWriter:
    """Writes values of a run to an event file.

    Args:
        log_dir: folder of the run; by default `runs/DATE_HOST` and the comment.
        comment: added to the default folder's name.
        purge_step: accepted for compatibility.
        max_queue: events that may wait in memory.
        flush_secs: seconds after which they are written.
        filename_suffix: added to the file's name.

    >>> import tempfile
    >>> from flambeau.utils.tensorboard import SummaryWriter
    >>> with SummaryWriter(tempfile.mkdtemp()) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (step + 1), step)
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            stamp = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{stamp}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self._options = (filename_suffix, max_queue, flush_secs)
        self._files: dict[str, _File] = {}

    def get_logdir(self) -> str:
        """The folder of the run."""
        return self.log_dir

    def _file(self, part: str = "") -> _File:
        if part not in self._files:
            folder = os.path.join(self.log_dir, part) if part else self.log_dir
            self._files[part] = _File(folder, *self._options)
        return self._files[part]

    def _add(self, tag: str, value: bytes, step: Any, walltime: Any, plugin: Any = None) -> None:
        self._file().add(_events.summary(tag, value, plugin), step, walltime)

    # ---- numbers -----------------------------------------------------------------------------

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number, a float of four bytes whatever the last two arguments say."""
        value = _events.scalar(_number(scalar_value, "add_scalar"))
        self._add(tag, value, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Several numbers in one diagram. Each is a run of its own in a folder below this one."""
        for name, x in tag_scalar_dict.items():
            value = _events.scalar(_number(x, "add_scalars"))
            part = f"{main_tag.replace('/', '_')}_{name}"
            self._file(part).add(_events.summary(main_tag, value), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: str | Iterable[float] = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """The distribution of numbers.

        Args:
            bins: "tensorflow", which grow by a tenth from 1e-12 on, limits, or a name that
                `numpy.histogram` knows.
            max_bins: neighbours are joined until there are no more than that.

        Raises:
            ValueError: there is no number, or one is not finite.
        """
        x = _array(values).astype(np.float64).reshape(-1)
        if x.size == 0 or not np.isfinite(x).all():
            raise ValueError("add_histogram: expected finite numbers, at least one")
        limits: Any = _tenths() if isinstance(bins, str) and bins == "tensorflow" else bins
        counts, edges = np.histogram(x, bins=limits)
        if max_bins is not None and len(counts) > max_bins:
            width = -(-len(counts) // max_bins)
            counts = np.add.reduceat(counts, np.arange(0, len(counts), width))
            edges = np.append(edges[:-1:width], edges[-1])
        used = np.flatnonzero(counts)
        first, last = (used[0], used[-1] + 1) if used.size else (0, 1)
        self.add_histogram_raw(
            tag, x.min(), x.max(), x.size, x.sum(), (x * x).sum(),
            edges[first + 1 : last + 1], counts[first:last], global_step, walltime,
        )  # fmt: skip

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: int, sum: float, sum_squares: float,
        bucket_limits: Any, bucket_counts: Any, global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A distribution that is counted already: right ends of buckets, and what each holds."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"add_histogram_raw: expected as many limits as counts, got {len(bucket_limits)} "
                f"and {len(bucket_counts)}"
            )
        limits, counts = map(float, bucket_limits), map(float, bucket_counts)
        moments = (float(min), float(max), float(num), float(sum), float(sum_squares))
        self._add(tag, _events.histogram(*moments, limits, counts), global_step, walltime)

    # ---- pictures and text -------------------------------------------------------------------

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture: bytes, or numbers from 0 to 1; `dataformats` orders the letters C, H and W."""
        pixels = _images.arranged(_array(img_tensor), dataformats.upper(), "HWC")
        self._add_pixels(tag, _images.as_bytes(pixels), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Pictures side by side, eight in a row."""
        pixels = _images.arranged(_array(img_tensor), dataformats.upper(), "NHWC")
        self._add_pixels(tag, _images.grid(_images.as_bytes(pixels)), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of matplotlib, which is closed then unless told otherwise."""
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
        if close:
            from matplotlib import pyplot

            pyplot.close(figure)
        self._add_pixels(tag, pixels, global_step, walltime)

    def _add_pixels(self, tag: str, pixels: Any, step: Any, walltime: Any) -> None:
        height, width, channels = pixels.shape
        value = _events.image(height, width, channels, _images.png(pixels))
        self._add(tag, value, step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Text, shown as Markdown."""
        value = _events.text(text_string)
        self._add(f"{tag}/text_summary", value, global_step, walltime, ("text", b""))

    # ---- runs --------------------------------------------------------------------------------

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Iterable[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Hyperparameters of a run and what came of them, as a run in a folder below this one."""
        values = {
            k: v if isinstance(v, (bool, str, int, float)) else _number(v, "add_hparams")
            for k, v in hparam_dict.items()
        }
        now = time.time()
        file = self._file(run_name or str(now))
        for tag, content in _events.hparams(values, metric_dict, hparam_domain_discrete or {}, now):
            file.add(_events.summary(tag, b"", ("hparams", content)), None, now)
        for tag, x in metric_dict.items():
            value = _events.scalar(_number(x, "add_hparams"))
            file.add(_events.summary(tag, value), global_step, now)

    def add_graph(self, model: Any, *args: Any, **kwargs: Any) -> None:
        """Not supported: there is no graph of a model to write.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"add_graph: expected something else to record than the graph of "
            f"{type(model).__name__}; graphs of models are not written"
        )

    def flush(self) -> None:
        """Writes what waits in memory."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Writes what waits and closes the files; later events open new ones."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def _tenths() -> Any:
    """Limits that grow by a tenth from 1e-12 to 1e20, on both sides of 0."""
    count = math.ceil(math.log(1e32) / math.log(1.1))
    up = 1e-12 * 1.1 ** np.arange(count)
    return np.concatenate([-up[::-1], [0.0], up])
