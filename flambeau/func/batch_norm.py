"""`replace_all_batch_norm_modules_`: batch norms that keep no running statistics.

Running statistics are written in place, which a transform over samples cannot do: there is one
buffer and a value for each sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flambeau.nn import Module

__all__ = ["replace_all_batch_norm_modules_"]


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Take the running statistics from the batch norms of a module; returns the module.

    They then use the statistics of the batch in training and in evaluation.

    Args:
        root: the module, changed in place.

    >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    >>> torch.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
    True
    """
    from flambeau.nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
