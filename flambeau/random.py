"""Seeds and states of the default generator.

Owns the functions over ``flambeau.default_generator``; the streams themselves are the core's.
Invariant: ``fork_rng`` leaves the generator as it found it, also after an exception. Must not
know distributions.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau import Tensor

default_generator = fb.default_generator

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def manual_seed(seed: int) -> Any:
    """Start the default generator from ``seed``; the same seed gives the same numbers.

    Args:
        seed: in ``[-2**63, 2**64)``; negative ones count from the top.

    Returns:
        the generator.
    """
    return fb.default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the default generator from a random seed.

    Returns:
        that seed.
    """
    return fb.default_generator.seed()


def initial_seed() -> int:
    """The seed the default generator was last started from."""
    return fb.default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, as uint8."""
    return fb.default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator into a state that ``get_rng_state`` returned."""
    fb.default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """A block whose random draws do not show outside.

    Args:
        devices: GPUs whose generators are kept too; None means all of them.
        enabled: False does nothing.
        device_type: kind of those devices.

    Raises:
        RuntimeError: the device type is unknown.
    """
    if not enabled:
        yield
        return
    kind = fb.device(device_type).type
    module = None if kind in ("cpu", "meta") else getattr(fb, kind, None)
    if module is None and kind not in ("cpu", "meta"):
        raise RuntimeError(f"fork_rng: this build has no module for device type '{device_type}'")
    gpus = _gpus(module, devices, _caller, _devices_kw)
    state = get_rng_state()
    gpu_states = [module.get_rng_state(d) for d in gpus]  # type: ignore[union-attr]
    try:
        yield
    finally:
        set_rng_state(state)
        for device, saved in zip(gpus, gpu_states, strict=True):
            module.set_rng_state(saved, device)  # type: ignore[union-attr]


def _gpus(module: Any, devices: Iterable[Any] | None, caller: str, keyword: str) -> list[Any]:
    if module is None:
        return []
    if devices is not None:
        return list(devices)
    count = module.device_count()
    if count > 1:
        warnings.warn(
            f"{caller}: keeping the generator states of {count} devices; name those that are used "
            f"with the keyword argument `{keyword}` to save the time",
            stacklevel=4,
        )
    return list(range(count))
