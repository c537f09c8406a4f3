"""`enable`, `disable` and `status`: `torch` of a whole environment.

Owns what is written there: `torch/__init__.py`, which hands over to the alias, and the record of a
distribution `torch`, so that pip finds it, regards requirements as met and can uninstall it.
Invariants: nothing that is not ours is replaced or removed; the record is complete before the
package appears, and each file takes its name only once it is written.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import sys
import sysconfig
import tempfile

from . import _paths

_TOOL = "flambeau.as_torch"


class Refused(Exception):
    """Why the environment is left as it is."""


def _site() -> str:
    return sysconfig.get_path("purelib")


def _places() -> list[str]:
    """Folders of the environment in which a `torch` may be installed."""
    return list(dict.fromkeys((_site(), sysconfig.get_path("platlib"))))


def _records() -> list[str]:
    """Folders with records of a distribution `torch`."""
    found = []
    for place in _places():
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            if name.startswith("torch-") and name.endswith((".dist-info", ".egg-info")):
                found.append(os.path.join(place, name))
    return found


def _ours(record: str) -> bool:
    try:
        with open(os.path.join(record, "INSTALLER"), encoding="utf-8") as f:
            return f.read().strip() == _TOOL
    except OSError:
        return False


def _foreign() -> str | None:
    """A `torch` of the environment that is not ours."""
    records = _records()
    for record in records:
        if not _ours(record):
            return record
    if not records:
        for place in _places():
            path = os.path.join(place, "torch")
            if os.path.lexists(path) or os.path.lexists(path + ".py"):
                return path
    return None


def _line(name: str, content: bytes) -> str:
    """A line of RECORD: name, hash and size of a file."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def _write(folder: str, name: str, content: bytes) -> None:
    with open(os.path.join(folder, name), "wb") as f:
        f.write(content)
        f.flush()
        os.fsync(f.fileno())


def enable() -> str:
    """Write what makes `torch` of this environment ours; return the folder it is in."""
    site, record_name = _site(), f"torch-{_paths.VERSION}.dist-info"
    foreign = _foreign()
    if foreign is not None:
        raise Refused(f"expected an environment without PyTorch, found {foreign}; uninstall it")
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    if sys.prefix == sys.base_prefix and os.path.exists(marker):
        raise Refused(f"expected a virtual environment; {sys.prefix} is kept by the system")
    disable()  # an older one of ours
    with open(os.path.join(_paths.FOLDER, "torch", "__init__.py"), "rb") as f:
        package = f.read()
    files = {
        "METADATA": _paths.METADATA.encode(),
        "INSTALLER": f"{_TOOL}\n".encode(),
        "top_level.txt": b"torch\n",
    }
    lines = [_line("torch/__init__.py", package)]
    lines += [_line(f"{record_name}/{name}", content) for name, content in files.items()]
    files["RECORD"] = "\n".join([*lines, f"{record_name}/RECORD,,", ""]).encode()
    with tempfile.TemporaryDirectory(dir=site, prefix=".as_torch-") as draft:
        for folder, contents in (("torch", {"__init__.py": package}), (record_name, files)):
            os.mkdir(os.path.join(draft, folder), 0o755)
            for name, content in contents.items():
                _write(os.path.join(draft, folder), name, content)
        os.rename(os.path.join(draft, record_name), os.path.join(site, record_name))
        try:
            os.rename(os.path.join(draft, "torch"), os.path.join(site, "torch"))
        except OSError:
            shutil.rmtree(os.path.join(site, record_name))
            raise
    return site


def disable() -> bool:
    """Remove what `enable` wrote and nothing else; return whether there was anything."""
    found = False
    for record in _records():
        if not _ours(record):
            continue
        found = True
        site = os.path.dirname(record)
        package = os.path.join(site, "torch")
        _remove(os.path.join(package, "__init__.py"))
        shutil.rmtree(os.path.join(package, "__pycache__"), ignore_errors=True)
        if os.path.isdir(package) and not os.listdir(package):
            os.rmdir(package)
        for name in ("METADATA", "top_level.txt", "REQUESTED", "direct_url.json", "RECORD"):
            _remove(os.path.join(record, name))
        _remove(os.path.join(record, "INSTALLER"))  # last: it says that the record is ours
        if not os.listdir(record):
            os.rmdir(record)
    return found


def _remove(path: str) -> None:
    if os.path.lexists(path):
        os.remove(path)


def status() -> str:
    """What `import torch` finds in this environment, in a line."""
    foreign = _foreign()
    if foreign is not None:
        return f"torch is PyTorch's own: {foreign}"
    records = _records()
    if records:
        return f"torch is Flambeau: {records[0]}"
    return f"no torch in {_site()}; `python -m {_TOOL} enable` makes Flambeau answer for it"


def command(arguments: list[str]) -> int:
    """Do what the command line says and print the state after it."""
    if len(arguments) != 1:
        print(f"{_TOOL} {arguments[0]}: expected no arguments", file=sys.stderr)
        return 2
    try:
        if arguments[0] == "enable":
            enable()
        elif arguments[0] == "disable":
            disable()
    except (Refused, OSError) as error:
        print(f"{_TOOL} {arguments[0]}: {error}", file=sys.stderr)
        return 1
    print(status())
    return 0
