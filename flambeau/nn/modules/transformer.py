"""The Transformer (Vaswani et al., 2017): layers, stacks of layers, and the whole model.

Owns their composition; attention is `MultiheadAttention`. Invariant: a stack's layers are deep
copies of the layer given to it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn._functional_attention import _warn_of_two_kinds

from ._multihead_attention import MultiheadAttention
from .activation import GELU, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerEncoder",
    "TransformerDecoder",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
]


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    hidden = fb.full((sz, sz), float("-inf"), dtype=dtype, device=device)
    return fb.triu(hidden, diagonal=1)


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _get_clones(module: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    return src.size(1 if batch_first and src.dim() == 3 else 0)


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None, size: int) -> bool:
    """Whether the mask is the causal one: as said, or, if None, as found by comparison."""
    if is_causal is not None:
        return is_causal
    if mask is None or list(mask.size()) != [size, size]:
        return False
    causal = fb.ones(size, size, dtype=fb.bool, device=mask.device).triu(1)
    if mask.dtype != fb.bool:
        causal = fb.zeros_like(mask).masked_fill(causal, float("-inf"))
    return bool((mask == causal).all())


def _float_mask(mask: Tensor | None, dtype: fb.dtype) -> Tensor | None:
    """A boolean mask as one to be added: minus infinity where it was True."""
    if mask is None or mask.dtype != fb.bool:
        return mask
    return fb.zeros_like(mask, dtype=dtype).masked_fill(mask, float("-inf"))


class _Layer(Module):
    """The feed-forward block and what both kinds of layer share.

    Args:
        d_model: features of input and output.
        nhead: number of attention heads.
        dim_feedforward: features between the two linear maps.
        dropout: probability of zeroing, after each block and inside the feed-forward block.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: eps of the layer norms.
        batch_first: shapes are (N, L, E) rather than (L, N, E).
        norm_first: normalise the input of each block rather than its sum with the output.
        bias: whether linear maps and layer norms have biases.
    """

    __constants__ = ["norm_first"]
    _attentions: tuple[str, ...]  # names of the attention modules, one norm and dropout each

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place = {"device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **place
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        self.activation = activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        attended = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout1(attended)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block; see `_Layer` for the arguments.

    Example:
        >>> import flambeau as fb
        >>> fb.nn.TransformerEncoderLayer(8, 2, 16)(fb.zeros(5, 3, 8)).shape
        torch.Size([5, 3, 8])
    """

    _attentions = ("self_attn",)
    _computed = ("activation_relu_or_gelu",)

    @property
    def activation_relu_or_gelu(self) -> int:
        """1 for relu, 2 for gelu, 0 for another activation."""
        if self.activation is F.relu or isinstance(self.activation, ReLU):
            return 1
        return 2 if self.activation is F.gelu or isinstance(self.activation, GELU) else 0

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Encode.

        Args:
            src: (L, N, E), (N, L, E) if batch_first, or (L, E).
            src_mask: attention mask (L, L) or (N * nhead, L, L).
            src_key_padding_mask: (N, L), True hides a position.
            is_causal: a hint that `src_mask` is the causal one.
        """
        # Both masks must come as one kind; a boolean one joins a float one as minus infinities.
        names = "src_key_padding_mask and src_mask"
        _warn_of_two_kinds(src_mask, src_key_padding_mask, names)
        padding = _float_mask(src_key_padding_mask, src.dtype)
        mask = _float_mask(src_mask, src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed_forward(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, and a feed-forward block; see `_Layer`."""

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode.

        Args:
            tgt: (T, N, E), (N, T, E) if batch_first, or (T, E).
            memory: what the encoder gave.
            tgt_mask, memory_mask: attention masks (T, T) and (T, S).
            tgt_key_padding_mask, memory_key_padding_mask: (N, T) and (N, S).
            tgt_is_causal, memory_is_causal: hints that the mask is the causal one.
        """
        x = tgt
        mask, padding = memory_mask, memory_key_padding_mask
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._mha_block(self.norm2(x), memory, mask, padding, memory_is_causal)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self.norm2(x + self._mha_block(x, memory, mask, padding, memory_is_causal))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        attended = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout2(attended)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed_forward(x))


class _Stack(Module):
    """Copies of one layer, and an optional norm at the end."""

    __constants__ = ["norm"]

    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def _finish(self, output: Tensor) -> Tensor:
        return output if self.norm is None else self.norm(output)


class TransformerEncoder(_Stack):
    """A stack of encoder layers.

    Args:
        encoder_layer: copied `num_layers` times.
        num_layers: number of layers.
        norm: applied at the end.
        enable_nested_tensor, mask_check: accepted for compatibility; padding is always masked.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = False
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Encode; arguments as `TransformerEncoderLayer.forward`.

        `is_causal` None compares the mask with the causal one.
        """
        _warn_of_two_kinds(mask, src_key_padding_mask, "src_key_padding_mask and mask")
        padding = _float_mask(src_key_padding_mask, src.dtype)
        mask = _float_mask(mask, src.dtype)
        length = _get_seq_len(src, self.layers[0].self_attn.batch_first)
        causal = _detect_is_causal_mask(mask, is_causal, length)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        return self._finish(output)


class TransformerDecoder(_Stack):
    """A stack of decoder layers.

    Args:
        decoder_layer: copied `num_layers` times.
        num_layers: number of layers.
        norm: applied at the end.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode; arguments as `TransformerDecoderLayer.forward`.

        `tgt_is_causal` None compares the mask with the causal one.
        """
        length = _get_seq_len(tgt, self.layers[0].self_attn.batch_first)
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return self._finish(output)


class Transformer(Module):
    """An encoder and a decoder that attends to what the encoder gives.

    Args:
        d_model: features of inputs and output.
        nhead: number of attention heads.
        num_encoder_layers, num_decoder_layers: sizes of the stacks.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as for
            `TransformerEncoderLayer`.
        custom_encoder, custom_decoder: used in place of the stacks.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place = {"device": device, "dtype": dtype}
        shape = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        options = {"batch_first": batch_first, "norm_first": norm_first, "bias": bias, **place}

        def final_norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)

        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(*shape, **options)
            custom_encoder = TransformerEncoder(encoder_layer, num_encoder_layers, final_norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*shape, **options)
            custom_decoder = TransformerDecoder(decoder_layer, num_decoder_layers, final_norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encode `src`, then decode `tgt`; arguments as those of the two stacks."""
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask (sz, sz): zero on and below the diagonal, minus infinity above."""
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for param in self.parameters():
            if param.dim() > 1:
                init.xavier_uniform_(param)
