"""`DeviceMesh`: the processes of a job as a grid, with a group along each dimension.

Owns which process is where, and the groups. Invariant: every process makes the same meshes in the
same order; the one that holds this process alone is seen. Must not know what is exchanged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor

from ._group import (
    ProcessGroup,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
)
from ._group import group as groups

__all__ = ["DeviceMesh", "init_device_mesh"]


def _plain(op: str, device_type: str, backend_override: Any) -> None:
    if device_type != "cpu":
        raise RuntimeError(f"{op}: expected device_type 'cpu', got {device_type!r}; no GPU")
    if backend_override is not None:
        raise NotImplementedError(f"{op}: backend_override is not built yet")


class DeviceMesh:
    """A grid of processes.

    Args:
        device_type: "cpu".
        mesh: the ranks, as a tensor or nested lists, each once.
        mesh_dim_names: a name for each dimension.

    Every process of the job makes it. Without a default group one is made, by the environment.

    >>> torch.distributed.init_process_group(
    ...     store=torch.distributed.HashStore(), rank=0, world_size=1
    ... )
    >>> mesh = torch.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    >>> mesh["dp"].size(), mesh.get_local_rank("tp"), mesh.get_coordinate()
    (1, 0, [0, 0])
    >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
    ) -> None:
        _plain("DeviceMesh", device_type, backend_override)
        ranks = mesh if isinstance(mesh, Tensor) else fb.tensor(mesh, dtype=fb.int64)
        self._set(device_type, ranks.detach().to(fb.int64), mesh_dim_names)
        if not _init_backend:
            return
        if not is_initialized():
            init_process_group()
        flat = self.mesh.flatten().tolist()
        if len(set(flat)) != len(flat) or min(flat) < 0 or max(flat) >= get_world_size():
            raise RuntimeError(
                f"DeviceMesh: expected ranks of 0 to {get_world_size() - 1}, each once, got {flat}"
            )
        for dim in range(self.ndim):
            name = self.mesh_dim_names[dim] if self.mesh_dim_names else f"dim_{dim}"
            self._groups[dim] = self._make(self._rows((dim,)), f"mesh_{name}")

    def _set(self, device_type: str, mesh: Tensor, names: Sequence[str] | None) -> None:
        if names is not None and len(set(names)) != len(names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in {names}"
            )
        if names is not None and len(names) != mesh.dim():
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found "
                f"{mesh.dim()} and {len(names)}"
            )
        self.device_type, self.mesh = device_type, mesh
        self.mesh_dim_names = None if names is None else tuple(names)
        self._groups: dict[int, ProcessGroup | None] = {}
        self._root, self._dims = self, tuple(range(mesh.dim()))
        self._flattened: dict[str, DeviceMesh] = {}

    def _rows(self, dims: Sequence[int]) -> list[list[int]]:
        """The ranks of each group along these dimensions."""
        others = [d for d in range(self.mesh.dim()) if d not in dims]
        length = math.prod(self.mesh.shape[d] for d in dims)
        rows: list[list[int]] = self.mesh.permute(*others, *dims).reshape(-1, length).tolist()
        return rows

    @staticmethod
    def _make(rows: list[list[int]], description: str) -> ProcessGroup | None:
        """This process's group of these; all processes make all."""
        if rows == [list(range(get_world_size()))]:
            return groups.WORLD
        made = [new_group(row, group_desc=description) for row in rows]
        mine = [each for each in made if isinstance(each, ProcessGroup)]
        return mine[0] if mine else None

    @staticmethod
    def from_group(
        group: Any,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:
        """A mesh of a group, or of one group for each dimension, with the ranks in `mesh`."""
        _plain("DeviceMesh.from_group", device_type, None)
        given = list(group) if isinstance(group, (list, tuple)) else [group]
        if mesh is None:
            if len(given) != 1:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            mesh = get_process_group_ranks(given[0])
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if len(given) != made.ndim:
            raise ValueError(
                "Expected a group for each dimension of mesh, got "
                f"{len(given)} for {made.ndim} dimensions"
            )
        made._groups = dict(enumerate(given))
        return made

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.mesh.dim()

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of processes along each dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """Number of processes, along a dimension where it is given."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim]

    def _dim(self, mesh_dim: int | str | None, what: str) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` "
                    f"needs to be specified when device_mesh.ndim > 1 ({what})."
                )
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(
                    f"Mesh dimension '{mesh_dim}' does not exist. Available mesh dimensions are: "
                    f"mesh_dim_names={self.mesh_dim_names}"
                )
            return (self.mesh_dim_names or ()).index(mesh_dim)
        if not -self.ndim <= mesh_dim < self.ndim:
            raise IndexError(
                f"{what}: expected a dimension of 0 to {self.ndim - 1}, got {mesh_dim}"
            )
        return mesh_dim % self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group along a dimension that holds this process."""
        dim = self._dim(mesh_dim, "get_group")
        found = self._root._groups.get(self._dims[dim]) if self._dims else None
        if found is None:
            raise RuntimeError(f"get_group: this process is not in the mesh {self}")
        return found

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_rank(self) -> int:
        """This process's number among all."""
        return get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Where this process is; None where it is not in the mesh."""
        flat = self.mesh.flatten().tolist()
        if get_rank() not in flat:
            return None
        ranges = [range(n) for n in self.shape]
        return list(list(itertools.product(*ranges))[flat.index(get_rank())])

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's number along a dimension."""
        dim, where = self._dim(mesh_dim, "get_local_rank"), self.get_coordinate()
        if where is None:
            raise RuntimeError(f"get_local_rank: this process is not in the mesh {self}")
        return where[dim]

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh along some dimensions that holds this process."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if len(wanted) == 1 and wanted[0] in self._root._flattened:
            return self._root._flattened[wanted[0]]
        dims = [self._dim(name, "mesh[]") for name in wanted]
        if dims != sorted(set(dims)):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified: expected an order as in "
                f"{self.mesh_dim_names}"
            )
        where = self.get_coordinate()
        if where is None:
            raise RuntimeError(f"this process is not in the mesh {self}")
        index = tuple(slice(None) if d in dims else where[d] for d in range(self.ndim))
        made = DeviceMesh(
            self.device_type, self.mesh[index], mesh_dim_names=wanted, _init_backend=False
        )
        made._root, made._dims = self._root, tuple(self._dims[d] for d in dims)
        return made

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """A mesh of one dimension of the same processes; `mesh[name]` finds it from then on."""
        if mesh_dim_name is None:
            if self.mesh_dim_names is None:
                raise RuntimeError("_flatten: expected a name, for the mesh has none")
            mesh_dim_name = "_".join(self.mesh_dim_names)
        known = self._root._flattened
        if mesh_dim_name not in known:
            made = DeviceMesh(
                self.device_type,
                self.mesh.flatten(),
                mesh_dim_names=(mesh_dim_name,),
                _init_backend=False,
            )
            rows = self._root._rows(self._dims)
            made._groups[0] = self._make(rows, f"mesh_{mesh_dim_name}")
            known[mesh_dim_name] = made
        return known[mesh_dim_name]

    def _get_root_mesh(self) -> DeviceMesh:
        """The mesh that this is a part of."""
        return self._root

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        flat = tuple(self.mesh.flatten().tolist())
        return flat, self.shape, self.device_type, self.mesh_dim_names

    def __enter__(self) -> DeviceMesh:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __repr__(self) -> str:
        names = f", names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}{names})"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Arrange all processes of the job in a grid, in the order of their ranks.

    Args:
        device_type: "cpu".
        mesh_shape: how many processes along each dimension.
        mesh_dim_names: a name for each dimension.
        backend_override: None.

    Raises:
        RuntimeError: the mesh has more processes than the job, or names do not fit.
    """
    _plain("init_device_mesh", device_type, backend_override)
    if not mesh_shape or min(mesh_shape) < 1:
        raise ValueError(f"init_device_mesh: expected sizes from 1, got {tuple(mesh_shape)}")
    ranks = fb.arange(math.prod(mesh_shape)).view(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
