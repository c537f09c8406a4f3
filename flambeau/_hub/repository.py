"""Repositories as archives: what a name says, what is unpacked, who is trusted.

Owns the spelling `owner/name[:ref]`, the rules for entries of an archive and the file
`trusted_list`. Invariant: nothing is written outside of the folder that is given, no link is made,
and a repository's folder is there whole or not at all. It knows no network.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import zipfile
from pathlib import Path
from typing import Any

#: owners whose repositories are not asked about, as PyTorch has them
TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")

_NAME = re.compile(r"[A-Za-z0-9_.-]+\Z")
_SEPARATOR = re.compile(r"[/\\]")
_MOST_OF_A_LINK = 4096  # the longest path that Linux takes


def split_name(github: Any) -> tuple[str, str, str | None]:
    """Owner, name and ref (None where there is none) of ``owner/name[:ref]``.

    Raises:
        ValueError: another spelling, or characters that such names do not have.
    """
    wanted = "hub: expected a repository as 'owner/name' or 'owner/name:ref'"
    if not isinstance(github, str):
        raise TypeError(f"{wanted}, got {type(github).__name__}")
    path, colon, ref = github.partition(":")
    parts = path.split("/")
    if len(parts) != 2 or not all(_NAME.match(p) and p.strip(".") for p in parts):
        raise ValueError(f"{wanted}, got {github!r}; for a folder give source='local'")
    if colon and (not ref or ":" in ref or "\\" in ref or not ref.isprintable() or " " in ref):
        raise ValueError(f"{wanted}, got the ref {ref!r}")
    return parts[0], parts[1], ref if colon else None


def unpack(archive: str, folder: str) -> str:
    """Unpack a zip archive into a new, empty folder; the path of its one top folder.

    Links that stay inside become files that hold their target's name, as `zipfile` writes them.

    Raises:
        ValueError: an entry would lie outside of `folder`, is a link that leads out of the
            archive, is neither file nor folder, or the archive has not one top folder.
    """
    root = Path(folder).resolve()
    tops = set()
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            name = _checked_name(member.filename, root)
            tops.add(name.split(os.sep)[0])
            _check_kind(file, member, name)
            file.extract(member, root)
    if len(tops) != 1 or not os.path.isdir(root / min(tops)):
        raise ValueError(
            f"hub: expected an archive with one folder at its top, got {sorted(tops)[:4]}"
        )
    return str(root / min(tops))


def _checked_name(filename: str, root: Path) -> str:
    name = os.path.normpath(filename)
    if name.startswith(("/", "\\")) or name[1:2] == ":":
        raise ValueError(f"hub: Archive entry has absolute path: {filename!r}")
    if ".." in _SEPARATOR.split(name):
        raise ValueError(f"hub: Archive entry contains directory traversal: {filename!r}")
    if not (root / name).resolve().is_relative_to(root):
        raise ValueError(f"hub: Archive entry escapes target directory: {filename!r}")
    return name


def _check_kind(file: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> None:
    """Refuse links that lead out of the archive, and devices, pipes and the like."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind == stat.S_IFLNK:
        with file.open(member) as entry:
            target = os.fsdecode(entry.read(_MOST_OF_A_LINK))
        reached = os.path.normpath(os.path.join(os.path.dirname(name), target))
        top = name.split(os.sep)[0]
        if os.path.isabs(target) or reached.split(os.sep)[0] != top:
            raise ValueError(
                f"hub: Archive entry is a symlink that leads out of the archive: "
                f"{member.filename!r} to {target[:80]!r}"
            )
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise ValueError(f"hub: Archive entry is no file, folder or link: {member.filename!r}")


def put_in_place(folder: str, place: str) -> None:
    """Move a folder to a place, of which an older one is removed once it has been moved away."""
    old = folder + ".old"
    if os.path.lexists(place):
        os.replace(place, old)
    os.replace(folder, place)
    if os.path.isdir(old) and not os.path.islink(old):
        shutil.rmtree(old)


def check_trust(owner: str, name: str, known: bool, list_file: str, trust_repo: Any) -> None:
    """Ask the user where a repository is not trusted, and write down one that now is.

    Args:
        owner: owner of the repository.
        name: its name.
        known: whether the cache holds it already, which counts as trust.
        list_file: path of the file with a trusted `owner_name` a line.
        trust_repo: True trusts; "check" asks about what is not trusted; False and "ask" ask.

    Raises:
        RuntimeError: the user says no, or nobody can be asked.
        ValueError: `trust_repo` or the answer is something else.
    """
    if trust_repo not in (True, False, "check", "ask"):
        raise ValueError(
            f"hub: expected trust_repo to be True, False, 'check' or 'ask', got {trust_repo!r}"
        )
    entry = f"{owner}_{name}"
    lines = Path(list_file).read_text().split("\n") if os.path.exists(list_file) else []
    trusted = known or owner in TRUSTED_OWNERS or entry in (line.strip() for line in lines)
    if trust_repo is not True and not (trust_repo == "check" and trusted):
        _ask(entry, trusted)
    if not trusted:
        with open(list_file, "a") as file:
            file.write(entry + "\n")


def _ask(entry: str, trusted: bool) -> None:
    question = (
        f"The repository {entry} does not belong to the list of trusted repositories and as such "
        "cannot be downloaded. Do you trust this repository and wish to add it to the trusted "
        "list of repositories (y/N)?"
    )
    try:
        answer = input(question).strip().lower()
    except EOFError:
        raise RuntimeError(
            f"hub: Untrusted repository. {entry} is not in the list of trusted repositories, and "
            "there is nobody to ask; if you trust its code, give trust_repo=True"
        ) from None
    if answer in ("n", "no", ""):
        raise RuntimeError(f"hub: Untrusted repository. {entry} was not trusted, and not loaded")
    if answer not in ("y", "yes"):
        raise ValueError(f"hub: Unrecognized response {answer!r}; expected y or n")
    if trusted:
        print("The repository is already trusted.")
