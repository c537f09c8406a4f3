"""Scalar primitives in Triton's language: the source of the device functions of emitted modules.

What one expression says is in `triton_scalar`; here are those that take several. `s_NAME` is the
primitive NAME of flambeau/ops/scalar.py with the arithmetic of csrc/kernels/scalar_math.h; the
endings `_int` and `_uint` are forms for those types. `r_NAME` reduces the rows of a tile. Their
text is copied into modules, where Triton compiles them; nothing here is called, or imports Triton.
"""

# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

tl: Any = None
libdevice: Any = None


def s_quotient(a, b):
    if a.dtype == tl.float32:
        q = tl.div_rn(a, b)
    else:
        q = a / b
    return q


def s_remainder(a, b):
    r = libdevice.fmod(a, b)
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


def s_floor_divide(a, b):
    whole = s_quotient(a, b)
    r = libdevice.fmod(a, b)
    q = s_quotient(a - r, b)
    q = tl.where((r != 0) & ((b < 0) != (r < 0)), q - 1.0, q)
    down = tl.floor(q)
    down = tl.where(q - down > 0.5, down + 1.0, down)
    down = tl.where(q == 0, libdevice.copysign(q * 0.0, whole), down)
    return tl.where(b == 0, whole, down)


# Whole numbers: a kernel cannot raise, so what is divided by zero is left as it is. The lowest
# number divided by -1 wraps around.
def s_trunc_divide_int(a, b):
    q = a // tl.where((b == 0) | (b == -1), 1, b)
    return tl.where(b == -1, 0 - a, q)


def s_trunc_divide_uint(a, b):
    return a // tl.where(b == 0, 1, b)


def s_fmod_int(a, b):
    return a % tl.where((b == 0) | (b == -1), 1, b)


def s_fmod_uint(a, b):
    return a % tl.where(b == 0, 1, b)


def s_remainder_int(a, b):
    r = s_fmod_int(a, b)
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


def s_floor_divide_int(a, b):
    q = s_trunc_divide_int(a, b)
    return tl.where((b != 0) & (q * b != a) & ((a < 0) != (b < 0)), q - 1, q)


def s_pow_int(a, n):
    r = a * 0 + n * 0 + 1
    x = a
    e = n
    for _ in range(63):
        r = tl.where((e & 1) != 0, r * x, r)
        x = x * x
        e = e >> 1
    unit = tl.where(a == 1, 1, tl.where(a == -1, 1 - 2 * (n & 1), 0))
    return tl.where(n < 0, unit, r)


def s_pow_uint(a, n):
    r = a * 0 + n * 0 + 1
    x = a
    e = n
    for _ in range(64):
        r = tl.where((e & 1) != 0, r * x, r)
        x = x * x
        e = e >> 1
    return r


def s_bitwise_left_shift(a, b):
    return tl.where(b.to(tl.uint64) > 63, 0, a << (b & 63))


def s_bitwise_right_shift_int(a, b):
    return a >> tl.where(b.to(tl.uint64) > 63, 63, b & 63)


def s_bitwise_right_shift_uint(a, b):
    return tl.where(b > 63, 0, a >> (b & 63))


def s_gcd(a, b):
    x = tl.abs(a).to(tl.uint64) + tl.abs(b).to(tl.uint64) * 0
    y = tl.abs(b).to(tl.uint64) + x * 0
    for _ in range(92):  # the steps that Euclid's algorithm takes for 64 bits at most
        r = x % tl.where(y == 0, 1, y)
        x = tl.where(y == 0, x, y)
        y = r
    return x.to(a.dtype)


def s_lcm(a, b):
    g = s_gcd(a, b)
    return tl.where(g == 0, 0, tl.abs((a // tl.where(g == 0, 1, g)) * b))


def s_hypot(a, b):
    x = a.to(tl.float64)
    y = b.to(tl.float64)
    far = tl.sqrt(x * x + y * y)
    endless = (tl.abs(x) == float("inf")) | (tl.abs(y) == float("inf"))
    return tl.where(endless, float("inf"), far).to(tl.float32)


def s_logsigmoid(x):
    low = tl.where(x < 0, x, 0.0)
    return low - libdevice.log1p(libdevice.exp(tl.where(x < 0, x, x * -1.0)))


def s_sinc(x):
    p = x * 3.141592653589793
    return tl.where(x == 0, 1.0, s_quotient(libdevice.sin(p), p))


def s_angle(x):
    return tl.where(x != x, x, tl.where(x < 0, tl.full([], 3.141592653589793, x.dtype), 0.0))


def s_logaddexp(a, b):
    m = tl.where(a > b, a, b)
    y = m + libdevice.log1p(libdevice.exp(tl.where(a > b, b - a, a - b)))
    y = tl.where(b != b, b, y)
    return tl.where((a != a) | ((a == b) & (tl.abs(a) == float("inf"))), a, y)


def s_logaddexp2(a, b):
    m = tl.where(a > b, a, b)
    d = libdevice.log1p(libdevice.exp2(tl.where(a > b, b - a, a - b)))
    y = tl.where(b != b, b, m + d * 1.4426950408889634)
    return tl.where((a != a) | ((a == b) & (tl.abs(a) == float("inf"))), a, y)


def s_xlogy(a, b):
    return tl.where(b != b, b, tl.where(a == 0, 0.0, a * libdevice.log(b)))


def s_xlog1py(a, b):
    return tl.where(b != b, b, tl.where(a == 0, 0.0, a * libdevice.log1p(b)))


def s_entr(x):
    y = tl.where(x > 0, x * -1.0 * libdevice.log(x), tl.where(x == 0, 0.0, float("-inf")))
    return tl.where(x != x, x, y)


def s_ndtr(x):
    a = x * 0.7071067811865476
    near = 0.5 + 0.5 * libdevice.erf(a)
    tail = 0.5 * libdevice.erfc(tl.abs(a))
    return tl.where(tl.abs(a) < 0.7071067811865476, near, tl.where(a > 0, 1.0 - tail, tail))


# Reductions of a tile along its second dim. NaN of any element is the maximum and the minimum.
def r_maximum(x):
    nan = tl.max((x != x).to(tl.int32), 1, keep_dims=True)
    y = tl.max(tl.where(x != x, float("-inf"), x), 1, keep_dims=True)
    return tl.where(nan != 0, float("nan"), y)


def r_minimum(x):
    nan = tl.max((x != x).to(tl.int32), 1, keep_dims=True)
    y = tl.min(tl.where(x != x, float("inf"), x), 1, keep_dims=True)
    return tl.where(nan != 0, float("nan"), y)


def times(a, b):
    return a * b


def r_mul(x):
    return tl.reduce(x, 1, times, keep_dims=True)
