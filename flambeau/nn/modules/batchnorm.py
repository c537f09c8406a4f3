"""Batch normalisation (Ioffe & Szegedy, 2015), also lazy and across processes.

Owns the affine parameters, the running statistics and how they load; the arithmetic is
`F.batch_norm`. Invariant: with `track_running_stats` False the three buffers exist and are None.
"""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d",
    "LazyBatchNorm1d",
    "BatchNorm2d",
    "LazyBatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Parameters and statistics common to batch and instance normalisation."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    _input_dims: tuple[int, ...] = ()  # numbers of dimensions that the input may have

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            if wanted:
                setattr(self, name, Parameter(fb.empty(num_features, device=device, dtype=dtype)))
            else:
                self.register_parameter(name, None)
        mean = var = count = None
        if track_running_stats:
            mean = fb.zeros(num_features, device=device, dtype=dtype)
            var = fb.ones(num_features, device=device, dtype=dtype)
            count = fb.tensor(0, dtype=fb.long, device=device)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the statistics seen so far."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Start again: statistics forgotten, weight one, bias zero."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if not self._input_dims:
            raise NotImplementedError
        if input.dim() not in self._input_dims:
            expected = " or ".join([f"{n}D" for n in self._input_dims])
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        version = local_metadata.get("version", None)
        # States before version 2 have no count of batches; keep the one we have.
        if (version is None or version < 2) and self.track_running_stats:
            count = self.num_batches_tracked
            if count is None or count.is_meta:
                count = fb.tensor(0, dtype=fb.long)
            state_dict.setdefault(prefix + "num_batches_tracked", count)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Batch normalisation; the subclasses fix the numbers of dimensions of the input.

    Args:
        num_features: channels C of the input (N, C, *).
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics; None averages all batches.
        affine: whether a scale and a shift per channel are learnt.
        track_running_stats: whether statistics are kept for evaluation.
        bias: whether the affine part has a shift.

    In training the batch's own (biased) statistics are used, in evaluation the kept ones, if any.
    """

    def _averaging_factor(self) -> float:
        """Count the batch and give the weight it gets in the running statistics."""
        momentum = self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                return 1.0 / float(self.num_batches_tracked)
        return 0.0 if momentum is None else momentum

    def forward(self, input: Tensor) -> Tensor:
        """Normalise over all dimensions but the second."""
        self._check_input_dim(input)
        factor = self._averaging_factor()
        mean, var = self.running_mean, self.running_var
        use_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None  # so that they are not updated
        return F.batch_norm(input, mean, var, self.weight, self.bias, use_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L); see `_BatchNorm`."""

    _input_dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W); see `_BatchNorm`.

    Example:
        >>> import flambeau as fb
        >>> fb.nn.BatchNorm2d(3)(fb.ones(2, 3, 4, 4)).abs().max().item()
        0.0
    """

    _input_dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W); see `_BatchNorm`."""

    _input_dims = (5,)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalisation that takes `num_features` from its first input."""

    weight: UninitializedParameter
    bias: UninitializedParameter

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = fb.tensor(0, dtype=fb.long, device=device)

    def reset_parameters(self) -> None:
        """Start again, once there is something to fill."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take `num_features` from the first input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        members: list[Any] = [self.weight, self.bias] if self.affine else []
        if self.track_running_stats:
            members += [self.running_mean, self.running_var]
        for member in members:
            if member is not None:
                member.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm1d
    _input_dims = (2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm2d
    _input_dims = (4,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm3d
    _input_dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation whose statistics are those of the batches of all processes.

    Args:
        num_features, eps, momentum, affine, track_running_stats, bias: as for `BatchNorm2d`.
        process_group: the processes that take part; default: all.

    With one process, or in evaluation, it is an ordinary batch normalisation. The processes'
    batches may be of different sizes. The gradient of the input is that of the sum of all
    processes' losses.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        """Normalise by the mean and the variance of all processes' batches."""
        use_batch = self.training or self.running_mean is None
        if not use_batch or _world_size(self.process_group) == 1:
            return super().forward(input)
        self._check_input_dim(input)
        return self._over_all(input, self._averaging_factor())

    def _over_all(self, input: Tensor, factor: float) -> Tensor:
        """Sums over the group, through which gradients flow, in float32 for half formats."""
        all_reduce = _distributed().nn.all_reduce
        half = input.dtype in (fb.float16, fb.bfloat16)
        x = input.float() if half else input
        dims = [d for d in range(x.dim()) if d != 1]
        shape = [1, -1] + [1] * (x.dim() - 2)

        def total(values: Tensor) -> Tensor:
            return all_reduce(values.sum(dims), group=self.process_group)

        n = x.numel() // x.shape[1]
        count = all_reduce(fb.tensor([n], dtype=x.dtype), group=self.process_group)
        if int(count) <= 1 and self.training:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{input.size()}"
            )
        mean = total(x) / count
        centred = x - mean.view(shape)
        var = total(centred * centred) / count
        out = centred * (var + self.eps).rsqrt().view(shape)
        if self.training and self.running_mean is not None and self.running_var is not None:
            with fb.no_grad():
                unbiased = var * (count / (count - 1))
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), factor)
        if self.weight is not None:
            out = out * self.weight.view(shape)
        if self.bias is not None:
            out = out + self.bias.view(shape)
        return out.to(input.dtype)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every batch normalisation in `module` by a synchronised one."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                converted.weight = module.weight
                converted.bias = module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked", "training"):
                setattr(converted, name, getattr(module, name))
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


def _distributed() -> Any:
    """The package; None in a program that never imported it, which has one process."""
    import sys

    return sys.modules.get("flambeau.distributed")


def _world_size(group: Any) -> int:
    distributed = _distributed()
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return distributed.get_world_size(group or distributed.group.WORLD)
