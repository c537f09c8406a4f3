"""On which device the storages of a file come back.

Owns ``map_location``. It knows storages as flat tensors of bytes and no file formats.
"""

from __future__ import annotations

from typing import Any

import flambeau as fb


def place(flat: Any, saved: str, map_location: Any) -> Any:
    """The storage on its device.

    Args:
        flat: its bytes, a one-dimensional tensor on the CPU.
        saved: name of the device it was saved from.
        map_location: what the user gave to ``load``.

    Raises:
        RuntimeError: the device is unknown, or missing here.
        TypeError: the function given returned something else than a storage or None.
    """
    if callable(map_location) and not isinstance(map_location, (str, fb.device)):
        moved = map_location(flat.untyped_storage(), saved)
        if moved is not None:
            untyped = getattr(moved, "_untyped_storage", moved)
            if not isinstance(untyped, fb.UntypedStorage):
                raise TypeError(
                    "load: map_location: expected a storage or None from the function, got "
                    f"{type(moved).__name__}"
                )
            if untyped.device.type == "cpu" and untyped.nbytes() == flat.numel():
                if untyped.data_ptr() == flat.data_ptr():
                    return flat
                return fb.empty(0, dtype=fb.uint8).set_(untyped, 0, (flat.numel(),), (1,))
            return flat.to(_checked_device(str(untyped.device)))
        target = saved
    elif map_location is None:
        target = saved
    elif isinstance(map_location, dict):
        target = str(map_location.get(saved, saved))
    else:
        target = str(map_location)
    return flat if target == "cpu" else flat.to(_checked_device(target))


def _checked_device(name: str) -> Any:
    try:
        device = fb.device(name)
    except RuntimeError as error:
        raise RuntimeError(f"load: unknown device {name!r} ({error})") from error
    if device.type == "cuda" and not fb.cuda.is_available():
        raise RuntimeError(
            f"load: attempting to deserialize object on device {name!r}, but CUDA is not available "
            "here; pass map_location='cpu' to load it on the CPU"
        )
    return device
