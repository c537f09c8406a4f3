"""Models of repositories (`hubconf.py`) and weights at an address, kept in a cache folder.

Owns the addresses, the cache folder (TORCH_HOME, else XDG_CACHE_HOME/torch) and the check of what
arrives. Invariant: a file or a repository takes its name only once it is complete and its hash is
right; code of the network runs only where its repository is trusted. How archives are unpacked and
trust is kept stands in `_hub`.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import uuid
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any
from urllib.error import ContentTooShortError, HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from ._hub import progress as _progress
from ._hub import repository as _repository

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
ENV_GITHUB_TOKEN = "GITHUB_TOKEN"
MODULE_HUBCONF = "hubconf.py"
_BRANCHES = ("main", "master")  # of a repository without a ref, in this order
_dir: str | None = None


def _get_torch_home() -> str:
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder where downloads are kept: `$TORCH_HOME/hub`, unless `set_dir` named another.

    >>> import os
    >>> import flambeau as torch
    >>> os.path.basename(torch.hub.get_dir())
    'hub'
    """
    return _dir if _dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep downloads in another folder, which is made when it is first needed."""
    global _dir
    _dir = os.path.expanduser(d)


def __getattr__(name: str) -> Any:
    if name not in ("tqdm", "_Faketqdm"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _progress.bar_class() if name == "tqdm" else _progress.Bar


# Addresses ----------------------------------------------------------------------------------------


def _base() -> str:
    return os.getenv("FLAMBEAU_HUB_URL", "https://github.com").rstrip("/")


def _api_base() -> str:
    """The API's address; a server of one's own has it where GitHub Enterprise Server does."""
    own = os.getenv("FLAMBEAU_HUB_URL")
    default = own.rstrip("/") + "/api/v3" if own else "https://api.github.com"
    return os.getenv("FLAMBEAU_HUB_API_URL", default).rstrip("/")


def _git_archive_link(repo_owner: str, repo_name: str, ref: str) -> str:
    return f"{_base()}/{repo_owner}/{repo_name}/zipball/{ref}"


def _read_url(url: Any) -> str:
    with urlopen(url) as response:
        return response.read().decode(response.headers.get_content_charset("utf-8"))


def _parse_repo_info(github: str) -> tuple[str, str, str]:
    """Owner, name and ref; where no ref is given, the default branch is looked up."""
    owner, name, ref = _repository.split_name(github)
    if ref is not None:
        return owner, name, ref
    try:
        with urlopen(f"{_base()}/{owner}/{name}/tree/main/"):
            return owner, name, "main"
    except HTTPError as error:
        error.close()
        if error.code == 404:
            return owner, name, "master"
        raise
    except URLError as error:
        for ref in _BRANCHES:
            if os.path.exists(os.path.join(get_dir(), f"{owner}_{name}_{ref}")):
                return owner, name, ref
        raise RuntimeError(
            f"hub: It looks like there is no internet connection and the repo {owner}/{name} "
            f"could not be found in the cache ({get_dir()})"
        ) from error


def _validate_not_a_forked_repo(repo_owner: str, repo_name: str, ref: str) -> None:
    """Check that a ref is a branch, a tag or the head of one: forks share their commits.

    Raises:
        ValueError: it is none of the repository's own.
    """
    token = os.environ.get(ENV_GITHUB_TOKEN)
    for kind in ("branches", "tags"):
        page, before = 0, None
        while True:
            page += 1
            query = f"{kind}?per_page=100&page={page}"
            url = f"{_api_base()}/repos/{repo_owner}/{repo_name}/{query}"
            try:
                found = json.loads(_read_url(_api_request(url, token)))
            except HTTPError as error:
                error.close()
                if token is None:
                    raise
                token = None  # it may have too few rights: ask as anyone
                found = json.loads(_read_url(_api_request(url, token)))
            if not found or found == before:
                break
            if any(b["name"] == ref or b["commit"]["sha"].startswith(ref) for b in found):
                return
            before = found
    raise ValueError(
        f"hub: Cannot find {ref} in {_base()}/{repo_owner}/{repo_name}. If it's a commit from a "
        "forked repo, please call hub.load() with forked repo directly"
    )


def _api_request(url: str, token: str | None) -> Request:
    request = Request(url, headers={"Accept": "application/vnd.github.v3+json"})
    if token is not None:  # not sent on to where the server may redirect us
        request.add_unredirected_header("Authorization", f"token {token}")
    return request


# Downloads ----------------------------------------------------------------------------------------


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download to a file, which appears when it is complete.

    Args:
        url: address of the file.
        dst: path to write to; its folder must exist.
        hash_prefix: first hexadecimal digits of its SHA-256, checked where given.
        progress: show how far it is, on standard error; tqdm does where it is installed.

    Raises:
        RuntimeError: the hash is another one.
        urllib.error.URLError: the server cannot be reached, or sent less than it said.
    """
    request = Request(url, headers={"User-Agent": "torch.hub"})
    dst = os.path.expanduser(dst)
    partial = f"{dst}.{uuid.uuid4().hex}.partial"
    digest = hashlib.sha256()
    try:
        with urlopen(request) as response, open(partial, "xb") as f:
            length = response.headers.get("Content-Length")
            total = int(length) if length is not None else None
            received = 0
            with _progress.bar_class()(
                total=total, disable=not progress, unit="B", unit_scale=True, unit_divisor=1024
            ) as bar:
                while chunk := response.read(READ_DATA_CHUNK):
                    f.write(chunk)
                    digest.update(chunk)
                    received += len(chunk)
                    bar.update(len(chunk))
        if total is not None and received < total:
            raise ContentTooShortError(
                f"download_url_to_file: expected {total} bytes, got {received}",
                (dst, response.headers),
            )
        if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(
                f'download_url_to_file: invalid hash value (expected "{hash_prefix}", got '
                f'"{digest.hexdigest()}"), the first digits of the SHA-256'
            )
        os.replace(partial, dst)
    finally:
        with contextlib.suppress(FileNotFoundError):
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
        file_name: name to keep it under; by default the last part of the address.
        weights_only: as for `load`; True by default, other than in PyTorch.

    Raises:
        ValueError: there is no name to keep it under.
        RuntimeError: the hash is another one.
    """
    import flambeau

    folder = model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    if not name or name in (".", ".."):
        raise ValueError(
            f"load_state_dict_from_url: {url!r} has no file name at its end; give file_name"
        )
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress=progress)
    if _is_legacy_zip_format(path):
        return _legacy_zip_load(path, folder, map_location, weights_only)
    return flambeau.load(path, map_location=map_location, weights_only=weights_only)


def _is_legacy_zip_format(filename: str) -> bool:
    """Whether a file is a zip archive made by hand of one file that `save` wrote."""
    if not zipfile.is_zipfile(filename):
        return False
    with zipfile.ZipFile(filename) as file:
        entries = file.infolist()
    return len(entries) == 1 and not entries[0].is_dir()


def _legacy_zip_load(filename: str, model_dir: str, map_location: Any, weights_only: bool) -> Any:
    import flambeau

    warnings.warn(
        "load_state_dict_from_url: a file zipped by hand is unpacked; save it again with "
        "torch.save, whose files are zip archives themselves",
        FutureWarning,
        stacklevel=3,
    )
    with zipfile.ZipFile(filename) as file, tempfile.TemporaryFile(dir=model_dir) as unpacked:
        with file.open(file.infolist()[0]) as entry:
            while chunk := entry.read(READ_DATA_CHUNK):
                unpacked.write(chunk)
        unpacked.seek(0)
        return flambeau.load(unpacked, map_location=map_location, weights_only=weights_only)


# Repositories -------------------------------------------------------------------------------------


def _get_cache_or_reload(
    github: str,
    force_reload: bool,
    trust_repo: Any,
    verbose: bool = True,
    skip_validation: bool = False,
) -> str:
    """The folder of a repository, which is downloaded where the cache has it not."""
    hub_dir = get_dir()
    os.makedirs(hub_dir, exist_ok=True)
    owner, name, ref = _parse_repo_info(github)
    repo_dir = os.path.join(hub_dir, f"{owner}_{name}_{ref.replace('/', '_')}")
    known = os.path.isdir(repo_dir)
    _repository.check_trust(owner, name, known, os.path.join(hub_dir, "trusted_list"), trust_repo)
    if known and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {repo_dir}\n")
        return repo_dir
    if not skip_validation:
        _validate_not_a_forked_repo(owner, name, ref)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=hub_dir) as scratch:
        archive = os.path.join(scratch, "archive.zip")
        _download_archive(owner, name, ref, archive)
        unpacked = _repository.unpack(archive, os.path.join(scratch, "content"))
        _repository.put_in_place(unpacked, repo_dir)
    return repo_dir


def _download_archive(owner: str, name: str, ref: str, archive: str) -> None:
    url = _git_archive_link(owner, name, ref)
    sys.stdout.write(f'Downloading: "{url}" to {get_dir()}\n')
    try:
        download_url_to_file(url, archive, progress=False)
    except HTTPError as error:
        error.close()
        if error.code != 300:
            raise
        warnings.warn(
            f"The ref {ref} is ambiguous. Perhaps it is both a tag and a branch in the repo? The "
            "branch is taken; give refs/heads/NAME or refs/tags/NAME to say which, for which "
            "skip_validation=True may be needed",
            stacklevel=5,
        )
        link = _git_archive_link(owner, name, f"refs/heads/{ref}")
        download_url_to_file(link, archive, progress=False)


@contextlib.contextmanager
def _add_to_sys_path(path: str) -> Iterator[None]:
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


def _import_module(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_entry_from_hubconf(m: Any, model: Any) -> Any:
    if not isinstance(model, str):
        raise ValueError(
            f"Invalid input: model should be a string of function name, got {type(model).__name__}"
        )
    wanted = getattr(m, "dependencies", None) or ()
    missing = [package for package in wanted if importlib.util.find_spec(package) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(m, model, None)
    if not callable(function):
        raise RuntimeError(
            f"Cannot find callable {model} in hubconf, which has {', '.join(_entries(m)) or 'none'}"
        )
    return function


def _entries(module: Any) -> builtins.list[str]:
    return [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("_")]


def _folder(
    repo: Any,
    source: str,
    force_reload: bool,
    trust_repo: Any,
    verbose: bool,
    skip_validation: bool,
) -> str:
    source = source.lower()
    if source == "github":
        return _get_cache_or_reload(repo, force_reload, trust_repo, verbose, skip_validation)
    if source != "local":
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    return os.path.expanduser(os.fspath(repo))


def _hubconf(folder: str) -> Any:
    return _import_module(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))


def list(  # noqa: A001
    github: Any,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
    source: str = "github",
) -> builtins.list[str]:
    """Names of the callables that a repository's `hubconf.py` offers.

    Args:
        github: as `repo_or_dir` of `load`.
        force_reload: as for `load`.
        skip_validation: as for `load`.
        trust_repo: as for `load`.
        verbose: as for `load`.
        source: as for `load`.
    """
    folder = _folder(github, source, force_reload, trust_repo, verbose, skip_validation)
    with _add_to_sys_path(folder):
        return _entries(_hubconf(folder))


def help(  # noqa: A001
    github: Any,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    source: str = "github",
) -> Any:
    """The docstring of a callable that a repository's `hubconf.py` offers.

    Args:
        github: as `repo_or_dir` of `load`.
        model: name of the callable.
        force_reload: as for `load`.
        skip_validation: as for `load`.
        trust_repo: as for `load`.
        source: as for `load`.
    """
    folder = _folder(github, source, force_reload, trust_repo, True, skip_validation)
    with _add_to_sys_path(folder):
        return _load_entry_from_hubconf(_hubconf(folder), model).__doc__


def load(
    repo_or_dir: Any,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call what a repository's `hubconf.py` offers under a name, and give what it returns.

    Args:
        repo_or_dir: `owner/name[:ref]` on GitHub, ref being a branch, a tag or a commit at the head
            of one, by default the branch main or master; a folder where `source` is "local".
        model: name of the callable.
        *args: its arguments.
        source: "github" or "local".
        trust_repo: True runs the code; "check" asks on the terminal about a repository that is not
            in the list of trusted ones; False and "ask" ask in any case.
        force_reload: download it even where the cache has it.
        verbose: say where the cache has it.
        skip_validation: do not ask GitHub whether the ref is one of the repository's own.
        **kwargs: its arguments by name.

    Raises:
        ValueError: another spelling or source; a ref that is not the repository's; an archive
            whose entries lead out of its folder.
        RuntimeError: the repository is not trusted, something that it depends on is not installed,
            or it has no such callable.
    """
    folder = _folder(repo_or_dir, source, force_reload, trust_repo, verbose, skip_validation)
    return _load_local(folder, model, *args, **kwargs)


def _load_local(hubconf_dir: str, model: str, *args: Any, **kwargs: Any) -> Any:
    with _add_to_sys_path(hubconf_dir):
        return _load_entry_from_hubconf(_hubconf(hubconf_dir), model)(*args, **kwargs)
