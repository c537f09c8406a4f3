"""Where a batch goes in batching rules: in front, into the first dim, into the channels.

Rules (`@op.vmap`) get tensors that are batched with the batch in dim 0 and others as they are;
these helpers bring both to one form. They are for rules alone.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _in_front(x: Tensor, batched: bool, batch: int) -> Tensor:
    """`x` with the batch in front; repeated when it is the same for all samples.

    >>> x = torch.ones(4, 1, 1)
    >>> torch.vmap(torch.addmm, (None, 0, None))(torch.ones(1), x, torch.ones(1, 1)).shape
    torch.Size([4, 1, 1])
    """
    return x if batched else x.unsqueeze(0).expand([batch] + x.shape)


@composite(namespaces=(), method=False)
def _aligned(x: Tensor, batched: bool, ndim: int) -> Tensor:
    """`x` such that it broadcasts against a batch of tensors of `ndim` dims.

    >>> x = torch.ones(1, 1)
    >>> torch.vmap(torch.addmm, (0, None, None))(torch.ones(4), x, x).shape
    torch.Size([4, 1, 1])
    """
    missing = ndim + 1 - x.ndim
    if not batched or missing <= 0:
        return x
    return x.view([x.size(0)] + [1] * missing + x.shape[1:])


@composite(namespaces=(), method=False)
def _folded(x: Tensor, batched: bool, batch: int) -> Tensor:
    """`x` with the batch folded into its own first dim.

    >>> torch.vmap(F.max_pool1d, (0, None))(torch.ones(4, 2, 1, 6), 2).shape
    torch.Size([4, 2, 1, 3])
    """
    y = _in_front(x, batched, batch)
    return y.reshape([batch * y.size(1)] + y.shape[2:])


@composite(namespaces=(), method=False)
def _unfolded(x: Tensor, batch: int) -> Tensor:
    """The inverse of `_folded`.

    >>> torch.vmap(F.avg_pool1d, (0, None))(torch.ones(4, 2, 1, 6), 2).shape
    torch.Size([4, 2, 1, 3])
    """
    return x.reshape([batch, x.size(0) // max(batch, 1)] + x.shape[1:])


@composite(namespaces=(), method=False)
def _channelled(x: Tensor, batched: bool, batch: int) -> Tensor:
    """`x` (N, C, *) with the batch folded into its channels: (N, batch * C, *).

    >>> torch.vmap(F.conv1d)(torch.ones(4, 2, 1, 6), torch.ones(4, 3, 1, 2)).shape
    torch.Size([4, 2, 3, 5])
    """
    y = _in_front(x, batched, batch).transpose(0, 1)
    return y.reshape([y.size(0), batch * y.size(2)] + y.shape[3:])


@composite(namespaces=(), method=False)
def _unchannelled(x: Tensor, batch: int) -> Tensor:
    """The inverse of `_channelled`.

    >>> torch.vmap(F.conv1d)(torch.ones(4, 2, 1, 6), torch.ones(4, 3, 1, 2)).shape
    torch.Size([4, 2, 3, 5])
    """
    y = x.reshape([x.size(0), batch, x.size(1) // max(batch, 1)] + x.shape[2:])
    return y.transpose(0, 1)


@composite(namespaces=(), method=False)
def _per_channel(x: Tensor, batched: bool, ndim: int) -> Tensor:
    """One value per channel, to broadcast against a batch of tensors (N, C, *) of `ndim` dims.

    >>> x, w = torch.ones(1, 1, 3), torch.ones(2, 1, 3)
    >>> torch.vmap(F.conv1d, (None, None, 0))(x, w, torch.ones(4, 2)).shape
    torch.Size([4, 1, 2, 1])
    """
    tail = [1] * (ndim - 2)
    return x.reshape([x.size(0), 1, x.size(1)] + tail) if batched else x.reshape([-1] + tail)


@composite(namespaces=(), method=False)
def _index_like(index: Tensor, index_b: bool, x: Tensor, dim: int) -> Tensor:
    """Indices along `dim`, one list for each sample, expanded to the shape of `x` but for `dim`.

    >>> torch.vmap(torch.index_select, (0, None, 0))(torch.ones(2, 3), 0, torch.zeros(2, 1).long())
    tensor([[1.],
            [1.]])
    """
    batch = x.size(0)
    flat = index.reshape([batch, -1]) if index_b else index.reshape([1, -1])
    shape = [1] * x.ndim
    shape[0] = flat.size(0)
    shape[dim] = flat.size(1)
    full = x.shape[:]
    full[dim] = flat.size(1)
    return flat.view(shape).expand(full)


@composite(namespaces=(), method=False)
def _extent(size: Ints, stride: Ints) -> int:
    """How many entries of memory a geometry reaches over.

    >>> torch.vmap(lambda x: x.as_strided((2,), (1,)))(torch.ones(3, 2)).shape
    torch.Size([3, 2])
    """
    last = 0
    for n, s in zip(size, stride, strict=True):
        last += max(n - 1, 0) * s
    return last + 1
