"""Another name of `hub.load_state_dict_from_url`."""

from __future__ import annotations

from flambeau.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
