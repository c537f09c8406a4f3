"""The layout pass: convolutions with their channels last, and nothing else that is seen."""

import pytest

import flambeau as torch
from flambeau._aot.layouts import channels_last
from flambeau._aot.pipeline import aot
from flambeau._ir.graph import TensorType, show
from flambeau._ir.graph_parse import parse
from flambeau._trace import trace
from tools._program_check import optimised

F = torch.nn.functional


@pytest.fixture(autouse=True, scope="module")
def _quickly():
    with optimised("-O1"):
        yield


needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="only oneDNN gains by the layout"
)


class Residual(torch.nn.Module):
    """Strided and plain convolutions, batch norm, pooling, a sum, a concatenation, a transposed
    convolution."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 32, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(32)
        self.second = torch.nn.Conv2d(32, 32, 3, padding=1)
        self.up = torch.nn.ConvTranspose2d(64, 16, 2, stride=2)

    def forward(self, x):
        a = F.silu(self.norm(self.first(x)))
        b = self.second(a) + a
        c = torch.cat((F.max_pool2d(a, 2), F.max_pool2d(b, 2)), 1)
        return self.up(c), b.mean((2, 3))


def graph_of(module, *inputs):
    """The functional graphs of a module as the compiler has them."""
    graph = trace(module, inputs, "captured")
    wanted = torch.is_grad_enabled()
    made = aot(graph, [wanted and x.requires_grad for x in (*inputs, *graph.attached)])
    for g in filter(None, (made.forward, made.backward)):
        assert show(parse(show(g))) == show(g)
    return made


def last(shape):
    n, c, h, w = shape
    return (h * w * c, 1, w * c, c)


def check(module, make):
    """Results, gradients and strides of the compiled module are eager's."""
    found = []
    for run in (module, torch.compile(module)):
        module.zero_grad()
        torch.manual_seed(3)
        inputs = make()
        outs = run(*inputs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        sum((y * y).mean() for y in outs).backward()
        grads = [x.grad for x in inputs if x.grad is not None]
        found.append([*outs, *grads, *(p.grad for p in module.parameters())])
    for eager, compiled in zip(*found, strict=True):
        assert eager.stride() == compiled.stride()
        scale = max(float(eager.detach().abs().max()), 1e-3)
        assert float((eager - compiled).detach().abs().max()) / scale < 2e-5


@pytest.mark.parametrize("format", (torch.contiguous_format, torch.channels_last), ids=str)
@pytest.mark.parametrize("training", (True, False))
def test_values_and_strides_are_eagers(format, training):
    torch.manual_seed(0)
    module = Residual().train(training)

    def make():
        x = torch.randn(4, 3, 32, 32).contiguous(memory_format=format)
        return (x.requires_grad_(),)

    check(module, make)


def test_views_and_random_numbers_see_the_layout_of_eager():
    class Tail(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(16, 32, 3, padding=1)

        def forward(self, x):
            y = F.dropout(self.conv(x), 0.5, training=True)
            return y, y.view(2, 8, -1)[:, 1:], y.permute(0, 2, 3, 1)

    torch.manual_seed(0)
    check(Tail(), lambda: (torch.randn(2, 16, 16, 16, requires_grad=True),))


@pytest.mark.parametrize("batch", (2, 5))
def test_sizes_that_vary(batch):
    torch.manual_seed(0)
    module = Residual().eval()
    compiled = torch.compile(module, dynamic=True)
    x = torch.randn(batch, 3, 32, 32)
    with torch.no_grad():
        for eager, got in zip(module(x), compiled(x), strict=True):
            assert eager.stride() == got.stride()
            assert torch.allclose(eager, got, rtol=1e-5, atol=1e-5)


@needs_onednn
def test_what_lies_between_convolutions_follows_them():
    compiled = graph_of(Residual(), torch.randn(4, 3, 32, 32))
    targets = ("_conv", "native_batch_norm.new", "_max_pool_both", "cat", "silu", "_conv_input")
    for target in targets:
        nodes = [n for n in compiled.forward.nodes if n.target == target]
        assert nodes, target
        for n in nodes:
            assert n.outs[0].type.strides == last(n.outs[0].type.shape), target
    for target in ("batch_norm_backward", "_plane_scatter", "_conv_input"):
        nodes = [n for n in compiled.backward.nodes if n.target == target]
        for n in nodes:
            assert n.outs[0].type.strides == last(n.outs[0].type.shape), target
    images = [n for n in compiled.forward.nodes if len(n.outs[0].type.shape) == 4]
    copies = sum(n.target == "_to_copy" for n in images)
    assert copies == 2  # the image on its way in, the result on its way out


@needs_onednn
def test_the_way_in_and_the_way_out_are_the_only_copies():
    module = torch.nn.Sequential(*(torch.nn.Conv2d(16, 16, 3, padding=1) for _ in range(3)))
    with torch.no_grad():
        compiled = graph_of(module, torch.randn(4, 16, 32, 32))
    assert [n.target for n in compiled.forward.nodes] == [
        "_to_copy", "_conv", "_conv", "_conv", "_to_copy"
    ]  # fmt: skip
    (out,) = (v for v in compiled.forward.outputs if isinstance(v.type, TensorType))
    assert out.type.contiguous


@pytest.mark.parametrize(
    "module,shape",
    [
        (torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()), (4, 8)),
        (torch.nn.Conv2d(2, 2, 3), (1, 2, 8, 8)),
        (torch.nn.Conv2d(32, 32, 3, groups=32), (4, 32, 32, 32)),
        (torch.nn.Conv2d(16, 16, 3).double(), (4, 16, 32, 32)),
        (torch.nn.Conv1d(16, 16, 3), (4, 16, 4096)),
    ],
    ids=("no convolution", "small", "of groups", "doubles", "signals"),
)
def test_graphs_that_gain_nothing_stay_as_they_are(module, shape):
    dtype = next(module.parameters()).dtype
    graph = graph_of(module, torch.randn(*shape, dtype=dtype)).forward
    assert channels_last(graph) is graph
