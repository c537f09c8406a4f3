"""Products of groups of rows or columns with a matrix each, as mixtures of experts need them.

Composed of ordinary products, so the derivative is theirs. Offsets are read on the host: each is
the end of a group.
"""

from __future__ import annotations

from itertools import pairwise

from flambeau import _C

Tensor = _C.Tensor

__all__ = ["_grouped_mm"]


def _ends(offs: Tensor | None, size: int, name: str) -> list[int]:
    if offs is None:
        raise ValueError("_grouped_mm: expected offs where a matrix is given, got None")
    if offs.dim() != 1 or offs.dtype != _C.int32:
        raise ValueError(
            f"_grouped_mm: expected offs as int32 vector, got {offs.dtype} of shape "
            f"{tuple(offs.shape)}"
        )
    ends = [0, *offs.tolist()]
    if any(b < a for a, b in pairwise(ends)) or ends[-1] > size:
        raise ValueError(
            f"_grouped_mm: expected offs that rise to at most {size}, the size of {name}, got "
            f"{ends[1:]}"
        )
    return ends


def _grouped_mm(
    input: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: _C.dtype | None = None,
) -> Tensor:
    """One product per group; `offs` (int32) has the end of each group.

    Shapes:
        (M, K) and (G, K, N): rows of `input` in G groups, (M, N); rows behind the last are zero.
        (G, M, K) and (K, N): columns of `mat2` in G groups, (M, N).
        (M, K) and (K, N): the inner dim in G groups, (G, M, N).
        (G, M, K) and (G, K, N): without `offs`, (G, M, N).

    Raises:
        ValueError: ranks, offsets or the result's dtype are others.

    >>> x, w = torch.ones(3, 2), torch.ones(2, 2, 4)
    >>> torch._grouped_mm(x, w, offs=torch.tensor([1, 3], dtype=torch.int32)).shape
    torch.Size([3, 4])
    """
    if bias is not None:
        raise NotImplementedError("_grouped_mm: bias is not supported; add it to the result")
    if out_dtype is not None and out_dtype != input.dtype:
        raise ValueError(f"_grouped_mm: expected out_dtype {input.dtype}, got {out_dtype}")
    ranks = (input.dim(), mat2.dim())
    if ranks == (3, 3):
        if offs is not None:
            raise ValueError("_grouped_mm: expected no offs with two batches of matrices")
        return _C.bmm(input, mat2)
    if ranks == (2, 3):
        ends = _ends(offs, input.size(0), "the rows of input")
        _same_count(ends, mat2)
        parts = [input[a:b] @ m for (a, b), m in zip(pairwise(ends), mat2.unbind(), strict=True)]
        rest = input.size(0) - ends[-1]
        return _C.cat([*parts, input.new_zeros((rest, mat2.size(2)))])
    if ranks == (3, 2):
        ends = _ends(offs, mat2.size(1), "the columns of mat2")
        _same_count(ends, input)
        parts = [
            m @ mat2[:, a:b] for (a, b), m in zip(pairwise(ends), input.unbind(), strict=True)
        ]
        rest = mat2.size(1) - ends[-1]
        return _C.cat([*parts, mat2.new_zeros((input.size(1), rest))], 1)
    if ranks == (2, 2):
        ends = _ends(offs, input.size(1), "the inner dim")
        return _C.stack([input[:, a:b] @ mat2[a:b] for a, b in pairwise(ends)])
    raise ValueError(f"_grouped_mm: expected matrices or batches of them, got ranks {ranks}")


def _same_count(ends: list[int], batch: Tensor) -> None:
    if len(ends) - 1 != batch.size(0):
        raise ValueError(
            f"_grouped_mm: expected offs of {batch.size(0)} groups, one for each matrix, got "
            f"{len(ends) - 1}"
        )
