"""`ZeroRedundancyOptimizer`: each process keeps the optimiser's state of its share of parameters.

Owns who has which parameters, and giving the others what a step made of them. Invariant: after a
step all processes have the same parameters, as after a step of the optimiser that is wrapped. Must
not know how gradients are averaged, nor what the optimiser computes.

The method is stage 1 of S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
Parameter Models", 2020.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau.optim.optimizer import Optimizer

from .. import _collectives as plain
from .. import _objects as objects
from .._arguments import members
from ..algorithms.join import Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class _Share:
    """The parameters of one dtype that one process updates, as one tensor while they travel."""

    def __init__(self, params: list[Any], like: Any, joined: bool) -> None:
        self.params = params
        self.flat = None
        if joined:
            self.flat = self._made(like)
            for p, view in zip(params, self._views(self.flat), strict=True):
                view.copy_(p.detach())
                p.data = view

    def _made(self, like: Any) -> Any:
        return fb.empty(sum(p.numel() for p in self.params), dtype=like.dtype, device=like.device)

    def _views(self, flat: Any) -> list[Any]:
        parts = flat.split([p.numel() for p in self.params]) if self.params else ()
        return [part.view(p.shape) for part, p in zip(parts, self.params, strict=True)]

    def sent(self, like: Any) -> Any:
        """Their values."""
        if self.flat is not None:
            return self.flat
        flat = self._made(like)
        for p, view in zip(self.params, self._views(flat), strict=True):
            view.copy_(p.detach())
        return flat

    def room(self, like: Any) -> Any:
        """Where the values that another process sends can be put."""
        return self.flat if self.flat is not None else self._made(like)

    def take(self, flat: Any) -> None:
        """The values that were put there."""
        if self.flat is None:
            for p, view in zip(self.params, self._views(flat), strict=True):
                p.detach().copy_(view)


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimiser that each process of a group runs on its share of the parameters.

    Parameters are dealt out by size, the largest first, to the process that has the least. A step
    updates each process's own, then all get those of the others. Gradients have to be the same on
    all processes, as `DistributedDataParallel` makes them. State takes the memory of one share.

    Args:
        params: tensors, or dicts as of any optimiser, in the same order on all processes.
        optimizer_class: the optimiser, such as ``torch.optim.Adam``.
        process_group: whose processes share; None for the default one.
        parameters_as_bucket_view: parameters become views of one tensor for each process and dtype,
            which saves two copies in each step.
        overlap_with_ddp: False; steps inside of the backward pass are not there.
        defaults: hyperparameters of the optimiser.

    Raises:
        ValueError: this process is not in the group, or `overlap_with_ddp` is asked for.
        TypeError: `optimizer_class` is no optimiser.

    >>> store = torch.distributed.HashStore()
    >>> torch.distributed.init_process_group(store=store, rank=0, world_size=1)
    >>> net = torch.nn.Linear(2, 2)
    >>> from flambeau.distributed.optim import ZeroRedundancyOptimizer
    >>> optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=0.1)
    >>> net(torch.ones(1, 2)).sum().backward()
    >>> optimizer.step()
    >>> optimizer.consolidate_state_dict()
    >>> sorted(optimizer.state_dict()["state"][0])
    ['exp_avg', 'exp_avg_sq', 'step']
    >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: Callable[..., Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
            raise TypeError(
                "ZeroRedundancyOptimizer: expected optimizer_class to be a class of optimisers, "
                f"got {optimizer_class!r}"
            )
        if overlap_with_ddp:
            raise ValueError(
                "ZeroRedundancyOptimizer: expected overlap_with_ddp=False: steps inside of the "
                "backward pass are not built yet"
            )
        group = members("ZeroRedundancyOptimizer", process_group)
        if group is None:
            raise ValueError("ZeroRedundancyOptimizer: expected a group that this process is in")
        self.process_group = group
        self.world_size, self.rank = group.size(), group.rank()
        self._as_views = parameters_as_bucket_view
        self._owner: dict[Any, int] = {}
        self._load = [0] * self.world_size
        self._all_state: dict[str, Any] | None = None
        self.optim: Any = None
        self._kind, self._given = optimizer_class, defaults
        Optimizer.__init__(self, params, dict(defaults))
        Joinable.__init__(self)
        self.optim = optimizer_class([self._own(g) for g in self.param_groups], **defaults)
        self._take_hyperparameters(self.optim.param_groups, self.param_groups)
        self.defaults = self.optim.defaults
        self.state = self.optim.state
        self._make_shares()

    # ---- shares -----------------------------------------------------------------------------

    def _own(self, group: dict[str, Any]) -> dict[str, Any]:
        own = [p for p in group["params"] if self._owner[p] == self.rank]
        return {**group, "params": own}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take one more group of parameters, on all processes.

        Args:
            param_group: dict with ``"params"`` and hyperparameters that differ from the defaults.
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in sorted(group["params"], key=lambda p: -p.numel()):
            least = self._load.index(min(self._load))
            self._owner[p] = least
            self._load[least] += p.numel()
        if self.optim is not None:
            self.optim.add_param_group(self._own(group))
            self._take_hyperparameters(self.optim.param_groups[-1:], [group])
            self._make_shares()

    def _make_shares(self) -> None:
        by_kind: dict[Any, list[list[Any]]] = {}
        for group in self.param_groups:
            for p in group["params"]:
                empty: list[list[Any]] = [[] for _ in range(self.world_size)]
                by_kind.setdefault((p.dtype, p.device), empty)[self._owner[p]].append(p)
        with fb.no_grad():
            self._shares = [
                (next(p for each in lists for p in each).detach(),
                 [_Share(each, each[0] if each else self._any(lists), self._as_views)
                  for each in lists])
                for lists in by_kind.values()
            ]  # fmt: skip

    @staticmethod
    def _any(lists: list[list[Any]]) -> Any:
        return next(p for each in lists for p in each)

    @staticmethod
    def _take_hyperparameters(source: list[dict[str, Any]], to: list[dict[str, Any]]) -> None:
        for mine, theirs in zip(source, to, strict=True):
            theirs.update({name: value for name, value in mine.items() if name != "params"})

    # ---- steps ------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update the parameters once, each process its share, and give them to all.

        Args:
            closure: computes the loss and gradients anew, which have to be the same on all
                processes.
            kwargs: for the optimiser's own `step`.

        Returns:
            What `closure` returned, or None.
        """
        self._all_state = None
        self._take_hyperparameters(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        self._take_hyperparameters(self.optim.param_groups, self.param_groups)
        with fb.no_grad():
            for like, shares in self._shares:
                rooms = [share.room(like) for share in shares]
                plain.all_gather(rooms, shares[self.rank].sent(like), group=self.process_group)
                for r, (share, room) in enumerate(zip(shares, rooms, strict=True)):
                    if r != self.rank:
                        share.take(room)
        return loss

    # ---- state ------------------------------------------------------------------------------

    def _numbers(self) -> dict[Any, int]:
        every = [p for group in self.param_groups for p in group["params"]]
        return {p: i for i, p in enumerate(every)}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all processes to one, for its `state_dict`; all call it.

        Args:
            to: the process that gets it, as a rank of the group.

        Raises:
            ValueError: the group has no such rank.
        """
        if not 0 <= to < self.world_size:
            raise ValueError(
                "ZeroRedundancyOptimizer.consolidate_state_dict: expected `to` to be a rank of the "
                f"group, 0 to {self.world_size - 1}, got {to}"
            )
        numbers = self._numbers()
        own = {numbers[p]: _on_cpu(state) for p, state in self.optim.state.items() if p in numbers}
        here: Any = [None] * self.world_size if self.rank == to else None
        objects.gather_object(own, here, group=self.process_group, group_dst=to)
        if here is None:
            return
        every = {i: state for part in here for i, state in part.items()}
        self._all_state = {"state": {i: every[i] for i in sorted(every)}}

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, as of the optimiser that is wrapped.

        Raises:
            RuntimeError: `consolidate_state_dict` was not called since the last step, or gave the
                state to another process.
        """
        if self._all_state is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                "`consolidate_state_dict(to=rank)` on all ranks beforehand if you meant to save "
                f"the global state. (rank {self.rank})"
            )
        numbers = self._numbers()
        groups = [
            {**group, "params": [numbers[p] for p in group["params"]]}
            for group in self.param_groups
        ]
        return {**self._all_state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state of all parameters; each process keeps its share's.

        Args:
            state_dict: of such an optimiser, or of the one that is wrapped.

        Raises:
            ValueError: the groups differ in number or size from those of this optimiser.
        """
        groups = state_dict["param_groups"]
        if [len(g["params"]) for g in groups] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError(
                "ZeroRedundancyOptimizer.load_state_dict: expected groups of "
                f"{[len(g['params']) for g in self.param_groups]} parameters, got "
                f"{[len(g['params']) for g in groups]}"
            )
        state, kept, made = state_dict["state"], {}, []
        count = 0
        for theirs, group in zip(groups, self.param_groups, strict=True):
            positions = []
            for number, p in zip(theirs["params"], group["params"], strict=True):
                if self._owner[p] != self.rank:
                    continue
                if number in state:
                    kept[count] = state[number]
                positions.append(count)
                count += 1
            made.append({**theirs, "params": positions})
        self.optim.load_state_dict({"state": kept, "param_groups": made})
        self.state = self.optim.state
        self._take_hyperparameters(self.optim.param_groups, self.param_groups)
        self._all_state = None

    # ---- uneven inputs ----------------------------------------------------------------------

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Refused: a process without input has no gradients for the parameters of its share."""
        raise NotImplementedError(
            "ZeroRedundancyOptimizer: it cannot take part in a Join: a process without input has "
            "no gradients for its share of the parameters"
        )

    @property
    def join_device(self) -> Any:
        """Device of its collectives."""
        return self._shares[0][0].device

    @property
    def join_process_group(self) -> Any:
        """Group of its collectives."""
        return self.process_group


def _on_cpu(state: Any) -> Any:
    if isinstance(state, fb.Tensor):
        return state.detach().cpu()
    if isinstance(state, (dict, defaultdict)):
        return {name: _on_cpu(value) for name, value in state.items()}
    return state
