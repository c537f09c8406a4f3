"""Layers and optimisers in C++ beside Python's of the same name: to the bit, and as they print."""

from __future__ import annotations

import re
from typing import Any

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
EmbeddingBag(5, 3) | int:2,4
EmbeddingBag(5, 3, mode="sum", padding_idx=1) | int:2,4
CrossMapLRN2d(3, k=2.0) | 2,5,3,3
LPPool1d(2.0, 3, stride=2) | 2,3,8
LPPool2d(2.0, [2, 3], stride=1) | 2,3,8,8
LPPool3d(2.0, 2, stride=2) | 1,2,4,4,4
MaxUnpool1d(2) | 1,2,3 int:1,2,3
MaxUnpool2d(2) | 1,2,2,3 int:1,2,2,3
MaxUnpool3d(2) | 1,2,2,2,2 int:1,2,2,2,2
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


#: class | options of C++ | arguments of Python | call; {C++|Python} where they differ
COMPOSED = """
MultiheadAttention | (4, 2) | (4, 2) | x(5,2,4) -> m(x, x, x)
MultiheadAttention | (4, 2).kdim(3).vdim(5).bias(false) | (4, 2, kdim=3, vdim=5, bias=False) | x(5,2,4) y(6,2,3) z(6,2,5) -> m(x, y, z)
MultiheadAttention | (4, 2).add_bias_kv(true).add_zero_attn(true).batch_first(true) | (4, 2, add_bias_kv=True, add_zero_attn=True, batch_first=True) | x(2,5,4) -> m(x, x, x, hidden)
MultiheadAttention | (4, 2).dropout(0.5) | (4, 2, dropout=0.5) | x(5,4) y(6,4) -> m(x, y, y)
MultiheadAttention | (4, 2) | (4, 2) | x(5,2,4) -> m(x, x, x, faint, false, causal)
TransformerEncoderLayer | (4, 2).dim_feedforward(8) | (4, 2, 8) | x(5,2,4) -> m(x)
TransformerEncoderLayer | (4, 2).dim_feedforward(8).dropout(0.0).activation(torch::kGELU).norm_first(true).batch_first(true) | (4, 2, 8, 0.0, "gelu", norm_first=True, batch_first=True) | x(2,5,4) -> m(x, causal, faint)
TransformerDecoderLayer | (4, 2).dim_feedforward(8) | (4, 2, 8) | x(5,2,4) y(3,2,4) -> m(x, y, causal)
TransformerEncoder | (STACK) | (STACK) | x(5,2,4) -> m(x, causal)
TransformerEncoder | (STACK) | (STACK) | x(5,2,4) -> m(x, none, hidden)
Transformer | (4, 2, 2, 1).dim_feedforward(8) | (4, 2, 2, 1, 8) | x(5,2,4) y(5,2,4) -> m(x, y, causal, causal)
Transformer | (4, 2, 1, 1).dim_feedforward(8).batch_first(true).norm_first(true).dropout(0.0) | (4, 2, 1, 1, 8, 0.0, batch_first=True, norm_first=True) | x(2,3,4) y(2,5,4) -> m(x, y, none, causal, none, none, faint)
RNNCell | (3, 4).nonlinearity(torch::kReLU) | (3, 4, nonlinearity="relu") | x(2,3) y(2,4) -> m(x, y)
GRUCell | (3, 4).bias(false) | (3, 4, bias=False) | x(3) -> m(x)
LSTMCell | (3, 4) | (3, 4) | x(2,3) -> m(x)
"""  # noqa: E501


def test_attention_transformers_and_cells_are_those_of_python(run_program):
    lines, wanted = [], []
    stack = {
        True: "nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(8), 3",
        False: "nn.TransformerEncoderLayer(4, 2, 8), 3",
    }
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    hidden = torch.tensor([[False] * 4 + [True], [False] * 3 + [True] * 2])
    faint = torch.zeros(2, 5).masked_fill(hidden, float("-inf"))
    for case in COMPOSED.strip().splitlines():
        name, cpp, python, call = case.split(" | ")
        drawn, run = call.split(" -> ")
        inputs = re.findall(r"(\w)\(([\d,]+)\)", drawn)
        made = " ".join(f"auto {n} = torch::randn({{{shape}}});" for n, shape in inputs)
        options = f"nn::{name}Options{cpp}".replace("STACK", stack[True])
        lines.append(f"{{ torch::manual_seed(5); nn::{name} m({options}); {made} shown(m, "
                     f"{run.replace('none', 'Tensor()')}); }}")  # fmt: skip
        torch.manual_seed(5)
        names = {
            "nn": nn,
            "causal": causal,
            "hidden": hidden,
            "faint": faint,
            "none": None,
            "false": False,
        }
        m = names["m"] = eval(f"nn.{name}{python}".replace("STACK", stack[False]), names)
        for n, shape in inputs:
            names[n] = torch.randn(eval(f"({shape},)"))
        if name == "MultiheadAttention" and "causal" in run:
            y: Any = m(names["x"], names["x"], names["x"], faint, False, causal)
        elif "faint)" in run and name == "Transformer":
            y = m(names["x"], names["y"], tgt_mask=causal, tgt_key_padding_mask=faint)
        else:
            y = eval(run, names)
        parts = y if isinstance(y, tuple) else (y,)
        parts[0].pow(2).sum().backward()
        values = ["none" if x is None else hexed(x) for x in parts]
        values += ["none" if p.grad is None else hexed(p.grad) for p in m.parameters()]
        head = "".join(f"{n} " for n, _ in m.named_parameters())
        wanted.append(f"{head} {' '.join(values)} {m!r}\n")
    found = run_program(program("composed").replace("// RUNS", "\n".join(lines))).split("==\n")
    for case, f, w in zip(COMPOSED.strip().splitlines(), found, wanted, strict=False):
        assert f == w, (case, f[-500:], w[-500:])
    rest = found[len(wanted)].splitlines()
    assert rest[:3] == ["1", "00", "1"]
    assert rest[3].startswith("[3, 2, 4]") and rest[3].endswith("1")
    assert rest[4:6] == ["1[1, 2, 5, 4][1, 2, 4, 4]", "11tensor([1., 1.], requires_grad=True)[2]0"]
    for line, said in zip(
        rest[6:],
        (
            "embed_dim must be divisible by num_heads", "key shape [3, 1, 4] does not match",
            "The shape of the 2D attn_mask is [2, 2], but should be (3, 3).",
            "the batch number of src and tgt must be equal",
            "activation should be relu/gelu, not same", "cutoffs should be a sequence of unique",
            "Target values should be in [0, 7], but values in range [9, 9]",
            "LSTMCell: Expected input to be 1D or 2D, got 3D instead", "invalid max index",
            "either size or scale_factor",
        ),
        strict=True,
    ):  # fmt: skip
        assert said in line, (said, line)


def test_layers_made_of_others_are_those_of_python(run_program):
    out = run_program(program("made_of_others")).split("==\n")
    torch.manual_seed(5)
    m = nn.AdaptiveLogSoftmaxWithLoss(4, 12, [3, 7], div_value=2.0, head_bias=True)
    x, target = torch.randn(6, 4), torch.tensor([0, 5, 11, 2, 8, 3])
    result = m(x, target)
    result.loss.backward()
    values = [result.output, result.loss, m.log_prob(x), m.predict(x), m.head.weight.grad]
    assert out[0] == " ".join(map(hexed, values)) + f"{m!r}\n"
    image, a, b, c = (
        torch.randn(1, 2, 3, 4),
        torch.randn(3, 4),
        torch.randn(3, 4),
        torch.randn(3, 4),
    )
    ups = [
        nn.Upsample(scale_factor=2.0), nn.Upsample(size=(5, 7), mode="bilinear"),
        nn.Upsample(size=(5, 7), mode="bicubic", align_corners=True),
    ]  # fmt: skip
    assert out[1] == "".join(f"{hexed(u(image))}{u!r}\n" for u in ups)
    losses = [
        nn.TripletMarginWithDistanceLoss(swap=True),
        nn.TripletMarginWithDistanceLoss(
            distance_function=lambda p, q: (p - q).abs().sum(1), margin=0.5, reduction="none"
        ),
    ]
    assert out[2] == "".join(hexed(f(a, b, c)) + "\n" for f in losses)


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


LBFGS = (
    ({}, 3), ({"lr": 0.5, "max_iter": 6, "history_size": 3}, 4),
    ({"line_search_fn": "strong_wolfe"}, 3),
    ({"line_search_fn": "strong_wolfe", "max_iter": 5, "history_size": 2}, 5),
)  # fmt: skip


def test_lbfgs_is_that_of_python_and_views_in_place(run_program):
    found = run_program(program("lbfgs")).splitlines()
    for line, (options, steps) in zip(found, LBFGS, strict=False):
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        x, y = torch.randn(16, 4), torch.randn(16, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), **options)
        calls = [0]

        def closure(model=model, x=x, y=y, calls=calls):
            calls[0] += 1
            model.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        losses = [hexed(optimizer.step(closure)) for _ in range(2 * steps)]
        assert line.split() == [*losses, str(calls[0]), *map(hexed, model.parameters())], options
    assert found[4:7] == [
        "LBFGS optimizer requires a closure function", "Invalid learning rate: -1",
        "only 'strong_wolfe' is supported",
    ]  # fmt: skip
    assert found[7] == "[2, 3][3, 2][1, 3, 2][2, 3, 1][2, 3]tensor([[0., 1., 2.],"
    assert found[9:13] == [
        "[2, 2][1, 4]tensor([1., 3.])", "tensor([[2., 2., 2.],",
        "        [2., 2., 2.]])TransposeBackward0",
        "1[2]0",
    ]  # fmt: skip
    assert "leaf" in found[13] and found[14] == "cannot resize variables that require grad"
    assert "set_: expected a source of dtype" in found[15] and "out of range" in found[16]


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
