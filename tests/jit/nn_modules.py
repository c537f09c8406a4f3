"""Every public module class of `flambeau.nn`, made small, with what its forward is given.

Owns the list alone: `test_nn_modules` holds each to eager, in files too, and in C++'s reader.
"""

import flambeau as torch
from flambeau import nn


def r(*shape):
    return torch.randn(*shape)


def i(high, *shape):
    return torch.randint(high, shape)


def p(*shape):
    return torch.rand(*shape)


def same(*names):
    """Classes that take the same arguments."""
    return dict.fromkeys(names, names)


def pooled(x, n):
    """What a max pool of 2 gives of `x`, with places."""
    return getattr(nn.functional, f"max_pool{n}d")(x, 2, return_indices=True)


def packed(x, lengths):
    return nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)


X = ("", lambda: (r(3, 4),))
IMAGE = ("2", lambda: (r(2, 3, 6, 6),))
LOSS = ("", lambda: (r(4, 5), r(4, 5)))
CLASSES = ("", lambda: (r(4, 5), i(5, 4)))

#: by class: texts of arguments of the constructor, and what makes arguments of `forward`
MODULES = {
    **dict.fromkeys(
        "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid Mish "
        "PReLU ReLU ReLU6 RReLU SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink "
        "Dropout AlphaDropout".split(),
        [X],
    ),
    **dict.fromkeys(["Softmax", "LogSoftmax", "Softmin"], [("", X[1]), ("1", X[1])]),
    **dict.fromkeys(["L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss"], [
        LOSS, ("reduction='sum'", LOSS[1]), ("reduction='none'", LOSS[1])]),
    **dict.fromkeys(["ConstantPad1d"], [("(1, 2), 3.5", lambda: (r(2, 3, 4),))]),
    **dict.fromkeys(["ConstantPad2d"], [("1, 0.5", lambda: (r(2, 3, 4, 4),))]),
    **dict.fromkeys(["ConstantPad3d"], [("1, 0.5", lambda: (r(2, 3, 4, 4, 4),))]),
    **dict.fromkeys(
        ["CircularPad1d", "ReflectionPad1d", "ReplicationPad1d", "ZeroPad1d"],
        [("2", lambda: (r(2, 3, 5),)), ("(1, 2)", lambda: (r(2, 3, 5),))],
    ),
    **dict.fromkeys(
        ["CircularPad2d", "ReflectionPad2d", "ReplicationPad2d", "ZeroPad2d"],
        [("1", lambda: (r(2, 3, 5, 5),)), ("(1, 2, 0, 1)", lambda: (r(2, 3, 5, 4),))],
    ),
    **dict.fromkeys(
        ["CircularPad3d", "ReflectionPad3d", "ReplicationPad3d", "ZeroPad3d"],
        [("1", lambda: (r(1, 2, 3, 3, 3),))],
    ),
    "AdaptiveAvgPool1d": [("2", lambda: (r(2, 3, 7),))],
    "AdaptiveAvgPool2d": [IMAGE, ("(2, None)", IMAGE[1])],
    "AdaptiveAvgPool3d": [("2", lambda: (r(1, 2, 4, 4, 4),))],
    "AdaptiveMaxPool1d": [("2", lambda: (r(2, 3, 7),)), ("2, True", lambda: (r(2, 3, 7),))],
    "AdaptiveMaxPool2d": [IMAGE, ("(2, None), True", IMAGE[1])],
    "AdaptiveMaxPool3d": [("2", lambda: (r(1, 2, 4, 4, 4),))],
    "AdaptiveLogSoftmaxWithLoss": [("4, 10, [3, 6]", lambda: (r(5, 4), i(10, 5)))],
    "AvgPool1d": [("2", lambda: (r(2, 3, 7),))],
    "AvgPool2d": [IMAGE, ("2, 1, 1, divisor_override=3", IMAGE[1])],
    "AvgPool3d": [("2", lambda: (r(1, 2, 4, 4, 4),))],
    "BCELoss": [("", lambda: (p(4, 5), p(4, 5))), ("torch.ones(5)", lambda: (p(4, 5), p(4, 5)))],
    "BCEWithLogitsLoss": [LOSS, ("pos_weight=torch.ones(5)", LOSS[1])],
    "BatchNorm1d": [("4", X[1]), ("4, affine=False, momentum=None", X[1])],
    "BatchNorm2d": [("3", IMAGE[1]), ("3, track_running_stats=False", IMAGE[1])],
    "BatchNorm3d": [("2", lambda: (r(1, 2, 4, 4, 4),))],
    "SyncBatchNorm": [("3", IMAGE[1])],
    "Bilinear": [("4, 5, 6", lambda: (r(3, 4), r(3, 5)))],
    "CTCLoss": [("", lambda: (r(6, 2, 5).log_softmax(2), i(4, 2, 3) + 1, torch.tensor([6, 5]),
                              torch.tensor([3, 2])))],
    "ChannelShuffle": [("2", lambda: (r(2, 4, 3, 3),))],
    "Conv1d": [("3, 4, 3", lambda: (r(2, 3, 7),))],
    "Conv2d": [("3, 4, 3", IMAGE[1]), ("3, 4, 3, padding='same', padding_mode='reflect'", IMAGE[1])],
    "Conv3d": [("2, 3, 2, padding=1, padding_mode='circular'", lambda: (r(1, 2, 4, 4, 4),))],
    "ConvTranspose1d": [("3, 4, 3, 2", lambda: (r(2, 3, 7),)),
                        ("3, 4, 3, 2", lambda: (r(2, 3, 7), [16]))],
    "ConvTranspose2d": [("3, 4, 3", IMAGE[1]), ("3, 4, 3, 2", lambda: (r(2, 3, 6, 6), [14, 13]))],
    "ConvTranspose3d": [("2, 3, 2", lambda: (r(1, 2, 4, 4, 4),))],
    "CosineEmbeddingLoss": [("", lambda: (r(4, 5), r(4, 5), i(2, 4) * 2 - 1))],
    "CosineSimilarity": [LOSS],
    "CrossEntropyLoss": [CLASSES, ("torch.ones(5), label_smoothing=0.1", CLASSES[1])],
    "CrossMapLRN2d": [("2", IMAGE[1])],
    "Dropout1d": [("", lambda: (r(2, 3, 7),))],
    **dict.fromkeys(["Dropout2d", "FeatureAlphaDropout", "Softmax2d"], [("", IMAGE[1])]),
    "Dropout3d": [("", lambda: (r(1, 2, 4, 4, 4),))],
    "Embedding": [("10, 3", lambda: (i(10, 2, 4),)), ("10, 3, 2, 1.0", lambda: (i(10, 2, 4),))],
    "EmbeddingBag": [("10, 3", lambda: (i(10, 2, 4),)),
                     ("10, 3, mode='sum'", lambda: (i(10, 5), torch.tensor([0, 2]), r(5)))],
    "Flatten": [("", IMAGE[1])],
    "Fold": [("(4, 4), 2", lambda: (r(2, 12, 9),))],
    "FractionalMaxPool2d": [("2, output_size=3", IMAGE[1]),
                            ("2, output_ratio=0.5, return_indices=True", IMAGE[1])],
    "FractionalMaxPool3d": [("2, output_size=2", lambda: (r(1, 2, 4, 4, 4),))],
    "GLU": [X],
    "GRU": [("4, 5, 2, bidirectional=True", lambda: (r(3, 2, 4),)),
            ("4, 5, batch_first=True", lambda: (r(2, 3, 4), r(1, 2, 5))),
            ("4, 5", lambda: (r(3, 4),)),
            ("4, 5", lambda: (packed(r(4, 3, 4), [4, 2, 3]),))],
    "GRUCell": [("4, 5", X[1]), ("4, 5, False", lambda: (r(3, 4), r(3, 5)))],
    "GaussianNLLLoss": [("", lambda: (r(4, 5), r(4, 5), p(4, 5))),
                        ("full=True", lambda: (r(4, 5), r(4, 5), 0.5))],
    "GroupNorm": [("1, 3", IMAGE[1])],
    "HingeEmbeddingLoss": [("", lambda: (r(4, 5), i(2, 4, 5) * 2 - 1))],
    "InstanceNorm1d": [("3", lambda: (r(2, 3, 7),))],
    "InstanceNorm2d": [("3, affine=True, track_running_stats=True", IMAGE[1])],
    "InstanceNorm3d": [("2", lambda: (r(1, 2, 4, 4, 4),))],
    "KLDivLoss": [("reduction='batchmean'", lambda: (r(4, 5).log_softmax(1), p(4, 5)))],
    "LPPool1d": [("2, 2", lambda: (r(2, 3, 7),))],
    "LPPool2d": [("2, 2", IMAGE[1])],
    "LPPool3d": [("2, 2", lambda: (r(1, 2, 4, 4, 4),))],
    "LSTM": [("4, 5, 2, bidirectional=True, dropout=0.5", lambda: (r(3, 2, 4),)),
             ("4, 5, proj_size=3, batch_first=True",
              lambda: (r(2, 3, 4), (r(1, 2, 3), r(1, 2, 5)))),
             ("4, 5", lambda: (r(3, 4), (r(1, 5), r(1, 5)))),
             ("4, 5", lambda: (packed(r(4, 3, 4), [4, 2, 3]),))],
    "LSTMCell": [("4, 5", X[1]), ("4, 5", lambda: (r(3, 4), (r(3, 5), r(3, 5))))],
    "LayerNorm": [("4", X[1]), ("(3, 4), elementwise_affine=False", X[1])],
    "Linear": [("4, 5", X[1]), ("4, 5, False", X[1])],
    "LinearCrossEntropyLoss": [("4, 5", lambda: (r(3, 4), i(5, 3)))],
    "LocalResponseNorm": [("2", IMAGE[1])],
    "MarginRankingLoss": [("", lambda: (r(4), r(4), i(2, 4) * 2 - 1))],
    "MaxPool1d": [("2", lambda: (r(2, 3, 7),))],
    "MaxPool2d": [IMAGE, ("2, return_indices=True", IMAGE[1])],
    "MaxPool3d": [("2", lambda: (r(1, 2, 4, 4, 4),))],
    "MaxUnpool1d": [("2", lambda: pooled(r(2, 3, 8), 1))],
    "MaxUnpool2d": [("2", lambda: (*pooled(r(2, 3, 7, 7), 2), [7, 7]))],
    "MaxUnpool3d": [("2", lambda: pooled(r(1, 2, 4, 4, 4), 3))],
    "MultiLabelMarginLoss": [("", lambda: (r(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2]])))],
    "MultiLabelSoftMarginLoss": [("", lambda: (r(4, 5), i(2, 4, 5).float()))],
    "MultiMarginLoss": [CLASSES],
    "MultiheadAttention": [
        ("8, 2", lambda: (r(3, 2, 8), r(3, 2, 8), r(3, 2, 8))),
        ("8, 2, batch_first=True, kdim=4, vdim=6", lambda: (r(2, 3, 8), r(2, 5, 4), r(2, 5, 6))),
        ("8, 2, add_bias_kv=True, add_zero_attn=True",
         lambda: (r(3, 2, 8), r(4, 2, 8), r(4, 2, 8), i(2, 2, 4) > 1, False)),
        ("8, 2, 0.0, batch_first=True",
         lambda: (r(2, 3, 8), r(2, 3, 8), r(2, 3, 8), None, True,
                  torch.ones(3, 3).triu(1).bool(), False, True)),
    ],
    "NLLLoss": [("", lambda: (r(4, 5).log_softmax(1), i(5, 4)))],
    "NLLLoss2d": [("", lambda: (r(2, 5, 3, 3).log_softmax(1), i(5, 2, 3, 3)))],
    "PairwiseDistance": [LOSS],
    "PixelShuffle": [("2", lambda: (r(2, 4, 3, 3),))],
    "PixelUnshuffle": [("2", lambda: (r(2, 3, 4, 4),))],
    "PoissonNLLLoss": [("full=True", lambda: (r(4, 5), p(4, 5) * 3))],
    "RMSNorm": [("4", X[1])],
    "RNN": [("4, 5, 2, 'relu'", lambda: (r(3, 2, 4),)), ("4, 5", lambda: (r(3, 2, 4), r(1, 2, 5)))],
    "RNNBase": [],
    "RNNCell": [("4, 5, nonlinearity='relu'", X[1]), ("4, 5", lambda: (r(4), r(5)))],
    "RNNCellBase": [],
    "Sequential": [("nn.Linear(4, 5), nn.ReLU()", X[1])],
    "SoftMarginLoss": [("", lambda: (r(4, 5), i(2, 4, 5) * 2 - 1))],
    "Threshold": [("0.1, 2.0", X[1])],
    "Transformer": [
        ("8, 2, 1, 1, 16, batch_first=True", lambda: (r(2, 3, 8), r(2, 4, 8))),
        ("8, 2, 2, 1, 16, activation='gelu', norm_first=True",
         lambda: (r(3, 2, 8), r(4, 2, 8), None, torch.ones(4, 4).triu(1).bool())),
    ],
    "TransformerDecoder": [
        ("nn.TransformerDecoderLayer(8, 2, 16), 2, nn.LayerNorm(8)", lambda: (r(3, 2, 8), r(4, 2, 8)))
    ],
    "TransformerDecoderLayer": [
        ("8, 2, 16", lambda: (r(3, 2, 8), r(4, 2, 8))),
        ("8, 2, 16, activation=nn.functional.gelu, norm_first=True, batch_first=True",
         lambda: (r(2, 3, 8), r(2, 4, 8), torch.ones(3, 3).triu(1).bool())),
    ],
    "TransformerEncoder": [
        ("nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2", lambda: (r(2, 3, 8),)),
        ("nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, nn.LayerNorm(8)",
         lambda: (r(2, 3, 8), torch.ones(3, 3).triu(1).bool(), None, True)),
        ("nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1, enable_nested_tensor=False",
         lambda: (r(2, 3, 8), None, torch.tensor([[False, False, True], [False, True, True]]))),
    ],
    "TransformerEncoderLayer": [
        ("8, 2, 16", lambda: (r(3, 2, 8),)),
        ("8, 2, 16, activation=nn.functional.gelu, norm_first=True, batch_first=True, bias=False",
         lambda: (r(2, 3, 8), torch.ones(3, 3).triu(1).bool(),
                  torch.tensor([[False, False, True], [False, True, True]]))),
    ],
    "TripletMarginLoss": [("", lambda: (r(4, 5), r(4, 5), r(4, 5)))],
    "TripletMarginWithDistanceLoss": [
        ("", lambda: (r(4, 5), r(4, 5), r(4, 5))),
        ("distance_function=nn.PairwiseDistance(), swap=True",
         lambda: (r(4, 5), r(4, 5), r(4, 5))),
    ],
    "Unflatten": [("1, (2, 2)", X[1]), ("1, [2, -1]", X[1])],
    "Unfold": [("2", IMAGE[1])],
    "Upsample": [("scale_factor=2", IMAGE[1]), ("(5, 4), mode='bilinear'", IMAGE[1])],
    "UpsamplingBilinear2d": [("scale_factor=2", IMAGE[1])],
    "UpsamplingNearest2d": [("(5, 4)", IMAGE[1])],
    "LazyBatchNorm1d": [("", X[1])],
    "LazyBatchNorm2d": [("", IMAGE[1])],
    "LazyBatchNorm3d": [("", lambda: (r(1, 2, 4, 4, 4),))],
    "LazyConv1d": [("4, 3", lambda: (r(2, 3, 7),))],
    "LazyConv2d": [("4, 3", IMAGE[1])],
    "LazyConv3d": [("4, 2", lambda: (r(1, 2, 4, 4, 4),))],
    "LazyConvTranspose1d": [("4, 3", lambda: (r(2, 3, 7),))],
    "LazyConvTranspose2d": [("4, 3", IMAGE[1])],
    "LazyConvTranspose3d": [("4, 2", lambda: (r(1, 2, 4, 4, 4),))],
    "LazyInstanceNorm1d": [("affine=True", lambda: (r(2, 3, 7),))],
    "LazyInstanceNorm2d": [("affine=True", IMAGE[1])],
    "LazyInstanceNorm3d": [("affine=True", lambda: (r(1, 2, 4, 4, 4),))],
    "LazyLinear": [("5", X[1])],
    # Of no forward of their own.
    **dict.fromkeys("Container Module ModuleDict ModuleList ParameterDict ParameterList".split(), []),
}  # fmt: skip

CASES = [(name, text, given) for name, cases in MODULES.items() for text, given in cases]


def made(name, text, given):
    """A module and what its forward is given; lazy ones have seen it once."""
    torch.manual_seed(0)
    m = eval(f"nn.{name}({text})", {"nn": nn, "torch": torch})
    args = given()
    if name.startswith("Lazy"):
        m(*args)
    return m, args
