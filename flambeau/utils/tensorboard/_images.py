"""Tensors as pictures: layouts, scaling to bytes, PNG.

Owns the conversion. Source of the format: ISO/IEC 15948 (PNG).
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np


def arranged(pixels: Any, layout: str, wanted: str) -> Any:
    """An array with its axes in another order; those that it lacks have size 1.

    Raises:
        ValueError: the letters of `layout` do not fit the array.
    """
    if len(layout) != pixels.ndim or len(set(layout)) != len(layout) or set(layout) - set(wanted):
        raise ValueError(
            f"add_image: expected dataformats with a letter of {wanted} for each of the "
            f"{pixels.ndim} dimensions, got {layout!r}"
        )
    kept = [letter for letter in wanted if letter in layout]
    pixels = pixels.transpose([layout.index(letter) for letter in kept])
    for axis, letter in enumerate(wanted):
        if letter not in layout:
            pixels = np.expand_dims(pixels, axis)
    return pixels


def as_bytes(pixels: Any) -> Any:
    """uint8 as it is; other numbers are fractions of full brightness."""
    if pixels.dtype == np.uint8:
        return pixels
    return (pixels.astype(np.float64).clip(0, 1) * 255).astype(np.uint8)


def grid(images: Any) -> Any:
    """Images (N, H, W, C) as one picture of rows of eight."""
    n, height, width, channels = images.shape
    columns = min(n, 8)
    rows = -(-n // columns)
    canvas = np.zeros((rows * columns, height, width, channels), images.dtype)
    canvas[:n] = images
    canvas = canvas.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return canvas.reshape(rows * height, columns * width, channels)


def png(pixels: Any) -> bytes:
    """A PNG file of (H, W, C) bytes with 1 (grey), 2 (grey, alpha), 3 or 4 channels."""
    height, width, channels = pixels.shape
    if channels not in (1, 2, 3, 4):
        raise ValueError(f"add_image: expected 1 to 4 channels, got {channels}")

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
