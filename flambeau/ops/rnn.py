"""Recurrent layers: LSTM, GRU, tanh and relu RNNs over whole sequences, and their cells.

The primitive is one direction of one layer; the inputs' share of the gates is one matrix product
before it. Kernels: csrc/kernels/rnn.cpp.
"""

from __future__ import annotations

from flambeau.ops._lang import *

TANH = 0
RELU = 1
LSTM = 2
GRU = 3


@structured(kernel="rnn_layer", namespaces=(), out=False, autocast="lower")
def _rnn_layer(
    x: Tensor, h0: Tensor, c0: Tensor | None, w: Tensor, b: Tensor | None, sizes: Ints, mode: int,
    reverse: bool,
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Outputs (rows, H), last states, and what the derivative needs, from the inputs' part `x`.

    Args:
        x: (rows, gates * H), rows of all steps one after the other
        sizes: rows of each step, never growing

    >>> w = torch.zeros(3, 2), torch.zeros(3, 3)
    >>> torch.rnn_tanh_cell(torch.ones(1, 2), torch.zeros(1, 3), *w)
    tensor([[0., 0., 0.]])
    """
    rows = x.shape[0]
    h = h0.shape[1]
    gates = 4 if mode == LSTM else 3 if mode == GRU else 1
    kept = 5 if mode == LSTM else 4 if mode == GRU else 0
    check(x.shape[1] == gates * h, f"rnn: expected {gates * h} gate values, got {x.shape[1]}")
    check(
        w.ndim == 2 and w.shape[0] == gates * h and w.shape[1] == h,
        f"rnn: expected weight_hh of shape [{gates * h}, {h}], got {w.shape}",
    )
    check(
        x.dtype == h0.dtype and x.dtype == w.dtype,
        f"rnn: expected input, states and weights of one dtype, got {x.dtype}, {h0.dtype} and "
        f"{w.dtype}",
    )
    check(x.is_floating_point(), f"\"rnn\" not implemented for '{scalar_type_name(x.dtype)}'")
    if b is not None:
        check(
            b.numel() == gates * h and b.dtype == x.dtype,
            f"rnn: expected bias_hh of {gates * h} elements, got {b.shape}",
        )
    most = h0.shape[0]
    for n in sizes:
        check(0 <= n <= most, f"rnn: batch sizes must not grow or exceed the batch, got {sizes}")
        most = n
    check(sum(sizes) == rows, f"rnn: batch sizes {sizes} do not sum to the {rows} rows of the data")
    if c0 is not None:
        check(
            c0.shape == h0.shape and c0.dtype == h0.dtype,
            f"rnn: expected the cell state like the hidden state {h0.shape}, got {c0.shape}",
        )
    return (
        empty([rows, h], dtype=x.dtype, like=x),
        empty(h0.shape, dtype=x.dtype, like=x),
        empty(h0.shape if mode == LSTM else [0], dtype=x.dtype, like=x),
        empty([rows, kept * h], dtype=opmath(x.dtype), like=x),
    )


@_rnn_layer.vjp(undefined=True)
def _(
    g0: Tensor | None, g1: Tensor | None, g2: Tensor | None, g3: Tensor | None,
    x, h0, c0, w, b, sizes, mode, reverse, result0, result3,
):  # fmt: skip
    kind = result0.dtype
    gy = zeros(result0.shape, dtype=kind) if g0 is None else g0
    gh = zeros(h0.shape, dtype=kind) if g1 is None else g1
    gc = zeros(h0.shape if mode == LSTM else [0], dtype=kind) if g2 is None else g2
    if g3 is None and not differentiated():
        gx, gh0, gc0, gw, gb = _rnn_layer_backward(
            gy, gh, gc, result0, result3, h0, c0, w, sizes, mode, reverse
        )
        return gx, gh0, gc0, gw, gb
    # A derivative of this one follows the gates and states that were kept (result3) back to here,
    # where their cotangent g3 goes on as that of the outputs does.
    gx, gh0, gc0, gw, gb = _rnn_layer_backward_steps(
        gy, gh, gc, g3, result0, result3, h0, c0, w, sizes, mode, reverse
    )
    return gx, gh0, gc0, gw, gb


@composite(namespaces=())
def _rnn_layer_backward_steps(
    gy: Tensor, gh: Tensor, gc: Tensor, gs: Tensor | None, y: Tensor, saved: Tensor, h0: Tensor,
    c0: Tensor | None, w: Tensor, sizes: Ints, mode: int, reverse: bool,
) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """`_rnn_layer_backward` as operations that can be derived again, with a cotangent of `saved`.

    >>> w = torch.zeros(3, 2), torch.zeros(3, 3)
    >>> torch.rnn_tanh_cell(torch.ones(1, 2), torch.zeros(1, 3), *w)
    tensor([[0., 0., 0.]])
    """
    kind = saved.dtype
    hidden = h0.shape[1]
    ys = y.to(kind)
    ws = w.to(kind)
    starts = h0.to(kind)
    dys = gy.to(kind)
    dh = gh.to(kind)
    dc = gc.to(kind)
    firsts: Ints = []
    at = 0
    for n in sizes:
        firsts.append(at)
        at += n
    parts_x: Tensors = []
    parts_h: Tensors = []
    befores: Tensors = []
    for i in range(len(sizes)):
        t = i if reverse else len(sizes) - 1 - i
        n = sizes[t]
        ran = t + 1 if reverse else t - 1
        known = 0
        if ran >= 0 and ran < len(sizes):
            known = min(n, sizes[ran])
        before = starts.narrow(0, known, n - known)
        if known > 0:
            before = cat([ys.narrow(0, firsts[ran], known), before], 0)
        befores.append(before)
        d = dys.narrow(0, firsts[t], n) + dh.narrow(0, 0, n)
        direct = d
        from_x = d
        from_h = d
        if mode == LSTM:
            k = saved.narrow(0, firsts[t], n).chunk(5, 1)
            c = dc.narrow(0, 0, 0)
            if c0 is not None:
                c = c0.to(kind).narrow(0, known, n - known)
            if known > 0:
                c = cat([saved.narrow(0, firsts[ran], known).narrow(1, 4 * hidden, hidden), c], 0)
            th = k[4].tanh()
            dcs = dc.narrow(0, 0, n) + d * k[3] * (1 - th * th)
            di = dcs * k[2]
            df = dcs * c
            dg = dcs * k[0]
            do = d * th
            if gs is not None:
                more = gs.narrow(0, firsts[t], n).chunk(5, 1)
                inner = dcs + more[4]
                dcs = inner
                di = inner * k[2] + more[0]
                df = inner * c + more[1]
                dg = inner * k[0] + more[2]
                do = do + more[3]
            from_x = cat(
                [
                    di * k[0] * (1 - k[0]), df * k[1] * (1 - k[1]), dg * (1 - k[2] * k[2]),
                    do * k[3] * (1 - k[3]),
                ], 1,
            )  # fmt: skip
            from_h = from_x
            direct = zeros(d.shape, dtype=kind)
            dc = cat([dcs * k[1], dc.narrow(0, n, dc.shape[0] - n)], 0)
        elif mode == GRU:
            k = saved.narrow(0, firsts[t], n).chunk(4, 1)
            dm = d * (1 - k[1])
            dz = d * (before - k[2])
            if gs is not None:
                more = gs.narrow(0, firsts[t], n).chunk(4, 1)
                dm = dm + more[2]
                dz = dz + more[1]
            dm = dm * (1 - k[2] * k[2])
            dr = dm * k[3]
            dp = dm * k[0]
            if gs is not None:
                more = gs.narrow(0, firsts[t], n).chunk(4, 1)
                dr = dr + more[0]
                dp = dp + more[3]
            dr = dr * k[0] * (1 - k[0])
            dz = dz * k[1] * (1 - k[1])
            from_x = cat([dr, dz, dm], 1)
            from_h = cat([dr, dz, dp], 1)
            direct = d * k[1]
        else:
            v = ys.narrow(0, firsts[t], n)
            from_x = d * (1 - v * v) if mode == TANH else d * (v > 0).to(kind)
            from_h = from_x
            direct = zeros(d.shape, dtype=kind)
        parts_x.append(from_x)
        parts_h.append(from_h)
        dh = cat([direct + mm(from_h, ws), dh.narrow(0, n, dh.shape[0] - n)], 0)
    gx = cat(parts_x if reverse else parts_x[::-1], 0)
    gates = cat(parts_h, 0)
    gw = mm(gates.t(), cat(befores, 0))
    to = y.dtype
    return gx.to(to), dh.to(to), dc.to(to), gw.to(to), gates.sum([0]).to(to)


@structured(kernel="rnn_layer_backward", namespaces=(), out=False)
def _rnn_layer_backward(
    gy: Tensor, gh: Tensor, gc: Tensor, y: Tensor, saved: Tensor, h0: Tensor, c0: Tensor | None,
    w: Tensor, sizes: Ints, mode: int, reverse: bool,
) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Cotangents of x, h0, c0, w and b of `_rnn_layer`.

    >>> w = torch.zeros(3, 2), torch.zeros(3, 3)
    >>> torch.rnn_tanh_cell(torch.ones(1, 2), torch.zeros(1, 3), *w)
    tensor([[0., 0., 0.]])
    """
    return (
        empty([y.shape[0], w.shape[0]], dtype=y.dtype, like=y),
        empty(h0.shape, dtype=y.dtype, like=y),
        empty(h0.shape if mode == LSTM else [0], dtype=y.dtype, like=y),
        empty(w.shape, dtype=y.dtype, like=y),
        empty([w.shape[0]], dtype=y.dtype, like=y),
    )


@composite(namespaces=())
def _projected_layer(
    x: Tensor, h0: Tensor, c0: Tensor, w: Tensor, b: Tensor | None, wr: Tensor, sizes: Ints,
    reverse: bool,
) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """LSTM direction whose output is projected by `wr`, step by step.

    >>> w = torch.zeros(4, 1)
    >>> torch.lstm_cell(torch.ones(1, 1), [torch.zeros(1, 1)] * 2, w, w)[0].item()
    0.0
    """
    h = h0
    c = c0
    outs: Tensors = []
    firsts: Ints = []
    at = 0
    for n in sizes:
        firsts.append(at)
        at += n
    for i in range(len(sizes)):
        t = len(sizes) - 1 - i if reverse else i
        n = sizes[t]
        hs = h.narrow(0, 0, n)
        gates = x.narrow(0, firsts[t], n) + linear(hs, w, b)
        parts = gates.chunk(4, 1)
        cs = parts[1].sigmoid() * c.narrow(0, 0, n) + parts[0].sigmoid() * parts[2].tanh()
        hs = linear(parts[3].sigmoid() * cs.tanh(), wr)
        outs.append(hs)
        h = cat([hs, h.narrow(0, n, h.shape[0] - n)], 0)
        c = cat([cs, c.narrow(0, n, c.shape[0] - n)], 0)
    return cat(outs[::-1] if reverse else outs, 0), h, c


@composite(namespaces=())
def _rnn_stack(
    data: Tensor, sizes: Ints, h0: Tensor, c0: Tensor | None, params: Tensors, has_biases: bool,
    layers: int, p: float, train: bool, bidirectional: bool, mode: int,
) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """All layers and directions over rows of all steps; dropout between layers.

    >>> w = torch.zeros(3, 2), torch.zeros(3, 3)
    >>> torch.rnn_tanh_cell(torch.ones(1, 2), torch.zeros(1, 3), *w)
    tensor([[0., 0., 0.]])
    """
    directions = 2 if bidirectional else 1
    count = len(params) // (layers * directions)
    plain = 4 if has_biases else 2
    check(
        len(params) == count * layers * directions and (count == plain or count == plain + 1),
        f"rnn: expected {plain} parameters per layer and direction, got {len(params)} for {layers} "
        f"layers of {directions} directions",
    )
    check(
        h0.ndim == 3 and h0.shape[0] == layers * directions,
        f"rnn: Expected hidden size ({layers * directions}, batch, hidden), got {h0.shape}",
    )
    x = data
    hs: Tensors = []
    cs: Tensors = []
    for layer in range(layers):
        outs: Tensors = []
        for d in range(directions):
            k = layer * directions + d
            w_ih = params[k * count]
            w_hh = params[k * count + 1]
            b_hh: Tensor | None = None
            xg = data
            if has_biases:
                b_hh = params[k * count + 3]
                xg = linear(x, w_ih, params[k * count + 2])
            else:
                xg = linear(x, w_ih)
            h = h0.select(0, k)
            c: Tensor | None = None
            if c0 is not None:
                c = c0.select(0, k)
            if count == plain + 1 and c is not None:
                wr = params[k * count + plain]
                y, hn, cn = _projected_layer(xg, h, c, w_hh, b_hh, wr, sizes, d == 1)
                outs.append(y)
                hs.append(hn)
                cs.append(cn)
            else:
                y1, hn1, cn1, _ = _rnn_layer(xg, h, c, w_hh, b_hh, sizes, mode, d == 1)
                outs.append(y1)
                hs.append(hn1)
                cs.append(cn1)
        x = cat(outs, 1) if directions == 2 else outs[0]
        if p > 0.0 and train and layer < layers - 1:
            x = dropout(x, p, True)
    return x, stack(hs, 0), stack(cs, 0)


@composite(namespaces=())
def _rnn_sequence(
    input: Tensor, h0: Tensor, c0: Tensor | None, params: Tensors, has_biases: bool, layers: int,
    p: float, train: bool, bidirectional: bool, batch_first: bool, mode: int,
) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """A batch of sequences of one length.

    >>> w = torch.zeros(3, 2), torch.zeros(3, 3)
    >>> torch.rnn_tanh_cell(torch.ones(1, 2), torch.zeros(1, 3), *w)
    tensor([[0., 0., 0.]])
    """
    check(input.ndim == 3, f"rnn: Expected 3-dimensional input, got {input.ndim} dimensions")
    x = input.transpose(0, 1) if batch_first else input
    steps = x.shape[0]
    batch = x.shape[1]
    check(steps > 0, "rnn: Expected sequence length to be larger than 0 in RNN")
    check(
        h0.ndim == 3 and h0.shape[1] == batch,
        f"rnn: Expected hidden state of batch {batch}, got shape {h0.shape}",
    )
    sizes = [batch for i in range(steps)]
    y, h, c = _rnn_stack(
        x.reshape([steps * batch, x.shape[2]]), sizes, h0, c0, params, has_biases, layers, p, train,
        bidirectional, mode,
    )  # fmt: skip
    out = y.reshape([steps, batch, y.shape[1]])
    return out.transpose(0, 1) if batch_first else out, h, c


@composite(namespaces=())
def _sizes_of(batch_sizes: Tensor) -> Ints:
    """Batch sizes of a packed sequence as a list.

    >>> torch.tensor([2, 1]).tolist()
    [2, 1]
    """
    check(
        batch_sizes.ndim == 1, f"rnn: expected batch_sizes of one dimension, got {batch_sizes.ndim}"
    )
    return [int(batch_sizes.select(0, i).item()) for i in range(batch_sizes.shape[0])]


@composite(method=False)
def lstm(
    input: Tensor, hx: Tensors, params: Tensors, has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Long short-term memory layers (Hochreiter & Schmidhuber 1997): outputs, last h, last c.

    >>> torch.nn.LSTM(2, 3)(torch.ones(4, 1, 2))[0].shape
    torch.Size([4, 1, 3])
    """
    check(len(hx) == 2, f"lstm: expects two hidden states, got {len(hx)}")
    return _rnn_sequence(
        input, hx[0], hx[1], params, has_biases, num_layers, dropout, train, bidirectional,
        batch_first, LSTM,
    )  # fmt: skip


@lstm.overload(method=False)
def lstm(
    data: Tensor, batch_sizes: Tensor, hx: Tensors, params: Tensors, has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Long short-term memory layers over a packed sequence.

    >>> torch.nn.LSTM(2, 3)(torch.ones(4, 1, 2))[1][0].shape
    torch.Size([1, 1, 3])
    """
    check(len(hx) == 2, f"lstm: expects two hidden states, got {len(hx)}")
    return _rnn_stack(
        data, _sizes_of(batch_sizes), hx[0], hx[1], params, has_biases, num_layers, dropout, train,
        bidirectional, LSTM,
    )  # fmt: skip


@composite(method=False)
def gru(
    input: Tensor, hx: Tensor, params: Tensors, has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """Gated recurrent units (Cho et al. 2014): outputs and last states.

    >>> torch.nn.GRU(2, 3)(torch.ones(4, 1, 2))[0].shape
    torch.Size([4, 1, 3])
    """
    y, h, _ = _rnn_sequence(
        input, hx, None, params, has_biases, num_layers, dropout, train, bidirectional, batch_first,
        GRU,
    )  # fmt: skip
    return y, h


@gru.overload(method=False)
def gru(
    data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Tensors, has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """Gated recurrent units (Cho et al. 2014), over a packed sequence.

    >>> torch.nn.GRU(2, 3)(torch.ones(4, 1, 2))[1].shape
    torch.Size([1, 1, 3])
    """
    y, h, _ = _rnn_stack(
        data, _sizes_of(batch_sizes), hx, None, params, has_biases, num_layers, dropout, train,
        bidirectional, GRU,
    )  # fmt: skip
    return y, h


@composite(namespaces=(), method=False)
def _elman(name: str) -> int:
    """The mode of an Elman layer by the name of its function."""
    return TANH if name == "tanh" else RELU


@composite(each=("tanh", "relu"), method=False)
def rnn_NAME(
    input: Tensor, hx: Tensor, params: Tensors, has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """Elman layers with NAME: outputs and last states.

    >>> torch.nn.RNN(2, 3)(torch.ones(4, 1, 2))[0].shape
    torch.Size([4, 1, 3])
    """
    y, h, _ = _rnn_sequence(
        input, hx, None, params, has_biases, num_layers, dropout, train, bidirectional, batch_first,
        _elman("NAME"),
    )  # fmt: skip
    return y, h


@rnn_NAME.overload(each=("tanh", "relu"), method=False)
def rnn_NAME(
    data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Tensors, has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """Elman layers with NAME, over a packed sequence.

    >>> torch.nn.RNN(2, 3)(torch.ones(4, 1, 2))[1].shape
    torch.Size([1, 1, 3])
    """
    y, h, _ = _rnn_stack(
        data, _sizes_of(batch_sizes), hx, None, params, has_biases, num_layers, dropout, train,
        bidirectional, _elman("NAME"),
    )  # fmt: skip
    return y, h


# Cells ------------------------------------------------------------------------------------------


@composite(namespaces=())
def _check_cell(op: str, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor) -> int:
    """Batch of a cell's call; refuses shapes that do not fit.

    >>> w = torch.zeros(3, 2), torch.zeros(3, 3)
    >>> torch.rnn_relu_cell(torch.ones(1, 2), torch.zeros(1, 3), *w).shape
    torch.Size([1, 3])
    """
    check(
        input.ndim == 2 and hx.ndim == 2,
        f"{op}: expected input and hidden state of 2 dimensions, got {input.ndim} and {hx.ndim}",
    )
    check(
        input.shape[1] == w_ih.shape[1],
        f"{op}: input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}",
    )
    check(
        hx.shape[1] == w_hh.shape[1],
        f"{op}: hidden has inconsistent hidden_size: got {hx.shape[1]}, expected {w_hh.shape[1]}",
    )
    check(
        input.shape[0] == hx.shape[0],
        f"{op}: Input batch size {input.shape[0]} doesn't match hidden batch size {hx.shape[0]}",
    )
    return input.shape[0]


@composite(method=False)
def lstm_cell(
    input: Tensor, hx: Tensors, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """One step of an LSTM: new h and c.

    >>> w = torch.zeros(4, 1)
    >>> torch.lstm_cell(torch.ones(1, 1), [torch.zeros(1, 1)] * 2, w, w)[0].item()
    0.0
    """
    check(len(hx) == 2, f"lstm_cell: expects two hidden states, got {len(hx)}")
    n = _check_cell("lstm_cell", input, hx[0], w_ih, w_hh)
    y, _, c, _ = _rnn_layer(linear(input, w_ih, b_ih), hx[0], hx[1], w_hh, b_hh, [n], LSTM, False)
    return y, c


@composite(method=False)
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """One step of a GRU: the new state.

    >>> w = torch.zeros(9, 2), torch.zeros(9, 3)
    >>> torch.gru_cell(torch.ones(1, 2), torch.zeros(1, 3), *w)
    tensor([[0., 0., 0.]])
    """
    n = _check_cell("gru_cell", input, hx, w_ih, w_hh)
    y, _, _, _ = _rnn_layer(linear(input, w_ih, b_ih), hx, None, w_hh, b_hh, [n], GRU, False)
    return y


@composite(each=("tanh", "relu"), method=False)
def rnn_NAME_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """One step of an Elman RNN with NAME: the new state.

    >>> w = torch.zeros(3, 2), torch.zeros(3, 3)
    >>> torch.rnn_NAME_cell(torch.ones(1, 2), torch.zeros(1, 3), *w)
    tensor([[0., 0., 0.]])
    """
    n = _check_cell("rnn_NAME_cell", input, hx, w_ih, w_hh)
    mode = _elman("NAME")
    y, _, _, _ = _rnn_layer(linear(input, w_ih, b_ih), hx, None, w_hh, b_hh, [n], mode, False)
    return y
