"""`SobolEngine`: points that fill the unit cube more evenly than random ones.

Owns the direction numbers. Invariant: point k is the exclusive or of the direction numbers at the
set bits of the Gray code of k, so points can be drawn from anywhere.

Sources: Sobol, USSR Comput. Maths. Math. Phys. 7 (1967); Antonov and Saleev, 19 (1979), the order;
Joe and Kuo, SIAM J. Sci. Comput. 30 (2008), the polynomials and first numbers; Matousek, J.
Complexity 14 (1998), the scrambling.
"""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor

__all__ = ["SobolEngine"]

# For each dimension after the first: the inner coefficients of its primitive polynomial as bits,
# then the first direction numbers, as many as its degree.
_FIRST_NUMBERS = (
    (0, 1), (1, 1, 3), (1, 1, 3, 1), (2, 1, 1, 1), (1, 1, 1, 3, 3), (4, 1, 3, 5, 13),
    (2, 1, 1, 5, 5, 17), (4, 1, 1, 5, 5, 5), (7, 1, 1, 7, 11, 19), (11, 1, 1, 5, 1, 1),
    (13, 1, 1, 1, 3, 11), (14, 1, 3, 5, 5, 31), (1, 1, 3, 3, 9, 7, 49), (13, 1, 1, 1, 15, 21, 21),
    (16, 1, 3, 1, 13, 27, 49), (19, 1, 1, 1, 15, 7, 5), (22, 1, 3, 1, 15, 13, 25),
    (25, 1, 1, 5, 5, 19, 61), (1, 1, 3, 7, 11, 23, 15, 103), (4, 1, 3, 7, 13, 13, 15, 69),
    (7, 1, 1, 3, 13, 7, 35, 63), (8, 1, 3, 5, 9, 1, 25, 53), (14, 1, 3, 1, 13, 9, 35, 107),
    (19, 1, 3, 1, 5, 27, 61, 31), (21, 1, 1, 5, 11, 19, 41, 61), (28, 1, 3, 5, 3, 3, 13, 69),
    (31, 1, 1, 7, 13, 1, 19, 1), (32, 1, 3, 7, 5, 13, 19, 59), (37, 1, 1, 3, 9, 25, 29, 41),
    (41, 1, 3, 5, 13, 23, 1, 55), (42, 1, 3, 7, 3, 13, 59, 17), (50, 1, 3, 1, 3, 5, 53, 69),
    (55, 1, 1, 5, 5, 23, 33, 13), (56, 1, 1, 7, 7, 1, 61, 123), (59, 1, 1, 7, 9, 13, 61, 49),
    (62, 1, 3, 3, 5, 3, 55, 33), (14, 1, 3, 1, 15, 31, 13, 49, 245),
    (21, 1, 3, 5, 15, 31, 59, 63, 97), (22, 1, 3, 1, 11, 11, 11, 77, 249),
)  # fmt: skip


def _direction_numbers(dimension: int, bits: int) -> list[list[int]]:
    """For each dimension and bit an integer of `bits` bits."""
    table = [[1 << (bits - 1 - j) for j in range(bits)]]
    for inner, *first in _FIRST_NUMBERS[: dimension - 1]:
        degree = len(first)
        m = list(first)
        for j in range(degree, bits):
            new = m[j - degree] ^ (m[j - degree] << degree)
            for k in range(1, degree):
                if inner >> (degree - 1 - k) & 1:
                    new ^= m[j - k] << k
            m.append(new)
        table.append([m[j] << (bits - 1 - j) for j in range(bits)])
    return table


class SobolEngine:
    """Draws points of a Sobol sequence in the half-open unit cube.

    Args:
        dimension: of the cube, from 1 to 40.
        scramble: multiply the digits by random matrices and shift them, which keeps how evenly the
            points lie.
        seed: of the scrambling; None takes the default generator.

    Attributes:
        num_generated: how many points were drawn or skipped.

    Raises:
        ValueError: a dimension that there are no direction numbers for.

    >>> torch.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 1 + len(_FIRST_NUMBERS)

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                "Supported range of dimensionality for SobolEngine is "
                f"[1, {self.MAXDIM}], got {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = fb.tensor(_direction_numbers(dimension, self.MAXBIT))
        self.shift = fb.zeros(dimension, dtype=fb.int64)
        if scramble:
            self._scramble()
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None if self.seed is None else fb.Generator().manual_seed(self.seed)
        d, bits = self.dimension, self.MAXBIT
        weights = 2 ** fb.arange(bits)
        shift = fb.randint(2, (d, bits), generator=generator)
        self.shift = (shift * weights).sum(1)
        matrices = fb.randint(2, (d, bits, bits), generator=generator).tril()
        matrices.diagonal(dim1=-2, dim2=-1).fill_(1)
        # Digits of the direction numbers, the first behind the point first.
        places = fb.arange(bits - 1, -1, -1)
        digits = self.sobolstate[:, :, None] >> places & 1  # [d, number, digit]
        mixed = (digits[:, :, None, :] * matrices[:, None]).sum(-1) % 2
        self.sobolstate = (mixed << places).sum(-1)

    @property
    def quasi(self) -> Tensor:
        """The next point, as whole numbers of MAXBIT bits."""
        return self._points(1)[0]

    def _points(self, n: int) -> Tensor:
        index = fb.arange(self.num_generated, self.num_generated + n)
        gray = index ^ index >> 1
        points = self.shift.repeat(n, 1)
        for j in range((self.num_generated + n).bit_length()):
            points ^= (gray >> j & 1)[:, None] * self.sobolstate[:, j]
        return points

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next points.

        Args:
            n: how many.
            out: what they are written to.
            dtype: of the result; the default dtype unless given.

        Returns:
            A tensor of shape (n, dimension).

        Raises:
            ValueError: a negative number, or more points than MAXBIT bits tell apart.
        """
        if n < 0 or self.num_generated + n > 1 << self.MAXBIT:
            raise ValueError(
                f"SobolEngine.draw: expected from 0 to {(1 << self.MAXBIT) - self.num_generated} "
                f"points, got {n}"
            )
        points = self._points(n)
        self.num_generated += n
        result = points.to(fb.float64).mul_(2.0**-self.MAXBIT)
        result = result.to(fb.get_default_dtype() if dtype is None else dtype)
        if out is None:
            return result
        return out.resize_(result.shape).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2**m points, at places where they lie evenly.

        Args:
            m: the logarithm of their number.
            out: what they are written to.
            dtype: of the result.

        Raises:
            ValueError: together with the points before they are no power of two.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, the "
                "function 'SobolEngine.draw()' can be used."
            )
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin with the first point again."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip points.

        Args:
            n: how many.
        """
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        more = ", scramble=True" if self.scramble else ""
        seed = f", seed={self.seed}" if self.seed is not None else ""
        return f"{type(self).__name__}(dimension={self.dimension}{more}{seed})"
