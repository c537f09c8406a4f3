"""Batches of sequences of different lengths: padded, packed, and back.

Owns `PackedSequence`. Invariant: its data hold step 0 of all sequences, then step 1, and so on,
the longest sequence first, so that those still running at a step are the first `batch_sizes[t]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import flambeau as fb
from flambeau import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "pack_sequence",
    "unpack_sequence",
]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """What `pack_padded_sequence` makes and recurrent modules take.

    Args:
        data: the steps of all sequences, (sum of lengths, *).
        batch_sizes: number of sequences that have each step; on the CPU.
        sorted_indices: order in which the sequences were packed; None if as given.
        unsorted_indices: its inverse.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence and "
                "pack_padded_sequences in nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def _map_indices(self, data: Tensor, fn: Any) -> PackedSequence:
        indices = (None if t is None else fn(t) for t in self[2:])
        return type(self)(data, self.batch_sizes, *indices)

    def pin_memory(self) -> PackedSequence:
        """The same in page-locked memory."""
        return self._map_indices(self.data.pin_memory(), lambda t: t.pin_memory())

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data as `Tensor.to`; the indices follow its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return self._map_indices(data, lambda t: t.to(data.device))

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move to a CUDA device."""
        return self.to(*args, **kwargs) if args else self.to(**{"device": "cuda", **kwargs})

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move to the CPU."""
        return self.to(*args, **{"device": "cpu", **kwargs})

    def double(self) -> PackedSequence:
        """Data as float64."""
        return self.to(dtype=fb.float64)

    def float(self) -> PackedSequence:
        """Data as float32."""
        return self.to(dtype=fb.float32)

    def half(self) -> PackedSequence:
        """Data as float16."""
        return self.to(dtype=fb.float16)

    def long(self) -> PackedSequence:
        """Data as int64."""
        return self.to(dtype=fb.int64)

    def int(self) -> PackedSequence:
        """Data as int32."""
        return self.to(dtype=fb.int32)

    def short(self) -> PackedSequence:
        """Data as int16."""
        return self.to(dtype=fb.int16)

    def char(self) -> PackedSequence:
        """Data as int8."""
        return self.to(dtype=fb.int8)

    def byte(self) -> PackedSequence:
        """Data as uint8."""
        return self.to(dtype=fb.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data are in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes `permutation`."""
    if permutation is None:
        return None
    places = fb.arange(permutation.numel(), device=permutation.device)
    return fb.empty_like(permutation).scatter_(0, permutation, places)


def _running(lengths: Tensor, steps: int) -> Tensor:
    """(steps, batch): whether a sequence has a step."""
    return fb.arange(steps).unsqueeze(1) < lengths.unsqueeze(0)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences.

    Args:
        input: (T, B, *), or (B, T, *) if `batch_first`.
        lengths: of each sequence, at least 1; a list or a CPU tensor.
        batch_first: layout of `input`.
        enforce_sorted: require lengths in falling order; otherwise they are sorted.
    """
    lengths = fb.as_tensor(lengths, dtype=fb.int64)
    if lengths.device.type != "cpu" or lengths.dim() != 1:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.dim()}D {lengths.device} tensor"
        )
    batch_dim = 0 if batch_first else 1
    order = None
    if not enforce_sorted:
        lengths, order = fb.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(batch_dim, order)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.numel() != input.size(batch_dim):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} "
            f"(batch_size={input.size(batch_dim)})"
        )
    if int(lengths.min()) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if bool((lengths[1:] > lengths[:-1]).any()):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    steps = input.transpose(0, 1) if batch_first else input
    longest = int(lengths[0])
    if longest > steps.size(0):
        raise RuntimeError(
            f"pack_padded_sequence: the longest of lengths is {longest}, but input has "
            f"{steps.size(0)} steps"
        )
    running = _running(lengths, longest)
    taken = running.flatten().nonzero().squeeze(1).to(input.device)
    data = steps[:longest].flatten(0, 1).index_select(0, taken)
    return PackedSequence(data, running.sum(1), order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Undo `pack_padded_sequence`.

    Args:
        sequence: what was packed.
        batch_first: give (B, T, *) rather than (T, B, *).
        padding_value: what fills the steps that a sequence does not have.
        total_length: the T to give; default: the longest sequence.

    Returns:
        (padded sequences, lengths), in the order before packing.
    """
    data, batch_sizes, _, unsorted = sequence
    longest = batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {longest}"
            )
    total = longest if total_length is None else total_length
    batch = int(batch_sizes[0])
    running = fb.arange(batch).unsqueeze(0) < batch_sizes.unsqueeze(1)
    places = running.flatten().nonzero().squeeze(1).to(data.device)
    trailing = tuple(data.shape[1:])
    flat = data.new_full((total * batch, *trailing), padding_value)
    padded = flat.index_copy(0, places, data).view(total, batch, *trailing)
    lengths = running.sum(0)
    if batch_first:
        padded = padded.transpose(0, 1)
    if unsorted is not None:
        padded = padded.index_select(0 if batch_first else 1, unsorted)
        lengths = lengths[unsorted.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Put sequences of different lengths into one tensor.

    Args:
        sequences: tensors (L_i, *).
        batch_first: give (B, T, *) rather than (T, B, *).
        padding_value: what fills the missing steps.
        padding_side: "right" or "left": where they are.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: expected a non-empty list of Tensors")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    trailing = tuple(sequences[0].shape[1:])
    longest = max(seq.size(0) for seq in sequences)
    padded = []
    for seq in sequences:
        if tuple(seq.shape[1:]) != trailing:
            raise RuntimeError(
                f"pad_sequence: sequences must agree in all sizes but the first, got "
                f"{tuple(sequences[0].shape)} and {tuple(seq.shape)}"
            )
        gap = seq.new_full((longest - seq.size(0), *trailing), padding_value)
        padded.append(fb.cat((seq, gap) if padding_side == "right" else (gap, seq)))
    return fb.stack(padded, dim=0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Undo `pad_sequence` (with padding on the right)."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths."""
    lengths = fb.as_tensor([seq.size(0) for seq in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undo `pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
