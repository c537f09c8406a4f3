"""pickle, copy and deepcopy of tensors: values, strides, sharing, gradients, failures."""

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import _tensor_pickle as tp


def samples():
    x = fb.arange(24.0).reshape(2, 3, 4)
    return {
        "plain": x,
        "transposed": x.transpose(0, 2),
        "strided": x[:, 1:, ::2],
        "expanded": x[:1].expand(5, 3, 4),
        "empty": fb.empty(2, 0),
        "scalar": fb.tensor(3),
        "bfloat16": x.to(fb.bfloat16)[0],
        "bool": x > 4,
        "conjugated": fb.tensor([1 + 2j, 3j]).conj(),
        "grad": fb.ones(2, requires_grad=True),
        "parameter": fb.nn.Parameter(fb.ones(2)),
        "meta": fb.empty(2, 3, device="meta"),
    }


@pytest.mark.parametrize("name", samples())
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_reduce_and_rebuild(name, protocol):
    tensor = samples()[name]
    function, args, *_ = tp.reduce_tensor(tensor, protocol)
    back = function(*pickle.loads(pickle.dumps(args, protocol)))
    assert type(back) is type(tensor) and back.dtype == tensor.dtype
    assert back.shape == tensor.shape and back.requires_grad == tensor.requires_grad
    if name == "meta":
        assert back.device.type == "meta"
    else:
        assert fb.equal(back, tensor)


@pytest.mark.parametrize("name", samples())
def test_pickle_and_deepcopy_of_tensors_themselves(name):
    tensor = samples()[name]
    for back in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor)):
        assert type(back) is type(tensor) and back.shape == tensor.shape
        assert back.requires_grad == tensor.requires_grad and back is not tensor
        if name != "meta":
            assert (
                fb.equal(back, tensor) and back.data_ptr() != tensor.data_ptr() or not back.numel()
            )


def test_a_view_does_not_drag_its_storage_along():
    big = fb.zeros(1_000_000)
    assert len(pickle.dumps(tp.reduce_tensor(big[:3], 2))) < 500
    column = fb.zeros(1000, 1000)[:, 0]
    assert len(pickle.dumps(tp.reduce_tensor(column, 2))) < 10_000


def test_deepcopy_keeps_sharing_strides_and_gradients():
    x = fb.arange(6.0).reshape(2, 3)
    memo = {}
    whole, part = tp.deepcopy_tensor(x, memo), tp.deepcopy_tensor(x.t()[1:], memo)
    whole[1, 1] = 50.0
    assert part[0, 1].item() == 50.0 and x[1, 1].item() == 4.0
    assert part.stride() == (1, 3) and part.storage_offset() == 1
    leaf = fb.ones(2, requires_grad=True)
    (leaf * 2).sum().backward()
    twin = tp.deepcopy_tensor(leaf, {})
    assert twin.grad.tolist() == [2.0, 2.0] and twin.grad is not leaf.grad and twin.is_leaf
    assert tp.deepcopy_tensor(leaf, memo) is tp.deepcopy_tensor(leaf, memo)


def test_deepcopy_refuses_results_of_operations():
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        tp.deepcopy_tensor(fb.ones(1, requires_grad=True) * 2, {})


def test_rebuild_checks_its_bounds():
    with pytest.raises(ValueError, match="needs 4 elements"):
        tp.rebuild_tensor(bytes(12), "float32", (4,), (1,))
    with pytest.raises(ValueError, match="unknown dtype"):
        tp.rebuild_tensor(bytes(12), "object", (1,), (1,))
    with pytest.raises(ValueError, match="stride should hold numbers"):
        tp.rebuild_tensor(bytes(12), "float32", (2,), (-1,))
