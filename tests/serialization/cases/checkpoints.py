"""Checkpoints as the libraries of others lay them out, written out by hand.

Lightning's, timm's, transformers', fairseq's, OpenMMLab's and the PyTorch examples' own: the same
keys and kinds of value as their files have, around a small model.
"""

import argparse
import pathlib
import random
from collections import OrderedDict, defaultdict

import numpy as np

from .case import Case
from .training import model_of, trained


def lightning(torch):
    model, optimizer = trained(torch, "Adam", {"lr": 0.1})
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    progress = {"ready": 3, "started": 3, "processed": 3, "completed": 3}
    batches = {"total": dict(progress), "current": dict(progress), "is_last_batch": True}
    score = torch.tensor(0.25)
    return {
        "epoch": 2, "global_step": 3, "pytorch-lightning_version": "2.6.0",
        "state_dict": OrderedDict((f"net.{k}", v) for k, v in model.state_dict().items()),
        "loops": {
            "fit_loop": {
                "state_dict": {}, "epoch_loop.state_dict": {"_batches_that_stepped": 3},
                "epoch_loop.batch_progress": batches, "epoch_progress": {"total": progress},
                "epoch_loop.automatic_optimization.optim_progress": {
                    "optimizer": {"step": {"total": {"ready": 3, "completed": 3}}}
                },
            },
            "validate_loop": {"state_dict": {}, "batch_progress": batches},
        },
        "callbacks": {
            "ModelCheckpoint{'monitor': 'val_loss', 'mode': 'min', 'every_n_epochs': 1}": {
                "monitor": "val_loss", "best_model_score": score,
                "best_k_models": {"a.ckpt": score},
                "best_model_path": "a.ckpt", "dirpath": "/logs", "kth_value": score,
                "last_model_path": "", "current_score": score,
            },
            "EarlyStopping{'monitor': 'val_loss', 'mode': 'min'}": {
                "wait_count": 0, "stopped_epoch": 0, "best_score": score, "patience": 3
            },
        },
        "optimizer_states": [optimizer.state_dict()], "lr_schedulers": [schedule.state_dict()],
        "MixedPrecision": torch.amp.GradScaler("cpu").state_dict(),
        "hparams_name": "kwargs", "hyper_parameters": {"lr": 0.1, "sizes": (3, 4), "path": None},
        "datamodule_hyper_parameters": {"batch_size": 4},
    }  # fmt: skip


def timm(torch):
    model, optimizer = trained(torch, "SGD", {"lr": 0.1, "momentum": 0.9})
    args = argparse.Namespace(
        model="resnet18", lr=0.1, opt_betas=None, mean=[0.5, 0.5], input_size=(3, 8, 8), amp=True
    )
    return {
        "epoch": 4, "arch": "resnet18", "state_dict": model.state_dict(),
        "optimizer": optimizer.state_dict(), "version": 2, "args": args,
        "amp_scaler": torch.amp.GradScaler("cpu").state_dict(),
        "state_dict_ema": model.state_dict(), "metric": 71.25,
    }  # fmt: skip


def transformers_model(torch):
    state = OrderedDict()
    embedding = torch.nn.Parameter(torch.arange(20.0).view(5, 4))
    state["model.embed_tokens.weight"] = embedding.data.bfloat16()
    state["model.layers.0.self_attn.q_proj.weight"] = torch.ones(4, 4, dtype=torch.bfloat16)
    state["model.layers.0.input_layernorm.weight"] = torch.ones(4)
    state["lm_head.weight"] = state["model.embed_tokens.weight"]  # tied
    state["position_ids"] = torch.arange(8).expand(1, -1)
    return state


def transformers_random(torch):
    torch.manual_seed(1)
    return {
        "python": random.Random(0).getstate(), "numpy": np.random.RandomState(0).get_state(),
        "cpu": torch.get_rng_state(),
    }  # fmt: skip


def transformers_trainer(torch):
    model, optimizer = trained(torch, "AdamW", {"lr": 5e-5})
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    return [optimizer.state_dict(), schedule.state_dict()]


def examples_imagenet(torch):
    model, optimizer = trained(torch, "SGD", {"lr": 0.1})
    return {
        "epoch": 90, "arch": "resnet50", "best_acc1": torch.tensor(76.1),
        "state_dict": OrderedDict((f"module.{k}", v) for k, v in model.state_dict().items()),
        "optimizer": optimizer.state_dict(),
        "scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 30).state_dict(),
    }  # fmt: skip


def fairseq(torch):
    model, optimizer = trained(torch, "Adam", {})
    return {
        "args": argparse.Namespace(arch="transformer", adam_betas="(0.9, 0.98)", clip_norm=0.0),
        "model": model.state_dict(), "cfg": None,
        "optimizer_history": [
            {"criterion_name": "CE", "optimizer_name": "FairseqAdam", "num_updates": 3,
             "lr_scheduler_state": {"best": None}}
        ],
        "extra_state": {
            "train_iterator": {"epoch": 2, "iterations_in_epoch": 0, "shuffle": True},
            "metrics": OrderedDict(loss=2.5), "previous_training_time": 1.5, "best": 2.25,
        },
        "last_optimizer_state": optimizer.state_dict(),
    }  # fmt: skip


def openmmlab(torch):
    model, optimizer = trained(torch, "SGD", {"lr": 0.1})
    history = defaultdict(list, loss=[1.0, 0.5])
    return {
        "meta": {
            "epoch": 12, "iter": 7000, "cfg": "model = dict(\n    type='X')", "seed": None,
            "CLASSES": ("person", "car"), "env_info": "Python: 3.9", "history": history,
            "dataset_meta": {"palette": [(220, 20, 60), (119, 11, 32)]},
        },
        "state_dict": model.state_dict(), "optimizer": {"head": optimizer.state_dict()},
        "message_hub": {"log_scalars": {}, "resumed_keys": {"iter": True}},
        "param_schedulers": [],
    }  # fmt: skip


def detector_weights(torch):
    """NumPy arrays by name, as detectron2's model zoo has them in pickles."""
    model = model_of(torch)
    return {
        "model": {k: np.asarray(v.tolist(), np.float32) for k, v in model.state_dict().items()},
        "__author__": "Caffe2", "matching_heuristics": True,
    }  # fmt: skip


def nano_gpt(torch):
    model, optimizer = trained(torch, "AdamW", {"lr": 6e-4, "betas": (0.9, 0.95)})
    return {
        "model": OrderedDict((f"_orig_mod.{k}", v) for k, v in model.state_dict().items()),
        "optimizer": optimizer.state_dict(),
        "model_args": {"n_layer": 2, "bias": False, "dropout": 0.0, "vocab_size": None},
        "iter_num": 2000, "best_val_loss": torch.tensor(1.4697), "config": {"dtype": "bfloat16"},
    }  # fmt: skip


def diffusion_embedding(torch):
    """A textual inversion: tensors under keys that are no names."""
    return {
        "string_to_token": {"*": 265}, "string_to_param": {"*": torch.ones(2, 4)}, "name": "style",
        "step": 499, "sd_checkpoint": "7460a6fa", "sd_checkpoint_name": "v1-5",
    }  # fmt: skip


def adapter(torch):
    return OrderedDict(
        (f"base_model.model.h.{i}.attn.lora_{half}.weight", torch.full((2, 3), float(i)))
        for i in range(3)
        for half in "AB"
    )


def paths(torch):
    return {"hyper_parameters": {"root": pathlib.PurePosixPath("/data")}, "w": torch.ones(1)}


CASES = {
    f"checkpoint_{f.__name__}": Case(f, close=True, safe=safe)
    for f, safe in (
        (lightning, True), (timm, False), (transformers_model, True), (transformers_random, False),
        (transformers_trainer, True), (examples_imagenet, True), (fairseq, False),
        (openmmlab, False), (detector_weights, False), (nano_gpt, True),
        (diffusion_embedding, True), (adapter, True), (paths, False),
    )
}  # fmt: skip
