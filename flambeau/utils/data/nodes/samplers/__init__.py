"""Nodes that draw from several sources."""

from .multi_node_weighted_sampler import MultiNodeWeightedSampler
from .stop_criteria import StopCriteria

__all__ = ["MultiNodeWeightedSampler", "StopCriteria"]
