"""Decoders of file contents by the ending of the name: text, numbers, pickles, images, matrices.

Owns the table of endings. Packages that read pictures, sound and films are imported when a file of
the kind comes; what is missing is an error that names it.
"""

from __future__ import annotations

import io
import json
import os
import pickle
from collections.abc import Callable
from typing import Any

import flambeau as fb

from .._late import Late
from .common import StreamWrapper

__all__ = [
    "Decoder",
    "ImageHandler",
    "MatHandler",
    "audiohandler",
    "basichandlers",
    "extension_extract_fn",
    "handle_extension",
    "imagehandler",
    "mathandler",
    "videohandler",
]

tempfile: Any = Late("tempfile")
_INTEGERS = ("cls", "cls2", "class", "count", "index", "inx", "id")
#: name of a form → (library, element type, mode)
imagespecs = {
    prefix + mode + suffix: (library, element, mode)
    for prefix, library in (("", "numpy"), ("torch", "torch"))
    for mode in ("l", "rgb", "rgba")
    for suffix, element in (("8", "uint8"), ("", "float"))
}
imagespecs.update(
    {
        "torch": ("torch", "float", "rgb"),
        "pil": ("pil", "", "rgb"),
        "pill": ("pil", "", "l"),
        "pilrgb": ("pil", "", "rgb"),
        "pilrgba": ("pil", "", "rgba"),
    }
)


def basichandlers(extension: str, data: bytes) -> Any:
    """Decode text, integers, JSON, pickles and saved tensors; None for other endings.

    >>> from flambeau.utils.data.datapipes.utils.decoder import basichandlers
    >>> basichandlers("txt", b"some"), basichandlers("cls", b"3"), basichandlers("wav", b"")
    ('some', 3, None)
    """
    if extension in ("txt", "text", "transcript"):
        return data.decode("utf-8")
    if extension in _INTEGERS:
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    if extension == "pt":
        return fb.load(io.BytesIO(data))
    return None


def handle_extension(extensions: str, f: Callable[[bytes], Any]) -> Callable[[str, bytes], Any]:
    """A handler that applies `f` to names with one of the endings, separated by spaces.

    >>> from flambeau.utils.data.datapipes.utils.decoder import handle_extension
    >>> handler = handle_extension("seg.png raw", len)
    >>> handler("a.seg.png", b"12"), handler("a.png", b"12")
    (2, None)
    """
    targets = [target.split(".") for target in extensions.lower().split()]

    def handler(key: str, data: bytes) -> Any:
        parts = key.lower().split(".")
        if any(parts[-len(target) :] == target for target in targets):
            return f(data)
        return None

    return handler


def _needs(package: str, what: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"Package `{package}` is required to be installed for default {what}. Please use `pip "
        f"install {package}` to install the package"
    )


class ImageHandler:
    """Decodes pictures with Pillow.

    Args:
        imagespec: form of the result: `pil`, or `torch` before a mode (`l`, `rgb`, `rgba`) for
            tensors, channels first, nothing before it for NumPy arrays; `8` behind it for bytes
            rather than floats from 0 to 1.

    Raises:
        AssertionError: an unknown form.
    """

    def __init__(self, imagespec: str) -> None:
        if imagespec not in imagespecs:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension.lower() not in ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm"):
            return None
        try:
            import PIL.Image
        except ModuleNotFoundError:
            raise _needs("Pillow", "image decoder") from None
        import numpy as np

        library, element, mode = imagespecs[self.imagespec]
        with io.BytesIO(data) as stream:
            image = PIL.Image.open(stream).convert(mode.upper())
        if library == "pil":
            return image
        pixels = np.array(image)
        if library == "numpy":
            return pixels if element == "uint8" else pixels.astype("f") / 255.0
        if pixels.ndim == 2:
            pixels = pixels[:, :, None]
        tensor = fb.tensor(pixels.transpose(2, 0, 1).copy())
        return tensor if element == "uint8" else tensor / 255.0


def imagehandler(imagespec: str) -> ImageHandler:
    """See `ImageHandler`."""
    return ImageHandler(imagespec)


def _by_file(extension: str, data: bytes, read: Callable[[str], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as file:
            file.write(data)
        return read(path)


def videohandler(extension: str, data: bytes) -> Any:
    """Decode films with torchvision; None for other endings."""
    if extension not in ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv"):
        return None
    try:
        import torchvision.io
    except ImportError:
        raise _needs("torchvision", "video file loader") from None
    return _by_file(extension, data, torchvision.io.read_video)


def audiohandler(extension: str, data: bytes) -> Any:
    """Decode sound with torchaudio; None for other endings."""
    if extension not in ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma"):
        return None
    try:
        import torchaudio
    except ImportError:
        raise _needs("torchaudio", "audio file loader") from None
    return _by_file(extension, data, torchaudio.load)


class MatHandler:
    """Decodes files of MATLAB with SciPy.

    Args:
        **loadmat_kwargs: arguments of `scipy.io.loadmat`.
    """

    def __init__(self, **loadmat_kwargs: Any) -> None:
        try:
            import scipy.io
        except ImportError:
            raise _needs("scipy", "mat file") from None
        self.sio = scipy.io
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return self.sio.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """See `MatHandler`."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The ending of a path, without its dot."""
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """Decodes (name, content) by the first handler that answers.

    Args:
        *handler: functions of (key, bytes) that return None for what is not theirs.
        key_fn: function of a name: the key.
    """

    def __init__(
        self,
        *handler: Callable[..., Any],
        key_fn: Callable[[str], str] = extension_extract_fn,
    ) -> None:
        self.handlers = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Put handlers before the others."""
        self.handlers[:0] = handler

    def decode1(self, key: str, data: Any) -> Any:
        """The content decoded, or as it is if no handler answers."""
        if not data:
            return data
        stream = data.file_obj if isinstance(data, StreamWrapper) else data
        if isinstance(stream, io.BufferedIOBase | io.RawIOBase):
            content = b"".join(data)  # reads of some streams return less than all
            data.close()
            data = content
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """Name → decoded content, of one pair or of several."""
        result: dict[str, Any] = {}
        for name, content in [data] if isinstance(data, tuple) else data or ():
            if name[0] == "_" and isinstance(content, bytes):
                result[name] = content.decode("utf-8")
            else:
                result[name] = self.decode1(self.key_fn(name), content)
        return result

    def __call__(self, data: Any) -> dict[str, Any]:
        return self.decode(data)
