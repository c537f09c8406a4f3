"""Packed sequences, clipped gradients and given embeddings in C++ are those of Python, to "
"the bit."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import rnn
from tests.cpp.conftest import program
from tests.cpp.test_script_files import hexed


def of_network(net, packed) -> list[str]:
    """What programs/sequences.cpp shows of a network."""
    out, state = net(packed)
    padded, lengths = rnn.pad_packed_sequence(out, True, -1.0, 6)
    lines = [hexed(padded), f"torch.int64[3]{int(lengths[0])}{int(lengths[2])}"]
    lines.append("".join(map(hexed, state)) if isinstance(state, tuple) else hexed(state))
    net.zero_grad()
    padded.pow(2).sum().backward()
    lines.append(hexed(nn.utils.parameters_to_vector([p.grad for p in net.parameters()])))
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    first, second = list(net.parameters())[:2]
    lines.append(hexed(norm) + hexed(first.grad))
    nn.utils.clip_grad_value_(net.parameters(), 0.01)
    return [*lines, hexed(second.grad)]


def test_sequences_and_gradients(run_program):
    lines = run_program(program("sequences")).splitlines()
    torch.manual_seed(5)
    x = torch.randn(3, 5, 2)
    packed = rnn.pack_padded_sequence(x, torch.tensor([3, 5, 2]), True, False)
    wanted = [hexed(packed.data)]
    wanted += of_network(nn.LSTM(2, 3, 2, bidirectional=True), packed)
    wanted += of_network(nn.GRU(2, 3), packed)
    wanted += of_network(nn.RNN(2, 3, nonlinearity="relu"), packed)
    assert lines[: len(wanted)] == wanted
    assert lines[len(wanted) :] == [
        "tensor([[1., 1., 9.],",
        "        [0., 0., 0.]])",
        "tensor([1., 0., 1., 0., 1.])",
        "tensor([0., 1.])[3, 1]",
        "vector_to_parameters: expected a vector of as many entries as the parameters have, "
        "2, got shape [5]",
        "`lengths` array must be sorted in decreasing order when `enforce_sorted` is true. "
        "You can pass "
        "`enforce_sorted=false` to pack_padded_sequence and/or pack_sequence to sidestep "
        "this requirement.",
        "pack_padded_sequence: the longest of lengths is 6, but input has 5 steps",
        "Length of all samples has to be greater than 0, but found an element in 'lengths' "
        "that is <= 0",
        "input.size(-1) must be equal to input_size. Expected 3, got 2",
        "The total norm of order 2 for gradients from `parameters` is non-finite, so it "
        "cannot be clipped. To "
        "disable this error and scale the gradients by the non-finite norm anyway, set "
        "`error_if_nonfinite=false`",
        "101",
        "tensor([[5., 6.],",
        "        [1., 2.]])",
        "tensor([[ 4.,  6.],",
        "        [ 8., 10.]], grad_fn=<EmbeddingBagBackward0>)Embedding(3, 2)",
        "Embedding::from_pretrained: expected embeddings of two dimensions, got 1",
        "Padding_idx must be within num_embeddings",
    ]
