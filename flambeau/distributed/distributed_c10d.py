"""Another name of `distributed`, under which programs import from it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from . import *  # noqa: F403
from . import __all__ as __all__
from ._group import _default, group_of


def _get_default_group() -> Any:
    return _default()


def _set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
    found = group_of(group)
    if found is None:
        raise ValueError("_set_pg_timeout: expected a group that this process is in")
    found._set_default_timeout(timeout)


def _rank_not_in_group(group: Any) -> bool:
    return group_of(group) is None
