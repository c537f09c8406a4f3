"""The protocol of what knows its own state, by the name that it has beside the nodes."""

from ..stateful_dataloader.stateful import Stateful

__all__ = ["Stateful"]
