"""Functions and methods of the table in C++: each form compiles, values are Python's."""

from __future__ import annotations

import re

import pytest

import flambeau
from flambeau._build import compiler, emit_api
from tests.cpp.conftest import PACKAGE, program

#: an argument of each type of the public forms
ARGUMENTS = {
    "const Tensor&": "t", "const Scalar&": "2", "const std::optional<Tensor>&": "t",
    "const std::optional<Scalar>&": "2", "IntArrayRef": "{1, 2}", "OptionalIntArrayRef": "{1}",
    "TensorList": "{t, t}", "int64_t": "1", "double": "1.0", "bool": "true",
    "Flag": "true", "const Text&": '"sum"', "const std::optional<Text>&": '"sum"',
    "DType": "torch::kFloat",
    "Device": "torch::kCPU", "Layout": "torch::kStrided",
    "MemoryFormat": "torch::MemoryFormat::Contiguous", "const TensorOptions&": "torch::kFloat",
    "const Generator&": "g", "const std::optional<Generator>&": "g",
    "std::optional<int64_t>": "int64_t{1}", "std::optional<double>": "1.0",
    "std::optional<bool>": "true", "std::optional<DType>": "torch::kFloat",
    "std::optional<Device>": "torch::Device(torch::kCPU)",
    "std::optional<MemoryFormat>": "torch::MemoryFormat::Contiguous",
    "std::optional<Layout>": "torch::kStrided",
    "const std::vector<double>&": "std::vector<double>{1.0}",
    "const std::optional<std::vector<double>>&": "std::vector<double>{1.0}",
    "const std::vector<bool>&": "std::vector<bool>{true}",
    "const std::optional<std::vector<bool>>&": "std::vector<bool>{true}",
    "const std::vector<Scalar>&": "std::vector<torch::Scalar>{1}",
    "const std::vector<OptTensor>&": "std::vector<torch::OptTensor>{t}",
    "const std::optional<std::vector<Tensor>>&": "std::vector<torch::Tensor>{t}",
}  # fmt: skip


def calls(face):
    """A call of each form with its fewest arguments and one with all of them."""
    for form in face.forms:
        given = [ARGUMENTS[a.type] for a in form.arguments]
        fewest = sum(not a.default for a in form.arguments)
        for count in {fewest, len(given)}:
            where = "t." if form.space is None else f"torch::{form.space}::".replace("::::", "::")
            yield f"{where}{form.name}({', '.join(given[:count])});"


@pytest.fixture(scope="module")
def face():
    root = PACKAGE.parent
    if not (root / "flambeau" / "_build").is_dir():
        pytest.skip("needs the sources of the table")
    return emit_api.face(compiler.load(root))


def test_every_form_can_be_called(face, build_program):
    lines = list(calls(face))
    assert len(lines) > 3000
    body = "\n".join(lines)
    source = (
        "#include <torch/torch.h>\nvoid all(const torch::Tensor& t, torch::Generator g) {\n"
        f"{body}\n}}\n"
    )
    build_program(source, "-fsyntax-only", "-Wno-unused-value")


#: expressions of both languages: torch.f(x) is torch::f(x), lists are braces
EXPRESSIONS = """
torch.add(x, 2)
torch.add(x, y, 3)
x + y * 2 - 1 / (y + 3)
1 - x
2 * x / 3
x % 2
-x
x > y
(x > 0) & (y > 0)
(x == y) | (x != y)
x.sum()
x.sum(0)
x.sum([0, 1], True)
x.mean(1)
x.var(1)
x.std()
x.max()
x.argmax(1)
x.norm()
x.prod()
x.cumsum(0)
x.view(-1)
x.view([4, 3])
x.reshape([2, 6])
x.t()
x.transpose(0, 1)
x.permute([1, 0])
x.unsqueeze(0).expand([2, 3, 4])
x.repeat([2, 1])
x.flip([0])
x.roll(1, 0)
x.narrow(1, 1, 2)
x.select(0, 1)
x[1]
x[1][2]
x.gather(1, torch.zeros([3, 1], torch.kLong))
x.masked_fill(x > 0, 0.5)
x.clamp(-0.5, 0.5)
x.clamp_min(0)
x.abs().sqrt()
x.exp().log()
x.relu()
x.sigmoid()
x.tanh()
x.softmax(1)
x.pow(2)
x.round()
x.matmul(y.t())
x.mm(y.t())
x.triu()
x.tril(-1)
x.nonzero()
x.flatten()
x.squeeze()
torch.cat([x, y], 0)
torch.stack([x, y], 1)
torch.where(x > 0, x, y)
torch.zeros([2, 3])
torch.ones([2], torch.kLong)
torch.full([2, 2], 7)
torch.arange(5)
torch.arange(0, 10, 3)
torch.arange(0.0, 1.0, 0.25)
torch.linspace(0, 1, 5)
torch.eye(3)
torch.ones_like(x)
torch.zeros_like(x, torch.kDouble)
torch.log_softmax(x, -1)
torch.matmul(x, y.t())
torch.relu(x)
torch.outer(x[0], y[0])
torch.einsum("ij,kj->ik", [x, y])
torch.tensordot(x, y, [1], [1])
torch.cdist(x, y)
torch.diag(x.mm(y.t()))
torch.trace(x.mm(y.t()))
torch.mse_loss(x, y)
torch.conv2d(z, w)
torch.conv2d(z, w, torch.ones([3]), 2, 1)
torch.conv2d(z, w, torch.ones([3]), 1, "same")
torch.max_pool2d(z, 2)
torch.avg_pool2d(z, [2, 2])
torch.adaptive_avg_pool2d(z, [1, 1])
torch.layer_norm(x, [4])
torch.linalg.inv(x.mm(x.t()))
torch.linalg.det(x.mm(x.t()))
torch.linalg.vector_norm(x)
torch.fft.fft(x)
torch.fft.irfft(torch.fft.rfft(x))
torch.special.expit(x)
torch.special.erf(x)
torch.searchsorted(torch.arange(5), torch.arange(3))
torch.bincount(torch.arange(4))
torch.logsumexp(x, 1)
torch.logical_and(x > 0, y > 0)
torch.isnan(x)
torch.nn.functional.gelu(x)
torch.nn.functional.pad(x, [1, 1])
torch.nn.functional.normalize(x)
torch.nn.functional.one_hot(torch.arange(3))
torch.rand([3])
torch.randn([2, 2])
torch.randint(0, 10, [4])
torch.randperm(6)
torch.empty([3]).uniform_(-1, 1)
torch.empty([3]).normal_(0, 2)
torch.rand([4]).bernoulli_(0.5)
""".strip().splitlines()

SETUP = """
torch.manual_seed(7)
x = torch.randn([3, 4])
y = torch.randn([3, 4])
z = torch.randn([1, 2, 6, 6])
w = torch.randn([3, 2, 3, 3])
""".strip().splitlines()

#: what PyTorch's Python takes otherwise
PYTHON = [("torch.kLong", "dtype=torch.int64"), ("torch.kDouble", "dtype=torch.float64"),
          (r"torch\.(max_pool2d|avg_pool2d|adaptive_avg_pool2d|mse_loss)\(",
           r"torch.nn.functional.\1("), (r"\[1\], \[1\]\)", "([1], [1]))"),
          (r"torch\.layer_norm\(", "torch.nn.functional.layer_norm(")]  # fmt: skip


def cpp(text):
    text = re.sub(r"(?<=[(, ])\[((?:[^\[\]]|\[\d\])*)\]", r"{\1}", text)
    text = re.sub(r"\btorch((?:\.\w+)+)", lambda m: "torch" + m[1].replace(".", "::"), text)
    return text.replace("True", "true")


def python(text):
    for old, new in PYTHON:
        text = re.sub(old, new, text)
    return re.sub(r"add\(x, y, 3\)", "add(x, y, alpha=3)", text)


def test_values_are_those_of_python_to_the_bit(run_program):
    body = "\n".join(f"auto {line};".replace("auto torch", "torch") for line in map(cpp, SETUP))
    shows = "\n".join(f"show({cpp(line)});" for line in EXPRESSIONS)
    source = (
        "#include <torch/torch.h>\n#include <cstdio>\n"
        "void show(torch::Tensor r) {\n"
        '  std::cout << r.dtype() << r.sizes() << " ";\n'
        "  r = r.contiguous();\n"
        "  auto* p = static_cast<const unsigned char*>(r.data_ptr());\n"
        '  for (size_t i = 0; i < r.nbytes(); ++i) std::printf("%02x", p[i]);\n'
        "  std::fflush(stdout);\n  std::cout << std::endl;\n}\n"
        f"int main() {{\n{body}\n{shows}\n}}\n"
    )
    names = {"torch": flambeau}
    for line in SETUP:
        exec(line, names)
    wanted = []
    for line in EXPRESSIONS:
        r = eval(python(line), names).contiguous()
        data = r.numpy().tobytes().hex()
        wanted.append(f"{r.dtype}[{', '.join(map(str, r.shape))}] {data}")
    assert run_program(source).splitlines() == wanted


def test_errors_have_the_messages_of_python(run_program):
    out = run_program(program("errors"))
    assert out.splitlines() == [
        "shape '[4]' is invalid for input of size 6",
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
        "expected scalar type Double but found Float",
        "accessor: expected a tensor of 3 dimensions, got one of 2",
        "too many indices for tensor of dimension 2",
        "index 5 is out of bounds for dimension 0 with size 2",
        "a Tensor with 6 elements cannot be converted to Scalar",
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in "
        "C++ to convert a 0-dim tensor to a number",
        "TensorOptions: pinned memory is for transfers to an accelerator, there is none",
        "Invalid device string: 'cpu:x'",
        "from_blob: expected memory of 8 bytes, got null",
        "from_blob: expected a stride for each of 2 sizes, got 1",
        "tensor: expected parts of equal sizes, got [2] and [1]",
        "remove_hook: there is no hook 123456",
    ]


def test_printing_is_the_text_of_python(run_program):
    cases = ["torch.arange(12.0).view([3, 4])", "torch.zeros([0, 3])",
             "torch.ones([2], torch.kLong)",
             "torch.arange(2000).view([20, 100])", "torch.full([3], 1e-9)", "torch.arange(3) > 1",
             "torch.ones([2, 2], torch.kDouble)", "torch.fft.fft(torch.arange(3.0))",
             "torch.ones([1]) / 0", "torch.arange(24).view([2, 3, 4])"]  # fmt: skip
    body = "\n".join(f"std::cout << ({cpp(c)}) << '\\n';" for c in cases)
    out = run_program(
        f"#include <torch/torch.h>\nint main() {{\n{body}\n"
        "auto x = torch::ones({2}, torch::requires_grad());\n"
        "std::cout << x << '\\n' << x * 2 << '\\n';"
        "std::cout << torch::ones({2}, torch::kMeta) << torch::Tensor() << '\\n';\n}\n"
    )
    names = {"torch": flambeau}
    wanted = [repr(eval(python(c), names)) for c in cases]
    x = flambeau.ones(2, requires_grad=True)
    wanted += [repr(x), repr(x * 2)]
    wanted.append(repr(flambeau.ones(2, device="meta")) + "[ Tensor (undefined) ]")
    assert out == "\n".join(wanted) + "\n"
