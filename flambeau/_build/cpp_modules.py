"""Layers in C++: options, parameters and forward of each class, declared once.

Read by `emit_modules`. What a class computes is an operation of the table; what it is made of
stands here, and tests/cpp/test_modules.py holds each class to Python's of the same name: parameters
by one seed, forward, backward and printed form. See docs/design/cpp.md, which says why this is no
copy of `flambeau.nn` by a translator.

Types: int, float, bool, str, Tensor, ints, Ints1 to Ints6 (one number stands for that many), each
with `?` for none. In a body `o` is the options. A field with `*` may be given to the constructor of
the options even though it has a default.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """A class and, where it has no parameters, its function in nn::functional.

    Attributes:
        name: of the class.
        options: fields, `name: type = default`, as in Python.
        forward: parameters of forward, separated by commas.
        body: C++ of forward: an expression, or statements with a return.
        function: the function of nn::functional that has the body; "" if the class is not one.
        parameters: `name: shape [if condition]`, in order of registration.
        reset: C++ of reset_parameters.
        settle: C++ that checks and completes the options.
        shown: what the printed form says: `name`, `@name` without the name, `name?` if it is true,
            and C++ in brackets; None: every option.
        buffers: `name: value [if condition]`.
        returns: type of forward.
        more: a method beside forward: declaration without the semicolon, C++ of its body.
        pretrained: is there `from_pretrained(weight, options)`? The first two options are the
            sizes of the weight.
    """

    name: str
    options: str = ""
    forward: str = "const Tensor& input"
    body: str = ""
    function: str = ""
    parameters: tuple[str, ...] = ()
    reset: str = ""
    settle: str = ""
    shown: str | None = None
    buffers: tuple[str, ...] = ()
    returns: str = "Tensor"
    more: tuple[str, str] | None = None
    pretrained: bool = False


def _activation(name: str, options: str, function: str, args: str, shown: str = "") -> Layer:
    """One that may write into its input."""
    more = f", {args}" if args else ""
    body = f"o.inplace() ? ops::{function}_(input{more}) : ops::{function}(input{more})"
    fields = f"{options}, inplace: bool = False" if options else "inplace*: bool = False"
    return Layer(name, fields, body=body, function=function, shown=f"{shown} inplace?")


_REDUCTION = "reduction*: str = 'mean'"
_BOTH = "const Tensor& input, const Tensor& target"


def _loss(name: str, function: str, options: str, args: str, forward: str = _BOTH) -> Layer:
    fields = f"{options}, {_REDUCTION.replace('*', '')}" if options else _REDUCTION
    return Layer(name, fields, forward, f"ops::{args}", function, shown="")


_UNIFORM_FAN_IN = """init::kaiming_uniform_(weight, std::sqrt(5.0));
if (bias.defined()) {
  const auto [in, out] = init::_calculate_fan_in_and_fan_out(weight);
  const double fan_in = static_cast<double>(in);
  const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  init::uniform_(bias, -bound, bound);
}"""

_AFFINE = ("weight: o.num_features() if o.affine()", "bias: o.num_features() if o.affine()")
_RUNNING = (
    "running_mean: ops::zeros(Ints{o.num_features()}) if o.track_running_stats()",
    "running_var: ops::ones(Ints{o.num_features()}) if o.track_running_stats()",
    "num_batches_tracked: ops::zeros(Ints{}, DType::Int64) if o.track_running_stats()",
)
_NORM_RESET = """if (running_mean.defined()) {
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}
if (weight.defined()) {
  init::ones_(weight);
  init::zeros_(bias);
}"""

_ACTIVATIONS = (
    _activation("ELU", "alpha: float = 1.0", "elu", "o.alpha()", "alpha"),
    _activation("SELU", "", "selu", ""),
    Layer("Hardshrink", "lambda*: float = 0.5", body="ops::hardshrink(input, o.lambda())",
          function="hardshrink", shown="@lambda"),
    _activation("Hardtanh", "min_val: float = -1.0, max_val: float = 1.0", "hardtanh",
                "o.min_val(), o.max_val()", "min_val max_val"),
    _activation("LeakyReLU", "negative_slope: float = 0.01", "leaky_relu", "o.negative_slope()",
                "negative_slope"),
    Layer("LogSigmoid", body="ops::logsigmoid(input)", function="logsigmoid"),
    Layer("Softmax", "dim: int", body="ops::softmax(input, o.dim())"),
    Layer("Softmin", "dim: int", body="ops::softmin(input, o.dim())"),
    Layer("LogSoftmax", "dim: int", body="ops::log_softmax(input, o.dim())"),
    Layer("Softmax2d", body="""FB_CHECK_VALUE(input.dim() == 4 || input.dim() == 3,
               "Softmax2d: expected input to be 3D or 4D, got ", input.dim(), "D instead");
return ops::softmax(input, -3);"""),
    Layer("PReLU", "num_parameters*: int = 1, init: float = 0.25",
          body="ops::prelu(input, weight)", parameters=("weight: o.num_parameters()",),
          reset="init::constant_(weight, options.init());", shown="num_parameters"),
    _activation("ReLU", "", "relu", ""),
    _activation("ReLU6", "", "relu6", ""),
    Layer("RReLU", "lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False",
          body="o.inplace() ? ops::rrelu_(input, o.lower(), o.upper(), is_training()) "
          ": ops::rrelu(input, o.lower(), o.upper(), is_training())",
          shown="lower upper inplace?"),
    _activation("CELU", "alpha: float = 1.0", "celu", "o.alpha()", "alpha"),
    Layer("GLU", "dim*: int = -1", body="ops::glu(input, o.dim())", function="glu"),
    Layer("GELU", "approximate*: str = 'none'", body="ops::gelu(input, o.approximate())",
          function="gelu", shown="[approximate='\" << shown(o.approximate()) << \"']"),
    _activation("SiLU", "", "silu", ""),
    _activation("Mish", "", "mish", ""),
    Layer("Sigmoid", body="ops::sigmoid(input)"),
    Layer("Softplus", "beta: float = 1.0, threshold: float = 20.0",
          body="ops::softplus(input, o.beta(), o.threshold())", function="softplus"),
    Layer("Softshrink", "lambda*: float = 0.5", body="ops::softshrink(input, o.lambda())",
          function="softshrink", shown="@lambda"),
    Layer("Softsign", body="ops::softsign(input)", function="softsign"),
    Layer("Tanh", body="ops::tanh(input)"),
    Layer("Tanhshrink", body="ops::tanhshrink(input)", function="tanhshrink"),
    _activation("Hardswish", "", "hardswish", ""),
    _activation("Hardsigmoid", "", "hardsigmoid", ""),
    _activation("Threshold", "threshold: float, value: float", "threshold",
                "o.threshold(), o.value()", "threshold value"),
)  # fmt: skip

_LOSSES = (
    _loss("L1Loss", "l1_loss", "", "l1_loss(input, target, o.reduction())"),
    _loss("MSELoss", "mse_loss", "", "mse_loss(input, target, o.reduction())"),
    _loss("KLDivLoss", "kl_div", "log_target: bool = False",
          "kl_div(input, target, o.reduction(), o.log_target())"),
    _loss("BCELoss", "binary_cross_entropy", "weight: Tensor?",
          "binary_cross_entropy(input, target, given(o.weight()), o.reduction())"),
    _loss("HingeEmbeddingLoss", "hinge_embedding_loss", "margin: float = 1.0",
          "hinge_embedding_loss(input, target, o.margin(), o.reduction())"),
    _loss("MultiMarginLoss", "multi_margin_loss",
          "p: int = 1, margin: float = 1.0, weight: Tensor?",
          "multi_margin_loss(input, target, o.p(), o.margin(), given(o.weight()), o.reduction())"),
    _loss("CosineEmbeddingLoss", "cosine_embedding_loss", "margin: float = 0.0",
          "cosine_embedding_loss(input1, input2, target, o.margin(), o.reduction())",
          "const Tensor& input1, const Tensor& input2, const Tensor& target"),
    _loss("SmoothL1Loss", "smooth_l1_loss", "beta: float = 1.0",
          "smooth_l1_loss(input, target, o.reduction(), o.beta())"),
    _loss("HuberLoss", "huber_loss", "delta: float = 1.0",
          "huber_loss(input, target, o.reduction(), o.delta())"),
    _loss("MultiLabelMarginLoss", "multilabel_margin_loss", "",
          "multilabel_margin_loss(input, target, o.reduction())"),
    _loss("SoftMarginLoss", "soft_margin_loss", "",
          "soft_margin_loss(input, target, o.reduction())"),
    _loss("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", "weight: Tensor?",
          "multilabel_soft_margin_loss(input, target, given(o.weight()), o.reduction())"),
    _loss("TripletMarginLoss", "triplet_margin_loss",
          "margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False",
          "triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(), o.swap(), "
          "o.reduction())",
          "const Tensor& anchor, const Tensor& positive, const Tensor& negative"),
    _loss("CTCLoss", "ctc_loss", "blank: int = 0, zero_infinity: bool = False",
          "ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank(), o.reduction(), "
          "o.zero_infinity())",
          "const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, "
          "const Tensor& target_lengths"),
    _loss("PoissonNLLLoss", "poisson_nll_loss",
          "log_input: bool = True, full: bool = False, eps: float = 1e-8",
          "poisson_nll_loss(input, target, o.log_input(), o.full(), o.eps(), o.reduction())"),
    _loss("MarginRankingLoss", "margin_ranking_loss", "margin: float = 0.0",
          "margin_ranking_loss(input1, input2, target, o.margin(), o.reduction())",
          "const Tensor& input1, const Tensor& input2, const Tensor& target"),
    _loss("NLLLoss", "nll_loss", "weight: Tensor?, ignore_index: int = -100",
          "nll_loss(input, target, given(o.weight()), o.ignore_index(), o.reduction())"),
    _loss("CrossEntropyLoss", "cross_entropy",
          "weight: Tensor?, ignore_index: int = -100, label_smoothing: float = 0.0",
          "cross_entropy(input, target, given(o.weight()), o.ignore_index(), o.reduction(), "
          "o.label_smoothing())"),
    _loss("BCEWithLogitsLoss", "binary_cross_entropy_with_logits",
          "weight: Tensor?, pos_weight: Tensor?",
          "binary_cross_entropy_with_logits(input, target, given(o.weight()), o.reduction(), "
          "given(o.pos_weight()))"),
    Layer("CosineSimilarity", "dim: int = 1, eps: float = 1e-8",
          "const Tensor& x1, const Tensor& x2", "ops::cosine_similarity(x1, x2, o.dim(), o.eps())",
          "cosine_similarity", shown=""),
    Layer("PairwiseDistance", "p: float = 2.0, eps: float = 1e-6, keepdim: bool = False",
          "const Tensor& x1, const Tensor& x2",
          "ops::pairwise_distance(x1, x2, o.p(), o.eps(), o.keepdim())", "pairwise_distance",
          shown=""),
)  # fmt: skip


_EMBEDDING_RESET = """init::normal_(weight);
if (options.padding_idx()) {
  NoGradGuard no_grad;
  weight[*options.padding_idx()].fill_(0);
}"""


def _padding_checked(name: str) -> str:
    """`padding_idx` counted from the front; `name` is how Python's error spells it."""
    return f"""if (options.padding_idx()) {{
  const int64_t n = options.num_embeddings(), i = *options.padding_idx();
  FB_CHECK(i >= -n && i < n, "{name} must be within num_embeddings");
  if (i < 0) options.padding_idx(i + n);
}}"""


def _conv(d: int) -> Layer:
    one = f"Ints{d}"
    return Layer(
        f"Conv{d}d",
        f"in_channels: int, out_channels: int, kernel_size: {one}, stride*: {one} = 1, "
        f"padding: Padding{d} = 0, dilation: {one} = 1, groups: int = 1, bias: bool = True, "
        "padding_mode: str = 'zeros'",
        body=f"""const Ints plain(IntArrayRef(o.stride()).ints());
const Ints dilation(IntArrayRef(o.dilation()).ints());
if (o.padding_mode().str() != "zeros") {{
  Tensor wide = ops::pad(input, o.padding().around(o.kernel_size(), o.dilation()),
                         o.padding_mode(), std::nullopt);
  return ops::conv{d}d(wide, weight, given(bias), plain, Ints({d}, 0), dilation, o.groups());
}}
const auto& p = o.padding();
if (p.is_text())
  return ops::conv{d}d(input, weight, given(bias), plain, p.text(), dilation, o.groups());
return ops::conv{d}d(input, weight, given(bias), plain, p.sizes(), dilation, o.groups());""",
        parameters=(
            "weight: convolution_sizes(o.out_channels(), o.in_channels() / o.groups(), "
            "o.kernel_size())",
            "bias: o.out_channels() if o.bias()",
        ),
        settle="check_convolution(options.in_channels(), options.out_channels(), options.groups(), "
        "options.padding_mode());",
        reset=_UNIFORM_FAN_IN,
        shown="[convolution_text(o, false)]",
    )  # fmt: skip


def _conv_transpose(d: int) -> Layer:
    one = f"Ints{d}"
    return Layer(
        f"ConvTranspose{d}d",
        f"in_channels: int, out_channels: int, kernel_size: {one}, stride*: {one} = 1, "
        f"padding: {one} = 0, output_padding: {one} = 0, groups: int = 1, bias: bool = True, "
        f"dilation: {one} = 1, padding_mode: str = 'zeros'",
        "const Tensor& input, "
        "const std::optional<std::vector<int64_t>>& output_size = std::nullopt",
        f"""const Ints more = transposed_padding(input, output_size, o.kernel_size(), o.stride(),
                                      o.padding(), o.dilation(), o.output_padding());
return ops::conv_transpose{d}d(input, weight, given(bias), list(o.stride()), list(o.padding()),
                           more, o.groups(), list(o.dilation()));""",
        parameters=(
            "weight: convolution_sizes(o.in_channels(), o.out_channels() / o.groups(), "
            "o.kernel_size())",
            "bias: o.out_channels() if o.bias()",
        ),
        settle="check_convolution(options.in_channels(), options.out_channels(), options.groups(), "
        'options.padding_mode());\nFB_CHECK_VALUE(options.padding_mode().str() == "zeros",\n'
        f'               "Only \\"zeros\\" padding mode is supported for ConvTranspose{d}d");',
        reset=_UNIFORM_FAN_IN,
        shown="[convolution_text(o, true)]",
    )  # fmt: skip


def _batch_norm(d: int) -> Layer:
    wanted = {1: "2 || input.dim() == 3", 2: "4", 3: "5"}[d]
    said = {1: "2D or 3D", 2: "4D", 3: "5D"}[d]
    return Layer(
        f"BatchNorm{d}d",
        "num_features: int, eps: float = 1e-5, momentum: float? = 0.1, affine: bool = True, "
        "track_running_stats: bool = True",
        body=f"""FB_CHECK_VALUE(input.dim() == {wanted}, "expected {said} input (got ", input.dim(),
               "D input)");
return run(input);""",
        parameters=_AFFINE,
        buffers=_RUNNING,
        reset=_NORM_RESET,
        shown="[batch_norm_text(o, o.affine())]",
    )  # fmt: skip


def _instance_norm(d: int) -> Layer:
    return Layer(
        f"InstanceNorm{d}d",
        "num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False, "
        "track_running_stats: bool = False",
        body=f"""const bool batched = input.dim() == {d + 2};
FB_CHECK_VALUE(batched || input.dim() == {d + 1}, "expected {d + 1}D or {d + 2}D input (got ",
               input.dim(), "D input)");
Tensor x = batched ? input : ops::unsqueeze(input, 0);
x = ops::instance_norm(x, given(running_mean), given(running_var), given(weight), given(bias),
                       is_training() || !o.track_running_stats(), o.momentum(), o.eps());
return batched ? x : ops::squeeze(x, Ints{{0}});""",
        parameters=_AFFINE,
        buffers=_RUNNING,
        reset=_NORM_RESET,
        shown="[batch_norm_text(o, o.affine())]",
    )  # fmt: skip


def _max_pool(d: int) -> Layer:
    one = f"Ints{d}"
    args = "list(o.kernel_size()), list(o.stride()), list(o.padding()), list(o.dilation()), " \
        "o.ceil_mode()"  # fmt: skip
    return Layer(
        f"MaxPool{d}d",
        f"kernel_size: {one}, stride: {one} = kernel_size, padding: {one} = 0, "
        f"dilation: {one} = 1, ceil_mode: bool = False",
        body=f"ops::max_pool{d}d(input, {args})", function=f"max_pool{d}d",
        shown="[pool_text(o.kernel_size(), o.stride(), o.padding())], [dilation=\" << "
        "one_or_all(o.dilation()) << \"], ceil_mode",
        more=("std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input)",
              f"ops::max_pool{d}d_with_indices(input, {args})"),
    )  # fmt: skip


def _avg_pool(d: int) -> Layer:
    one = f"Ints{d}"
    more = "" if d == 1 else ", divisor_override: int?"
    last = "" if d == 1 else ", o.divisor_override()"
    shown = "kernel_size stride padding" if d == 1 else \
        "[pool_text(o.kernel_size(), o.stride(), o.padding())]"  # fmt: skip
    return Layer(
        f"AvgPool{d}d",
        f"kernel_size: {one}, stride: {one} = kernel_size, padding: {one} = 0, "
        f"ceil_mode: bool = False, count_include_pad: bool = True{more}",
        body=f"ops::avg_pool{d}d(input, list(o.kernel_size()), list(o.stride()), "
        f"list(o.padding()), o.ceil_mode(), o.count_include_pad(){last})",
        function=f"avg_pool{d}d", shown=shown,
    )  # fmt: skip


def _adaptive(kind: str, d: int) -> Layer:
    low = kind.lower()
    call = "ops::_adaptive_avg_pool(input, list(o.output_size()))"
    if kind == "Max":
        call = "std::get<0>(ops::_adaptive_max_both(input, list(o.output_size())))"
    both = (
        "std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input)",
        "ops::_adaptive_max_both(input, list(o.output_size()))",
    )
    return Layer(f"Adaptive{kind}Pool{d}d", f"output_size: Ints{d}", body=call,
                 function=f"adaptive_{low}_pool{d}d",
                 shown='[output_size=" << one_or_all(o.output_size()) << "]',
                 more=both if kind == "Max" else None)  # fmt: skip


def _lp_pool(d: int) -> Layer:
    return Layer(
        f"LPPool{d}d",
        f"norm_type: float, kernel_size: Ints{d}, stride: Ints{d} = kernel_size, "
        "ceil_mode: bool = False",
        body="lp_pooled(input, o.norm_type(), o.kernel_size(), o.stride(), o.ceil_mode())",
        function=f"lp_pool{d}d",
        shown="[norm_type=\" << shown(o.norm_type()) << \"], [kernel_size=\" << "
        "one_or_all(o.kernel_size()) << \"], [stride=\" << one_or_all(o.stride()) << \"], "
        "ceil_mode",
    )  # fmt: skip


def _max_unpool(d: int) -> Layer:
    return Layer(
        f"MaxUnpool{d}d",
        f"kernel_size: Ints{d}, stride: Ints{d} = kernel_size, padding: Ints{d} = 0",
        "const Tensor& input, const Tensor& indices, "
        "const std::optional<std::vector<int64_t>>& output_size = std::nullopt",
        "max_unpooled(input, indices, o.kernel_size(), o.stride(), o.padding(), output_size)",
        shown="kernel_size stride padding",
    )


def _pad(name: str, d: int, mode: str) -> Layer:
    value = ", value: float" if name == "Constant" else ""
    given = "o.value()" if value else "std::nullopt"
    shown = "padding value" if value else "@padding"
    body = f'ops::pad(input, list(o.padding()), "{mode}", {given})'
    return Layer(f"{name}Pad{d}d", f"padding: Ints{2 * d}{value}", body=body, shown=shown)


def _dropout(name: str, function: str) -> Layer:
    return Layer(name, "p*: float = 0.5, inplace: bool = False",
                 body=f"ops::{function}(input, o.p(), is_training(), o.inplace())")  # fmt: skip


_LAYERS = (
    Layer("Identity", body="input"),
    Layer("Linear", "in_features: int, out_features: int, bias: bool = True",
          body="ops::linear(input, weight, given(bias))",
          parameters=("weight: o.out_features(), o.in_features()",
                      "bias: o.out_features() if o.bias()"),
          reset=_UNIFORM_FAN_IN),
    Layer("Bilinear", "in1_features: int, in2_features: int, out_features: int, bias: bool = True",
          "const Tensor& input1, const Tensor& input2",
          "ops::bilinear(input1, input2, weight, given(bias))",
          parameters=("weight: o.out_features(), o.in1_features(), o.in2_features()",
                      "bias: o.out_features() if o.bias()"),
          settle='FB_CHECK_VALUE(options.in1_features() > 0, "in1_features must be > 0, but got ", '
          "options.in1_features());",
          reset="const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));\n"
          "init::uniform_(weight, -bound, bound);\n"
          "if (bias.defined()) init::uniform_(bias, -bound, bound);"),
    Layer("Flatten", "start_dim: int = 1, end_dim: int = -1",
          body="ops::flatten(input, o.start_dim(), o.end_dim())"),
    Layer("Unflatten", "dim: int, sizes: ints",
          body="ops::unflatten(input, o.dim(), list(o.sizes()))",
          shown='dim, [unflattened_size=" << shown(o.sizes()) << "]'),
    Layer("Embedding", "num_embeddings: int, embedding_dim: int, padding_idx: int?, "
          "max_norm: float?, norm_type: float = 2.0, scale_grad_by_freq: bool = False, "
          "sparse: bool = False",
          body="ops::functional_embedding(input, weight, o.padding_idx(), o.max_norm(), "
          "o.norm_type(), o.scale_grad_by_freq(), o.sparse())",
          parameters=("weight: o.num_embeddings(), o.embedding_dim()",),
          settle=_padding_checked("Padding_idx"),
          reset=_EMBEDDING_RESET,
          shown="[embedding_text(o)]", pretrained=True),
    Layer("EmbeddingBag", "num_embeddings: int, embedding_dim: int, max_norm: float?, "
          "norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = 'mean', "
          "sparse: bool = False, include_last_offset: bool = False, padding_idx: int?",
          "const Tensor& input, const Tensor& offsets = {}, const Tensor& per_sample_weights = {}",
          "ops::functional_embedding_bag(input, weight, given(offsets), o.max_norm(), "
          "o.norm_type(), o.scale_grad_by_freq(), o.mode().str(), o.sparse(), "
          "given(per_sample_weights), o.include_last_offset(), o.padding_idx())",
          parameters=("weight: o.num_embeddings(), o.embedding_dim()",),
          settle=_padding_checked("padding_idx"),
          reset=_EMBEDDING_RESET,
          shown="[embedding_bag_text(o)]", pretrained=True),
    *map(_conv, (1, 2, 3)), *map(_conv_transpose, (1, 2, 3)),
    *map(_batch_norm, (1, 2, 3)), *map(_instance_norm, (1, 2, 3)),
    Layer("LayerNorm", "normalized_shape: ints, eps: float = 1e-5, elementwise_affine: bool = True",
          body="ops::layer_norm(input, list(o.normalized_shape()), given(weight), given(bias), "
          "o.eps())",
          parameters=("weight: list(o.normalized_shape()) if o.elementwise_affine()",
                      "bias: list(o.normalized_shape()) if o.elementwise_affine()"),
          reset="if (weight.defined()) {\n  init::ones_(weight);\n  init::zeros_(bias);\n}",
          shown='@normalized_shape eps elementwise_affine [bias=" << '
          'shown(o.elementwise_affine()) << "]'),
    Layer("GroupNorm", "num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True",
          body="ops::group_norm(input, o.num_groups(), given(weight), given(bias), o.eps())",
          parameters=("weight: o.num_channels() if o.affine()",
                      "bias: o.num_channels() if o.affine()"),
          settle='FB_CHECK_VALUE(options.num_groups() > 0 && options.num_channels() % '
          'options.num_groups() == 0, "num_channels must be divisible by num_groups");',
          reset="if (weight.defined()) {\n  init::ones_(weight);\n  init::zeros_(bias);\n}",
          shown='@num_groups @num_channels eps affine [bias=" << shown(o.affine()) << "]'),
    Layer("LocalResponseNorm", "size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0",
          body="ops::local_response_norm(input, o.size(), o.alpha(), o.beta(), o.k())",
          function="local_response_norm", shown="@size alpha beta k"),
    Layer("CrossMapLRN2d", "size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0",
          body="cross_map_normalized(input, o)", shown="@size alpha beta k"),
    _dropout("Dropout", "dropout"), _dropout("Dropout2d", "dropout2d"),
    _dropout("Dropout3d", "dropout3d"), _dropout("AlphaDropout", "functional_alpha_dropout"),
    _dropout("FeatureAlphaDropout", "functional_feature_alpha_dropout"),
    *map(_lp_pool, (1, 2, 3)), *map(_max_unpool, (1, 2, 3)),
    *map(_max_pool, (1, 2, 3)), *map(_avg_pool, (1, 2, 3)),
    *(_adaptive(kind, d) for kind in ("Avg", "Max") for d in (1, 2, 3)),
    *(_pad("Reflection", d, "reflect") for d in (1, 2, 3)),
    *(_pad("Replication", d, "replicate") for d in (1, 2, 3)),
    *(_pad("Zero", d, "constant") for d in (1, 2, 3)),
    *(_pad("Constant", d, "constant") for d in (1, 2, 3)),
    Layer("PixelShuffle", "upscale_factor: int",
          body="ops::pixel_shuffle(input, o.upscale_factor())", function="pixel_shuffle"),
    Layer("PixelUnshuffle", "downscale_factor: int",
          body="ops::pixel_unshuffle(input, o.downscale_factor())", function="pixel_unshuffle"),
    Layer("Fold", "output_size: Ints2, kernel_size: Ints2, dilation: Ints2 = 1, "
          "padding: Ints2 = 0, stride: Ints2 = 1",
          body="ops::fold(input, list(o.output_size()), list(o.kernel_size()), list(o.dilation()), "
          "list(o.padding()), list(o.stride()))", function="fold",
          shown='[output_size=" << one_or_all(o.output_size()) << "], [kernel_size=" << '
          'one_or_all(o.kernel_size()) << "], [dilation=" << one_or_all(o.dilation()) << "], '
          '[padding=" << one_or_all(o.padding()) << "], [stride=" << one_or_all(o.stride()) '
          '<< "]'),
    Layer("Unfold", "kernel_size: Ints2, dilation: Ints2 = 1, padding: Ints2 = 0, "
          "stride: Ints2 = 1",
          body="ops::im2col(input, list(o.kernel_size()), list(o.dilation()), list(o.padding()), "
          "list(o.stride()))", function="unfold",
          shown='[kernel_size=" << one_or_all(o.kernel_size()) << "], [dilation=" << '
          'one_or_all(o.dilation()) << "], [padding=" << one_or_all(o.padding()) << "], [stride=" '
          '<< one_or_all(o.stride()) << "]'),
)  # fmt: skip

LAYERS: tuple[Layer, ...] = (*_ACTIVATIONS, *_LOSSES, *_LAYERS)
