"""Tensors: every dtype in every layout, and ways in which tensors share their memory."""

from collections import OrderedDict

from .case import Case

DTYPES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128"
).split()
NEW = ("uint16", "uint32", "uint64")  # dtypes that the older format has no storage for


def base(torch, dtype):
    x = torch.arange(24) - (0 if dtype.startswith(("u", "bool")) else 12)
    x = (x % 2 if dtype == "bool" else x).to(getattr(torch, dtype)).reshape(2, 3, 4)
    return x * (1 + 0.5j) if dtype.startswith("complex") else x


LAYOUTS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2),
    "stepped": lambda x: x[:, ::2, 1::2],
    "expanded": lambda x: x[:1, :, :1].expand(5, 3, 2),
    "empty": lambda x: x[:, :0],
    "scalar": lambda x: x[1, 2, 3],
    "part": lambda x: x[1, 1:],
    "window": lambda x: x.reshape(-1).as_strided((5, 3), (4, 2), 1),
}


def _one(dtype, layout):
    return Case(lambda torch: LAYOUTS[layout](base(torch, dtype)), dtype not in NEW)


def shared_parts(torch):
    x = torch.arange(10.0)
    return {"a": x[2:5], "b": x[4:8], "whole": x, "same": x, "reversed_keys": [x[9], x[0]]}


def one_memory_two_dtypes(torch):
    x = torch.arange(4.0)
    return [x, x.view(torch.int32), x.view(torch.uint8)[1:5]]


def storages_of_parts(torch):
    x = torch.arange(6, dtype=torch.int16)
    return [x[1:].untyped_storage(), x]


def typed_storages(torch):
    return [torch.FloatStorage([1, 2]), torch.LongStorage([3]), torch.BoolStorage([True, False])]


def leaves(torch):
    return [
        torch.ones(2, requires_grad=True), torch.ones(2).requires_grad_()[:1].detach(),
        torch.nn.Parameter(torch.arange(6.0).view(2, 3).t()),
        torch.nn.Parameter(torch.arange(3), requires_grad=False),
        torch.ones(2, dtype=torch.complex64, requires_grad=True),
    ]  # fmt: skip


def parameter_twice(torch):
    p = torch.nn.Parameter(torch.ones(2))
    return {"a": p, "b": p, "data": p.data}


def with_attributes(torch):
    x, p = torch.ones(2), torch.nn.Parameter(torch.zeros(1))
    x.tag, x.other, p.rank = "t", torch.arange(2), [1, {"k": x}]
    return [x, p]


def conjugates(torch):
    """PyTorch's are marks on memory; ours are values."""
    return [torch.tensor([1 + 2j, -3j]).conj(), torch.tensor([[1j, 2], [3, 4j]]).conj().t()]


def channels_last(torch):
    x = torch.arange(48.0).view(2, 3, 2, 4)
    return [x.contiguous(memory_format=torch.channels_last), x.unsqueeze(2)[..., :2, :2]]


def many_dims(torch):
    return [torch.arange(64.0).view((2,) * 6).permute(5, 0, 4, 1, 3, 2), torch.ones((1,) * 20)]


def special_values(torch):
    raw = [float("nan"), float("inf"), -float("inf"), -0.0, 1e-45, 3.4e38]
    bits = torch.tensor([0x7FC1, 0x7F81, -0x0080, 1], dtype=torch.int16)  # two are NaN
    return [torch.tensor(raw), torch.tensor(raw).double(), bits.view(torch.bfloat16)]


def large_integers(torch):
    most = torch.tensor([-1]).view(torch.uint64)
    return {"int64": torch.tensor([-(2**63), 2**63 - 1]), "uint64": most}


def meta(torch):
    x = torch.empty(3, 4, device="meta", dtype=torch.float16)
    return {"whole": x, "t": x.t(), "p": torch.nn.Parameter(torch.empty(2, device="meta"))}


def empty_things(torch):
    none = torch.empty(0, 3, dtype=torch.int8)
    return [torch.empty(0), none, torch.empty(2, 0), OrderedDict(), [], {}, ()]


def many_small(torch):
    return [torch.full((1,), i) for i in range(300)]


#: what PyTorch itself refuses to save: one memory as two dtypes
HERE = {
    f.__name__: Case(f, legacy=False, theirs=False)
    for f in (one_memory_two_dtypes, storages_of_parts)
}
CASES = HERE | {f"tensor_{d}_{n}": _one(d, n) for d in DTYPES for n in LAYOUTS} | {
    f.__name__: Case(f, legacy)
    for f, legacy in (
        (shared_parts, True), (typed_storages, True), (leaves, True), (parameter_twice, True),
        (with_attributes, True), (conjugates, True), (channels_last, True), (many_dims, True),
        (special_values, True), (large_integers, False), (meta, True), (empty_things, True),
        (many_small, True),
    )
}  # fmt: skip
