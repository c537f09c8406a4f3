"""Language models of transformers: decoders, encoders, encoder-decoders, generation.

One row per model: the model class, and what its configuration says beside the common small sizes.
Configurations are those that the model class names, so a row needs no second name.
"""

from __future__ import annotations

from typing import Any

import torch

from tools.clients.registry import Program, case

SMALL = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
GPT = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
KV = {"num_key_value_heads": 2}
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 24}

DECODERS: dict[str, dict[str, Any]] = {
    "LlamaForCausalLM": {**SMALL, **KV},
    "MistralForCausalLM": {**SMALL, **KV, "sliding_window": 8},
    "Qwen2ForCausalLM": {**SMALL, **KV},
    "Qwen3ForCausalLM": {**SMALL, **KV, "head_dim": 8},
    "GemmaForCausalLM": {**SMALL, **KV, "head_dim": 8},
    "Gemma2ForCausalLM": {**SMALL, **KV, "head_dim": 8, "sliding_window": 8},
    "Gemma3ForCausalLM": {**SMALL, **KV, "head_dim": 8, "sliding_window": 8},
    "PhiForCausalLM": SMALL,
    "Phi3ForCausalLM": {**SMALL, **KV},
    "OlmoForCausalLM": {**SMALL, **KV},
    "Olmo2ForCausalLM": {**SMALL, **KV},
    "CohereForCausalLM": {**SMALL, **KV},
    "StableLmForCausalLM": {**SMALL, **KV},
    "GraniteForCausalLM": {**SMALL, **KV},
    "HeliumForCausalLM": {**SMALL, **KV, "head_dim": 8},
    "SmolLM3ForCausalLM": {**SMALL, **KV},
    "Starcoder2ForCausalLM": {**SMALL, **KV},
    "PersimmonForCausalLM": SMALL,
    "GlmForCausalLM": {**SMALL, **KV, "head_dim": 8},
    "GPTNeoXForCausalLM": SMALL,
    "MixtralForCausalLM": {**SMALL, **KV, "num_local_experts": 4, "num_experts_per_tok": 2},
    "Qwen2MoeForCausalLM": {
        **SMALL, **KV, **MOE, "num_experts": 4, "shared_expert_intermediate_size": 24,
    },
    "Qwen3MoeForCausalLM": {**SMALL, **KV, **MOE, "num_experts": 4, "head_dim": 8},
    "OlmoeForCausalLM": {**SMALL, **KV, "num_experts": 4, "num_experts_per_tok": 2},
    "DeepseekV3ForCausalLM": {
        **SMALL, **MOE, "num_key_value_heads": 4, "n_routed_experts": 4, "n_group": 2,
        "topk_group": 1, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8, "v_head_dim": 8, "first_k_dense_replace": 1,
    },
    "GraniteMoeForCausalLM": {
        **SMALL, **KV, "num_local_experts": 4, "num_experts_per_tok": 2,
    },
    "GPT2LMHeadModel": {**GPT, **ENDS},
    "GPTBigCodeForCausalLM": {**GPT, **ENDS},
    "GPTJForCausalLM": {**GPT, **ENDS, "rotary_dim": 4},
    "CodeGenForCausalLM": {**GPT, **ENDS, "n_ctx": 64, "rotary_dim": 4},
    "GPTNeoForCausalLM": {
        "vocab_size": 99, "hidden_size": 32, "num_layers": 2, "num_heads": 4, **ENDS,
        "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64,
    },
    "OPTForCausalLM": {
        "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "ffn_dim": 48, **ENDS,
        "num_attention_heads": 4, "max_position_embeddings": 64, "word_embed_proj_dim": 16,
    },
    "BloomForCausalLM": {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4, **ENDS},
    "FalconForCausalLM": {
        "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        **ENDS,
    },
    "MptForCausalLM": {
        "vocab_size": 99, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64, **ENDS,
    },
    "MambaForCausalLM": {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, **ENDS},
    "Mamba2ForCausalLM": {
        "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 8,
        "n_groups": 2, "state_size": 8, "chunk_size": 8, **ENDS,
    },
    "FalconMambaForCausalLM": {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, **ENDS},
    "RwkvForCausalLM": {
        "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32,
        "context_length": 64, **ENDS,
    },
    "RecurrentGemmaForCausalLM": {
        **SMALL, "num_hidden_layers": 3, "lru_width": 32, "attention_window_size": 8,
        "head_dim": 8, "num_key_value_heads": 1,
    },
    "Lfm2ForCausalLM": {**SMALL, **KV, "full_attn_idxs": [1], "block_ff_dim": 48},
    "BambaForCausalLM": {
        **SMALL, **KV, "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8,
        "mamba_n_groups": 1, "mamba_chunk_size": 8, "attn_layer_indices": [1],
    },
    "XGLMForCausalLM": {
        "vocab_size": 99, "d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 48,
        "max_position_embeddings": 64, **ENDS,
    },
    "BioGptForCausalLM": SMALL,
    "OpenAIGPTLMHeadModel": {**GPT, "pad_token_id": 0},
    "CTRLLMHeadModel": {**GPT, **ENDS, "dff": 48},
    "NemotronForCausalLM": {**SMALL, **KV},
    "DiffLlamaForCausalLM": {**SMALL, **KV},
    "ModernBertDecoderForCausalLM": {**SMALL, "local_attention": 8},
    "ProphetNetForCausalLM": {
        "vocab_size": 99, "hidden_size": 32, "num_decoder_layers": 2, "num_encoder_layers": 2,
        "num_decoder_attention_heads": 4, "num_encoder_attention_heads": 4, "decoder_ffn_dim": 48,
        "encoder_ffn_dim": 48, "max_position_embeddings": 64, **ENDS,
    },
    "XLNetLMHeadModel": {
        "vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, **ENDS,
    },
}  # fmt: skip

BIRD = {"block_size": 8, "num_random_blocks": 1, "attention_type": "original_full"}
ENCODERS: dict[str, dict[str, Any]] = {
    "BertForMaskedLM": SMALL,
    "RobertaForMaskedLM": SMALL,
    "XLMRobertaForMaskedLM": SMALL,
    "AlbertForMaskedLM": {**SMALL, "embedding_size": 16},
    "ElectraForMaskedLM": {**SMALL, "embedding_size": 16},
    "DistilBertForMaskedLM": {
        "vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48,
        "max_position_embeddings": 64,
    },
    "DebertaForMaskedLM": {**SMALL, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "DebertaV2ForMaskedLM": {**SMALL, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "MPNetForMaskedLM": SMALL,
    "MobileBertForMaskedLM": {
        **SMALL, "embedding_size": 16, "intra_bottleneck_size": 16, "num_feedforward_networks": 2,
        "true_hidden_size": 16, "hidden_size": 32,
    },
    "SqueezeBertForMaskedLM": {**SMALL, "embedding_size": 32},
    "FNetForMaskedLM": {**SMALL, "tpu_short_seq_length": 16},
    "BigBirdForMaskedLM": {**SMALL, **BIRD},
    "LongformerForMaskedLM": {**SMALL, "attention_window": 4},
    "RoFormerForMaskedLM": {**SMALL, "embedding_size": 32},
    "RemBertForMaskedLM": {
        **SMALL, "input_embedding_size": 16, "output_embedding_size": 32,
    },
    "NystromformerForMaskedLM": {**SMALL, "num_landmarks": 4, "segment_means_seq_len": 16},
    "YosoForMaskedLM": {**SMALL, "use_expectation": True},
    "ConvBertForMaskedLM": {**SMALL, "embedding_size": 16, "head_ratio": 2, "num_groups": 1},
    "FunnelForMaskedLM": {
        "vocab_size": 99, "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48,
        "block_sizes": [1, 1], "num_decoder_layers": 1,
    },
    "EsmForMaskedLM": {**SMALL, "position_embedding_type": "rotary", "mask_token_id": 3},
    "ModernBertForMaskedLM": {**SMALL, "local_attention": 8, "num_hidden_layers": 3},
    "CamembertForMaskedLM": SMALL,
    "MegatronBertForMaskedLM": SMALL,
    "ErnieForMaskedLM": SMALL,
    "FlaubertWithLMHeadModel": {"vocab_size": 99, "emb_dim": 32, "n_layers": 2, "n_heads": 4},
    "XLMWithLMHeadModel": {"vocab_size": 99, "emb_dim": 32, "n_layers": 2, "n_heads": 4},
    "EuroBertForMaskedLM": {**SMALL, **KV},
    "Data2VecTextForMaskedLM": SMALL,
    "IBertForMaskedLM": SMALL,
    "XmodForMaskedLM": {**SMALL, "languages": ["en"], "default_language": "en"},
    "TapasForMaskedLM": SMALL,
    "LayoutLMForMaskedLM": SMALL,
}  # fmt: skip

BART = {
    "vocab_size": 99, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "max_position_embeddings": 64, "decoder_start_token_id": 2, **ENDS,
}  # fmt: skip
T5 = {
    "vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
    "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1,
}  # fmt: skip
PAIRS: dict[str, dict[str, Any]] = {
    "BartForConditionalGeneration": BART,
    "MBartForConditionalGeneration": BART,
    "PegasusForConditionalGeneration": BART,
    "MarianMTModel": BART,
    "BlenderbotForConditionalGeneration": BART,
    "BlenderbotSmallForConditionalGeneration": BART,
    "M2M100ForConditionalGeneration": BART,
    "PLBartForConditionalGeneration": BART,
    "MvpForConditionalGeneration": BART,
    "LEDForConditionalGeneration": {
        **{k: v for k, v in BART.items() if k != "max_position_embeddings"}, "attention_window": 4,
        "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64,
    },
    "BigBirdPegasusForConditionalGeneration": {**BART, "attention_type": "original_full"},
    "PegasusXForConditionalGeneration": {**BART, "block_size": 8, "num_global_tokens": 4},
    "NllbMoeForConditionalGeneration": {
        **BART, "num_experts": 4, "encoder_sparse_step": 2, "decoder_sparse_step": 2,
    },
    "T5ForConditionalGeneration": T5,
    "MT5ForConditionalGeneration": T5,
    "UMT5ForConditionalGeneration": T5,
    "LongT5ForConditionalGeneration": {**T5, "local_radius": 4},
    "SwitchTransformersForConditionalGeneration": {**T5, "num_experts": 4},
    "ProphetNetForConditionalGeneration": DECODERS["ProphetNetForCausalLM"],
}  # fmt: skip


def make(name: str, settings: dict[str, Any]) -> Any:
    import transformers

    kind = getattr(transformers, name)
    return kind(kind.config_class(**settings))


def tokens(rows: int = 2, length: int = 16) -> Any:
    return torch.randint(3, 99, (rows, length))


def register_rows(rows: dict[str, dict[str, Any]]) -> None:
    for name, settings in rows.items():
        # Grouped products of experts exist in float32 and below.
        grouped = any("expert" in key for key in settings) and name in DECODERS
        kind = "float32" if grouped else "float64"

        @case("transformers", name, dtype=kind)
        def build(name: str = name, settings: dict[str, Any] = settings) -> Program:
            model = make(name, settings)
            ids = tokens()
            return Program(model, kwargs={"input_ids": ids, "labels": ids})


register_rows(DECODERS)
register_rows(ENCODERS)
register_rows(PAIRS)


def generation(name: str, settings: dict[str, Any], label: str, **options: Any) -> None:
    @case("transformers", f"generate.{label}", train=False, compiled=False)
    def build() -> Program:
        model = make(name, settings)
        if options.get("attention_mask") == "padded":
            options["attention_mask"] = torch.tensor([[0, 0, 1, 1, 1, 1], [1] * 6])
        ids = tokens(2, 6)
        return Program(_Generate(model, options), (ids,))


class _Generate(torch.nn.Module):
    def __init__(self, model: Any, options: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.options = model, options

    def forward(self, ids: Any) -> Any:
        settings = {"max_new_tokens": 12, "min_new_tokens": 12, **self.options}
        return self.model.generate(ids, **settings)


class _CompiledForward(_Generate):
    """As `generate` is compiled by most: its forward alone, with a static cache."""

    def __init__(self, model: Any, options: dict[str, Any]) -> None:
        super().__init__(model, options)
        model.forward = torch.compile(model.forward)


@case("transformers", "generate.compiled_forward", train=False, compiled=False)
def compiled_forward() -> Program:
    options = {"do_sample": False, "cache_implementation": "static"}
    return Program(_CompiledForward(make("LlamaForCausalLM", LLAMA), options), (tokens(2, 6),))


@case("transformers", "generate.assisted", train=False, compiled=False)
def assisted() -> Program:
    model, small = make("LlamaForCausalLM", LLAMA), make("LlamaForCausalLM", LLAMA)
    return Program(
        _Generate(model, {"do_sample": False, "assistant_model": small}), (tokens(1, 6),)
    )


LLAMA = DECODERS["LlamaForCausalLM"]
generation("LlamaForCausalLM", LLAMA, "greedy", do_sample=False)
generation("LlamaForCausalLM", LLAMA, "sampled", do_sample=True, temperature=0.9, top_k=20)
generation("LlamaForCausalLM", LLAMA, "nucleus", do_sample=True, top_p=0.8)
generation("LlamaForCausalLM", LLAMA, "beams", do_sample=False, num_beams=3)
generation("LlamaForCausalLM", LLAMA, "static", do_sample=False, cache_implementation="static")
generation("LlamaForCausalLM", LLAMA, "padded", do_sample=False, attention_mask="padded")
generation("LlamaForCausalLM", LLAMA, "penalty", repetition_penalty=1.3, no_repeat_ngram_size=2)
generation("GPT2LMHeadModel", DECODERS["GPT2LMHeadModel"], "gpt2", do_sample=True)
generation("T5ForConditionalGeneration", T5, "t5", do_sample=False, num_beams=2)
generation("MambaForCausalLM", DECODERS["MambaForCausalLM"], "mamba", do_sample=False)
generation("Gemma2ForCausalLM", DECODERS["Gemma2ForCausalLM"], "gemma2", do_sample=False)
generation("LlamaForCausalLM", LLAMA, "min_p", do_sample=True, min_p=0.1, temperature=1.5)
generation("LlamaForCausalLM", LLAMA, "typical", do_sample=True, typical_p=0.7)
generation(
    "LlamaForCausalLM", LLAMA, "cutoffs", do_sample=True, epsilon_cutoff=0.01, eta_cutoff=0.01
)
generation("LlamaForCausalLM", LLAMA, "sampled_beams", do_sample=True, num_beams=3)
generation(
    "LlamaForCausalLM", LLAMA, "scores",
    do_sample=False, output_scores=True, output_logits=True, return_dict_in_generate=True,
)  # fmt: skip
generation(
    "LlamaForCausalLM", LLAMA, "several",
    do_sample=True, num_return_sequences=3, exponential_decay_length_penalty=(3, 1.1),
)  # fmt: skip
for _name in ("Mistral", "Qwen2", "Falcon", "GPTNeoX", "Bloom", "Phi3", "Lfm2"):
    _model = f"{_name}ForCausalLM"
    generation(_model, DECODERS[_model], _name.lower(), do_sample=False)
