"""Vision, audio, time series and mixed models of transformers.

Rows as in `transformers_text`: model class, configuration, and the names of its inputs, which are
drawn by `INPUTS`.
"""

from __future__ import annotations

from typing import Any

import torch

from tools.clients.cases.transformers_text import SMALL, make, tokens
from tools.clients.registry import Program, case

INPUTS: dict[str, Any] = {
    "pixel_values": lambda: torch.randn(2, 3, 32, 32),
    "input_ids": tokens,
    "clip_ids": lambda: tokens(2, 8),
    "labels": lambda: torch.randint(0, 2, (2,)),
    # For batch norms at the end: over the few numbers that small images leave they are chaotic.
    "six_images": lambda: torch.randn(6, 3, 64, 64),
    "six_labels": lambda: torch.arange(6) % 2,
    "map_labels": lambda: torch.randint(0, 2, (2, 32, 32)),
    "waves": lambda: torch.randn(2, 800),
    "frames": lambda: torch.randn(2, 4, 3, 32, 32),
    "mels": lambda: torch.randn(2, 8, 64),
}
VIT = {
    "image_size": 32, "patch_size": 8, "num_channels": 3, "hidden_size": 32,
    "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
}  # fmt: skip
SIX = {"pixel_values": "six_images", "labels": "six_labels"}
LABELS = {"pixel_values": "pixel_values", "labels": "labels"}
PIXELS = {"pixel_values": "pixel_values"}
SWIN = {
    "image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2],
    "window_size": 4, "num_channels": 3,
}  # fmt: skip
CONV = {"num_channels": 3, "hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}
W2V = {
    "vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "conv_dim": [16, 16], "conv_stride": [5, 4], "conv_kernel": [10, 4],
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
    "mask_time_prob": 0.0, "num_codevector_groups": 2, "num_codevectors_per_group": 8,
    "codevector_dim": 16, "proj_codevector_dim": 16, "classifier_proj_size": 16,
}  # fmt: skip
WAVES = {"input_values": "waves", "labels": "labels"}
TOWERS = {
    "text_config": {**SMALL, "eos_token_id": 98},
    "vision_config": VIT,
}

ROWS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "ViTForImageClassification": (VIT, LABELS),
    "DeiTForImageClassification": (VIT, LABELS),
    "BeitForImageClassification": ({**VIT, "vocab_size": 99}, LABELS),
    "ViTMAEForPreTraining": (
        {
            **VIT, "decoder_hidden_size": 16, "decoder_num_hidden_layers": 1,
            "decoder_num_attention_heads": 2, "decoder_intermediate_size": 24,
        },
        PIXELS,
    ),
    "ViTMSNForImageClassification": (VIT, LABELS),
    "Dinov2ForImageClassification": (VIT, LABELS),
    "Dinov2WithRegistersForImageClassification": (VIT, LABELS),
    "DINOv3ViTModel": (VIT, PIXELS),
    "IJepaForImageClassification": (VIT, LABELS),
    "SwinForImageClassification": (SWIN, LABELS),
    "Swinv2ForImageClassification": (SWIN, LABELS),
    "DonutSwinModel": (SWIN, PIXELS),
    "ConvNextForImageClassification": (CONV, LABELS),
    "ConvNextV2ForImageClassification": (CONV, LABELS),
    "ResNetForImageClassification": (
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}, LABELS,
    ),
    "RegNetForImageClassification": (
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "groups_width": 4}, LABELS,
    ),
    "BitForImageClassification": (
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "num_groups": 2}, LABELS,
    ),
    "MobileNetV1ForImageClassification": ({"depth_multiplier": 0.25}, LABELS),
    "MobileNetV2ForImageClassification": ({"depth_multiplier": 0.35}, LABELS),
    "PoolFormerForImageClassification": (
        {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]}, LABELS,
    ),
    "SegformerForSemanticSegmentation": (
        {
            "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "decoder_hidden_size": 16,
            "num_attention_heads": [1, 1, 2, 2],
        },
        {"pixel_values": "pixel_values", "labels": "map_labels"},
    ),
    "PvtForImageClassification": (
        {
            "image_size": 32, "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 1, 2, 2], "mlp_ratios": [2, 2, 2, 2],
        },
        LABELS,
    ),
    "FocalNetForImageClassification": (
        {
            "image_size": 32, "embed_dim": 8, "depths": [1, 1], "focal_levels": [2, 2],
            "focal_windows": [3, 3], "hidden_sizes": [8, 16],
        },
        LABELS,
    ),
    "LevitForImageClassification": (
        {
            "image_size": 64, "hidden_sizes": [16, 16, 16], "num_attention_heads": [2, 2, 2],
            "depths": [1, 1, 1], "key_dim": [8, 8, 8],
        },
        SIX,
    ),
    "MobileViTForImageClassification": (
        {
            "image_size": 32, "hidden_sizes": [8, 12, 16],
            "neck_hidden_sizes": [4, 4, 8, 8, 8, 8, 16],
        },
        LABELS,
    ),
    "HieraForImageClassification": (
        {
            "image_size": [32, 32], "embed_dim": 16, "depths": [1, 1], "num_heads": [1, 2],
            "query_stride": [2, 2], "masked_unit_size": [4, 4], "num_query_pool": 1,
            "patch_stride": [4, 4], "patch_kernel": [7, 7], "patch_padding": [3, 3],
        },
        LABELS,
    ),
    "YolosModel": ({**VIT, "image_size": [32, 32], "num_detection_tokens": 4}, PIXELS),
    "DPTForSemanticSegmentation": (
        {
            **VIT, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [8, 8, 8, 8], "fusion_hidden_size": 8, "readout_type": "project",
            "is_hybrid": False, "reassemble_factors": [4, 2, 1, 0.5],
        },
        {"pixel_values": "pixel_values", "labels": "map_labels"},
    ),
    "ImageGPTForImageClassification": (
        {"vocab_size": 99, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4},
        {"input_ids": "input_ids", "labels": "labels"},
    ),
    "CLIPModel": (TOWERS, {"input_ids": "clip_ids", "pixel_values": "pixel_values"}),
    "SiglipModel": (TOWERS, {"input_ids": "clip_ids", "pixel_values": "pixel_values"}),
    "ChineseCLIPModel": (TOWERS, {"input_ids": "clip_ids", "pixel_values": "pixel_values"}),
    "XCLIPVisionModel": (VIT | {"num_frames": 2}, PIXELS),
    "CLIPSegForImageSegmentation": (
        {**TOWERS, "extract_layers": [0, 1], "reduce_dim": 16, "decoder_num_attention_heads": 2,
         "decoder_intermediate_size": 24},
        {"input_ids": "clip_ids", "pixel_values": "pixel_values"},
    ),
    "BlipModel": (TOWERS, {"input_ids": "clip_ids", "pixel_values": "pixel_values"}),
    "ViltModel": ({**SMALL, **VIT}, {"input_ids": "clip_ids", "pixel_values": "pixel_values"}),
    "FlavaImageModel": (VIT, PIXELS),
    "GitForCausalLM": (
        {**SMALL, "vision_config": VIT}, {"input_ids": "clip_ids", "pixel_values": "pixel_values"},
    ),
    "VideoMAEForVideoClassification": (
        {**VIT, "num_frames": 4}, {"pixel_values": "frames", "labels": "labels"},
    ),
    "TimesformerForVideoClassification": (
        {**VIT, "num_frames": 4}, {"pixel_values": "frames", "labels": "labels"},
    ),
    "VivitForVideoClassification": (
        {**VIT, "num_frames": 4, "tubelet_size": [2, 8, 8]},
        {"pixel_values": "frames", "labels": "labels"},
    ),
    "Wav2Vec2ForSequenceClassification": (W2V, WAVES),
    "HubertForSequenceClassification": (W2V, WAVES),
    "WavLMForSequenceClassification": ({**W2V, "num_buckets": 8, "max_bucket_distance": 16}, WAVES),
    "UniSpeechForSequenceClassification": (W2V, WAVES),
    "SEWForSequenceClassification": (W2V, WAVES),
    "Data2VecAudioForSequenceClassification": (W2V, WAVES),
    "Wav2Vec2ConformerForSequenceClassification": (W2V, WAVES),
    "ASTForAudioClassification": (
        {**VIT, "max_length": 64, "num_mel_bins": 8, "patch_size": 4, "frequency_stride": 4,
         "time_stride": 4},
        {"input_values": "spectra", "labels": "labels"},
    ),
    "WhisperForConditionalGeneration": (
        {
            "vocab_size": 99, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48, "num_mel_bins": 8, "max_source_positions": 32,
            "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
            "decoder_start_token_id": 3, "suppress_tokens": None, "begin_suppress_tokens": None,
        },
        {"input_features": "mels", "labels": "clip_ids"},
    ),
    "Speech2TextForConditionalGeneration": (
        {
            "vocab_size": 99, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48, "input_feat_per_channel": 8, "input_channels": 1,
            "conv_channels": 16, "max_source_positions": 64, "max_target_positions": 32,
            "pad_token_id": 0, "decoder_start_token_id": 2,
        },
        {"input_features": "spectra", "labels": "clip_ids"},
    ),
    "EncodecModel": (
        {
            "num_filters": 4, "hidden_size": 16, "upsampling_ratios": [4, 2], "codebook_size": 8,
            "num_lstm_layers": 1, "target_bandwidths": [24.0], "sampling_rate": 8000,
        },
        {"input_values": "channel"},
    ),
    "PatchTSTForPrediction": (
        {
            "num_input_channels": 2, "context_length": 32, "patch_length": 8, "patch_stride": 8,
            "prediction_length": 4, "num_hidden_layers": 1, "d_model": 16, "ffn_dim": 24,
            "num_attention_heads": 2, "random_mask_ratio": 0.4, "loss": "mse",
        },
        {"past_values": "series", "future_values": "future"},
    ),
    "PatchTSMixerForPrediction": (
        {
            "num_input_channels": 2, "context_length": 32, "patch_length": 8, "patch_stride": 8,
            "prediction_length": 4, "num_layers": 1, "d_model": 16, "loss": "mse",
        },
        {"past_values": "series", "future_values": "future"},
    ),
    "DecisionTransformerModel": (
        {"state_dim": 5, "act_dim": 3, "hidden_size": 32, "n_layer": 2, "n_head": 4,
         "n_positions": 64, "max_ep_len": 64},
        {"states": "states", "actions": "actions", "rewards": "rewards",
         "returns_to_go": "rewards", "timesteps": "timesteps", "attention_mask": "ones"},
    ),
    "PerceiverForMaskedLM": (
        {"vocab_size": 99, "d_model": 32, "d_latents": 32, "num_latents": 8,
         "num_self_attends_per_block": 1, "num_self_attention_heads": 4, "qk_channels": 32,
         "v_channels": 32, "num_cross_attention_heads": 4, "max_position_embeddings": 16},
        {"inputs": "input_ids", "labels": "input_ids"},
    ),
}  # fmt: skip

INPUTS |= {
    "spectra": lambda: torch.randn(2, 64, 8),
    "channel": lambda: torch.randn(2, 1, 256),
    "series": lambda: torch.randn(2, 32, 2),
    "future": lambda: torch.randn(2, 4, 2),
    "states": lambda: torch.randn(2, 6, 5),
    "actions": lambda: torch.randn(2, 6, 3),
    "rewards": lambda: torch.randn(2, 6, 1),
    "timesteps": lambda: torch.arange(6).repeat(2, 1),
    "ones": lambda: torch.ones(2, 6, dtype=torch.long),
}

for _name, (_settings, _inputs) in ROWS.items():

    @case("transformers", _name)
    def build(
        name: str = _name,
        settings: dict[str, Any] = _settings,
        inputs: dict[str, str] = _inputs,
    ) -> Program:
        extra = {"num_labels": 2} if "labels" in inputs.values() else {}
        model = make(name, {**settings, **extra})
        values = {key: INPUTS[draw]() for key, draw in inputs.items()}
        if name.startswith("GitFor") or name == "PerceiverForMaskedLM":
            values["labels"] = values.get("inputs", values.get("input_ids"))
        return Program(model, kwargs=values)
