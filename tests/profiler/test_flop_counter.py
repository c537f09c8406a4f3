"""FLOPs by module, forward and backward, held to closed forms."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.utils.flop_counter import FlopCounterMode


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 6)
        self.c = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x, image):
        return self.l(x).sum() + self.c(image).sum()


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = Inner()
        self.h = nn.Linear(6, 2)

    def forward(self, x, image):
        return self.b(x, image) + self.h(x[:, :6]).sum()


LINEAR, HEAD, CONV = 2 * 5 * 8 * 6, 2 * 5 * 6 * 2, 2 * 2 * 64 * 4 * 3 * 9


def total(counter, name):
    return sum(counter.get_flop_counts()[name].values())


def test_forward_by_module():
    model, x, image = Outer(), torch.rand(5, 8), torch.rand(2, 3, 8, 8)
    with FlopCounterMode(display=False) as counter:
        model(x, image)
    assert counter.get_total_flops() == LINEAR + HEAD + CONV == total(counter, "Outer")
    assert total(counter, "Outer.b") == LINEAR + CONV
    assert (total(counter, "Outer.b.l"), total(counter, "Outer.b.c")) == (LINEAR, CONV)
    assert total(counter, "Outer.h") == HEAD


def test_backward_counts_for_the_modules_it_is_of():
    model, x = Outer(), torch.rand(5, 8)
    image = torch.rand(2, 3, 8, 8, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        loss = model(x, image)
        loss.backward()
    # Gradients of weights, and of the image; PyTorch counts 84144 as well.
    assert counter.get_total_flops() == 2 * LINEAR + 2 * HEAD + 3 * CONV == 84144
    assert total(counter, "Outer.b.c") == 3 * CONV and total(counter, "Outer.h") == 2 * HEAD
    assert total(counter, "Outer.b.l") == 2 * LINEAR and total(counter, "Outer") == 84144


def test_other_products():
    with FlopCounterMode(display=False) as counter:
        torch.rand(3, 4, 5) @ torch.rand(3, 5, 6)
        torch.rand(4, 5) @ torch.rand(5)
        torch.rand(10, 10) + torch.rand(10, 10)  # not counted here
    assert counter.get_flop_counts()["Global"] == {"aten.bmm": 720, "aten.mv": 40}
    q, k = torch.rand(1, 2, 7, 4), torch.rand(1, 2, 9, 4)
    with FlopCounterMode(display=False) as counter:
        nn.functional.scaled_dot_product_attention(q, k, k)
    assert counter.get_total_flops() == 2 * (2 * 7 * 4 * 9 + 2 * 7 * 9 * 4)
    q.requires_grad_()
    with FlopCounterMode(display=False) as counter:
        nn.functional.scaled_dot_product_attention(q, k, k).sum().backward()
    assert counter.get_total_flops() == (4 + 10) * 2 * 7 * 9 * 4
    with FlopCounterMode(display=False) as counter:
        nn.LSTM(3, 4)(torch.rand(5, 2, 3))
    assert counter.get_total_flops() == 2 * 10 * 16 * 3 + 2 * 10 * 16 * 4


def test_tables(capsys):
    with FlopCounterMode(depth=1) as counter:
        Outer()(torch.rand(5, 8), torch.rand(2, 3, 8, 8))
    shown = capsys.readouterr().out
    lines = [line.split() for line in shown.splitlines()]
    assert lines[0] == ["Module", "FLOP", "%", "Total"]
    assert lines[2] == ["Global", "28.248K", "100.00%"]
    assert ["Outer", "28.248K", "100.00%"] in lines and "Outer.b" not in shown
    assert "Outer.b.c" in counter.get_table(3)


def test_errors_leave_nothing_open():
    counter = FlopCounterMode()
    with pytest.raises(RuntimeError), counter:
        nn.Linear(2, 2)(torch.rand(3, 3))
    assert not torch._C._profiler_enabled() and counter.get_total_flops() == 0
    with counter:  # again, from nothing
        nn.Linear(2, 2)(torch.rand(1, 2))
    assert counter.get_total_flops() == 8
    with (
        torch.profiler.profile(),
        pytest.raises(RuntimeError, match="expected no profile to be open"),
        counter,
    ):
        pass
    with pytest.raises(NotImplementedError, match="custom_mapping is not supported"):
        FlopCounterMode(custom_mapping={1: 2})
    with pytest.warns(UserWarning, match="mods argument is not needed anymore"):
        FlopCounterMode(nn.Linear(1, 1))
