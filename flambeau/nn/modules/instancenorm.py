"""Instance normalisation (Ulyanov et al., 2016), also lazy.

Owns the check of the input; parameters and statistics are those of `_NormBase`, the arithmetic is
`F.instance_norm`.
"""

from __future__ import annotations

import warnings
from typing import Any

from flambeau import Tensor
from flambeau.nn import functional as F

from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """Instance normalisation; the subclasses fix the number of spatial dimensions.

    Args:
        num_features: channels C of the input.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics.
        affine: whether a scale and a shift per channel are learnt.
        track_running_stats: whether statistics are kept and used in evaluation.
        bias: whether the affine part has a shift.

    Shape: (N, C, *spatial) or (C, *spatial); the same comes out.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Normalise each channel of each sample by itself."""
        self._check_input_dim(input)
        unbatched, batched = self._input_dims
        channel_dim = input.dim() - unbatched
        channels = input.size(channel_dim)
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channel_dim} to match num_features "
                    f"({self.num_features}), but got: {channels}."
                )
            warnings.warn(
                f"input's size at dim={channel_dim} does not match num_features. You can silence "
                "this warning by not passing in num_features, which is not used because "
                "affine=False",
                stacklevel=2,
            )
        if input.dim() == batched:
            return self._apply_instance_norm(input)
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        # The first format always held statistics, even where the module keeps none.
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            keys = [prefix + name for name in ("running_mean", "running_var")]
            stale = [key for key in keys if key in state_dict]
            if stale:
                names = " and ".join(f'"{key}"' for key in stale)
                cls = type(self).__name__
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {cls} with "
                    f"track_running_stats=False. Remove these keys from state_dict, or set "
                    f"track_running_stats=True in {cls} if the statistics are needed."
                )
                for key in stale:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L); see `_InstanceNorm`."""

    _input_dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W); see `_InstanceNorm`."""

    _input_dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W); see `_InstanceNorm`."""

    _input_dims = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm1d
    _input_dims = (2, 3)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm2d
    _input_dims = (3, 4)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm3d
    _input_dims = (4, 5)
