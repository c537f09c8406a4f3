"""Forward mode: what has no tangent, and what is refused because its tangent would be lost."""

import pytest

import flambeau as torch
from flambeau.autograd import forward_ad as fw


@pytest.fixture(autouse=True)
def level():
    with fw.dual_level():
        yield


def dual(*values):
    return fw.make_dual(torch.tensor(values), torch.ones(len(values)))


def test_detach_in_place_drops_the_tangent():
    x = dual(1.0, 2.0) * 1
    x.detach_()
    assert fw.unpack_dual(x).tangent is None
    assert fw.unpack_dual(x * 2).tangent is None


def test_duals_of_duals_are_refused():
    with pytest.raises(RuntimeError, match="make_dual: expected a tangent"):
        fw.make_dual(torch.ones(2), dual(1.0, 2.0))
    with pytest.raises(RuntimeError, match="make_dual: expected a primal"):
        fw.make_dual(dual(1.0, 2.0), torch.ones(2))


def test_out_has_no_tangent():
    x, out = dual(1.0, 2.0), torch.zeros(2)
    for call in (
        lambda: torch.add(x, 1, out=out),
        lambda: torch.add(out, 1, out=x),
        lambda: torch.matmul(x, x, out=torch.zeros(())),
        lambda: torch.cat([x, x], out=torch.zeros(4)),
    ):
        with pytest.raises(NotImplementedError, match="don't support forward mode"):
            call()
    torch.add(torch.ones(2), 1, out=out)
    assert out.tolist() == [2, 2]


def test_inference_mode_follows_no_tangents():
    x = dual(1.0)
    with torch.inference_mode():
        assert fw.unpack_dual(x * 2).tangent is None


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, tangent_of_fixed):
        ctx.tangent_of_fixed = tangent_of_fixed
        y, fixed = x * 2, x * 3
        ctx.mark_non_differentiable(fixed)
        return y, fixed, x.long()

    @staticmethod
    def jvp(ctx, t, _):
        fixed, whole = ctx.tangent_of_fixed
        return t * 2, t if fixed else None, t if whole else None


def test_tangents_of_outputs_without_derivative():
    y, fixed, whole = Two.apply(dual(1.0), (False, False))
    assert fw.unpack_dual(y).tangent.item() == 2
    assert fw.unpack_dual(fixed).tangent is None and fw.unpack_dual(whole).tangent is None
    for wrong in ((True, False), (False, True)):
        with pytest.raises(RuntimeError, match="not differentiable"):
            Two.apply(dual(1.0), wrong)
