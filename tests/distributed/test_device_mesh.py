"""Meshes: where each process is, the groups along dimensions, parts of a mesh."""

import pytest

import flambeau as torch
from flambeau import nn
from tests.distributed import worlds

dist = torch.distributed


def total(rank, group):
    x = torch.tensor([rank])
    dist.all_reduce(x, group=group)
    return x.item()


def grid(rank, size):
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    where = [rank // 2, rank % 2]
    assert mesh.get_coordinate() == where and mesh.get_rank() == rank
    assert (mesh.ndim, mesh.shape, mesh.size(), mesh.size(1)) == (2, (2, 2), 4, 2)
    assert [mesh.get_local_rank(d) for d in ("dp", "tp")] == where
    assert total(rank, mesh.get_group("dp")) == 2 * where[1] + 2
    assert total(rank, mesh.get_group(1)) == 4 * where[0] + 1
    assert mesh.get_all_groups() == [mesh.get_group("dp"), mesh.get_group("tp")]
    assert mesh.get_group("tp").group_desc == "mesh_tp"
    part = mesh["tp"]
    assert part.mesh.tolist() == [2 * where[0], 2 * where[0] + 1]
    assert part.get_group() is mesh.get_group("tp") and part.get_local_rank() == where[1]
    assert mesh["dp", "tp"] == mesh and hash(mesh["dp", "tp"]) == hash(mesh)
    assert part != mesh["dp"] and part._get_root_mesh() is mesh
    flat = mesh._flatten("all")
    assert flat.mesh.tolist() == [0, 1, 2, 3] and mesh["all"] is flat
    assert flat.get_group() is dist.group.WORLD
    with pytest.raises(RuntimeError, match="have 2 dimensions"):
        mesh.get_group()
    for names in ("none", ("tp", "dp"), ("tp", "tp")):
        with pytest.raises(KeyError):
            mesh[names]
    with pytest.raises(IndexError, match="expected a dimension of 0 to 1, got 2"):
        mesh.get_group(2)

    cube = dist.DeviceMesh("cpu", [[[3], [1]], [[2], [0]]], mesh_dim_names=("a", "b", "c"))
    rows = {3: [3, 1], 1: [3, 1], 2: [2, 0], 0: [2, 0]}
    assert cube["b", "c"]._flatten().mesh.tolist() == rows[rank]
    assert cube["b_c"].get_group().size() == 2
    assert total(rank, cube["b_c"].get_group()) == sum(rows[rank])
    assert total(rank, cube.get_group("a")) == {3: 5, 2: 5, 1: 1, 0: 1}[rank]

    half = dist.DeviceMesh("cpu", [1, 2])
    if rank in (1, 2):
        assert total(rank, half.get_group()) == 3
    else:
        assert half.get_coordinate() is None
        with pytest.raises(RuntimeError, match="not in the mesh"):
            half.get_group()

    again = dist.DeviceMesh.from_group(mesh.get_group("dp"), "cpu")
    assert again.mesh.tolist() == [where[1], where[1] + 2]
    layer = nn.Linear(2, 1, bias=False)
    net = nn.parallel.DistributedDataParallel(layer, device_mesh=mesh["dp"])
    net(torch.full((2,), float(rank))).backward()
    assert layer.weight.grad.tolist() == [[where[1] + 1.0] * 2]
    with pytest.raises(RuntimeError, match="Only 1D device mesh is supported, but got 2"):
        nn.parallel.DistributedDataParallel(layer, device_mesh=mesh)


def test_a_grid_of_four():
    worlds.run("test_device_mesh", "grid", 4)


def test_refused():
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    try:
        for call, error, text in (
            (lambda: dist.init_device_mesh("cuda", (1,)), RuntimeError, "expected device_type"),
            (lambda: dist.init_device_mesh("cpu", (2,)), RuntimeError, "expected ranks of 0 to 0"),
            (lambda: dist.init_device_mesh("cpu", ()), ValueError, "expected sizes from 1"),
            (
                lambda: dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "a")),
                RuntimeError,
                "must be unique",
            ),
            (
                lambda: dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a",)),
                RuntimeError,
                "same length",
            ),
            (lambda: dist.DeviceMesh("cpu", [0, 0]), RuntimeError, "each once"),
        ):
            with pytest.raises(error, match=text):
                call()
    finally:
        dist.destroy_process_group()
