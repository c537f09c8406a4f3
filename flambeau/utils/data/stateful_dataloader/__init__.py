"""`torchdata.stateful_dataloader`: a loader that can be saved in the middle of a pass.

Owns the class of that name and the protocol of datasets that know their own state. All of its
mechanism is `DataLoader`'s; here is how often workers note their state.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ..dataloader import DataLoader
from .stateful import Stateful

__all__ = ["Stateful", "StatefulDataLoader"]

_T_co = TypeVar("_T_co", covariant=True)


class StatefulDataLoader(DataLoader[_T_co]):
    """A `DataLoader` whose workers note their state after every `snapshot_every_n_steps` batches.

    Args:
        snapshot_every_n_steps: a state notes the last of these; what a worker has loaded since is
            loaded again when the state is put back. 1 costs the least then, and the most while
            loading: a tenth of a millisecond a batch, and the dataset's `state_dict`.

    The other arguments are `DataLoader`'s. A dataset, its iterator or a sampler with `state_dict`
    and `load_state_dict` is saved and put back by them.

    Raises:
        ValueError: `snapshot_every_n_steps` is not a positive integer.

    Example:
        >>> from flambeau.utils.data.stateful_dataloader import StatefulDataLoader
        >>> loader = StatefulDataLoader(range(6), batch_size=2)
        >>> batches = iter(loader)
        >>> next(batches).tolist()
        [0, 1]
        >>> other = StatefulDataLoader(range(6), batch_size=2)
        >>> other.load_state_dict(loader.state_dict())
        >>> [batch.tolist() for batch in other]
        [[2, 3], [4, 5]]
    """

    def __init__(self, *args: Any, snapshot_every_n_steps: int | None = 1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        every = 1 if snapshot_every_n_steps is None else snapshot_every_n_steps
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ValueError(
                "snapshot_every_n_steps option should be a positive integer, but got "
                f"snapshot_every_n_steps={snapshot_every_n_steps!r}"
            )
        self.snapshot_every_n_steps = self._snapshot_every = every
