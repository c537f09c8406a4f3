"""Products of groups of matrices whose sizes are data: what mixtures of experts compute.

Owns the four forms of `grouped_mm`. The ends of the groups are read once, so a call costs one
transfer of a few integers; every product is an ordinary one, and derivatives are theirs.
"""

from __future__ import annotations

from itertools import pairwise

import flambeau as torch
from flambeau import Tensor


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Multiply groups of rows, of columns, or of terms by a matrix each.

    Args:
        mat_a: `(m, k)`, or `(groups, m, k)`.
        mat_b: `(k, n)`, or `(groups, k, n)`.
        offs: where each group ends, `(groups,)`, ascending. Groups divide the rows of `mat_a` where
            it alone has two dimensions, the columns of `mat_b` where it alone has two, and the
            terms `k` of each product where both have two. Not given where both have three.
        bias: not supported, as in PyTorch.
        out_dtype: of the result; by default that of the operands.

    Returns:
        `(m, n)` where one operand has two dimensions, else `(groups, m, n)`. Rows and columns
        behind the last end are zero.

    Raises:
        RuntimeError: where dimensions, dtypes or the number of groups do not fit.

    >>> x, w = torch.ones(3, 2), torch.stack((torch.eye(2), 2 * torch.eye(2)))
    >>> torch.nn.functional.grouped_mm(x, w, offs=torch.tensor([1, 3]))
    tensor([[1., 1.],
            [2., 2.],
            [2., 2.]])
    """
    _check(mat_a, mat_b, offs, bias)
    if offs is None:
        out = torch.bmm(mat_a, mat_b)
        return out if out_dtype is None else out.to(out_dtype)
    ends = [int(end) for end in offs.tolist()]
    spans = list(pairwise([0, *ends]))
    size = mat_a.shape[-1] if mat_a.ndim == mat_b.ndim else mat_a.shape[0]
    size = mat_b.shape[1] if mat_a.ndim == 3 else size
    if ends[-1] > size or any(j < i for i, j in spans):
        raise RuntimeError(f"grouped_mm: expected offs that rise to at most {size}, got {ends}")
    if mat_a.ndim == 2 and mat_b.ndim == 2:
        out = torch.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in spans])
    elif mat_a.ndim == 2:
        parts = [mat_a[i:j] @ mat_b[g] for g, (i, j) in enumerate(spans)]
        parts.append(mat_a.new_zeros(mat_a.shape[0] - ends[-1], mat_b.shape[2]))
        out = torch.cat(parts)
    else:
        parts = [mat_a[g] @ mat_b[:, i:j] for g, (i, j) in enumerate(spans)]
        parts.append(mat_a.new_zeros(mat_a.shape[1], mat_b.shape[1] - ends[-1]))
        out = torch.cat(parts, 1)
    return out if out_dtype is None else out.to(out_dtype)


def _grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """`nn.functional.grouped_mm` under its older name."""
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _check(a: Tensor, b: Tensor, offs: Tensor | None, bias: Tensor | None) -> None:
    if a.ndim not in (2, 3) or b.ndim not in (2, 3):
        raise RuntimeError(
            f"grouped_mm: expected operands of 2 or 3 dimensions, got {a.ndim} and {b.ndim}"
        )
    if a.dtype != b.dtype or not a.is_floating_point():
        raise RuntimeError(
            f"grouped_mm: expected operands of one floating dtype, got {a.dtype} and {b.dtype}"
        )
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"grouped_mm: expected as many columns as rows, got {a.shape[-1]} and {b.shape[-2]}"
        )
    if bias is not None:
        raise RuntimeError("grouped_mm: bias is not supported; add it to the result")
    if (offs is None) != (a.ndim == 3 and b.ndim == 3):
        raise RuntimeError("grouped_mm: expected offs exactly where an operand has 2 dimensions")
    groups = {t.shape[0] for t in (a, b) if t.ndim == 3}
    if offs is not None:
        if offs.ndim != 1 or offs.dtype not in (torch.int32, torch.int64) or not offs.numel():
            raise RuntimeError("grouped_mm: expected offs to be a vector of integers, not empty")
        groups.add(offs.shape[0])
    if len(groups) != 1:
        raise RuntimeError(f"grouped_mm: expected one number of groups, got {sorted(groups)}")
