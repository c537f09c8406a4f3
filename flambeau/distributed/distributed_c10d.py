"""Another name of `distributed`, under which programs import from it."""

from __future__ import annotations

from typing import Any

from . import *  # noqa: F403
from . import __all__ as __all__
from ._group import _default, group_of


def _get_default_group() -> Any:
    return _default()


def _rank_not_in_group(group: Any) -> bool:
    return group_of(group) is None
