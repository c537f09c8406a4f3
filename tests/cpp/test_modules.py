"""Layers and optimisers in C++ beside Python's of the same name: to the bit, and as they print."""

from __future__ import annotations

import re

import flambeau as torch
from flambeau import nn
from flambeau._build.cpp_modules import LAYERS
from tests.cpp.conftest import program

#: constructor | shapes of the inputs; `int` inputs are indices below 3, `prob` ones lie in (0, 1)
CASES = """
Identity() | 2,3
Linear(4, 3) | 2,4
Linear(4, 3, bias=False) | 2,4
Bilinear(3, 4, 2) | 5,3 5,4
Flatten() | 2,3,4
Flatten(start_dim=0) | 2,3
Unflatten(1, [2, 3]) | 4,6
Embedding(5, 3) | int:2,4
Embedding(5, 3, padding_idx=1) | int:2,4
Conv1d(2, 4, 3) | 2,2,7
Conv2d(2, 4, 3, stride=2, padding=1) | 2,2,7,7
Conv2d(4, 4, [3, 1], padding="same", groups=2, bias=False) | 2,4,5,5
Conv2d(2, 3, 3, padding=1, padding_mode="reflect", dilation=1) | 1,2,6,6
Conv3d(1, 2, 2) | 1,1,4,4,4
ConvTranspose1d(2, 3, 3) | 1,2,5
ConvTranspose2d(2, 3, 3, stride=2, output_padding=1) | 1,2,4,4
ConvTranspose3d(1, 2, 2) | 1,1,3,3,3
BatchNorm1d(4) | 6,4
BatchNorm2d(3, momentum=0.3) | 4,3,5,5
BatchNorm3d(2, affine=False) | 2,2,3,3,3
BatchNorm2d(3, track_running_stats=False) | 4,3,5,5
InstanceNorm1d(3) | 2,3,6
InstanceNorm2d(3, affine=True) | 2,3,4,4
InstanceNorm3d(2, track_running_stats=True) | 2,2,3,3,3
LayerNorm([4]) | 2,3,4
LayerNorm([3, 4], elementwise_affine=False) | 2,3,4
GroupNorm(2, 4) | 2,4,3
LocalResponseNorm(2) | 2,4,5
Dropout(0.3) | 4,5
Dropout(p=0.3, inplace=True) | 4,5
Dropout2d() | 2,3,4,4
Dropout3d() | 2,3,2,2,2
AlphaDropout(0.2) | 4,5
FeatureAlphaDropout(0.2) | 4,5,3
MaxPool1d(2) | 2,3,8
MaxPool2d(2) | 2,3,8,8
MaxPool2d([3, 2], stride=1, padding=1) | 2,3,8,8
MaxPool3d(2) | 1,2,4,4,4
AvgPool1d(2) | 2,3,8
AvgPool2d(3, stride=2, padding=1, count_include_pad=False) | 2,3,8,8
AvgPool3d(2) | 1,2,4,4,4
AdaptiveAvgPool1d(3) | 2,3,8
AdaptiveAvgPool2d(3) | 2,3,8,8
AdaptiveAvgPool2d([2, 1]) | 2,3,8,8
AdaptiveAvgPool3d(2) | 1,2,4,4,4
AdaptiveMaxPool1d(3) | 2,3,8
AdaptiveMaxPool2d(3) | 2,3,8,8
AdaptiveMaxPool3d(2) | 1,2,4,4,4
ReflectionPad1d(2) | 2,3,6
ReflectionPad2d([1, 2, 1, 0]) | 2,3,6,6
ReflectionPad3d(1) | 1,2,3,3,3
ReplicationPad1d(2) | 2,3,6
ReplicationPad2d(1) | 2,3,6,6
ReplicationPad3d(1) | 1,2,3,3,3
ZeroPad1d(2) | 2,3,6
ZeroPad2d(1) | 2,3,6,6
ZeroPad3d(1) | 1,2,3,3,3
ConstantPad1d(2, 0.5) | 2,3,6
ConstantPad2d([1, 2, 0, 1], 3.5) | 2,3,6,6
ConstantPad3d(1, 0.5) | 1,2,3,3,3
PixelShuffle(2) | 1,8,3,3
PixelUnshuffle(2) | 1,2,4,4
Fold([4, 5], 2) | 1,8,12
Unfold(2, stride=2) | 1,3,4,4
ELU() | 3,4
ELU(alpha=0.5, inplace=True) | 3,4
SELU() | 3,4
Hardshrink() | 3,4
Hardtanh(min_val=-0.5, max_val=0.25) | 3,4
LeakyReLU(negative_slope=0.2) | 3,4
LogSigmoid() | 3,4
Softmax(1) | 3,4
Softmin(1) | 3,4
LogSoftmax(1) | 3,4
Softmax2d() | 2,3,4,4
PReLU() | 3,4
PReLU(num_parameters=4, init=0.5) | 3,4
ReLU() | 3,4
ReLU(inplace=True) | 3,4
ReLU6() | 3,4
RReLU() | 3,4
CELU(alpha=2.0) | 3,4
GLU() | 3,4
GELU() | 3,4
GELU(approximate="tanh") | 3,4
SiLU() | 3,4
Mish() | 3,4
Sigmoid() | 3,4
Softplus(beta=2.0) | 3,4
Softshrink(0.25) | 3,4
Softsign() | 3,4
Tanh() | 3,4
Tanhshrink() | 3,4
Hardswish() | 3,4
Hardsigmoid() | 3,4
Threshold(0.1, 0.5) | 3,4
L1Loss() | 3,4 3,4
MSELoss() | 3,4 3,4
MSELoss(reduction="sum") | 3,4 3,4
KLDivLoss(reduction="batchmean", log_target=True) | 3,4 3,4
BCELoss() | prob:3,4 prob:3,4
HingeEmbeddingLoss(margin=0.5) | 3,4 3,4
MultiMarginLoss() | 3,4 int:3
CosineEmbeddingLoss() | 3,4 3,4 3
SmoothL1Loss(beta=0.5) | 3,4 3,4
HuberLoss(delta=0.5) | 3,4 3,4
MultiLabelMarginLoss() | 3,4 int:3,4
SoftMarginLoss() | 3,4 3,4
MultiLabelSoftMarginLoss() | 3,4 prob:3,4
TripletMarginLoss(margin=0.5, swap=True) | 3,4 3,4 3,4
PoissonNLLLoss(full=True) | 3,4 prob:3,4
MarginRankingLoss(margin=0.2) | 3 3 3
NLLLoss() | 3,4 int:3
NLLLoss(ignore_index=1, reduction="sum") | 3,4 int:3
CrossEntropyLoss() | 3,4 int:3
CrossEntropyLoss(label_smoothing=0.1) | 3,4 int:3
BCEWithLogitsLoss() | 3,4 prob:3,4
CosineSimilarity() | 3,4 3,4
PairwiseDistance() | 3,4 3,4
""".strip().splitlines()


def constructor(text: str) -> str:
    """`Conv2d(2, 4, 3, stride=2)` as C++ writes it: options by name are chained."""
    name, args = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
    parts = re.findall(r"((?:\w+=)?(?:\[[^\]]*\]|[^,\[\]]+))(?:, |$)", args)
    plain = [p for p in parts if not re.match(r"\w+=", p)]
    named = [p.split("=", 1) for p in parts if re.match(r"\w+=", p)]
    given = ", ".join(plain).replace("[", "{").replace("]", "}")
    if not parts:
        return f"torch::nn::{name}()"
    if not named and "{" in given:
        return f"torch::nn::{name}(torch::nn::{name}Options({given}))"
    if not named:
        return f"torch::nn::{name}({given})"
    words = {"True": "true", "False": "false", '"same"': "torch::kSame", '"sum"': "torch::kSum",
             '"batchmean"': "torch::kBatchMean", '"reflect"': "torch::kReflect"}  # fmt: skip
    chain = "".join(
        f".{k}({words.get(v, v).replace('[', '{').replace(']', '}')})" for k, v in named
    )
    return f"torch::nn::{name}(torch::nn::{name}Options({given}){chain})"


def inputs(text: str, cpp: bool) -> list[str]:
    """Expressions that draw the inputs of a case, the same numbers in both languages."""
    out = []
    for i, spec in enumerate(text.split()):
        kind, _, shape = spec.rpartition(":")
        size = "{" + shape + "}" if cpp else f"({shape},)"
        if kind == "int":
            out.append(f"torch::randint(0, 3, {size})" if cpp else f"torch.randint(0, 3, {size})")
        elif kind == "prob":
            out.append(f"torch::rand({size})" if cpp else f"torch.rand({size})")
        elif cpp:
            out.append(
                f"torch::randn({size}, torch::requires_grad({'true' if not i else 'false'}))"
            )
        else:
            out.append(f"torch.randn({size}, requires_grad={not i})")
    return out


def hexed(x: torch.Tensor) -> str:
    return x.detach().contiguous().numpy().tobytes().hex()


def in_python(text: str, shapes: str) -> str:
    names = {"torch": torch}
    torch.manual_seed(11)
    m = eval(f"torch.nn.{text}".replace("[", "(").replace("]", ",)"), names)
    xs = [eval(e, names) for e in inputs(shapes, False)]
    out = "".join(f"{n} {hexed(p)} " for n, p in m.named_parameters())
    y = m(*xs)
    out += " " + hexed(y)
    if y.requires_grad:
        y.pow(2).sum().backward()
        out += "".join(" " + hexed(p.grad) for p in m.parameters() if p.grad is not None)
        out += " " + hexed(xs[0].grad) if xs[0].grad is not None else ""
    out += "".join(" " + hexed(b) for b in m.buffers())
    m.eval()
    return f"{out} {hexed(m(*xs))} {m!r}"


def test_each_layer_is_that_of_python(run_program):
    # What writes into its input cannot be given a leaf.
    cases = [c.split(" | ") for c in CASES]
    named = {c[0].split("(")[0] for c in cases}
    assert {layer.name for layer in LAYERS} - named == {"CTCLoss"}, "a layer without a case"
    lines = []
    for text, shapes in cases:
        values = inputs(shapes, True)
        if "inplace=True" in text:
            values = [v.replace("true", "false") for v in values]
        given = "".join(f"auto x{i} = {v};" for i, v in enumerate(values))
        args = ", ".join(f"x{i}" for i in range(len(values)))
        lines.append(
            f"{{ torch::manual_seed(11); auto m = {constructor(text)}; {given} layer(m, {args}); }}"
        )
    body = "\n".join(lines)
    found = run_program(f'#include "layer.h"\nint main() {{\n{body}\n}}\n').splitlines()
    wanted = []
    for text, shapes in cases:
        if "inplace=True" in text:
            names = {"torch": torch}
            torch.manual_seed(11)
            m = eval(f"torch.nn.{text}", names)
            x = torch.randn(eval(f"({shapes},)"))
            y = hexed(m(x))
            m.eval()
            wanted.append(f" {y} {hexed(m(x))} {m!r}")
        else:
            wanted.append(in_python(text, shapes))
    wrong = [
        (c[0], f[-300:], w[-300:]) for c, f, w in zip(cases, found, wanted, strict=True) if f != w
    ]
    assert not wrong, wrong[:3]


def test_containers_and_modules_of_the_program(run_program):
    out = run_program(program("containers"))
    lines = out.splitlines()
    assert lines[:5] == [
        "Net(", "  (fc1): Linear(in_features=4, out_features=8, bias=True)",
        "  (fc2): Linear(in_features=8, out_features=2, bias=False)",
        "  (drop): Dropout(p=0.5, inplace=False)", ")",
    ]  # fmt: skip
    assert lines[5:11] == [
        "scale[1] fc1.weight[8, 4] fc1.bias[8] fc2.weight[2, 8] count 443", "00", "1", "10",
        "torch.float64torch.int64", "Sequential(",
    ]  # fmt: skip
    assert lines[11] == "  (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))"
    assert lines[17:] == [
        ")", "[1, 3]6", "10", "a.bias2", "1231x3", "[1, 1]", "8",
        "[1, 1, 2, 2]tensor([-0.5000])tensor(2.)[]", "Submodule 'fc1' already defined",
        "register_parameter: a name is not empty and has no dot, got 'a.b'",
        "clone() has not been implemented for Net. Subclass torch::nn::Cloneable<Net> instead of "
        "torch::nn::Module to inherit the ability to clone.",
        "Accessing empty ModuleHolder", "Expected 2 values, but instead got 3",
        "in_channels must be divisible by groups", "Cannot call forward() on an empty Sequential",
        "forward() expects more arguments than the 1 given",
    ]  # fmt: skip


OPTIMISERS = {
    "SGD": ("SGDOptions(0.1)", {"lr": 0.1}),
    "SGD momentum": (
        "SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true)",
        {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
    ),
    "Adam": ("AdamOptions(0.05)", {"lr": 0.05}),
    "Adam amsgrad": (
        "AdamOptions(0.05).amsgrad(true).betas({0.8, 0.95}).weight_decay(0.1)",
        {"lr": 0.05, "amsgrad": True, "betas": (0.8, 0.95), "weight_decay": 0.1},
    ),
    "AdamW": ("AdamWOptions(0.05)", {"lr": 0.05}),
    "RMSprop": ("RMSpropOptions(0.02)", {"lr": 0.02}),
    "RMSprop centered": (
        "RMSpropOptions(0.02).centered(true).momentum(0.5).weight_decay(0.01)",
        {"lr": 0.02, "centered": True, "momentum": 0.5, "weight_decay": 0.01},
    ),
    "Adagrad": ("AdagradOptions(0.1).lr_decay(0.01)", {"lr": 0.1, "lr_decay": 0.01}),
}


def test_fifty_steps_of_each_optimiser_are_those_of_python(run_program):
    lines = []
    for name, (options, _) in OPTIMISERS.items():
        kind = name.split()[0]
        lines.append(f"train<torch::optim::{kind}>(torch::optim::{options});")
    source = program("optimisers").replace("// RUNS", "\n".join(lines))
    found = run_program(source).splitlines()
    wanted = []
    for name, (_, options) in OPTIMISERS.items():
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        x, y = torch.randn(16, 4), torch.randn(16, 1)
        optimizer = getattr(torch.optim, name.split()[0])(model.parameters(), **options)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.5)
        for _ in range(50):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()
        wanted.append(" ".join(map(hexed, (loss, *model.parameters()))))
    assert found[: len(wanted)] == wanted
    assert found[len(wanted) :] == [
        "Invalid learning rate: -1",
        "some parameters appear in more than one parameter group",
        "can't optimize a non-leaf Tensor",
        "0.25 0.5 1 0.5",
    ]


def test_the_linear_program_of_the_first_release(run_program):
    out = run_program(program("first_release"))
    torch.manual_seed(0)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = nn.functional.mse_loss(model(torch.randn(3, 5)), torch.ones(3, 1))
    loss.backward()
    optimizer.step()
    plain = [repr(loss), repr(model.weight.detach())[:-1] + ", requires_grad=True)",
             repr(model.bias.detach())[:-1] + ", requires_grad=True)", repr(model)]  # fmt: skip
    assert re.sub(r",\s+requires", ", requires", out) == "\n".join(plain) + "\n"


def test_recurrent_networks_are_those_of_python(run_program):
    cases = [
        ("RNN", "(3, 4)", "", (5, 2, 3)),
        ("RNN", "(3, 4)", ".nonlinearity(torch::kReLU).num_layers(2).bias(false)", (5, 2, 3)),
        ("GRU", "(3, 4)", ".batch_first(true).bidirectional(true)", (2, 5, 3)),
        ("GRU", "(3, 4)", ".num_layers(2)", (5, 3)),
        ("LSTM", "(3, 4)", "", (5, 2, 3)),
        ("LSTM", "(3, 4)", ".num_layers(2).bidirectional(true).proj_size(2)", (5, 2, 3)),
    ]
    lines, wanted = [], []
    for kind, sizes, chain, shape in cases:
        given = "{" + ", ".join(map(str, shape)) + "}"
        lines.append(
            f"{{ torch::manual_seed(5); "
            f"torch::nn::{kind} m(torch::nn::{kind}Options{sizes}{chain}); auto x = "
            f"torch::randn({given}, torch::requires_grad()); show(m, x, m(x)); }}"
        )
        words = {"true": True, "false": False, "torch::kReLU": "relu"}
        options = {
            k: words[v] if v in words else int(v)
            for k, v in re.findall(r"\.(\w+)\(([^)]*)\)", chain)
        }
        torch.manual_seed(5)
        m = getattr(nn, kind)(3, 4, **options)
        x = torch.randn(*shape, requires_grad=True)
        out, last = m(x)
        states = last if isinstance(last, tuple) else (last,)
        out.pow(2).sum().backward()
        values = [out, *states, x.grad, *(p.grad for p in m.parameters())]
        wanted.append(" ".join(map(hexed, values)) + f" {m!r}")
    source = program("recurrent").replace("// RUNS", "\n".join(lines))
    found = run_program(source).splitlines()
    assert found[: len(wanted)] == wanted
    assert found[len(wanted) :] == [
        "input.size(-1) must be equal to input_size. Expected 3, got 2",
        "For batched 3-D input, hx should also be 3-D but got 2-D tensor",
        "Expected hidden size [1, 2, 4], got [1, 2, 5]",
        "hidden_size must be greater than zero",
        "1",
    ]
