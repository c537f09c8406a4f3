"""Segmentation, medical imaging, augmentation, contrastive pairs of pictures and texts."""

from __future__ import annotations

from typing import Any

import torch

from tools.clients.registry import Program, case

ARCHITECTURES = "Unet UnetPlusPlus FPN Linknet PSPNet MAnet DeepLabV3 Segformer UPerNet".split()
for _name in ARCHITECTURES:

    @case("segmentation_models", _name)
    def segmentation(name: str = _name) -> Program:
        import segmentation_models_pytorch as smp

        encoder = "mobileone_s0" if name == "UPerNet" else "timm-mobilenetv3_small_minimal_100"
        model = getattr(smp, name)(encoder, encoder_weights=None, classes=2)
        return Program(model, (torch.randn(4 if name == "UPerNet" else 2, 3, 64, 64),))


@case("segmentation_models", "losses", dtype="float32")
def segmentation_losses() -> Program:
    from segmentation_models_pytorch import losses

    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    y = torch.randint(0, 3, (2, 8, 8))

    def call(x: Any) -> Any:
        return [
            losses.DiceLoss("multiclass")(x, y),
            losses.JaccardLoss("multiclass")(x, y),
            losses.FocalLoss("multiclass")(x, y),
            losses.LovaszLoss("multiclass")(x, y),
            losses.TverskyLoss("multiclass")(x, y),
            losses.SoftCrossEntropyLoss(smooth_factor=0.1)(x, y),
            losses.MCCLoss()(x[:, :1].sigmoid(), (y[:, None] > 1).to(x.dtype)),
        ]

    return Program(call, (x,))


MEDICAL: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "UNet": ({"spatial_dims": 2, "in_channels": 1, "out_channels": 2, "channels": (4, 8, 16),
              "strides": (2, 2)}, (2, 1, 32, 32)),
    "BasicUNet": ({"spatial_dims": 2, "in_channels": 1, "out_channels": 2,
                   "features": (4, 4, 8, 8, 8, 4)}, (2, 1, 32, 32)),
    "AttentionUnet": ({"spatial_dims": 2, "in_channels": 1, "out_channels": 2,
                       "channels": (4, 8, 16), "strides": (2, 2)}, (2, 1, 32, 32)),
    "UNETR": ({"in_channels": 1, "out_channels": 2, "img_size": (16, 16), "feature_size": 4,
               "hidden_size": 16, "mlp_dim": 16, "num_heads": 2, "spatial_dims": 2},
              (1, 1, 16, 16)),
    "DenseNet": ({"spatial_dims": 2, "in_channels": 1, "out_channels": 3, "init_features": 4,
                  "growth_rate": 4, "block_config": (1, 1)}, (2, 1, 32, 32)),
    "ViT": ({"in_channels": 1, "img_size": (16, 16), "patch_size": (8, 8), "hidden_size": 16,
             "mlp_dim": 16, "num_layers": 1, "num_heads": 2, "spatial_dims": 2}, (2, 1, 16, 16)),
    "DynUNet": ({"spatial_dims": 2, "in_channels": 1, "out_channels": 2, "kernel_size": [3, 3, 3],
                 "strides": [1, 2, 2], "upsample_kernel_size": [2, 2], "filters": [4, 8, 8]},
                (2, 1, 16, 16)),
    "AutoEncoder": ({"spatial_dims": 2, "in_channels": 1, "out_channels": 1, "channels": (4, 8),
                     "strides": (2, 2)}, (2, 1, 16, 16)),
}  # fmt: skip
for _name, (_options, _shape) in MEDICAL.items():

    @case("monai", _name)
    def medical(
        name: str = _name, options: dict[str, Any] = _options, shape: tuple[int, ...] = _shape
    ) -> Program:
        import monai.networks.nets

        return Program(getattr(monai.networks.nets, name)(**options), (torch.randn(shape),))


@case("monai", "losses")
def medical_losses() -> Program:
    from monai import losses

    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    y = torch.nn.functional.one_hot(torch.randint(0, 3, (2, 8, 8)), 3).permute(0, 3, 1, 2)
    y = y.to(x.dtype)

    def call(x: Any) -> Any:
        return [
            losses.DiceLoss(softmax=True)(x, y),
            losses.GeneralizedDiceLoss(softmax=True)(x, y),
            losses.DiceCELoss(softmax=True)(x, y),
            losses.FocalLoss(use_softmax=True)(x, y),
            losses.TverskyLoss(softmax=True)(x, y),
            losses.SSIMLoss(spatial_dims=2, win_size=5)(x.sigmoid(), y),
            losses.LocalNormalizedCrossCorrelationLoss(spatial_dims=2)(x, y),
            losses.GlobalMutualInformationLoss()(x.sigmoid(), y),
        ]

    return Program(call, (x,))


@case("kornia", "filters")
def filters() -> Program:
    import kornia

    x = torch.rand(2, 3, 16, 16, requires_grad=True)

    def call(x: Any) -> Any:
        return [
            kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
            kornia.filters.sobel(x),
            kornia.filters.laplacian(x, 3),
            kornia.filters.bilateral_blur(x, 3, 0.1, (1.0, 1.0)),
            kornia.filters.box_blur(x, (3, 3)),
            kornia.filters.unsharp_mask(x, (3, 3), (1.0, 1.0)),
        ]

    return Program(call, (x,))


@case("kornia", "colours")
def colours() -> Program:
    import kornia

    x = torch.rand(2, 3, 8, 8, requires_grad=True)

    def call(x: Any) -> Any:
        names = (
            "rgb_to_hsv rgb_to_lab rgb_to_ycbcr rgb_to_grayscale rgb_to_xyz rgb_to_luv rgb_to_hls"
        )
        return [getattr(kornia.color, name)(x) for name in names.split()]

    return Program(call, (x,))


@case("kornia", "geometry")
def geometry() -> Program:
    import kornia

    x = torch.rand(2, 3, 16, 16, requires_grad=True)
    angle = torch.tensor([30.0, -20.0], requires_grad=True)

    def call(x: Any, angle: Any) -> Any:
        tf = kornia.geometry.transform
        return [
            tf.rotate(x, angle),
            tf.resize(x, (8, 12)),
            tf.hflip(x),
            tf.translate(x, torch.tensor([[1.5, 2.0], [0.5, -1.0]])),
            kornia.geometry.conversions.axis_angle_to_rotation_matrix(x[:, :, 0, 0]),
        ]

    return Program(call, (x, angle))


@case("kornia", "losses")
def kornia_losses() -> Program:
    import kornia

    x = torch.rand(2, 3, 16, 16, requires_grad=True)
    y = torch.rand(2, 3, 16, 16)
    labels = torch.randint(0, 3, (2, 16, 16))

    def call(x: Any) -> Any:
        return [
            kornia.losses.ssim_loss(x, y, 5),
            kornia.losses.psnr_loss(x, y, 1.0),
            kornia.losses.total_variation(x),
            kornia.losses.dice_loss(x, labels),
            kornia.losses.focal_loss(x, labels, 0.5, reduction="mean"),
            kornia.losses.charbonnier_loss(x, y),
        ]

    return Program(call, (x,))


AUGMENTATIONS = (
    "RandomHorizontalFlip RandomVerticalFlip RandomGrayscale RandomInvert RandomSolarize "
    "RandomPosterize RandomEqualize RandomErasing RandomGaussianNoise RandomChannelShuffle"
).split()


@case("kornia", "augmentations", train=False, compiled=False)
def augmentations() -> Program:
    import kornia.augmentation as augment

    x = torch.rand(3, 3, 16, 16)

    def call(x: Any) -> Any:
        found = [getattr(augment, name)(p=0.7)(x) for name in AUGMENTATIONS]
        found.append(augment.RandomAffine(20.0, p=1.0)(x))
        found.append(augment.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0)(x))
        found.append(augment.RandomResizedCrop((8, 8), p=1.0)(x))
        return found

    return Program(call, (x,))


@case("open_clip", "pair")
def pair() -> Program:
    from open_clip.loss import ClipLoss
    from open_clip.model import CLIP

    model = CLIP(
        embed_dim=16,
        vision_cfg={"image_size": 32, "layers": 2, "width": 32, "patch_size": 8, "head_width": 8},
        text_cfg={"context_length": 12, "vocab_size": 99, "width": 32, "heads": 4, "layers": 2},
    )
    score = ClipLoss()
    return Program(
        model, (torch.randn(3, 3, 32, 32), torch.randint(1, 99, (3, 12))),
        loss=lambda found: score(*found[:3]),
    )  # fmt: skip
