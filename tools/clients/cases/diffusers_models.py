"""Denoisers, autoencoders and schedulers of diffusers, and a denoising loop."""

from __future__ import annotations

from typing import Any

import torch

from tools.clients.registry import Program, case

BLOCKS = {
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    "block_out_channels": (8, 16),
    "norm_num_groups": 4,
    "layers_per_block": 1,
}
CROSS = {
    **BLOCKS,
    "sample_size": 8,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "cross_attention_dim": 16,
    "attention_head_dim": 4,
}
VAE = {
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "block_out_channels": (8, 16),
    "norm_num_groups": 4,
    "latent_channels": 4,
}
IMAGE = {"sample": (2, 3, 16, 16)}
LATENT = {"sample": (2, 4, 8, 8), "encoder_hidden_states": (2, 5, 16)}

ROWS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "UNet2DModel": ({**BLOCKS, "sample_size": 16, "attention_head_dim": 4}, IMAGE, True),
    "UNet2DConditionModel": (CROSS, LATENT, True),
    "UNet3DConditionModel": (
        {**CROSS, "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
         "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D")},
        {"sample": (1, 4, 3, 8, 8), "encoder_hidden_states": (1, 5, 16)}, True,
    ),
    "AutoencoderKL": (VAE, IMAGE, False),
    "VQModel": ({**VAE, "num_vq_embeddings": 16}, IMAGE, False),
    "AutoencoderTiny": (
        {"encoder_block_out_channels": (8, 8), "decoder_block_out_channels": (8, 8),
         "num_encoder_blocks": (1, 1), "num_decoder_blocks": (1, 1)}, IMAGE, False,
    ),
    "AsymmetricAutoencoderKL": (
        {"down_block_types": ("DownEncoderBlock2D",) * 2, "down_block_out_channels": (8, 16),
         "up_block_types": ("UpDecoderBlock2D",) * 2, "up_block_out_channels": (8, 16),
         "norm_num_groups": 4}, IMAGE, False,
    ),
    "Transformer2DModel": (
        {"num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 8, "num_layers": 1,
         "norm_num_groups": 4, "cross_attention_dim": 16},
        {"hidden_states": (2, 8, 8, 8), "encoder_hidden_states": (2, 5, 16)}, False,
    ),
    "PriorTransformer": (
        {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 1, "embedding_dim": 16,
         "num_embeddings": 5, "additional_embeddings": 4},
        {"hidden_states": (2, 16), "proj_embedding": (2, 16), "encoder_hidden_states": (2, 5, 16)},
        True,
    ),
    "SD3Transformer2DModel": (
        {"sample_size": 8, "patch_size": 2, "in_channels": 4, "num_layers": 1,
         "attention_head_dim": 8, "num_attention_heads": 2, "joint_attention_dim": 16,
         "caption_projection_dim": 16, "pooled_projection_dim": 16, "out_channels": 4},
        {"hidden_states": (2, 4, 8, 8), "encoder_hidden_states": (2, 5, 16),
         "pooled_projections": (2, 16)}, True,
    ),
    "PixArtTransformer2DModel": (
        {"sample_size": 8, "num_layers": 1, "patch_size": 2, "attention_head_dim": 8,
         "num_attention_heads": 2, "caption_channels": 16, "cross_attention_dim": 16,
         "in_channels": 4, "out_channels": 8, "use_additional_conditions": False},
        {"hidden_states": (2, 4, 8, 8), "encoder_hidden_states": (2, 5, 16)}, True,
    ),
    "AuraFlowTransformer2DModel": (
        {"sample_size": 8, "patch_size": 2, "in_channels": 4, "num_mmdit_layers": 1,
         "num_single_dit_layers": 1, "attention_head_dim": 8, "num_attention_heads": 2,
         "joint_attention_dim": 16, "caption_projection_dim": 16, "pos_embed_max_size": 64},
        {"hidden_states": (2, 4, 8, 8), "encoder_hidden_states": (2, 5, 16)}, True,
    ),
    "CogVideoXTransformer3DModel": (
        {"num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 4, "out_channels": 4,
         "time_embed_dim": 8, "text_embed_dim": 16, "num_layers": 1, "sample_width": 8,
         "sample_height": 8, "sample_frames": 5, "max_text_seq_length": 5},
        {"hidden_states": (1, 2, 4, 8, 8), "encoder_hidden_states": (1, 5, 16)}, True,
    ),
    "LatteTransformer3DModel": (
        {"sample_size": 8, "num_layers": 1, "patch_size": 2, "attention_head_dim": 8,
         "num_attention_heads": 2, "caption_channels": 16, "in_channels": 4, "out_channels": 8,
         "cross_attention_dim": 16, "norm_type": "ada_norm_single", "video_length": 2},
        {"hidden_states": (1, 4, 2, 8, 8), "encoder_hidden_states": (1, 5, 16)}, True,
    ),
}  # fmt: skip

for _name, (_settings, _shapes, _timed) in ROWS.items():

    @case("diffusers", _name)
    def build(
        name: str = _name,
        settings: dict[str, Any] = _settings,
        shapes: dict[str, tuple[int, ...]] = _shapes,
        timed: bool = _timed,
    ) -> Program:
        import diffusers

        model = getattr(diffusers, name)(**settings)
        values = {key: torch.randn(shape) for key, shape in shapes.items()}
        if timed:
            values["timestep"] = torch.full((next(iter(shapes.values()))[0],), 7)
        return Program(model, kwargs=values)


SCHEDULERS = (
    "DDPM DDIM PNDM EulerDiscrete EulerAncestralDiscrete HeunDiscrete DPMSolverMultistep "
    "DPMSolverSinglestep LMSDiscrete KDPM2Discrete DEISMultistep "
    "FlowMatchEulerDiscrete LCM SASolver EDMEuler"
).split()

for _name in SCHEDULERS:

    @case("diffusers", f"schedule.{_name}", train=False, compiled=False)
    def build_schedule(name: str = _name) -> Program:
        import diffusers

        scheduler = getattr(diffusers, f"{name}Scheduler")()
        start = torch.randn(2, 3, 8, 8)

        def call(sample: Any) -> Any:
            scheduler.set_timesteps(6)
            sample = sample * getattr(scheduler, "init_noise_sigma", 1.0)
            found = [scheduler.timesteps]
            for moment in scheduler.timesteps:
                given = sample
                if hasattr(scheduler, "scale_model_input"):
                    given = scheduler.scale_model_input(sample, moment)
                sample = scheduler.step(given.sin() * 0.3, moment, sample).prev_sample
                found.append(sample)
            return found

        return Program(call, (start,))


@case("diffusers", "pipeline", train=False, compiled=False)
def pipeline() -> Program:
    import diffusers

    unet = diffusers.UNet2DModel(**{**BLOCKS, "sample_size": 16, "attention_head_dim": 4})
    pipe = diffusers.DDIMPipeline(unet=unet.double(), scheduler=diffusers.DDIMScheduler())
    pipe.set_progress_bar_config(disable=True)

    def call() -> Any:
        draw = torch.Generator().manual_seed(3)
        return pipe(batch_size=1, generator=draw, num_inference_steps=3, output_type="np").images

    return Program(call)


@case("diffusers", "denoising_training")
def denoising_training() -> Program:
    import diffusers

    model = diffusers.UNet2DModel(**{**BLOCKS, "sample_size": 16, "attention_head_dim": 4})
    noises = diffusers.DDPMScheduler(num_train_timesteps=100)

    class Denoise(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, image: Any, noise: Any, moment: Any) -> Any:
            return self.model(noises.add_noise(image, noise, moment), moment).sample

    image, noise = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16)
    moment = torch.tensor([5, 80])
    return Program(
        Denoise(), (image, noise, moment),
        loss=lambda found: torch.nn.functional.mse_loss(found, noise),
    )  # fmt: skip
