"""What a pointwise entry becomes around its kernels: recording, backward, the in-place form."""

from __future__ import annotations

from pathlib import Path

import pytest

from flambeau._build import compiler, emit_files

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def text() -> str:
    files = emit_files.all_files(compiler.load(ROOT))
    return "\n".join(t for name, t in files.items() if name.startswith("ops_pointwise"))


def function(text: str, head: str) -> str:
    """The definition that begins with `head`."""
    start = text.index(head)
    return text[start : text.index("\n}\n", start)]


def test_backward_is_fused_unless_it_is_recorded(text: str) -> None:
    body = function(text, "static Tensors silu_vjp(")
    fused = body.index("if (!modes.grad && !intercepted()) {")
    kernel, composite = body.index("kernels::kernel_silu_backward"), body.index("ops::mul")
    assert fused < kernel < composite


def test_inplace_saves_a_copy_of_what_it_overwrites(text: str) -> None:
    record = function(text, "static Ref<SiluBackward> silu_record_inplace(")
    assert "node->input_ = SavedTensor(copied(input), false);" in record
    lines = function(text, "Tensor silu_(const Tensor& input) {").splitlines()
    order = ["check_inplace", "silu_record_inplace", "pointwise_inplace", "rebase_history"]
    places = [next(i for i, x in enumerate(lines) if what in x) for what in order]
    assert places == sorted(places)


def test_nondifferentiable_operation_saves_nothing(text: str) -> None:
    body = function(text, "Tensor isnan(const Tensor& input) {")
    assert "not_differentiable(" in body
    assert "SavedTensor" not in body
