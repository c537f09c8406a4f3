"""What functions given to `register_fake` may ask for."""

from __future__ import annotations

from typing import Any


class FakeContext:
    """What `get_ctx()` gives."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """A size that only the data tell.

        Raises:
            NotImplementedError: always: a graph ends before the operator.
        """
        raise NotImplementedError(
            "get_ctx().new_dynamic_size(): results whose shapes depend on the data are not part of "
            "graphs; compile without fullgraph=True, which runs the operator between two graphs"
        )

    new_dynamic_symint = create_unbacked_symint = new_dynamic_size


def get_ctx() -> FakeContext:
    """What the function that is registered as an operator's fake may ask."""
    return FakeContext()
