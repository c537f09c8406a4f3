"""Packing an optimiser's groups and state into a state dict, and back.

Invariant: a parameter's position counts over all groups in order; a state value keyed by
something that is not a parameter passes through untouched. Must not know hooks nor any update
rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import Optimizer

Group = dict[str, Any]


def pack(optimizer: Optimizer) -> dict[str, Any]:
    """The state dict of ``optimizer``; tensors are shared with it."""
    position: dict[int, int] = {}
    for p in chain.from_iterable(g["params"] for g in optimizer.param_groups):
        position.setdefault(id(p), len(position))
    groups = []
    for group in optimizer.param_groups:
        packed = {k: v for k, v in group.items() if k != "params"}
        packed["params"] = [position[id(p)] for p in group["params"]]
        groups.append(packed)
    state = {
        (position[id(key)] if isinstance(key, fb.Tensor) else key): value
        for key, value in optimizer.state.items()
    }
    return {"state": state, "param_groups": groups}


def load_into(optimizer: Optimizer, state_dict: dict[str, Any]) -> None:
    """Replace groups and state of ``optimizer`` by those of ``state_dict``."""
    groups = optimizer.param_groups
    saved = deepcopy(state_dict["param_groups"])
    _check_shapes(groups, saved)
    owner = dict(
        zip(
            chain.from_iterable(g["params"] for g in saved),
            chain.from_iterable(g["params"] for g in groups),
            strict=False,
        )
    )
    mode_of = {key: group for group in saved for key in group["params"]}
    state: defaultdict[Any, Any] = defaultdict(dict)
    for key, value in state_dict["state"].items():
        if key in owner:
            state[owner[key]] = _cast(value, owner[key], mode_of[key])
        else:
            state[key] = value
    optimizer.__setstate__(
        {
            "state": state,
            "param_groups": [_adopt(old, new) for old, new in zip(groups, saved, strict=False)],
        }
    )


def _check_shapes(groups: list[Group], saved: list[Group]) -> None:
    if len(groups) != len(saved):
        raise ValueError(
            "loaded state dict has a different number of parameter groups: "
            f"{len(saved)} instead of {len(groups)}"
        )
    for i, (group, new) in enumerate(zip(groups, saved, strict=False)):
        if len(group["params"]) != len(new["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                f"optimizer's group: group {i} has {len(new['params'])} parameters instead of "
                f"{len(group['params'])}"
            )


def _adopt(old: Group, new: Group) -> Group:
    """The loaded group, holding the optimiser's own parameters (and names, where none came)."""
    new["params"] = old["params"]
    if "param_names" in old and "param_names" not in new:
        new["param_names"] = old["param_names"]
    return new


def _cast(value: Any, param: Tensor, group: Group, key: Any = None) -> Any:
    if isinstance(value, fb.Tensor):
        return _cast_tensor(value, param, group, key)
    if isinstance(value, dict):
        return {k: _cast(v, param, group, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_cast(v, param, group) for v in value)  # type: ignore[call-arg]
    return value


def _cast_tensor(value: Tensor, param: Tensor, group: Group, key: Any) -> Tensor:
    if key == "step":
        # A counter in half precision would stop counting; it follows the parameter only where the
        # update reads it on the device.
        if group.get("capturable") or group.get("fused"):
            return value.to(dtype=fb.float32, device=param.device)
        return value
    if param.is_floating_point():
        return value.to(dtype=param.dtype, device=param.device)
    return value.to(device=param.device)
