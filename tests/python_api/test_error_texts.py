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
    "addmm": (lambda: torch.addmm(z(5, 5), z(2, 3), z(3, 4)), RuntimeError,
              "The expanded size of the tensor (4) must match the existing size (5) at "
              "non-singleton dimension 1.  Target sizes: [2, 4].  Tensor sizes: [5, 5]"),
    "addmm of a vector": (lambda: torch.addmm(z(5), z(2, 3), z(3, 4)), RuntimeError,
                          "must match the existing size (5) at non-singleton dimension 1.  Target "
                          "sizes: [2, 4].  Tensor sizes: [5]"),
    "addmm of a cube": (lambda: torch.addmm(z(2, 2, 4), z(2, 3), z(3, 4)), RuntimeError,
                        "expand([2, 2, 4], size=[2, 4]): the number of sizes provided (2) must be "
                        "greater or equal to the number of dimensions in the tensor (3)"),
    "baddbmm": (lambda: torch.baddbmm(z(2, 2, 2), z(2, 3, 4), z(2, 4, 4)), RuntimeError,
                "The expanded size of the tensor (4) must match the existing size (2) at "
                "non-singleton dimension 2.  Target sizes: [2, 3, 4].  Tensor sizes: [2, 2, 2]"),
    "trace": (lambda: torch.trace(z(2)), RuntimeError,
              "trace: expected a matrix, but got tensor with dim 1"),
    "block_diag": (lambda: torch.block_diag(z(2, 2), z(2, 2, 2)), RuntimeError,
                   "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input 1 has 3 "
                   "dimensions"),
    "meshgrid": (lambda: torch.meshgrid(z(2), z(2, 3), indexing="ij"), RuntimeError,
                 "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: 2D of shape "
                 "[2, 3]"),
    "select": (lambda: z(2, 3).select(0, -3), IndexError,
               "select(): index -3 out of range for tensor of size [2, 3] at dimension 0"),
    "masked_fill": (lambda: z(2).masked_fill(torch.tensor([True, False]), z(2)), RuntimeError,
                    "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                    "1 dimension(s)"),
    "index_fill": (lambda: z(2, 3).index_fill(1, torch.tensor([5]), 1.0), IndexError,
                   "index out of range in self: index_fill_(): index 5 is out of bounds for "
                   "dimension 1 with size 3"),
    "index_add": (lambda: z(2, 3).index_add(0, torch.tensor([0]), z(2, 3)), RuntimeError,
                  "index_add_(): Number of indices (1) should be equal to source.size(dim): (2), "
                  "for dim: 0"),
    "index_add shapes": (lambda: z(3, 4).index_add(0, torch.tensor([0]), z(1, 3)), RuntimeError,
                         "source tensor shape must match self tensor shape, excluding the "
                         "specified dimension. Got self.shape = [3, 4] source.shape = [1, 3]"),
    "index_add scalar": (lambda: z(()).index_add(0, torch.tensor([0]), z(1)), RuntimeError,
                         "Got self.shape = [] source.shape = [1]"),
    "index_add dtypes": (lambda: z(3).index_add(0, torch.tensor([0]), z(1).double()), RuntimeError,
                         "index_add_(): self (Float) and source (Double) must have the same scalar "
                         "type"),
    "index_add index": (lambda: z(3).index_add(0, torch.tensor([0.0]), z(1)), RuntimeError,
                        "index_add_(): Expected dtype int32/int64 for index but got: Float"),
    "index_add matrix": (lambda: z(3).index_add(0, torch.tensor([[0]]), z(1)), IndexError,
                         "index_add_(): Index is supposed to be a vector, but got dim: 2 with "
                         "type: Long and size: [1, 1]"),
    "index_reduce dims": (
        lambda: z(3, 4).index_reduce(0, torch.tensor([0]), z(()), "prod"), RuntimeError,
        "index_reduce_(): source tensor shape must match self tensor shape"),
    "index_copy outside": (lambda: z(3).index_copy(0, torch.tensor([7]), z(1)), IndexError,
                           "index_copy_(): index 7 is out of bounds for dimension 0 with size 3"),
    "index_copy matrix": (lambda: z(3).index_copy(0, torch.tensor([[0]]), z(1)), IndexError,
                          "index_copy_(): Index should have dimension 1 or 0 (got 2)"),
    "index_copy scalar": (lambda: z(3).index_copy(0, torch.tensor([0, 1]), z(())), IndexError,
                          "index_copy_(): When source is scalar, index should have one element "
                          "(got 2)"),
    "index_copy dims": (lambda: z(3, 4).index_copy(0, torch.tensor([0]), z(4)), IndexError,
                        "index_copy_(): When source and destination are not scalars, their "
                        "dimensionality must match. Source dimensionality (1), destination "
                        "dimensionality (2)"),
    "index_copy count": (lambda: z(3, 4).index_copy(0, torch.tensor([0, 1]), z(1, 4)), IndexError,
                         "index_copy_(): Number of indices (2) should be equal to source.size(dim) "
                         "(1)"),
    "index_copy index": (lambda: z(3).index_copy(0, torch.tensor([0]).int(), z(1)), RuntimeError,
                         "index_copy_(): Expected a long tensor for index, but got Int"),
    "index_copy dtypes": (
        lambda: z(3).index_copy(0, torch.tensor([0]), z(1).double()), RuntimeError,
        "index_copy_(): self and source expected to have the same dtype, but got (self) Float and "
        "(source) Double"),
    "index_copy slices": (
        lambda: z(3, 4, 5).index_copy(-1, torch.tensor([0]), z(3, 2, 1)), RuntimeError,
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice "
        "shape: [3, 4] at dimension 2 and source slice shape: [3, 2]"),
    "bincount": (lambda: torch.bincount(torch.tensor([[1]])), RuntimeError,
                 "bincount only supports 1-d non-negative integral inputs"),
    "bincount negative": (lambda: torch.bincount(torch.tensor([-1])), RuntimeError,
                          "bincount only supports 1-d non-negative integral inputs"),
    "bincount floats": (lambda: torch.bincount(z(2)), NotImplementedError,
                        "\"bincount_cpu\" not implemented for 'Float'"),
    "bincount weights": (lambda: torch.bincount(torch.tensor([1]), z(2)), RuntimeError,
                         "weights should be 1-d and have the same length as input"),
    "bincount minlength": (lambda: torch.bincount(torch.tensor([1]), minlength=-1), RuntimeError,
                           "minlength should be >= 0"),
    "stft hop": (
        lambda: torch.stft(z(8), 4, 0, window=torch.ones(4), return_complex=True), RuntimeError,
        "expected hop_length > 0, but got hop_length=0"),
    "stft window": (
        lambda: torch.stft(z(8), 4, window=torch.ones(8), return_complex=True), RuntimeError,
        "expected a 1D window tensor of size equal to win_length=4, but got window with size [8]"),
    "stft n_fft": (
        lambda: torch.stft(z(8), 9, window=torch.ones(9), center=False, return_complex=True),
        RuntimeError, "expected 0 < n_fft < 8, but got n_fft=9"),
    "istft length": (
        lambda: torch.istft(z(3, 9) + 0j, 4, window=torch.ones(4), length=-1), RuntimeError,
        "istft: expected length >= 0, but got length=-1"),
    "tile": (lambda: z(3, 4).tile((2, -1)), RuntimeError,
             "Trying to create tensor with negative dimension -4: [6, -4]"),
    "interpolate size": (
        lambda: F.interpolate(z(1, 1, 4, 4), size=(2,)), ValueError,
        "Input and output must have the same number of spatial dimensions, but got input with "
        "spatial dimensions of [4, 4] and output size of [2]."),
    "interpolate factor": (
        lambda: F.interpolate(z(1, 1, 4, 4), scale_factor=(2,)), ValueError,
        "Input and scale_factor must have the same number of spatial dimensions, but got input "
        "with spatial dimensions of [4, 4] and scale_factor of 1 numbers"),
    "Upsample": (lambda: nn.Upsample(size=[2])(z(1, 1, 4, 4)), ValueError,
                 "Input and output must have the same number of spatial dimensions"),
    "group_norm": (lambda: F.group_norm(z(2, 3, 4), 2), RuntimeError,
                   "Expected number of channels in input to be divisible by num_groups, but got "
                   "input of shape [2, 3, 4] and num_groups=2"),
    "broadcast_shapes": (lambda: torch.broadcast_shapes((2, 3), (3,), (4,)), RuntimeError,
                         "Attempting to broadcast a dimension of length 4 at -1! Mismatching "
                         "argument at index 2 had (4,); but expected shape should be "
                         "broadcastable to [2, 3]"),
    "adaptive_avg_pool2d": (lambda: F.adaptive_avg_pool2d(z(3), 2), RuntimeError,
                            "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got [3]"),
    "adaptive_max_pool1d": (lambda: F.adaptive_max_pool1d(z(3), 2), RuntimeError,
                            "adaptive_max_pool1d(): Expected 2D or 3D tensor, but got [3]"),
    "adaptive_avg_pool2d of sizes": (lambda: F.adaptive_avg_pool2d(z(3), (2, 2)), ValueError,
                                     "Input dimension should be at least 3"),
    "polygamma": (lambda: torch.polygamma(-1, z(2)), RuntimeError,
                  "polygamma(n, x) does not support negative n."),
    "polygamma_": (lambda: z(2).polygamma_(-1), RuntimeError,
                   "polygamma(n, x) does not support negative n."),
    "lerp": (lambda: torch.lerp(z(2), z(2).double(), 0.5), RuntimeError,
             "expected dtype torch.float32 for `end` but got dtype torch.float64"),
    "lerp by": (lambda: torch.lerp(z(2), z(2), z(2).double()), RuntimeError,
                "expected dtype torch.float32 for `weight` but got dtype torch.float64"),
    "clip_grad_norm_": (lambda: nn.utils.clip_grad_norm_([z(2)], "a"), ValueError,
                        "could not convert string to float: 'a'"),
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
