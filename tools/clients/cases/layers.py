"""Collections of layers: x-transformers, vit-pytorch, rotary embeddings, quantisers, einops."""

from __future__ import annotations

from typing import Any

import torch

from tools.clients.registry import Program, case


def sequence_loss(outputs: Any) -> Any:
    if isinstance(outputs, tuple):
        outputs = outputs[0]
    return torch.nn.functional.cross_entropy(outputs.flatten(0, -2), torch.arange(32) % 50)


DECODER_OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "rotary": {"rotary_pos_emb": True},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 2},
    "rmsnorm_swiglu": {"use_rmsnorm": True, "ff_swish": True, "ff_glu": True},
    "t5_bias": {"rel_pos_bias": True},
    "one_kv_head": {"attn_one_kv_head": True},
    "talking_heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    "qk_norm": {"attn_qk_norm": True},
    "sandwich": {"sandwich_norm": True},
    "gate_residual": {"gate_residual": True},
    "sparse_topk": {"attn_sparse_topk": 4},
    "memory": {"attn_num_mem_kv": 4},
    "flash": {"attn_flash": True},
    "macaron": {"macaron": True},
    "shift_tokens": {"shift_tokens": 1},
}
for _name, _options in DECODER_OPTIONS.items():

    @case("x_transformers", _name, quick=_name in ("plain", "rotary", "rmsnorm_swiglu"))
    def decoder(options: dict[str, Any] = _options) -> Program:
        from x_transformers import Decoder, TransformerWrapper

        layers = Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **options)
        model = TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers)
        return Program(model, (torch.randint(0, 50, (2, 16)),), loss=sequence_loss)


@case("x_transformers", "encoder_decoder")
def encoder_decoder() -> Program:
    from x_transformers import XTransformer

    model = XTransformer(
        dim=32, enc_num_tokens=50, enc_depth=1, enc_heads=4, enc_max_seq_len=16,
        dec_num_tokens=50, dec_depth=1, dec_heads=4, dec_max_seq_len=16,
    )  # fmt: skip
    return Program(
        model, (torch.randint(0, 50, (2, 16)), torch.randint(0, 50, (2, 16))),
        {"mask": torch.ones(2, 16, dtype=torch.bool)}, loss=lambda found: found,
    )  # fmt: skip


@case("x_transformers", "autoregressive", compiled=False)
def autoregressive() -> Program:
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)
    net = TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers)
    return Program(
        AutoregressiveWrapper(net), (torch.randint(0, 50, (2, 16)),), loss=lambda found: found
    )


@case("x_transformers", "generate", train=False, compiled=False)
def generate() -> Program:
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)
    net = TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers)
    model = AutoregressiveWrapper(net).double().eval()
    return Program(lambda start: model.generate(start, 10), (torch.randint(0, 50, (2, 4)),))


VITS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "vit": ("vit", "ViT", {"mlp_dim": 48}),
    "simple_vit": ("simple_vit", "SimpleViT", {"mlp_dim": 48}),
    "deepvit": ("deepvit", "DeepViT", {"mlp_dim": 48}),
    "cait": ("cait", "CaiT", {"mlp_dim": 48, "cls_depth": 1}),
    "parallel_vit": ("parallel_vit", "ViT", {"mlp_dim": 48}),
    "vit_small_data": ("vit_for_small_dataset", "ViT", {"mlp_dim": 48}),
    "learnable_memory": ("learnable_memory_vit", "ViT", {"mlp_dim": 48}),
}
for _name, (_module, _kind, _options) in VITS.items():

    @case("vit_pytorch", _name)
    def vit(
        module: str = _module, kind: str = _kind, options: dict[str, Any] = _options
    ) -> Program:
        import importlib

        found = getattr(importlib.import_module(f"vit_pytorch.{module}"), kind)
        model = found(
            image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, heads=4, **options
        )
        return Program(model, (torch.randn(2, 3, 32, 32),))


@case("vit_pytorch", "na_vit", compiled=False)
def na_vit() -> Program:
    from vit_pytorch.na_vit import NaViT

    model = NaViT(
        image_size=32, patch_size=8, num_classes=5, dim=32, depth=1, heads=2, mlp_dim=32,
        token_dropout_prob=0.1,
    )  # fmt: skip
    images = [[torch.randn(3, 16, 16), torch.randn(3, 32, 16)], [torch.randn(3, 24, 24)]]
    return Program(model, (images,))


@case("vit_pytorch", "cct")
def cct() -> Program:
    from vit_pytorch.cct import CCT

    model = CCT(
        img_size=32, embedding_dim=32, n_conv_layers=1, kernel_size=3, stride=2, padding=1,
        pooling_kernel_size=3, pooling_stride=2, pooling_padding=1, num_layers=1, num_heads=2,
        mlp_ratio=1.0, num_classes=5, positional_embedding="learnable",
    )  # fmt: skip
    return Program(model, (torch.randn(2, 3, 32, 32),))


@case("rotary_embedding", "rotate", quick=True)
def rotate() -> Program:
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    turn = RotaryEmbedding(dim=8, cache_if_possible=False)
    axial = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=16)
    q = torch.randn(2, 4, 10, 16, requires_grad=True)
    grid = torch.randn(1, 4, 4, 16, requires_grad=True)

    def call(q: Any, grid: Any) -> Any:
        return turn.rotate_queries_or_keys(q), apply_rotary_emb(axial.get_axial_freqs(4, 4), grid)

    return Program(call, (q, grid))


QUANTISERS: dict[str, tuple[str, dict[str, Any]]] = {
    "vq": ("VectorQuantize", {"dim": 8, "codebook_size": 16}),
    "cosine": ("VectorQuantize", {"dim": 8, "codebook_size": 16, "use_cosine_sim": True}),
    "learned": (
        "VectorQuantize",
        {"dim": 8, "codebook_size": 16, "learnable_codebook": True, "ema_update": False},
    ),
    "residual": ("ResidualVQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2}),
    "grouped": ("GroupedResidualVQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2,
                                      "groups": 2}),
    "fsq": ("FSQ", {"levels": [5, 4, 3], "dim": 8}),
    "lfq": ("LFQ", {"codebook_size": 16, "dim": 8}),
    "random_projection": (
        "RandomProjectionQuantizer",
        {"dim": 8, "codebook_size": 16, "codebook_dim": 4, "num_codebooks": 2},
    ),
}  # fmt: skip
for _name, (_kind, _options) in QUANTISERS.items():

    @case("vector_quantize", _name, compiled=_name in ("fsq", "lfq", "learned"),
          train=_name != "random_projection")  # fmt: skip
    def quantiser(kind: str = _kind, options: dict[str, Any] = _options) -> Program:
        import vector_quantize_pytorch

        class Coded(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.front = torch.nn.Linear(8, 8)
                self.quantiser = getattr(vector_quantize_pytorch, kind)(**options)

            def forward(self, x: Any) -> Any:
                return self.quantiser(self.front(x))

        return Program(Coded(), (torch.randn(2, 12, 8),))


@case("einops", "layers", quick=True)
def einops_layers() -> Program:
    from einops.layers.torch import EinMix, Rearrange, Reduce

    model = torch.nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
        torch.nn.Linear(48, 16),
        EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=16, d=12),
        Reduce("b (t two) d -> b t d", "max", two=2),
        Rearrange("b t d -> b (t d)"),
    )
    return Program(model, (torch.randn(2, 3, 16, 16),))


@case("einops", "functions", quick=True)
def einops_functions() -> Program:
    import einops

    x = torch.randn(2, 3, 4, 5, requires_grad=True)
    y = torch.randn(5, 6, requires_grad=True)

    def call(x: Any, y: Any) -> Any:
        packed, shapes = einops.pack([x.flatten(2), x.mean(-1)], "b c *")
        return [
            einops.rearrange(x, "a b c d -> (d b) (a c)"),
            einops.reduce(x, "a b (c two) d -> a c", "mean", two=2),
            einops.repeat(y, "a b -> a r b", r=3),
            einops.einsum(x, y, "a b c d, d e -> b a c e"),
            einops.unpack(packed, shapes, "b c *"),
        ]

    return Program(call, (x, y))


@case("lucidrains", "unet_diffusion")
def unet_diffusion() -> Program:
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    net = Unet(dim=8, dim_mults=(1, 2), flash_attn=False)
    model = GaussianDiffusion(net, image_size=16, timesteps=20, sampling_timesteps=4)
    return Program(model, (torch.rand(2, 3, 16, 16),), loss=lambda found: found)


@case("neuralop", "fno", dtype="float32")
def fno() -> Program:
    from neuralop.models import FNO

    model = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
    return Program(model, (torch.randn(2, 1, 12, 12),))


@case("neuralop", "tfno", dtype="float32")
def tfno() -> Program:
    from neuralop.models import TFNO

    model = TFNO(
        n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2, rank=0.3,
        factorization="tucker",
    )  # fmt: skip
    return Program(model, (torch.randn(2, 1, 12, 12),))


@case("neuralop", "losses")
def operator_losses() -> Program:
    from neuralop.losses import H1Loss, LpLoss

    x = torch.randn(2, 1, 12, 12, requires_grad=True)
    y = torch.randn(2, 1, 12, 12)

    def call(x: Any) -> Any:
        return LpLoss(d=2)(x, y), H1Loss(d=2)(x, y)

    return Program(call, (x,))
