"""Texts of errors that users look for: each says both facts that PyTorch's says."""

import pytest

import flambeau as torch
from flambeau import nn

F = torch.nn.functional
z = torch.zeros

TEXTS = {
    "cat": (lambda: torch.cat([z(2, 3), z(3, 4)]), RuntimeError,
            "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for "
            "tensor number 1 in the list."),
    "hstack": (lambda: torch.hstack([z(2, 1), z(3, 1)]), RuntimeError,
               "Sizes of tensors must match except in dimension 1. Expected size 2 but got size 3"),
    "stack": (lambda: torch.stack([z(2), z(3)]), RuntimeError,
              "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry "
              "1"),
    "embedding": (lambda: F.embedding(torch.tensor([5]), z(3, 2)), IndexError,
                  "index out of range in self"),
    "index_select": (lambda: z(3).index_select(0, torch.tensor([5])), IndexError,
                     "index out of range in self: index_select() got 5 for size 3"),
    "expand": (lambda: z(2, 3).expand(4, 3), RuntimeError,
               "The expanded size of the tensor (4) must match the existing size (2) at "
               "non-singleton dimension 0.  Target sizes: [4, 3].  Tensor sizes: [2, 3]"),
    "expand to fewer": (lambda: z(2, 3).expand(3), RuntimeError,
                        "the number of sizes provided (1) must be greater or equal to the number "
                        "of dimensions in the tensor (2)"),
    "expand in front": (lambda: z(2).expand(-1, 2), RuntimeError,
                        "The expanded size of the tensor (-1) isn't allowed in a leading, "
                        "non-existing dimension 0"),
    "many dims": (lambda: z([1] * 65).sum(64), RuntimeError,
                  "only tensors with up to 64 dims are supported"),
    "broadcast": (lambda: z(2, 3) + z(3, 2), RuntimeError,
                  "The size of tensor a (3) must match the size of tensor b (2) at non-singleton "
                  "dimension 1"),
    "view": (lambda: z(2, 3).t().view(6), RuntimeError,
             "view size is not compatible with input tensor's size and stride (at least one "
             "dimension spans across two contiguous subspaces). Use .reshape(...) instead."),
    "mask": (lambda: z(3)[torch.tensor([True, False])], IndexError,
             "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor "
             "[3] at index 0"),
    "indices": (lambda: z(3, 3)[[0, 1], [0, 1, 2]], IndexError,
                "indexing tensors could not be broadcast together with shapes [2], [3]"),
    "values": (lambda: z(3).__setitem__(torch.tensor([True, False, True]), z(3)), RuntimeError,
               "value tensor of shape [3] cannot be broadcast to indexing result of shape [2]"),
    "permute": (lambda: z(2, 2).permute(0), RuntimeError,
                "input.dim() = 2 is not equal to len(dims) = 1"),
    "split": (lambda: z(3).split([1, 1]), RuntimeError,
              "split_with_sizes expects split_sizes to sum exactly to 3 (input tensor's size at "
              "dimension 0), but got split_sizes=[1, 1]"),
    "repeat": (lambda: z(2, 2).repeat(2), RuntimeError,
               "Number of dimensions of repeat dims can not be smaller than number of dimensions "
               "of tensor"),
    "unflatten": (lambda: z(6).unflatten(0, (4, 2)), RuntimeError,
                  "Provided sizes [4, 2] don't multiply up to the size of dim 0 (6) in the input "
                  "tensor"),
    "negated mask": (lambda: -torch.tensor([True]), RuntimeError,
                     "Negation, the `-` operator, on a bool tensor is not supported. If you are "
                     "trying to invert a mask, use the `~` or `logical_not()` operator instead."),
    "batch norm": (lambda: nn.BatchNorm1d(3)(z(1, 3)), ValueError,
                   "Expected more than 1 value per channel when training, got input size"),
    "batch norm of others": (lambda: nn.BatchNorm2d(3)(z(2, 4, 5, 5)), RuntimeError,
                             "running_mean should contain 4 elements not 3"),
    "instance norm": (lambda: nn.InstanceNorm2d(3)(z(1, 3, 1, 1)), ValueError,
                      "Expected more than 1 spatial element when training, got input size"),
    "layer norm": (lambda: nn.LayerNorm(3)(z(2, 4)), RuntimeError,
                   "Given normalized_shape=[3], expected input with"),
    "pool": (lambda: F.max_pool2d(z(1, 1, 2, 2), 3), RuntimeError, "Output size is too small"),
    "hint without a mask": (
        lambda: nn.MultiheadAttention(4, 2)(z(1, 1, 4), z(1, 1, 4), z(1, 1, 4), is_causal=True),
        RuntimeError,
        "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
        "method `generate_square_subsequent_mask` to create this mask."),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_text(name):
    call, kind, text = TEXTS[name]
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind and text in str(caught.value), str(caught.value)
