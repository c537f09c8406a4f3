"""The scalar primitives: the vocabulary of pointwise entries, and their derivatives.

The only list of them. Each line is a signature and the partial derivative for each argument, in the
same language, over the arguments and `y`, the value itself (using `y` means: keep the result). For
functions that are not complex-differentiable, `vjp` and `jvp` give the products with a cotangent
`g` and a tangent `t` instead. A primitive `foo` is also the tensor operation `foo`; its arithmetic
is `foo` of csrc/kernels/scalar_math.h.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

UNKNOWN = "s.underivable(g)"


@dataclass(frozen=True)
class Primitive:
    """One scalar function.

    `kind` is what it gives: "same" as its arguments, "bool", "real" (the real type of a complex
    one), "complex". `partials` has an expression for each argument, None where the derivative is
    zero everywhere, UNKNOWN where it is not: asking for it is refused. `signed`: differs between
    int64 and uint64. `inexact`: not of whole numbers. `divides`: by the second argument, which must
    not be zero among whole numbers. `cost`: rough operations. `library`: it is a function of the
    extension (csrc/kernels/special.h), which generated code cannot call. `guarded`: the fast form
    holds for angles up to a limit, an exact one beyond it. `lanes`: how it computes with 16 floats
    at a time: "plain" by operators, "call" by a function of csrc/kernels/vector_lanes.h. `bools`:
    computes with bools as they lie in memory, eight times as many at once as integers.
    """

    name: str
    args: tuple[str, ...]
    partials: tuple[str | None, ...] = ()
    kind: str = "same"
    cost: int = 1
    signed: bool = False
    inexact: bool = False
    divides: bool = False
    library: bool = False
    guarded: bool = False
    lanes: str = ""
    bools: bool = False
    vjp: tuple[str | None, ...] = field(default=())
    jvp: str = ""

    @property
    def smooth(self) -> bool:
        return any(self.partials) or any(self.vjp)


def _p(signature: str, *partials: str | None, **options: object) -> Primitive:
    call = ast.parse(signature, mode="eval").body
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    args = tuple(a.id for a in call.args if isinstance(a, ast.Name))
    return Primitive(call.func.id, args, partials or (None,) * len(args), **options)  # type: ignore[arg-type]


_ALL = (
    _p("underivable(g)"),  # stands for a cotangent or tangent that nobody knows; has no arithmetic
    # Arithmetic
    _p("add(a, b)", "1", "1", lanes="plain"),
    _p("sub(a, b)", "1", "-1", lanes="plain"),
    _p("mul(a, b)", "b", "a", lanes="plain"),
    _p("div(a, b)", "1 / b", "-(a / b) / b", cost=4, lanes="plain"),
    _p("neg(x)", "-1", lanes="plain"),
    _p("reciprocal(x)", "-y * y", cost=4, inexact=True, lanes="plain"),
    _p("square(x)", "2 * x", lanes="plain"),
    _p("floor_divide(a, b)", cost=8, signed=True, divides=True),
    _p("trunc_divide(a, b)", cost=8, signed=True, divides=True),
    _p("remainder(a, b)", "1", "-s.floor_divide(a, b)", cost=8, signed=True, divides=True),
    _p("fmod(a, b)", "1", "-s.trunc(a / b)", cost=8, signed=True, divides=True),
    _p(
        "pow(a, b)",
        "s.where(b == 0, 0, b * a ** (b - 1))",
        # The logarithm is of the type of y: below zero it is complex where b is.
        "s.where(a == 0, s.where(s.real(b) >= 0, 0, y * s.log(s.where(y == y, a, y))), "
        "y * s.log(s.where(y == y, a, y)))",
        cost=30,
        signed=True,
    ),
    _p(
        "maximum(a, b)",
        "s.where(a == b, 0.5, s.where(a < b, 0, 1))",
        "s.where(a == b, 0.5, s.where(b < a, 0, 1))",
        signed=True,
    ),
    _p(
        "minimum(a, b)",
        "s.where(a == b, 0.5, s.where(a > b, 0, 1))",
        "s.where(a == b, 0.5, s.where(b > a, 0, 1))",
        signed=True,
    ),
    _p(
        "fmax(a, b)",
        "s.where((a >= b) | s.isnan(b), 1, 0)",
        "s.where((a >= b) | s.isnan(b), 0, 1)",
        signed=True,
    ),
    _p(
        "fmin(a, b)",
        "s.where((a <= b) | s.isnan(b), 1, 0)",
        "s.where((a <= b) | s.isnan(b), 0, 1)",
        signed=True,
    ),
    _p("copysign(a, b)", "s.where(a == 0, 0, s.where(s.signbit(a) == s.signbit(b), 1, -1))", None),
    _p("hypot(a, b)", "a / y", "b / y", cost=8),
    _p(
        "atan2(a, b)",
        "s.where(a * a + b * b == 0, 0, b / (a * a + b * b))",
        "s.where(a * a + b * b == 0, 0, -a / (a * a + b * b))",
        cost=30,
    ),
    _p("nextafter(a, b)", cost=8),
    _p("gcd(a, b)", cost=30, signed=True),
    _p("lcm(a, b)", cost=40, signed=True),
    _p("ldexp(a, b)", "s.exp2(b)", "a * s.exp2(b) * 0.6931471805599453", cost=10),
    _p("heaviside(a, b)", signed=True),
    _p("logaddexp(a, b)", "s.sigmoid(a - b)", "s.sigmoid(b - a)", cost=30),
    _p(
        "logaddexp2(a, b)",
        "s.sigmoid(0.6931471805599453 * (a - b))",
        "s.sigmoid(0.6931471805599453 * (b - a))",
        cost=30,
    ),
    _p("xlogy(a, b)", "s.where((a == 0) & (b <= 0), 0, s.log(b))", "a / b", cost=15),
    _p("xlog1py(a, b)", "s.where((a == 0) & (b <= -1), 0, s.log1p(b))", "a / (b + 1)", cost=15),
    # Comparison, logic, bits
    _p("eq(a, b)", kind="bool", bools=True),
    _p("ne(a, b)", kind="bool", bools=True),
    _p("lt(a, b)", kind="bool", signed=True),
    _p("le(a, b)", kind="bool", signed=True),
    _p("gt(a, b)", kind="bool", signed=True),
    _p("ge(a, b)", kind="bool", signed=True),
    _p("logical_and(a, b)", kind="bool", bools=True),
    _p("logical_or(a, b)", kind="bool", bools=True),
    _p("logical_xor(a, b)", kind="bool", bools=True),
    _p("logical_not(x)", kind="bool", bools=True),
    _p("bitwise_and(a, b)", bools=True),
    _p("bitwise_or(a, b)", bools=True),
    _p("bitwise_xor(a, b)", bools=True),
    _p("bitwise_not(x)", bools=True),
    _p("bitwise_left_shift(a, b)"),
    _p("bitwise_right_shift(a, b)", signed=True),
    _p("isnan(x)", kind="bool"),
    _p("isinf(x)", kind="bool"),
    _p("isfinite(x)", kind="bool"),
    _p("signbit(x)", kind="bool", signed=True),
    _p("where(c, a, b)", None, "s.where(c, 1, 0)", "s.where(c, 0, 1)"),
    # Rounding, parts
    _p(
        "abs(x)",
        kind="real",
        vjp=("g * s.sgn(x)",),
        jvp="s.real(t * s.conj(s.sgn(x)))",
        signed=True,
    ),
    _p("sign(x)", signed=True),
    _p(
        "sgn(x)",
        vjp=("s.where(x == 0, 0, (g - y * s.real(s.conj(y) * g)) / s.abs(x))",),
        jvp="s.where(x == 0, 0, (t - y * s.real(s.conj(y) * t)) / s.abs(x))",
        signed=True,
        cost=8,
    ),
    _p("floor(x)"),
    _p("ceil(x)"),
    _p("trunc(x)"),
    _p("round(x)"),
    _p("conj(x)", vjp=("s.conj(g)",), jvp="s.conj(t)"),
    _p("real(x)", kind="real", vjp=("g",), jvp="s.real(t)"),
    _p("imag(x)", kind="real", vjp=("s.complex(0, g)",), jvp="s.imag(t)"),
    _p(
        "angle(x)",
        kind="real",
        vjp=(
            "s.where(x == 0, 0, s.complex(-s.imag(x) / s.abs(x) * (g / s.abs(x)), "
            "s.real(x) / s.abs(x) * (g / s.abs(x))))",
        ),
        jvp="s.imag(t / x)",
        cost=30,
    ),
    _p("complex(a, b)", kind="complex", vjp=("s.real(g)", "s.imag(g)"), jvp="s.complex(a_t, b_t)"),
    # Exponential
    _p("exp(x)", "y", cost=10, lanes="call"),
    _p("exp2(x)", "y * 0.6931471805599453", cost=10),
    _p("expm1(x)", "y + 1", cost=12),
    _p("log(x)", "1 / x", cost=10),
    _p("log2(x)", "1 / (x * 0.6931471805599453)", cost=12),
    _p("log10(x)", "1 / (x * 2.302585092994046)", cost=12),
    _p("log1p(x)", "1 / (x + 1)", cost=15),
    _p("sqrt(x)", "0.5 / y", cost=6, inexact=True, lanes="plain"),
    _p("rsqrt(x)", "-0.5 * y * y * y", cost=8, inexact=True, lanes="plain"),
    _p("sigmoid(x)", "y * (1 - y)", cost=15, lanes="call"),
    _p("logsigmoid(x)", "s.sigmoid(-x)", cost=20),
    # Trigonometric, hyperbolic
    _p("sin(x)", "s.cos(x)", cost=15, guarded=True, lanes="call"),
    _p("cos(x)", "-s.sin(x)", cost=15, guarded=True, lanes="call"),
    _p("tan(x)", "1 + y * y", cost=20, guarded=True, lanes="call"),
    _p("asin(x)", "s.rsqrt(1 - x * x)", cost=25),
    _p("acos(x)", "-s.rsqrt(1 - x * x)", cost=25),
    _p("atan(x)", "1 / (x * x + 1)", cost=25),
    _p("sinh(x)", "s.cosh(x)", cost=25),
    _p("cosh(x)", "s.sinh(x)", cost=25),
    _p("tanh(x)", "1 - y * y", cost=15, lanes="call"),
    _p("asinh(x)", "s.rsqrt(x * x + 1)", cost=30),
    _p("acosh(x)", "1 / (s.sqrt(x - 1) * s.sqrt(x + 1))", cost=30),
    _p("atanh(x)", "1 / (1 - x * x)", cost=30),
    _p(
        "sinc(x)",
        "s.where(x == 0, 0, (s.cos(3.141592653589793 * x) - s.sinc(x)) / x)",
        cost=20,
        guarded=True,
    ),
    # Special functions
    _p("erf(x)", "1.1283791670955126 * s.exp(-(x * x))", cost=20, lanes="call"),
    _p("erfc(x)", "-1.1283791670955126 * s.exp(-(x * x))", cost=30),
    _p("erfcx(x)", "2 * x * y - 1.1283791670955126", cost=50, library=True),
    _p("erfinv(x)", "0.886226925452758 * s.exp(s.square(s.erfinv(x)))", cost=60, library=True),
    _p("ndtr(x)", "0.3989422804014327 * s.exp(-0.5 * x * x)", cost=30),
    _p("ndtri(x)", "2.5066282746310002 * s.exp(0.5 * s.square(s.ndtri(x)))", cost=60, library=True),
    _p(
        "log_ndtr(x)",
        "0.7978845608028654 / s.erfcx(-0.7071067811865476 * x)",
        cost=60,
        library=True,
    ),
    _p("lgamma(x)", "s.digamma(x)", cost=60, library=True),
    _p("digamma(x)", "s.zeta(2, x)", cost=60, library=True),
    _p("zeta(a, b)", UNKNOWN, "-a * s.zeta(a + 1, b)", cost=100, library=True),
    _p("polygamma(n, x)", None, "s.polygamma(n + 1, x)", cost=100, library=True),
    _p(
        "igamma(a, x)",
        UNKNOWN,
        "s.exp((a - 1) * s.log(x) - x - s.lgamma(a))",
        cost=100,
        library=True,
    ),
    _p(
        "igammac(a, x)",
        UNKNOWN,
        "-s.exp((a - 1) * s.log(x) - x - s.lgamma(a))",
        cost=100,
        library=True,
    ),
    _p("i0(x)", "s.i1(x)", cost=60, library=True),
    _p("i0e(x)", "s.i1e(x) - s.sign(x) * y", cost=60, library=True),
    _p(
        "i1(x)",
        "s.where(s.abs(x) < 1e-20, 0.5, s.i0(x) - y / s.where(s.abs(x) < 1e-20, 1, x))",
        cost=60,
        library=True,
    ),
    _p(
        "i1e(x)",
        "s.where(s.abs(x) < 1e-20, 0.5,"
        " s.i0e(x) - y * (s.sign(x) + 1 / s.where(s.abs(x) < 1e-20, 1, x)))",
        cost=60,
        library=True,
    ),
    _p("entr(x)", "s.where(x > 0, -s.log(x) - 1, s.where(x == 0, s.inf(x), s.nan(x)))", cost=20),
    _p("inf(x)"),
    _p("nan(x)"),
    *(
        _p(f"{name}(x)", cost=100, library=True)
        for name in (
            "bessel_j0",
            "bessel_j1",
            "bessel_y0",
            "bessel_y1",
            "modified_bessel_i0",
            "modified_bessel_i1",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
            "spherical_bessel_j0",
            "airy_ai",
        )
    ),
    *(
        _p(f"{name}(x, n)", cost=100, library=True)
        for name in (
            "chebyshev_polynomial_t",
            "chebyshev_polynomial_u",
            "chebyshev_polynomial_v",
            "chebyshev_polynomial_w",
            "shifted_chebyshev_polynomial_t",
            "shifted_chebyshev_polynomial_u",
            "shifted_chebyshev_polynomial_v",
            "shifted_chebyshev_polynomial_w",
            "hermite_polynomial_h",
            "hermite_polynomial_he",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
        )
    ),
)

#: name -> primitive
PRIMITIVES: dict[str, Primitive] = {p.name: p for p in _ALL}
