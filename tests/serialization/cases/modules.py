"""Whole modules, as `torch.save(model)` writes them, and what they compute when they come back."""

from .case import Case


def _filled(torch, module):
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_((torch.arange(float(p.numel())).reshape(p.shape) % 7 - 3) / (5 + i))
    return module


def image(torch):
    return (torch.arange(96.0).reshape(2, 3, 4, 4) % 11 - 5) / 5


def rows(torch):
    return (torch.arange(24.0).reshape(2, 3, 4) % 7 - 3) / 3


def numbers(torch):
    return torch.tensor([[0, 3, 1], [2, 2, 4]])


LAYERS = {
    "Linear": (lambda nn: nn.Linear(4, 2), rows),
    "Bilinear": (lambda nn: nn.Bilinear(4, 4, 2), None),
    "Conv2d": (lambda nn: nn.Conv2d(3, 2, 3, padding=1), image),
    "Conv2d_reflect": (lambda nn: nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect"), image),
    "Conv2d_same": (lambda nn: nn.Conv2d(3, 3, 3, padding="same", groups=3), image),
    "ConvTranspose2d": (lambda nn: nn.ConvTranspose2d(3, 2, 3, stride=2), image),
    "Conv1d": (lambda nn: nn.Conv1d(3, 2, 2), rows),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(3), image),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(3, affine=False), rows),
    "InstanceNorm2d": (lambda nn: nn.InstanceNorm2d(3, affine=True), image),
    "GroupNorm": (lambda nn: nn.GroupNorm(3, 3), image),
    "LayerNorm": (lambda nn: nn.LayerNorm(4), rows), "RMSNorm": (lambda nn: nn.RMSNorm(4), rows),
    "LocalResponseNorm": (lambda nn: nn.LocalResponseNorm(2), image),
    "Embedding": (lambda nn: nn.Embedding(5, 3, padding_idx=1), numbers),
    "EmbeddingBag": (lambda nn: nn.EmbeddingBag(5, 3), numbers),
    "RNN": (lambda nn: nn.RNN(4, 3, 2, nonlinearity="relu"), rows),
    "LSTM": (lambda nn: nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True), rows),
    "LSTM_projected": (lambda nn: nn.LSTM(4, 3, proj_size=2), rows),
    "GRU": (lambda nn: nn.GRU(4, 3, bias=False), rows),
    "LSTMCell": (lambda nn: nn.LSTMCell(4, 3), lambda t: rows(t)[0]),
    "TransformerEncoderLayer": (lambda nn: nn.TransformerEncoderLayer(4, 2, 8), rows),
    "TransformerEncoderLayer_gelu": (
        lambda nn: nn.TransformerEncoderLayer(4, 2, 8, activation="gelu", batch_first=True), rows
    ),
    "TransformerEncoder": (
        lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2),
        rows,
    ),
    "MaxPool2d": (lambda nn: nn.MaxPool2d(2), image),
    "AvgPool2d": (lambda nn: nn.AvgPool2d(2, divisor_override=3), image),
    "AdaptiveAvgPool2d": (lambda nn: nn.AdaptiveAvgPool2d(2), image),
    "Upsample": (lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), image),
    "PixelShuffle": (lambda nn: nn.Sequential(nn.Conv2d(3, 4, 1), nn.PixelShuffle(2)), image),
    "ReflectionPad2d": (lambda nn: nn.ReflectionPad2d(1), image),
    "Dropout": (lambda nn: nn.Dropout(0.5), rows),
    "activations": (
        lambda nn: nn.Sequential(
            nn.ReLU(), nn.GELU("tanh"), nn.SiLU(), nn.ELU(0.5), nn.LeakyReLU(0.1), nn.PReLU(),
            nn.Hardswish(), nn.Mish(), nn.Softplus(), nn.Tanh(), nn.Sigmoid(), nn.Softmax(-1),
        ),
        rows,
    ),
    "Flatten": (lambda nn: nn.Sequential(nn.Flatten(), nn.Unflatten(1, (6, 8))), image),
    "shared": (lambda nn: nn.Sequential(*[nn.Linear(4, 4)] * 2), rows),
    "ModuleList": (lambda nn: nn.ModuleList([nn.Linear(4, 2), nn.ReLU()]), None),
    "ModuleDict": (lambda nn: nn.ModuleDict({"b": nn.Linear(4, 2), "a": nn.Identity()}), None),
    "ParameterList": (lambda nn: nn.ParameterList([nn.Linear(2, 1).weight]), None),
    "CrossEntropyLoss": (lambda nn: nn.CrossEntropyLoss(label_smoothing=0.1), None),
}  # fmt: skip


def _layer(name):
    build, given = LAYERS[name]

    def make(torch):
        return _filled(torch, build(torch.nn)).eval()

    def run(torch, module):
        with torch.no_grad():
            return module(given(torch))

    return Case(make, close=True, run=run if given else lambda torch, module: repr(module))


def multi_head(torch):
    return _filled(torch, torch.nn.MultiheadAttention(4, 2, batch_first=True))


def run_multi_head(torch, module):
    return module(*[rows(torch)] * 3)


def training_mode(torch):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(3), torch.nn.ReLU())
    return _filled(torch, model)


def run_training(torch, module):
    out = module(rows(torch))
    out.sum().backward()
    grads = [p.grad for p in module.parameters()]
    return [out.detach(), grads, module[1].running_mean]


def net_of_a_checkpoint(torch):
    """A module among other values, and a buffer that is not persistent."""
    model = _filled(torch, torch.nn.Linear(4, 2))
    model.register_buffer("cache", torch.ones(2), persistent=False)
    return {"epoch": 3, "model": model, "criterion": torch.nn.MSELoss()}


def run_net(torch, value):
    model = value["model"]
    return [model(rows(torch)).detach(), list(model.state_dict()), model.cache]


CASES = {f"module_{name}": _layer(name) for name in LAYERS} | {
    "module_multi_head": Case(multi_head, close=True, run=run_multi_head),
    "module_training": Case(training_mode, close=True, run=run_training),
    "module_in_a_dict": Case(net_of_a_checkpoint, close=True, run=run_net),
}
