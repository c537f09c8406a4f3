"""Emitted C++: golden pieces for each kind of entry, and that it compiles against the headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from flambeau._build import emit_files
from flambeau._build.compiler import Unit
from tests.build.conftest import MakeUnit

ROOT = Path(__file__).resolve().parents[2]


def source(unit: Unit, name: str = "ops_family.cpp") -> str:
    """Generated text without #line."""
    assert not unit.errors, [str(e) for e in unit.errors]
    text = emit_files.all_files(unit)[name]
    return "\n".join(x for x in text.splitlines() if not x.startswith("#line"))


def function(text: str, head: str, event: bool = False) -> str:
    """The function whose first line contains `head`; without the event of a profile."""
    lines = text.splitlines()
    start = next(i for i, x in enumerate(lines) if head in x and x.endswith("{"))
    indent = len(lines[start]) - len(lines[start].lstrip())
    end = next(i for i in range(start + 1, len(lines)) if lines[i] == " " * indent + "}")
    found = lines[start : end + 1]
    if len(found) > 1 and "profiler::on()" in found[1] and not event:
        del found[1 : found.index("  }", 1) + 1]
    return "\n".join(found)


COMPOSITE = '''
    @composite(namespaces=("nn.functional",))
    def loss(input: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
        """A loss."""
        check_value(reduction in ("mean", "sum"), f"loss: no reduction {reduction}")
        out = input * input
        if weight is not None:
            out = out * weight
        return out.sum() if reduction == "sum" else out.sum() * (1 / input.numel())
'''


def test_calls_are_events_of_profiles(make_unit: MakeUnit) -> None:
    text = function(source(make_unit(COMPOSITE)), "Tensor loss(", event=True)
    assert text.splitlines()[1:6] == [
        "  if (profiler::on()) [[unlikely]] {",
        "    const void* const given_[] = {&input, &weight, &reduction};",
        "    if (profiler::OperationEvent event_(desc::loss, profiler::Form::Plain, given_);"
        " event_.outside())",
        "      return ops::loss(input, weight, reduction);",
        "  }",
    ]


def test_composite(make_unit: MakeUnit) -> None:
    text = source(make_unit(COMPOSITE))
    assert function(text, "Tensor loss(") == (
        "Tensor loss(const Tensor& input, const std::optional<Tensor>& weight,"
        " const std::string& reduction) {\n"
        '  FB_CHECK_AS(Value, ((reduction == "mean") || (reduction == "sum")),'
        ' "loss: no reduction ", reduction);\n'
        "  Tensor out = ops::mul(input, input);\n"
        "  if (weight.has_value()) {\n"
        "    out = ops::mul(out, *weight);\n"
        "  }\n"
        '  return ((reduction == "sum") ? ops::sum(out, std::nullopt, false) :'
        " ops::mul(ops::sum(out, std::nullopt, false),"
        " flambeau::wrapped_number(Scalar((1.0 / static_cast<double>(input.numel()))))));\n"
        "}"
    )


def test_line_directives_lead_back_to_the_entry(make_unit: MakeUnit) -> None:
    unit = make_unit(COMPOSITE)
    lines = emit_files.all_files(unit)["ops_family.cpp"].splitlines()
    at = lines.index('#line 5 "flambeau/ops/family.py"')
    assert lines[at + 2] == "  Tensor out = ops::mul(input, input);"
    back = next(i for i, x in enumerate(lines) if x.endswith('"gen/ops_family.cpp"'))
    assert lines[back] == f'#line {back + 2} "gen/ops_family.cpp"'


STRUCTURED = '''
    @structured(kernel="scale_rows", inplace=True)
    def scale(input: Tensor, factor: Tensor, power: int = 1) -> Tensor:
        """Scales."""
        check(input.ndim == 2, f"scale: expected a matrix, got {input.shape}")
        return empty(input.shape, dtype=input.dtype, like=input)


    @scale.vjp
    def _(g, input, factor, power):
        scaled = g * factor
        inner = g * input
        return scaled.sum(), inner.sum(list(range(factor.ndim)))
'''


def test_structured_runs_rule_kernel_and_recording(make_unit: MakeUnit) -> None:
    text = source(make_unit(STRUCTURED))
    assert function(text, "Tensor scale_shape(") == (
        "static Tensor scale_shape(const Tensor& input, [[maybe_unused]] const Tensor& factor,"
        " [[maybe_unused]] int64_t power) {\n"
        '  FB_CHECK_AS(Runtime, (input.dim() == 2), "scale: expected a matrix, got ",'
        " input.sizes());\n"
        "  return flambeau::empty(input.sizes(), input.dtype(),"
        " MemoryFormat::Contiguous, input.device());\n"
        "}"
    )
    assert function(text, "Tensor scale(") == (
        "Tensor scale(const Tensor& input, const Tensor& factor, int64_t power) {\n"
        "  if (intercepted()) [[unlikely]]"
        " return call_boxed<Tensor>(desc::scale, input, factor, power);\n"
        "  Tensor result = scale_shape(input, factor, power);\n"
        "  if (runs_kernel(std::tie(result), input, factor))\n"
        "    kernels::scale_rows(result, input, factor, power);\n"
        "  if (needs_grad(input) || needs_grad(factor))"
        " scale_record(result, input, factor, power);\n"
        "  return result;\n"
        "}"
    )
    files = emit_files.all_files(make_unit(STRUCTURED))
    assert (
        "void scale_rows(Tensor& result, const Tensor& input, const Tensor& factor, int64_t power);"
        in files["kernels.h"]
    )


def test_vjp_computes_only_what_is_wanted(make_unit: MakeUnit) -> None:
    text = source(make_unit(STRUCTURED))
    body = function(text, "Tensors scale_vjp(")
    assert "  if (need[0]) {\n    scaled = ops::mul(g, factor);\n  }" in body
    assert "  if (need[1]) {\n    inner = ops::mul(g, input);\n  }" in body
    assert "return flambeau::flatten(need[0] ? ops::sum(scaled" in body


def test_inputs_are_saved_only_for_the_cotangents_that_need_them(make_unit: MakeUnit) -> None:
    text = source(make_unit(STRUCTURED))
    record = function(text, "void scale_record(")
    assert "  if (needs_grad(factor)) node->input_ = SavedTensor(input, false);" in record
    assert "power" not in record.split("{", 1)[1]  # the rule takes it but never reads it


METADATA = '''
    @structured(kernel="f")
    def f(input: Tensor, bias: Tensor | None = None) -> Tensor:
        """F."""
        return empty([1], dtype=input.dtype, like=input)


    @f.vjp
    def _(g, input, bias):
        return g.sum(input.shape), None if bias is None else g.sum(bias.shape)
'''


def test_shape_alone_does_not_keep_a_tensor(make_unit: MakeUnit) -> None:
    text = source(make_unit(METADATA))
    node = text[text.index("struct FBackward") : text.index("\n};", text.index("struct FBackward"))]
    assert "SavedTensor" not in node
    assert "Ints input_shape_{};" in node
    record = function(text, "void f_record(")
    assert "node->input_shape_ = input.sizes();" in record
    assert "node->bias_is_none_ = !bias.has_value();" in record
    assert "node->bias_shape_ = bias ? (*bias).sizes() : Ints{};" in record


LISTS = '''
    @structured(kernel="join", out=False)
    def join(tensors: Tensors, mask: Tensor) -> Tuple[Tensor, Tensor]:
        """Joins."""
        x = tensors[0]
        return empty(x.shape, dtype=x.dtype, like=x), empty(x.shape, dtype=int64, like=x)


    @join.vjp
    def _(g0, tensors, mask, result1):
        return [g0 * result1 for t in tensors], None


    @structured(kernel="shift_", inplace_kernel=True)
    def shift_(self: Tensor, other: Tensor, *, alpha: Number = 1) -> Tensor:
        """Shifts."""
        check(self.ndim > 0, "shift_: expected dimensions")


    @shift_.vjp
    def _(g, alpha):
        return g, g * alpha


    @view
    def flip_axes(input: Tensor) -> Tensor:
        """Reversed order of dimensions."""
        return strided(input, input.shape[::-1], input.strides[::-1], input.offset)


    @flip_axes.vjp
    def _(g):
        return flip_axes(g)


    @structured(kernel="count", dynamic=True, differentiable=False)
    def count(input: Tensor) -> Tensor:
        """Counts."""
        check(input.ndim > 0, "count: expected dimensions")
'''


def test_list_parameters_count_their_edges(make_unit: MakeUnit) -> None:
    text = source(make_unit(LISTS))
    assert "Needs<1> need{{need_of(*this, 0, count0_)}};" in text
    assert "node->count0_ = count_of(tensors);" in text
    assert "node->result1_ = SavedTensor(result1, true, node.get(), 1);" in text
    assert "cotangent(*this, grads, 0)" in text


def test_mutation_checks_records_then_bumps(make_unit: MakeUnit) -> None:
    text = source(make_unit(LISTS))
    assert function(text, "Tensor shift_(") == (
        "Tensor shift_(const Tensor& self, const Tensor& other, const Scalar& alpha) {\n"
        "  if (intercepted()) [[unlikely]]"
        " return call_boxed<Tensor>(desc::shift_, self, other, alpha);\n"
        "  bool record = needs_grad(self) || needs_grad(other);\n"
        '  check_inplace(self, record, "shift_");\n'
        "  shift__shape(self, other, alpha);\n"
        "  Ref<ShiftInplaceBackward> node;\n"
        "  if (record) node = shift__record(self, other, alpha);\n"
        "  if (runs_kernel(std::tie(self), self, other)) kernels::shift_(self, other, alpha);\n"
        "  self.bump_version();\n"
        "  if (record) rebase_history(self, node);\n"
        "  return self;\n"
        "}"
    )


MANY = '''
@structured(kernel="step", mutates=("params",), method=False)
def _step_(params: Tensors, lr: float) -> None:
    """Changes all."""
    check(len(params) > 0, "nothing")


@composite(each=("mul", "sum"))
def _list_NAME(xs: Tensors) -> Tensors:
    """`NAME` of all."""
    return [x for x in xs]


@_list_NAME.overload(each=("mul",))
def _list_NAME(xs: Tensors, c: Numbers) -> Tensors:
    """`NAME` by numbers."""
    return [NAME(x, y) for x, y in zip(xs, c)]
'''


def test_mutated_lists_are_checked_and_bumped(make_unit: MakeUnit) -> None:
    text = source(make_unit(MANY))
    assert function(text, "void _step_(") == (
        "void _step_(const std::vector<Tensor>& params, double lr) {\n"
        "  if (intercepted()) [[unlikely]] return call_boxed<void>(desc::_step_, params, lr);\n"
        '  check_inplace(params, "_step_");\n'
        "  _step__shape(params, lr);\n"
        "  if (runs_kernel(std::tie(), params)) kernels::step(params, lr);\n"
        "  bump_versions(params);\n"
        "}"
    )


def test_one_entry_for_each_name(make_unit: MakeUnit) -> None:
    unit = make_unit(MANY)
    assert not unit.errors
    assert [op.uid for op in unit.ops if op.name.startswith("_list")] == [
        "_list_mul", "_list_sum", "_list_mul_1",
    ]  # fmt: skip
    assert next(op for op in unit.ops if op.uid == "_list_mul_1").doc == "`mul` by numbers."


def test_view_and_dynamic(make_unit: MakeUnit) -> None:
    text = source(make_unit(LISTS))
    assert (
        "return flambeau::alias(input, py::reversed(input.sizes()), py::reversed(input.strides())"
        in text
    )
    assert "  mark_view(result, input);\n" in function(text, "Tensor flip_axes(")
    assert "  Tensor result = kernels::count(input);\n  return result;" in text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("@composite\ndef f(x: Tensor) -> Tensor:\n    '''F.'''\n    return x\n\n\n"
         "@f.vjp\ndef _(g):\n    return g\n",
         "f: made of other operations, whose derivatives it has; @f.vjp would never be used"),
        ("@structured(kernel='f')\ndef f(x: Tensor) -> Tensor:\n    '''F.'''\n"
         "    return empty([1], like=x)\n\n\n@f.vjp\ndef _(g, y):\n    return g\n",
         "f: rule parameter 'y' is no parameter of the operation, no result and no cotangent"),
        ("@structured(kernel='f')\ndef f(g: Tensor) -> Tensor:\n    '''F.'''\n"
         "    return empty([1], like=g)\n\n\n@f.vjp\ndef _(g):\n    return g\n",
         "f: its parameter 'g' hides what 'g' means in a rule; rename it"),
        ("@structured(kernel='f')\ndef f(x: Tensor, y: Tensor) -> Tensor:\n    '''F.'''\n"
         "    return empty([1], like=x)\n\n\n@f.vjp\ndef _(g):\n    return g, g, g\n",
         "return: expected 2 values, one for each tensor parameter, got 3"),
        ("@structured(kernel='f_', inplace_kernel=True)\ndef f_(x: Tensor) -> Tensor:\n"
         "    '''F.'''\n    check(x.ndim > 0, 'f')\n\n\n@f_.vjp\ndef _(g, x):\n    return g * x\n",
         "f_ changes 'x'; its rule may use the shape and dtype of it alone"),
        ("@composite\ndef f(x: Tensor) -> Tensor:\n    '''F.'''\n    return x\n\n\n"
         "@composite\ndef f(x: Tensor, n: int) -> Tensor:\n    '''F.'''\n    return x\n",
         "f has an entry in flambeau/ops/family.py already; write @f.overload"),
        ("@pointwise(old_orders=('x n alpha',))\ndef f(x: Tensor, n: int) -> Tensor:\n"
         "    '''F.'''\n    return x\n",
         "f: old_orders= names no parameter: 'alpha'"),
        ("@pointwise(result_for=('n',))\ndef f(x: Tensor, n: int) -> Tensor:\n"
         "    '''F.'''\n    return x\n",
         "f: result_for= names no tensor: 'n'"),
    ],
)  # fmt: skip
def test_errors_of_entries(make_unit: MakeUnit, source: str, message: str) -> None:
    unit = make_unit(source)
    assert [message in str(e) for e in unit.errors] == [True], [str(e) for e in unit.errors]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_generated_sources_compile(make_unit: MakeUnit, tmp_path: Path) -> None:
    unit = make_unit("\n\n".join([COMPOSITE, STRUCTURED, METADATA, LISTS]))
    emit_files.write(emit_files.all_files(unit), tmp_path / "gen")
    for name in ("ops_family.cpp", "ops_base.cpp", "registry.cpp"):
        command = ["g++", "-std=c++20", "-fsyntax-only", "-DFB_HAVE_ISA_v2=1"]
        command += ["-Wall", "-Wextra", "-Werror"]
        command += ["-I", str(ROOT / "csrc"), "-I", str(tmp_path), str(tmp_path / "gen" / name)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_only_changed_files_are_written(make_unit: MakeUnit, tmp_path: Path) -> None:
    files = emit_files.all_files(make_unit(COMPOSITE))
    assert emit_files.write(files, tmp_path / "gen") == len(files)
    assert emit_files.write(files, tmp_path / "gen") == 0
    files = emit_files.all_files(make_unit(COMPOSITE.replace("no reduction", "unknown reduction")))
    assert emit_files.write(files, tmp_path / "gen") == 1
