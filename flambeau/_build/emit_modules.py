"""C++ classes of layers from their declarations: options, module, holder, function.

Reads `cpp_modules`, writes gen/api/modules.h and gen/api_modules_*.cpp. What several layers share
(texts of convolutions, checks) is csrc/api/nn/layers.h.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import indent

from .cpp_modules import LAYERS, Layer

_HEAD = "// Generated from flambeau/_build/cpp_modules.py; do not edit.\n"
_TYPES = {"int": "int64_t", "float": "double", "bool": "bool", "str": "Text", "Tensor": "Tensor",
          "ints": "std::vector<int64_t>"}  # fmt: skip
#: classes of one source file
_PER_FILE = 40


@dataclass
class Option:
    """One option of a layer."""

    name: str
    type: str  # of C++
    default: str  # of C++; "" where it is required
    positional: bool


def _cpp_type(text: str) -> str:
    if text.endswith("?"):
        inner = _TYPES[text[:-1]]
        return inner if inner == "Tensor" else f"std::optional<{inner}>"
    if text.startswith("Ints"):
        return f"ExpandingArray<{text[4:]}>"
    if text.startswith("Padding"):
        return f"ConvPadding<{text[7:]}>"
    return _TYPES[text]


def _default(text: str, type_: str) -> str:
    if text in ("True", "False"):
        return text.lower()
    if text.startswith("'"):
        return f'Text("{text[1:-1]}")'
    return f"{type_}({text})" if type_.startswith("std::optional") else text


def options(layer: Layer) -> list[Option]:
    """Its options in order."""
    found = []
    for text in filter(None, layer.options.split(", ")):
        match = re.fullmatch(r"(\w+)(\*?): ([\w?]+)(?: = (.+))?", text)
        assert match, text
        name, star, type_, default = match.groups()
        cpp = _cpp_type(type_)
        if default is None and type_.endswith("?"):
            default = "Tensor()" if cpp == "Tensor" else "std::nullopt"
        elif default is not None:
            default = _default(default, cpp)
        found.append(Option(name, cpp, default or "", default is None or bool(star)))
    return found


def _options_class(layer: Layer, opts: list[Option]) -> list[str]:
    name = f"{layer.name}Options"
    lines = [f"struct {name} {{"]
    given = [o for o in opts if o.positional]
    if not [o for o in opts if not o.default]:
        lines.append(f"  {name}() = default;")
    if given:
        params = []
        defaulted = all(o.default for o in given)
        for i, o in enumerate(given):
            value = f" = {o.default}" if o.default and not (defaulted and i == 0) else ""
            params.append(f"{o.type} {o.name}{value}")
        inits = [f"{o.name}_(std::move({o.name}))" for o in given]
        lines.append(f"  {name}({', '.join(params)}) : {', '.join(inits)} {{}}")
    for o in opts:
        value = "" if not o.default else f" = {_value(o)}"
        lines.append(f"  TORCH_ARG({o.type}, {o.name}){value};")
    return [*lines, "};", ""]


def _value(o: Option) -> str:
    """The start of an option; one that follows another reads that."""
    return f"{o.default}_" if re.fullmatch(r"[a-z_]+", o.default) and o.default not in (
        "true", "false") else o.default  # fmt: skip


def _shown(layer: Layer, opts: list[Option]) -> str:
    """The body of pretty_print."""
    if layer.shown is None:
        words = [o.name for o in opts if o.type != "Tensor"]
    else:
        words = re.findall(r"\[[^\]]*\]|[^\s,]+", layer.shown)
    parts: list[str] = []
    for word in words:
        comma = "comma(out, first) << "
        if word.startswith("["):
            text = word[1:-1]
            parts.append(f"{comma}{text};" if "(" in text.split('"')[0] else f'{comma}"{text}";')
        elif word.endswith("?"):
            name = word[:-1]
            parts.append(f'if (o.{name}()) {comma}"{name}=True";')
        elif word.startswith("@"):
            parts.append(f"{comma}shown(o.{word[1:]}());")
        else:
            parts.append(f'{comma}"{word}=" << shown(o.{word}());')
    used = any(re.search(r"\bo[.,)]", p) for p in parts)
    head = "  [[maybe_unused]] const auto& o = options;\n" if used else ""
    body = "\n".join("  " + p for p in parts)
    first = "  bool first = true;\n" if parts else ""
    return f'{head}{first}  out << name() << "(";\n{body}\n  out << ")";\n'.replace("\n\n", "\n")


def _statements(body: str) -> str:
    return body if "return " in body else f"return {body};"


def _class(layer: Layer) -> tuple[list[str], list[str]]:
    """Lines of the header and of the source."""
    opts = options(layer)
    name = f"{layer.name}Impl"
    base = f"{name}"
    h = [f"// {layer.name}"]
    s: list[str] = []
    if opts:
        h += _options_class(layer, opts)
    norm = layer.name.startswith("BatchNorm")
    h.append(f"struct {name} : Cloneable<{base}> {{")
    required = [o for o in opts if not o.default]
    o_type = f"{layer.name}Options"
    if not opts:
        h.append(f"  {name}() {{ reset(); }}")
    elif required:
        params = ", ".join(f"{o.type} {o.name}" for o in required)
        names = ", ".join(f"std::move({o.name})" for o in required)
        h.append(f"  {'explicit ' if len(required) == 1 else ''}{name}({params}) "
                 f": {name}({o_type}({names})) {{}}")  # fmt: skip
        h.append(f"  explicit {name}({o_type} options_);")
    else:
        h.append(f"  explicit {name}({o_type} options_ = {{}});")
    if opts:
        s.append(f"{name}::{name}({o_type} options_) : options(std::move(options_)) {{ reset(); }}")
    h.append("  void reset() override;")
    if layer.reset:
        h.append("  void reset_parameters();")
    if layer.more:
        h.append(f"  {layer.more[0]};")
        result, method = re.fullmatch(r"(.*?) (\w+\(.*)", layer.more[0]).groups()  # type: ignore[union-attr]
        s += [f"{result} {name}::{method} {{", "  [[maybe_unused]] const auto& o = options;",
              f"  return {layer.more[1]};", "}"]  # fmt: skip
    declared = f"{layer.returns} forward({layer.forward});"
    h.append(f"  {declared}")
    if layer.shown != "" or opts:
        h.append("  void pretty_print(std::ostream& out) const override;")
    if norm:
        h.append("  Tensor run(const Tensor& input);")
    if opts:
        h.append(f"  {o_type} options;")
    for text in (*layer.parameters, *layer.buffers):
        h.append(f"  Tensor {text.split(':')[0]};")
    h.append("};")
    if layer.pretrained:
        more_h, more_s = _pretrained(layer, opts)
        h += more_h
        s += more_s
    else:
        h += [f"TORCH_MODULE({layer.name});", ""]

    body = ["  [[maybe_unused]] const auto& o = options;"] if opts else []
    if layer.settle:
        body.append(indent(layer.settle, "  "))
    for texts, kind in ((layer.parameters, "parameter"), (layer.buffers, "buffer")):
        for text in texts:
            field, value = text.split(": ", 1)
            value, _, when = value.partition(" if ")
            made = f"ops::empty(Ints{{{value}}})" if kind == "parameter" else value
            if kind == "parameter" and re.match(r"(list|convolution_sizes)\(", value):
                made = f"ops::empty({value})"
            if when:
                made = f"{when} ? {made} : Tensor()"
            body.append(f'  {field} = register_{kind}("{field}", {made});')
    if layer.reset:
        body.append("  reset_parameters();")
        s += [f"void {name}::reset_parameters() {{", indent(layer.reset, "  "), "}"]
    s += [f"void {name}::reset() {{", *body, "}"]

    forward = re.sub(r" = [^,]+", "", layer.forward)
    s.append(f"{layer.returns} {name}::forward({forward}) {{")
    if layer.function:
        args = ", ".join(re.findall(r"(\w+)(?:,|$)", forward))
        given = f"{args}, options" if opts else args
        s.append(f"  return functional::{layer.function}({given});")
    else:
        if opts:
            s.append("  [[maybe_unused]] const auto& o = options;")
        s.append(indent(_statements(layer.body), "  "))
    s.append("}")
    if layer.shown != "" or opts:
        s += [f"void {name}::pretty_print(std::ostream& out) const {{", _shown(layer, opts) + "}"]
    if norm:
        s += [f"Tensor {name}::run(const Tensor& input) {{",
              "  return batch_normalized(input, *this, running_mean, running_var, "
              "num_batches_tracked, weight, bias, options);", "}"]  # fmt: skip
    return h, [*s, ""]


def _pretrained(layer: Layer, opts: list[Option]) -> tuple[list[str], list[str]]:
    """The holder of a layer that is also made of a weight: no numbers are drawn for it."""
    name, rest = layer.name, opts[2:]
    made = f"{name}FromPretrainedOptions"
    h = [f"struct {made} {{", "  TORCH_ARG(bool, freeze) = true;"]
    for o in rest:
        h.append(f"  TORCH_ARG({o.type}, {o.name}) = {o.default};")
    h += [
        "};",
        f"class {name} : public ModuleHolder<{name}Impl> {{",
        " public:",
        f"  using ModuleHolder<{name}Impl>::ModuleHolder;",
        f"  using Impl [[maybe_unused]] = {name}Impl;",
        "  // A layer whose weight is this one; it is trained unless `freeze`.",
        f"  static {name} from_pretrained(const Tensor& embeddings, const {made}& given = {{}});",
        "};",
        "",
    ]
    s = [
        f"{name} {name}::from_pretrained(const Tensor& embeddings, const {made}& given) {{",
        f'  FB_CHECK_VALUE(embeddings.dim() == 2, "{name}::from_pretrained: expected embeddings '
        'of two dimensions, got ", embeddings.dim());',
        f"  {name}Options options(embeddings.size(0), embeddings.size(1));",
        *(f"  options.{o.name}(given.{o.name}());" for o in rest),
        indent(layer.settle, "  "),
        f"  auto made = std::make_shared<{name}Impl>({name}Options(0, 0));",
        "  made->options = options;",
        "  made->weight.set_data(embeddings);",
        "  made->weight.set_requires_grad(!given.freeze());",
        f"  return {name}(made);",
        "}",
    ]
    return h, s


def _function(layer: Layer) -> tuple[list[str], list[str]]:
    """The function of nn::functional: declaration, definition."""
    opts = options(layer)
    forward = re.sub(r" = [^,]+", "", layer.forward)
    name = layer.function
    if not opts:
        body = [f"Tensor {name}({forward}) {{", indent(_statements(layer.body), "  "), "}"]
        return [f"Tensor {name}({layer.forward});"], body
    func = f"{_camel(name)}FuncOptions"
    default = " = {}" if all(o.default for o in opts) else ""
    head = f"Tensor {name}({layer.forward}, const {layer.name}Options& options{default});"
    lines = [f"using {func} = {layer.name}Options;", head]
    definition = [
        f"Tensor {name}({forward}, const {layer.name}Options& o) {{",
        indent(_statements(layer.body), "  "),
        "}",
    ]
    return lines, definition


def _camel(name: str) -> str:
    known = {"l1_loss": "L1Loss", "mse_loss": "MSELoss", "elu": "ELU", "selu": "SELU",
             "celu": "CELU", "glu": "GLU", "gelu": "GELU", "relu": "ReLU", "relu6": "ReLU6",
             "leaky_relu": "LeakyReLU", "ctc_loss": "CTCLoss", "nll_loss": "NLLLoss",
             "poisson_nll_loss": "PoissonNLLLoss", "kl_div": "KLDiv",
             "binary_cross_entropy_with_logits": "BinaryCrossEntropyWithLogits",
             "smooth_l1_loss": "SmoothL1Loss", "silu": "SiLU",
             "multilabel_margin_loss": "MultilabelMarginLoss"}  # fmt: skip
    if name in known:
        return known[name]
    return "".join(part.capitalize() for part in name.split("_"))


def function_names() -> frozenset[str]:
    """Functions of nn::functional that take options: the table's forms of them are left out."""
    return frozenset(layer.function for layer in LAYERS if layer.function)


def files() -> dict[str, str]:
    """File name -> text."""
    header: list[str] = []
    functions: list[str] = []
    sources: list[list[str]] = [[]]
    for i, layer in enumerate(LAYERS):
        if i % _PER_FILE == 0 and i:
            sources.append([])
        h, s = _class(layer)
        header += h
        sources[-1] += s
        if layer.function:
            declared, defined = _function(layer)
            functions += declared
            sources[-1] += ["namespace functional {", *defined, "}", ""]
    body = "\n".join(header)
    text = "\n".join(functions)
    out = {
        "api/modules.h": f"{_HEAD}#pragma once\n\nnamespace flambeau::nn {{\n\n{body}\n"
        f"namespace functional {{\n\n{text}\n\n}}\n\n}}\n"
    }
    for i, lines in enumerate(sources):
        joined = "\n".join(lines)
        out[f"api_modules_{i + 1}.cpp"] = (
            f'{_HEAD}#include "api/nn/layers.h"\n\nnamespace flambeau::nn {{\n\n{joined}\n}}\n'
        )
    return out
