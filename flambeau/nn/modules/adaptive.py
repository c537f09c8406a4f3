"""Softmax over very many classes by frequency clusters (Grave et al., 2016)."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F

from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """The head predicts the frequent classes and the clusters; each cluster has a smaller layer.

    Args:
        in_features: size of the input's last dimension.
        n_classes: number of classes, sorted by falling frequency.
        cutoffs: first class of each cluster, increasing.
        div_value: factor by which each cluster's layer is narrower than the one before.
        head_bias: whether the head has a bias.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            any(int(c) != c for c in cutoffs)
            or cutoffs != sorted(set(cutoffs))
            or cutoffs[0] <= 0
            or cutoffs[-1] > n_classes - 1
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        place = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **place),
                    Linear(width, size, bias=False, **place),
                )
            )

    def reset_parameters(self) -> None:
        """Draw new starting values."""
        self.head.reset_parameters()
        tail: Any = self.tail
        for inner, outer in tail:
            inner.reset_parameters()
            outer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Log-probability of each target, and minus their mean.

        Args:
            input_: (N, in_features) or (in_features).
            target_: classes, (N) or ().
        """
        _check_shapes(input_, target_)
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel() and not ((target >= 0) & (target < self.n_classes)).all():
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )

        in_cluster = input.new_zeros(target.size(0))
        head_index = target.clone()
        for i, tail in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() > 0:
                head_index.index_fill_(0, rows, self.shortlist_size + i)
                log_probs = F.log_softmax(tail(input.index_select(0, rows)), dim=1)
                relative = target.index_select(0, rows) - low
                picked = log_probs.gather(1, relative.unsqueeze(1)).squeeze(1)
                in_cluster = in_cluster.index_copy(0, rows, picked)

        head = F.log_softmax(self.head(input), dim=1)
        output = in_cluster + head.gather(1, head_index.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            of_cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(tail(input), dim=1) + of_cluster)
        return fb.cat(parts, dim=1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes, (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row; clusters are looked into only where needed."""
        head_output = self.head(input)
        best = fb.argmax(head_output, dim=1)
        outside = best >= self.shortlist_size
        if not outside.any():
            return best
        full = self._get_full_log_prob(input[outside], head_output[outside])
        best[outside] = fb.argmax(full, dim=1)
        return best


def _check_shapes(input: Tensor, target: Tensor) -> None:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 1 and input.size(0) != target.size(0):
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    if input.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found "
            f"inputs with size {input.size()}"
        )
