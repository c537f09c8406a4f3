"""The protocol of what knows its own state."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """What has `state_dict` and `load_state_dict`.

    Example:
        >>> from flambeau.utils.data.stateful_dataloader import Stateful, StatefulDataLoader
        >>> isinstance(StatefulDataLoader([1]), Stateful), isinstance([1], Stateful)
        (True, False)
    """

    def state_dict(self) -> dict[str, Any]:
        """The state, as plain data."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Puts this object back to a state."""
        ...
