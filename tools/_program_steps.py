"""The vocabulary of random programs: templates of steps, by what they take.

`{a}`, `{b}`, `{c}` are tensors drawn before, `{d}` and `{e}` dims of a, `{i}` a tensor of whole
numbers, `{m}` one of truth values. Sizes are written by expressions, so that a program runs at
other sizes too. Steps that decide (comparisons, rounding) do so away from where values often lie.
"""

from __future__ import annotations

#: of a floating tensor
UNARY = [
    "{a}.sin()", "{a}.cos()", "{a}.tanh()", "{a}.sigmoid()", "{a}.abs()", "-{a}", "{a} * 0.5",
    "{a} + 1", "2 - {a}", "({a} * 0.3).exp()", "torch.relu({a})", "F.gelu({a})", "F.silu({a})",
    "{a}.square() * 0.1", "1.0 / ({a}.abs() + 1)", "{a}.clamp(-0.531, 0.713)", "{a}.contiguous()",
    "{a}.clone()", "torch.where({a} > 0.0123, {a}, {a} * 0.1)", "{a} - {a}.detach() * 0.5",
    "{a} ** 2 * 0.3", "{a}.pow(3) * 0.1", "({a}.abs() + 0.3).sqrt()", "({a}.abs() + 0.3).rsqrt()",
    "({a}.abs() + 0.3).log()", "{a}.abs().log1p()", "{a}.erf()", "(0.3 * {a}).expm1()",
    "F.softplus({a})", "F.leaky_relu({a}, 0.2)", "F.elu({a})", "F.hardtanh({a}, -0.431, 0.631)",
    "F.hardswish({a})", "F.mish({a})", "F.logsigmoid({a})", "({a} * 2.7).floor() + {a}",
    "({a} * 2.7).round() * 0.3", "({a} * 3.3).trunc() * {a}", "({a} + 0.0137).sign()",
    "{a}.nan_to_num()", "{a}.atan()", "({a} * 0.4).sinh()", "{a}.asinh()", "F.selu({a})",
    "({a} * 0.3).tan()", "torch.sinc({a})", "{a}.clamp_min(0.0171)", "{a}.clamp_max(0.317)",
    "torch.zeros_like({a}) + {a}", "torch.full_like({a}, 0.25) * {a}", "({a} * 0.4).exp2()",
    "{a} * {a}.shape[{d}]", "{a} / {a}.numel()", "{a}.masked_fill({a} > 0.1231, 0.5)",
    "({a} + 1 if {a}.shape[{d}] > 3 else {a} - 1)", "{a} * w", "{a} + n", "{a} - w * n",
    "torch.threshold({a}, 0.0977, -0.5)", "F.relu6({a} * 3)", "({a} + 0.3) % 0.7171",
    "torch.fmod({a}, 0.4343)", "torch.lerp({a}, {a}.cos(), 0.3)", "torch.rsub({a}, 1, alpha=0.3)",
    "{a}.float() if w > 0 else {a}", "{a}.nan_to_num() * True", "{a}.type_as({a})",
    "torch.where({a}.isnan(), 0.0, {a})", "torch.addcmul({a}, {a}, {a}, value=0.1)",
    "({a} + 1 if bool({a}.sum() > 0.0123) else {a} - 1)", "{a}.reciprocal().clamp(-2.1, 2.3)",
]  # fmt: skip
#: of two floating tensors that broadcast
BINARY = [
    "{a} + {b}", "{a} * {b}", "{a} - {b}", "torch.maximum({a}, {b})", "{a} / ({b}.abs() + 1)",
    "torch.where({a} > {b} + 0.0131, {a}, {b})", "torch.add({a}, {b}, alpha=0.5)",
    "torch.minimum({a}, {b})", "torch.atan2({a} + 0.1, {b}.abs() + 0.4)",
    "torch.hypot({a}, {b} + 2)", "torch.lerp({a}, {b}, 0.25)", "torch.fmax({a}, {b})",
    "torch.logaddexp({a}, {b})", "torch.copysign({a}, {b} + 0.0117)", "({a} > {b} + 0.0113)",
    "({a} <= {b} - 0.0119)", "({a} * {b}).sum() * 0.1", "torch.sub({a}, {b}, alpha=2)",
    "torch.addcmul({a}, {a}, {b}, value=0.3)", "torch.addcdiv({a}, {a}, {b}.abs() + 1)",
    "F.mse_loss({a}, {b}.expand_as({a}))", "{a} * ({b}.shape[0] if {b}.dim() else 1)",
    "torch.dist({a}, {b} + 1)", "{a}.clamp({b} - 0.51, {b} + 0.53)", "torch.where({m}, {a}, {b})",
    "{a} * {m}", "{a} + {i} * 0.1", "torch.masked_fill({a}, {m}, 0.25)", "{a} ** ({i} % 3)",
]  # fmt: skip
#: of a floating tensor, over a dim of at least one element
REDUCTIONS = [
    "{a}.sum({d}) * 0.2", "{a}.mean({d})", "{a}.sum({d}, keepdim=True) * 0.1", "{a}.amax({d})",
    "{a}.softmax({d})", "{a}.log_softmax({d}) * 0.3", "{a}.var({d}, correction=0)",
    "torch.logsumexp({a}, {d})", "{a}.cumsum({d}) * 0.2", "{a}.max({d})[0]", "{a}.mean()",
    "{a}.norm() * 0.1", "{a}.amin({d}, keepdim=True)", "{a}.min({d})[0]", "{a}.max()", "{a}.min()",
    "({a} * 0.5).prod({d})", "{a}.std({d}, correction=0)", "{a}.sum()", "{a}.amax()",
    "{a}.sort({d})[0]", "{a}.argmax({d})", "{a}.argsort({d})", "{a}.median()",
    "{a}.norm(dim={d}) * 0.3", "torch.norm({a}, p=1, dim={d}) * 0.2", "{a}.logcumsumexp({d})",
    "{a}.cummax({d})[0]", "({a} * 0.5).cumprod({d})", "{a}.topk(1, {d})[0]",
    "{a}.sum(({d}, {e})) if {d} != {e} else {a}.sum({d})", "{a}.mean(-1, keepdim=True)",
    "{a}.var()", "{a}.nansum({d})", "{a}.aminmax()[0]", "torch.var_mean({a}, {d})[1]",
    "F.layer_norm({a}, {a}.shape[-1:])", "F.normalize({a} + 1, dim={d})", "{a}.softmax(-1) * {a}",
    "F.softmin({a}, {d})", "{a}.diff(dim={d})", "{a}.sum({d}, dtype=torch.float64)",
    "({a} > 0.1171).sum({d})", "({a} > 0.2171).any({d})", "({a} < 0.7713).all()",
    "{a}.count_nonzero({d})", "{a}.trace() if {a}.dim() == 2 else {a}.sum()",
    "torch.logsumexp({a}, ({d},), keepdim=True)", "{a}.kthvalue(1, {d})[0]", "{a}.quantile(0.3)",
]  # fmt: skip
#: of any tensor; the result may lie in its memory
VIEWS = [
    "{a}.transpose({d}, {e})", "{a}.unsqueeze({d})", "{a}.reshape(-1)", "{a}.select({d}, 0)",
    "{a}.narrow({d}, 0, ({a}.shape[{d}] + 1) // 2)", "{a}[..., ::2]", "{a}[None]", "{a}.flatten()",
    "{a}.unsqueeze({d}).expand(*{a}.shape[:{d}], 3, *{a}.shape[{d}:])", "{a}.permute({order})",
    "{a}.chunk(2, {d})[0]", "{a}.unbind({d})[-1]", "{a}.diagonal()", "{a}.split(1, {d})[0]",
    "{a}[..., 1:]", "{a}[..., :-1]", "{a}.squeeze()", "{a}.squeeze({d})", "{a}.movedim({d}, {e})",
    "{a}.mT", "{a}.unfold({d}, 2, 1)", "{a}.view(-1)", "{a}.view({a}.shape)", "{a}[:, None]",
    "{a}.expand(2, *{a}.shape)", "{a}.select({d}, -1)", "{a}[-1]", "{a}[0:1]", "{a}.swapaxes(0, {d})",
    "{a}.tensor_split(2, {d})[1]", "{a}.narrow({d}, {a}.shape[{d}] // 2, 1)", "{a}.detach()",
    "{a}.as_strided(({a}.shape[0],), (1,))", "{a}.T if {a}.dim() == 2 else {a}", "{a}.ravel()",
    "{a}.unflatten(0, (1, -1))", "{a}.broadcast_to(2, *{a}.shape)", "{a}.alias() if False else {a}",
]  # fmt: skip
#: of any tensor; the result has memory of its own
MOVES = [
    "{a}.flip({d})", "torch.cat([{a}, {a}], {d})", "torch.stack([{a}, {a} * 2], {d})",
    "{a}.roll(1, {d})", "{a}.roll(({a}.shape[{d}] - 1) // 2, {d})", "{a}.tril()", "{a}.triu(1)",
    "F.pad({a}, (1, 2))", "F.pad({a}, (0, -1))", "{a}.repeat(2, *[1] * ({a}.dim() - 1))",
    "{a}.repeat_interleave(2, {d})", "{a}.index_select({d}, torch.arange({a}.shape[{d}] - 1, -1, -1))",
    "{a}.gather({d}, torch.zeros_like({a}, dtype=torch.int64))", "{a}[torch.arange({a}.shape[0]) // 2]",
    "torch.cat([{a}, {b}], {d})", "torch.cat([{a}.narrow({d}, 0, 1), {b}], {d})",
    "torch.stack([{a}, {b}], 0)", "{a}.take_along_dim(torch.zeros_like({a}, dtype=torch.int64), {d})",
    "{a}[{i} % {a}.shape[0]]", "{a}.scatter({d}, torch.zeros_like({a}, dtype=torch.int64), 0)",
    "{a}.index_fill({d}, torch.zeros(1, dtype=torch.int64), 1)", "{a}.clone().contiguous()",
    "{a}.rot90() if {a}.dim() > 1 else {a}.flip(0)", "{a}.diag_embed()", "{a}.flip(0, {d})",
    "{a}.scatter_add({d}, torch.zeros_like({a}, dtype=torch.int64), {a})",
    "{a}.index_add({d}, torch.arange({a}.shape[{d}]), {a})", "torch.tile({a}, (2,))",
    "{a}.reshape(-1, 1)", "torch.take({a}, torch.arange({a}.numel() - 1, -1, -1))",
    "{a}.new_ones({a}.shape) * {a}", "torch.vstack([{a}, {a}])", "{a}.index_copy(0, torch.arange(1), {a}[-1:])",
    "torch.broadcast_tensors({a}, {b})[0]", "torch.meshgrid({a}.flatten(), {b}.flatten(), indexing='ij')[1]",
    "{a}.masked_scatter({a} != {a}, {a})", "torch.where({m}, {a}, 0)", "torch.where({m}, 1, {a})",
]  # fmt: skip
#: of floating tensors, as matrices
PRODUCTS = [
    "({a} @ {a}.mT) * 0.2", "({a} @ {b}.mT) * 0.2", "({a} @ {b}) * 0.2", "F.linear({a}, {b}) * 0.2",
    "torch.einsum('...i,...i->...', {a}, {b})", "({a}.flatten() @ {a}.flatten()) * 0.1",
    "torch.outer({a}.flatten(), {b}.flatten())", "torch.tensordot({a}, {b}, 1) * 0.2",
    "torch.addmm({a}, {a}, {b}) * 0.2", "({a}.mT @ {a}) * 0.2", "torch.vdot({a}.flatten(), {a}.flatten())",
    "torch.kron({a}, {b}) * 0.5", "torch.cdist({a}, {a} + 1) * 0.2", "(({a}.mT @ {b}) * 0.2).relu()",
    "F.scaled_dot_product_attention({a}, {a}, {b})", "F.bilinear({a}, {a}, torch.ones(2, {a}.shape[-1], {a}.shape[-1], dtype={a}.dtype)) * 0.2",
]  # fmt: skip
#: statements
INPLACE = [
    "{a}.add_(1)", "{a}.mul_(0.5)", "{a}.tanh_()", "{a}.select({d}, 0).mul_(2)",
    "{a}.narrow({d}, 0, ({a}.shape[{d}] + 1) // 2).add_(0.25)", "{a}[..., 0].fill_(0.5)",
    "{a}.transpose({d}, {e}).sin_()", "{a}.zero_()", "{a}.copy_({a}.cos())",
    "{a}.clamp_(-0.511, 0.513)", "{a}.view(-1).mul_(1.5)", "{a}.add_({b}, alpha=0.5)", "{a}.mul_({b})",
    "{a}.copy_({b})", "{a}.sub_({b})", "{a}.relu_()", "{a}.neg_()", "{a}.sigmoid_()",
    "{a}.masked_fill_({a} > 0.3131, 0.25)", "{a}.index_fill_({d}, torch.zeros(1, dtype=torch.int64), 0.5)",
    "{a}[0] = 0.5", "{a}[..., 1:] = {a}[..., :1]", "{a}[-1] = {a}[0]", "{a}[0] += 1", "{a} += {b}",
    "{a} *= 0.5", "{a}[{a} > 0.4141] = 0.125", "{a}.diagonal().add_(1)", "{a}.unsqueeze(0).add_(1)",
    "{a}[..., ::2].mul_(0.5)", "{a}.fill_(0.375)", "{a}.div_(2)", "{a}.lerp_({b}, 0.3)",
    "{a}.index_add_({d}, torch.arange({a}.shape[{d}]), {a}.clone())", "{a}.T.add_(1)",
    "{a}.scatter_({d}, torch.zeros_like({a}, dtype=torch.int64), 0.5)", "{a}.addcmul_({b}, {b}, value=0.1)",
    "{a}.index_copy_(0, torch.zeros(1, dtype=torch.int64), {a}[-1:].clone())", "{a}.flatten().add_(1)",
    "{a}[{i} % {a}.shape[0]] = 0.75", "{a}.swapaxes(0, {d}).mul_(0.5)", "{a}.squeeze().add_(0.5)",
    "{a}.chunk(2, {d})[0].mul_({a}.chunk(2, {d})[0])", "{a}.triu_()", "{a}[0, ..., 0] = 1",
    "{a}.unbind({d})[0].add_(1)", "{a}.reshape(-1)[0:1].fill_(0.5)", "{a}.detach().mul_(0.5)",
    "{a}.set_() if False else {a}.add_(0)", "{a}.square_()", "{a}.exp_().clamp_(0.1, 2.1)",
]  # fmt: skip
#: between dtypes
DTYPES = [
    "{a}.to(torch.float32)", "({a} > 0.0121)", "({a} * 4.3).to(torch.int64)", "{a}.to(torch.float64)",
    "({a} * 4.3).to(torch.int32)", "({a} * 4.3).to(torch.int8)", "({a} * 4.3).abs().to(torch.uint8)",
    "({a} + 0.0117).bool()", "{a}.double()", "torch.complex({a}, {a}.cos())", "{a}.isnan()",
    "({a} * 4.3).to(torch.int16)", "({a} * 4.3).int()", "({a} * 4.3).long()", "{a}.isfinite()",
]  # fmt: skip
LOW = ["{a}.to(torch.bfloat16)", "{a}.half()", "{a}.bfloat16().float()"]
#: of a tensor of whole numbers
INTEGER = [
    "{i} * 3", "{i} // 3", "{i} % 4", "-{i}", "{i} & 5", "{i} << 1", "{i} >> 1", "~{i}", "{i}.abs()",
    "torch.div({i}, 3, rounding_mode='trunc')", "{i}.remainder(-3)", "torch.fmod({i}, 3)", "{i} ** 2",
    "{i}.to(torch.int8)", "{i}.to(torch.uint8)", "{i}.to(torch.int32)", "{i}.float()", "{i} * 0.1",
    "{i} / 2", "{i}.bool()", "{i}.clamp(-3, 4)", "{i} + {i}.sum()", "{i}.sum({d})", "{i}.cumsum({d})",
    "{i}.amax({d})", "{i}.prod()", "{i} == 1", "{i} > 0", "{i} + n", "{i} ^ 3", "{i} | 8",
    "{i}.argmax()", "{i}.sort({d})[0]", "{i}.double().mean()", "{i} * 100", "{i}.to(torch.int16) * 300",
    "{i}.to(torch.uint8) - 1", "{i}.to(torch.int8) * 77", "F.one_hot({i} % 3, 3)", "{i}.square()",
    "torch.where({i} > 1, {i}, -{i})", "{i}.sign()", "{i}.min()", "{i}.sin()", "{i}.sqrt().nan_to_num()",
    "{i} // -2", "{i} % -3", "2 - {i}", "7 // ({i}.abs() + 1)", "torch.bitwise_left_shift({i}, 2)",
    "{i} + True", "{i} * 2.5", "{i}.to(torch.uint64)", "{i}.to(torch.uint16)", "{i}.to(torch.uint32)",
    "{i}.all()", "{i}.any({d})", "{i}.unique()", "{i}.max({d})[0]", "torch.bincount({i}.flatten().abs() % 5)",
    "{i}.sum(dtype=torch.int32)", "{i}.to(torch.bool).sum()", "{i}.mean(dtype=torch.float64)", "{i}.nonzero()",
]  # fmt: skip
INTEGER_TWO = [
    "{i} + {j}", "{i} * {j}", "{i} - {j}", "{i} & {j}", "{i} | {j}", "{i} ^ {j}", "{i} // ({j}.abs() + 1)",
    "{i} % ({j}.abs() + 1)", "torch.maximum({i}, {j})", "{i} == {j}", "{i} < {j}", "torch.gcd({i}, {j})",
    "{i} // (-{j}.abs() - 1)", "{i} % (-{j}.abs() - 1)", "{i} / ({j}.abs() + 1)", "{i} >> ({j}.abs() % 4)",
    "torch.where({i} > {j}, {i}, {j})", "torch.fmod({i}, {j}.abs() + 2)", "{i}.clamp({j} - 1, {j} + 1)",
    "torch.isin({i}, {j})", "torch.where({i} > {j}, {i} * 0.5, 0.25)", "{i}.eq({j}).sum()",
]  # fmt: skip
INTEGER_INPLACE = [
    "{i}.add_(1)", "{i}.mul_(2)", "{i}.neg_()", "{i}[0] = 3", "{i}.bitwise_and_(7)", "{i}.copy_({j})",
    "{i}.zero_()", "{i}.floor_divide_(2)", "{i} += {j}", "{i}.select({d}, 0).add_(5)", "{i}.remainder_(3)",
    "{i}[{i} > 2] = 0", "{i}.abs_()",
]  # fmt: skip
#: of a tensor of truth values
BOOLEAN = [
    "~{m}", "{m}.any()", "{m}.all()", "{m}.sum()", "{m}.to(torch.int64)", "{m}.float()", "{m} & ~{m}",
    "{m} | {m}", "{m} ^ {m}", "{m}.sum({d})", "{m}.any({d})", "{m} * 2", "{m} + 1.5", "{m} + {m}",
    "{m}.logical_not()", "{m} * {m}", "{m}.cumsum({d})", "{m} == True", "{m}.int() - 1", "{m} > 0",
    "{m}.double().mean()", "{m}.flip({d})", "{m}.argmax({d}) * 0", "{m} & {n2}", "{m} != {n2}",
    "{m}.max({d})[0]", "torch.logical_xor({m}, {n2})", "{m}.to(torch.uint8) - 2", "{m}.prod({d})",
]  # fmt: skip
#: of a complex tensor
COMPLEX = [
    "{z}.real", "{z}.imag", "{z}.abs()", "{z}.conj()", "{z} * 0.5", "{z} * {z} * 0.3", "-{z}",
    "torch.view_as_real({z})", "{z}.sum()", "{z} + 1j", "({z} * 0.3).exp()", "{z}.angle().cos()",
    "{z}.conj() * {z}", "{z}.sum({d})", "{z}.mean()", "{z} / (({z} * {z}.conj()).real + 1)",
    "{z}.abs().square()", "{z}.flip({d})", "{z}.mH if {z}.dim() > 1 else {z}", "{z}.cumsum({d}) * 0.2",
    "torch.where({z}.real > 0.0117, {z}, {z} * 0.5)", "{z}.conj().resolve_conj()", "{z}.sgn().real * 0.1",
    "{z}.conj().imag", "{z} * 2j", "{z}.square() * 0.2", "{z}.transpose({d}, {e})", "{z}.isfinite()",
    "{z}.sin() * 0.2", "{z}.reshape(-1)", "torch.view_as_complex(torch.view_as_real({z}) * 2)",
]  # fmt: skip
#: draws, which follow the stream of eager
RANDOM = [
    "torch.rand_like({a}) * {a}", "F.dropout({a}, 0.3)", "{a} + torch.randn({a}.shape, dtype={a}.dtype) * 0.1",
    "torch.bernoulli({a}.detach().sigmoid()) * {a}", "{a} * torch.rand({a}.shape)",
]  # fmt: skip
