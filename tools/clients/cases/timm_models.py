"""Image models of timm, made small by their own options; its losses, optimisers, schedules."""

from __future__ import annotations

from typing import Any

import torch

from tools.clients.registry import Program, case

TINY = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4}
MODELS: dict[str, dict[str, Any]] = {
    "vit_tiny_patch16_224": TINY,
    "deit_tiny_patch16_224": TINY,
    "vit_relpos_small_patch16_224": TINY,
    "vit_base_patch14_dinov2": TINY,
    "vit_small_patch16_18x2_224": TINY,
    "eva02_tiny_patch14_224": TINY,
    "beit_base_patch16_224": TINY,
    "cait_xxs24_224": TINY,
    "xcit_nano_12_p8_224": TINY,
    "mixer_s32_224": {"img_size": 32},
    "gmlp_s16_224": {"img_size": 32},
    "resmlp_12_224": {"img_size": 32},
    "swin_tiny_patch4_window7_224": {
        "img_size": 32, "window_size": 4, "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 2),
    },
    "swinv2_tiny_window8_256": {
        "img_size": 32, "window_size": 4, "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 2),
    },
    "twins_pcpvt_small": {
        "img_size": 32, "embed_dims": (16, 16), "depths": (1, 1), "num_heads": (2, 2),
        "mlp_ratios": (2, 2), "sr_ratios": (2, 1),
    },
    "convnext_atto": {"depths": (1, 1, 1, 1), "dims": (8, 16, 16, 16)},
    "convnextv2_atto": {"depths": (1, 1, 1, 1), "dims": (8, 16, 16, 16)},
    "resnet18": {"layers": (1, 1, 1, 1), "channels": (8, 8, 16, 16)},
    "resnet26d": {"layers": (1, 1, 1, 1), "channels": (8, 8, 16, 16)},
    "seresnet18": {"layers": (1, 1, 1, 1), "channels": (8, 8, 16, 16)},
    "ecaresnet26t": {"layers": (1, 1, 1, 1), "channels": (8, 8, 16, 16)},
    "resnetv2_50": {"layers": (1, 1, 1, 1), "channels": (8, 8, 16, 16)},
    "efficientnet_b0": {},
    "mobilenetv3_small_050": {},
    "tinynet_e": {},
    "lcnet_035": {},
    "mnasnet_small": {},
    "ghostnet_050": {},
    "regnetx_002": {},
    "repvgg_a0": {},
    "densenet121": {"growth_rate": 4, "block_config": (1, 1)},
    "dla46_c": {},
    "dpn48b": {},
    "res2net50_26w_4s": {"layers": (1, 1, 1, 1), "channels": (8, 8, 16, 16)},
    "resnest14d": {},
    "edgenext_xx_small": {"dims": (8, 16, 24, 32), "depths": (1, 1, 1, 1)},
    "mobilevit_xxs": {},
    "fastvit_t8": {},
    "levit_128s": {
        "img_size": 64, "embed_dim": (16,) * 3, "num_heads": (2,) * 3, "depth": (1,) * 3,
    },
    "inception_next_tiny": {"depths": (1, 1), "dims": (8, 16)},
    "gcresnext26ts": {},
    "lambda_resnet26t": {},
    "davit_tiny": {"depths": (1, 1), "embed_dims": (16, 32), "num_heads": (2, 2)},
    "pit_ti_224": {"img_size": 64},
    "gernet_s": {},
    "skresnet18": {"layers": (1, 1, 1, 1), "channels": (16, 16, 16, 16)},
    "starnet_s1": {},
    "repvit_m0_9": {},
    "shvit_s1": {},
    "swiftformer_xs": {},
}  # fmt: skip
QUICK = ("vit_tiny_patch16_224", "resnet18", "convnext_atto", "swin_tiny_patch4_window7_224",
         "efficientnet_b0")  # fmt: skip


def cross_entropy(outputs: Any) -> Any:
    if isinstance(outputs, tuple):
        outputs = outputs[0]
    return torch.nn.functional.cross_entropy(outputs, torch.arange(outputs.shape[0]) % 5)


for _name, _settings in MODELS.items():

    @case("timm", _name, quick=_name in QUICK)
    def build(name: str = _name, settings: dict[str, Any] = _settings) -> Program:
        import timm

        model = timm.create_model(name, num_classes=5, **settings)
        # Six images of 64 pixels where the sizes are the model's own: a batch norm over the two
        # numbers that two small images leave at the end is ill-conditioned.
        size = settings.get("img_size")
        shape = (2, 3, size, size) if size else (6, 3, 64, 64)
        return Program(model, (torch.randn(shape),), loss=cross_entropy)


OPTIMISERS = (
    "adamp adan lamb lion madgrad nadamw novograd rmsproptf sgdp lookahead_adam adabelief "
    "adafactor adahessian adopt laprop mars muon radabelief"
).split()

for _name in OPTIMISERS:

    @case("timm", f"optim.{_name}", train=False, compiled=False, quick=_name in ("lamb", "lion"))
    def build_optimiser(name: str = _name) -> Program:
        from timm.optim import create_optimizer_v2

        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.LazyLinear(5)
        )
        x = torch.randn(4, 3, 8, 8)
        model(x)
        optimiser = create_optimizer_v2(model, opt=name, lr=1e-2, weight_decay=0.01)

        def steps(image: Any) -> Any:
            losses = []
            for _ in range(4):
                loss = cross_entropy(model(image))
                optimiser.zero_grad()
                loss.backward(create_graph=name == "adahessian")
                optimiser.step()
                losses.append(loss.detach())
            return losses, [p.detach() for p in model.parameters()]

        def call(image: Any) -> Any:
            with torch.enable_grad():
                return steps(image)

        return Program(call, (x,), parameters=list(model.parameters()))


@case("timm", "losses", quick=True)
def losses() -> Program:
    from timm.loss import (
        AsymmetricLossMultiLabel,
        BinaryCrossEntropy,
        JsdCrossEntropy,
        LabelSmoothingCrossEntropy,
        SoftTargetCrossEntropy,
    )  # fmt: skip

    x = torch.randn(6, 5, requires_grad=True)
    target = torch.tensor([0, 1, 2, 3, 4, 0])
    soft = torch.rand(6, 5).softmax(-1)

    def call(x: Any) -> Any:
        return [
            LabelSmoothingCrossEntropy(0.1)(x, target),
            SoftTargetCrossEntropy()(x, soft),
            BinaryCrossEntropy(smoothing=0.1)(x, target),
            JsdCrossEntropy(num_splits=3)(x, target[:2]),
            AsymmetricLossMultiLabel()(x, (soft > 0.2).to(x.dtype)),
        ]

    return Program(call, (x,))


@case("timm", "mixup", train=False)
def mixup() -> Program:
    from timm.data import Mixup

    mix = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=5)
    return Program(mix, (torch.randn(4, 3, 16, 16), torch.arange(4)))


@case("timm", "ema_training", train=False, compiled=False)
def ema_training() -> Program:
    import timm.optim
    from timm.scheduler import CosineLRScheduler
    from timm.utils import ModelEmaV3

    model = timm.create_model(
        "resnet18", num_classes=5, layers=(1, 1, 1, 1), channels=(8, 8, 16, 16)
    )
    x = torch.randn(4, 3, 32, 32)

    def call(x: Any) -> Any:
        ema = ModelEmaV3(model, decay=0.9)
        optimiser = timm.optim.create_optimizer_v2(model, "momentum", lr=0.05)
        schedule = CosineLRScheduler(optimiser, t_initial=4, warmup_t=1, warmup_lr_init=1e-3)
        found = []
        with torch.enable_grad():
            for epoch in range(4):
                schedule.step(epoch)
                loss = cross_entropy(model(x))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                ema.update(model)
                found += [loss.detach(), optimiser.param_groups[0]["lr"]]
        return found, ema.module(x).detach()

    return Program(call, (x,))
