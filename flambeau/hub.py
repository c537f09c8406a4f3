"""Downloads of weights, and models of a local folder's `hubconf.py`.

Owns the cache folder (TORCH_HOME, else XDG_CACHE_HOME/torch) and the check of what arrives: a file
takes its name only once it is complete and its hash is right. Code from the network is refused.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

#: the hash in a file name such as resnet18-bfd8deac.pth
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
_dir: str | None = None


def _get_torch_home() -> str:
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder where downloads are kept."""
    return _dir if _dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep downloads in another folder."""
    global _dir
    _dir = os.path.expanduser(d)


class _Bar:
    """How far something is, on a terminal; stands for tqdm where that is not installed."""

    def __init__(
        self,
        iterable: Any = None,
        total: int | None = None,
        disable: bool = False,
        unit: str = "",
        unit_scale: bool = False,
        unit_divisor: int = 1000,
        desc: str = "",
        **options: Any,
    ) -> None:
        self.iterable, self.total, self.n, self.desc = iterable, total, 0, desc
        self.disable = disable or not sys.stderr.isatty()

    def update(self, n: int = 1) -> None:
        """Go on by some steps."""
        self.n += n
        if not self.disable:
            share = f"{100 * self.n // self.total} %" if self.total else str(self.n)
            print(f"\r{self.desc}{share}", end="", file=sys.stderr)

    def set_description(self, desc: str = "", refresh: bool = True) -> None:
        """Show another text."""
        self.desc = desc

    def close(self) -> None:
        """End the line."""
        if not self.disable:
            print(file=sys.stderr)

    def __iter__(self) -> Any:
        for value in self.iterable:
            yield value
            self.update()
        self.close()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        bar = importlib.import_module("tqdm").tqdm
    except ImportError:
        bar = _Bar
    globals()[name] = bar
    return bar


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download to a file, which appears when it is complete.

    Args:
        url: address of the file.
        dst: path to write to; its folder must exist.
        hash_prefix: first hexadecimal digits of its SHA-256, checked where given.
        progress: show how far it is, on a terminal.

    Raises:
        RuntimeError: the hash is another one.
    """
    request = Request(url, headers={"User-Agent": "torch.hub"})
    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    partial = None
    try:
        with (
            urlopen(request) as response,
            tempfile.NamedTemporaryFile(
                delete=False, dir=os.path.dirname(dst) or ".", suffix=".partial"
            ) as f,
        ):
            partial = f.name
            total = int(response.headers.get("Content-Length") or 0)
            with _Bar(total=total, disable=not progress, desc=os.path.basename(dst) + ": ") as bar:
                while chunk := response.read(READ_DATA_CHUNK):
                    f.write(chunk)
                    digest.update(chunk)
                    bar.update(len(chunk))
        if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(
                f"download_url_to_file: expected a SHA-256 that starts with {hash_prefix}, "
                f"got {digest.hexdigest()}"
            )
        shutil.move(partial, dst)
    finally:
        if partial is not None and os.path.exists(partial):
            os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load the file at an address, which is downloaded the first time.

    Args:
        url: address of the file.
        model_dir: folder to keep it in; by default `get_dir()` with "checkpoints".
        map_location: as for `load`.
        progress: show how far the download is.
        check_hash: compare the file with the hash in its name.
        file_name: name to keep it under.
        weights_only: as for `load`.
    """
    import flambeau

    folder = model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress)
    return flambeau.load(path, map_location=map_location, weights_only=weights_only)


def _hubconf(repo: Any, source: str) -> Any:
    if source != "local":
        raise RuntimeError(
            f"hub: expected source='local', got {source!r}; code from the network is not run: "
            "clone the repository and give its folder"
        )
    path = os.path.join(os.path.expanduser(repo), "hubconf.py")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    sys.path.insert(0, os.path.expanduser(repo))
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.path.expanduser(repo))
    missing = [m for m in getattr(module, "dependencies", ()) if not importlib.util.find_spec(m)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(repo: Any, model: str, source: str) -> Any:
    function = getattr(_hubconf(repo, source), model, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def list(github: Any, source: str = "github", **kwargs: Any) -> Any:  # noqa: A001
    """Names of the models of a local repository (`source="local"`)."""
    module = _hubconf(github, source)
    return [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]


def help(github: Any, model: str, source: str = "github", **kwargs: Any) -> Any:  # noqa: A001
    """What a local repository says of a model (`source="local"`)."""
    return _entry(github, model, source).__doc__


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """Make a model of a local repository (`source="local"`)."""
    for option in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(option, None)
    return _entry(repo_or_dir, model, source)(*args, **kwargs)
