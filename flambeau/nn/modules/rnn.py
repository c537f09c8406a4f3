"""Recurrent networks: RNN, LSTM, GRU over sequences, and their single-step cells.

Owns weights, initial states and the handling of packed and unbatched input; the recurrences are
core functions (`fb.lstm`, `fb.gru_cell`, ...). Invariant: weights are named
`weight_ih_l{layer}[_reverse]`, and so on.
"""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import init
from flambeau.nn.parameter import Parameter
from flambeau.nn.utils.rnn import PackedSequence

from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _uniform_by_hidden_size(module: Any) -> None:
    """Draw all parameters uniformly within 1 / sqrt(hidden_size)."""
    bound = 1.0 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNBase(Module):
    """What the three recurrent networks have in common.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: number of layers, each fed by the one before.
        bias: whether the layers have biases.
        batch_first: input and output are (N, L, *) rather than (L, N, *).
        dropout: probability of zeroing an output of a layer that feeds another.
        bidirectional: whether a second network reads the sequence backwards.
        proj_size: if above 0, size to which the LSTM's hidden state is projected.

    Shape: input (L, N, input_size), (L, input_size) or a `PackedSequence`; state
    (num_layers * directions, N, hidden_size), without N if the input has none.
    """

    __constants__ = [
        "_flat_weights_names",
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_arguments(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size

        gates = _GATES[mode] * hidden_size
        directions = 2 if bidirectional else 1
        state_size = proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            fed_size = input_size if layer == 0 else state_size * directions
            shapes: dict[str, tuple[int, ...]] = {
                "weight_ih": (gates, fed_size),
                "weight_hh": (gates, state_size),
            }
            if bias:
                shapes.update(bias_ih=(gates,), bias_hh=(gates,))
            if proj_size > 0:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse")[:directions]:
                names = {f"{kind}_l{layer}{suffix}": shape for kind, shape in shapes.items()}
                for name, shape in names.items():
                    setattr(self, name, Parameter(fb.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(list(names))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new starting values, uniform within 1 / sqrt(hidden_size)."""
        _uniform_by_hidden_size(self)

    def flatten_parameters(self) -> None:
        """Ask for one block of memory for all weights; the kernels here do not need it."""

    _computed = ("_flat_weights_names", "_flat_weights")

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        own = self._parameters
        # A weight that is parametrised or replaced is no parameter: ask for the attribute.
        return [
            own[name] if name in own else getattr(self, name) for name in self._flat_weights_names
        ]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    # ---- checks ----------------------------------------------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise unless `input` fits."""
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype and not fb.is_autocast_enabled(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """Shape of the hidden state for `input`."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        directions = 2 if self.bidirectional else 1
        return self.num_layers * directions, batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise unless the state has the expected shape."""
        if list(hx.size()) != list(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise unless input and state fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its batch reordered."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # ---- the state is one tensor here, a pair for the LSTM ---------------------------------------

    def _with_batch(self, hx: Any) -> Any:
        return hx.unsqueeze(1)

    def _without_batch(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _zero_state(self, input: Tensor, batch: int) -> Any:
        layers = self.num_layers * (2 if self.bidirectional else 1)
        size = self.proj_size or self.hidden_size
        return fb.zeros(layers, batch, size, dtype=input.dtype, device=input.device)

    def _check_state_dims(self, hx: Any, dims: int) -> None:
        if hx.dim() != dims:
            kind = "batched" if dims == 3 else "unbatched"
            raise RuntimeError(
                f"For {kind} {dims}-D input, hx should also be {dims}-D but got {hx.dim()}-D tensor"
            )

    # ---- forward ---------------------------------------------------------------------------------

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Read a sequence.

        Args:
            input: see the class.
            hx: initial state; default: zeros.

        Returns:
            (outputs of the last layer at every step, last state of every layer).
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{self._label()}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if hx is not None:
            self._check_state_dims(hx, input.dim())
        if not batched:
            input = input.unsqueeze(batch_dim)
            if hx is not None:
                hx = self._with_batch(hx)
        if hx is None:
            hx = self._zero_state(input, input.size(batch_dim))
        self.check_forward_args(input, hx, None)
        output, *last = getattr(fb, self.mode.lower())(
            input,
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        state = self._as_state(last)
        if batched:
            return output, state
        return output.squeeze(batch_dim), self._without_batch(state)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, order, inverse = input
        if hx is None:
            hx = self._zero_state(data, int(batch_sizes[0]))
        else:
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, batch_sizes)
        output, *last = getattr(fb, self.mode.lower())(
            data,
            batch_sizes,
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        packed = PackedSequence(output, batch_sizes, order, inverse)
        return packed, self.permute_hidden(self._as_state(last), inverse)

    def _label(self) -> str:
        return self.mode

    def _as_state(self, last: list[Tensor]) -> Any:
        return last[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            value = getattr(self, name)
            if value != usual:
                text += f", {name}={value}"
        return text


def _check_arguments(
    input_size: Any,
    hidden_size: Any,
    num_layers: int,
    bias: Any,
    batch_first: Any,
    dropout: Any,
    proj_size: int,
) -> None:
    is_number = isinstance(dropout, numbers.Real) and not isinstance(dropout, bool)
    if not is_number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element "
            "being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=4,
        )
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh), or with relu (Elman, 1990).

    Args:
        input_size, hidden_size, num_layers: see `RNNBase`.
        nonlinearity: "tanh" or "relu".
        bias, batch_first, dropout, bidirectional: see `RNNBase`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        _refuse_projection(kwargs)
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if nonlinearity not in modes:
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(modes[nonlinearity], input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity

    def _label(self) -> str:
        return "RNN"


def _refuse_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter & Schmidhuber, 1997); see `RNNBase` for the arguments.

    The state is a pair (h, c).

    Example:
        >>> import flambeau as fb
        >>> output, (h, c) = fb.nn.LSTM(10, 20, 2)(fb.zeros(5, 3, 10))
        >>> output.shape, h.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """Shape of the cell state for `input`."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise unless input and state fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0],
            self.get_expected_hidden_size(input, batch_sizes),
            "Expected hidden[0] size {}, got {}",
        )
        self.check_hidden_size(
            hidden[1],
            self.get_expected_cell_size(input, batch_sizes),
            "Expected hidden[1] size {}, got {}",
        )

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Both states with their batch reordered."""
        if permutation is None:
            return hx
        return hx[0].index_select(1, permutation), hx[1].index_select(1, permutation)

    def _with_batch(self, hx: Any) -> Any:
        return hx[0].unsqueeze(1), hx[1].unsqueeze(1)

    def _without_batch(self, hx: Any) -> Any:
        return hx[0].squeeze(1), hx[1].squeeze(1)

    def _zero_state(self, input: Tensor, batch: int) -> Any:
        h = super()._zero_state(input, batch)
        return h, fb.zeros(h.size(0), batch, self.hidden_size, dtype=h.dtype, device=h.device)

    def _check_state_dims(self, hx: Any, dims: int) -> None:
        if hx[0].dim() != dims or hx[1].dim() != dims:
            kind = "batched" if dims == 3 else "unbatched"
            raise RuntimeError(
                f"For {kind} {dims}-D input, hx and cx should also be {dims}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _as_state(self, last: list[Tensor]) -> Any:
        return last[0], last[1]


class GRU(RNNBase):
    """Gated recurrent unit (Cho et al., 2014); see `RNNBase` for the arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


# ---- cells ---------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """One step of a recurrent layer.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        bias: whether there are biases.
        num_chunks: number of gates.

    Shape: input (N, input_size) or (input_size), state (N, hidden_size) or (hidden_size).
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        shapes: dict[str, Any] = {
            "weight_ih": (gates, input_size),
            "weight_hh": (gates, hidden_size),
            "bias_ih": (gates,) if bias else None,
            "bias_hh": (gates,) if bias else None,
        }
        for name, shape in shapes.items():
            if shape is None:
                self.register_parameter(name, None)
            else:
                setattr(self, name, Parameter(fb.empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new starting values, uniform within 1 / sqrt(hidden_size)."""
        _uniform_by_hidden_size(self)

    def _check_dims(self, tensor: Tensor, what: str) -> None:
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected {what} to be 1D or 2D, "
                f"got {tensor.dim()}D instead"
            )

    def _rows(self, input: Tensor, hx: Tensor | None) -> tuple[Tensor, Tensor]:
        """Input and state with a batch; for cells whose state is one tensor."""
        self._check_dims(input, "input")
        if hx is not None:
            self._check_dims(hx, "hidden")
        if input.dim() == 1:
            input = input.unsqueeze(0)
            hx = None if hx is None else hx.unsqueeze(0)
        if hx is None:
            hx = input.new_zeros(input.size(0), self.hidden_size)
        return input, hx

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else text + f", nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """One step of `RNN`; see `RNNCellBase`.

    Args:
        input_size, hidden_size, bias: see `RNNCellBase`.
        nonlinearity: "tanh" or "relu".
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        step = getattr(fb, f"rnn_{self.nonlinearity}_cell")
        x, h = self._rows(input, hx)
        state = step(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return state if input.dim() == 2 else state.squeeze(0)


class GRUCell(RNNCellBase):
    """One step of `GRU`; see `RNNCellBase`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        x, h = self._rows(input, hx)
        state = fb.gru_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return state if input.dim() == 2 else state.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of `LSTM`; see `RNNCellBase`. The state is a pair (h, c)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The next state."""
        self._check_dims(input, "input")
        if hx is not None:
            self._check_dims(hx[0], "hx[0]")
            self._check_dims(hx[1], "hx[1]")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
            hx = None if hx is None else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        if hx is None:
            zeros = input.new_zeros(input.size(0), self.hidden_size)
            hx = (zeros, zeros)
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        h, c = fb.lstm_cell(input, hx, *weights)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))
