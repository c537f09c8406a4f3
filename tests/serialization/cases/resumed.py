"""Training runs that stop and go on elsewhere: six small models with all that a run keeps.

Owns the models, their data and what a checkpoint of a run holds: states of model, optimiser,
schedule, gradient scaler and random numbers. A run knows the library only as an argument; its data
come from the library's random numbers, so that these must go on as well.
"""

STEPS = 20  # before the stop, and after it


def mlp(nn):
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.25), nn.Linear(16, 3))


def conv(nn):
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.SiLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3), nn.GroupNorm(2, 6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6, 3),
    )  # fmt: skip


def residual(nn):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())

        def forward(self, x):
            return x + self.inner(x)

    return nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2), Block(), Block(), nn.Flatten(), nn.Linear(36, 3)
    )


def recurrent(nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(6, 8, 2, batch_first=True)
            self.out = nn.Linear(8, 3)

        def forward(self, x):
            return self.out(self.lstm(x)[0][:, -1])

    return Net()


def encoder(nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
            self.embed, self.layers = nn.Linear(6, 8), nn.TransformerEncoder(layer, 2)
            self.out = nn.Linear(8, 3)

        def forward(self, x):
            return self.out(self.layers(self.embed(x)).mean(1))

    return Net()


def tokens(nn):
    class Net(nn.Module):
        """Input and output share their weights."""

        def __init__(self):
            super().__init__()
            self.embed, self.norm = nn.Embedding(9, 8), nn.LayerNorm(8)
            self.mix = nn.GRU(8, 8, batch_first=True)
            self.head = nn.Linear(8, 9, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.norm(self.mix(self.embed(x))[0])[:, -1])

    return Net()


def _rows(torch):
    return torch.randn(8, 6), torch.randint(0, 3, (8,))


def _images(torch):
    return torch.randn(8, 1, 8, 8), torch.randint(0, 3, (8,))


def _sequences(torch):
    return torch.randn(8, 5, 6), torch.randint(0, 3, (8,))


def _texts(torch):
    return torch.randint(0, 9, (8, 5)), torch.randint(0, 9, (8,))


#: model, data, optimiser and schedule of each run
RUNS = {
    "mlp": (
        mlp, _rows, lambda o, p: o.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
        lambda k, o: k.StepLR(o, 7, 0.5),
    ),
    "conv": (
        conv, _images, lambda o, p: o.AdamW(p, lr=2e-3),
        lambda k, o: k.CosineAnnealingLR(o, 2 * STEPS),
    ),
    "residual": (
        residual, _images, lambda o, p: o.NAdam(p, lr=1e-3),
        lambda k, o: k.ReduceLROnPlateau(o, patience=2, factor=0.5),
    ),
    "recurrent": (
        recurrent, _sequences, lambda o, p: o.RMSprop(p, lr=1e-3, momentum=0.5),
        lambda k, o: k.SequentialLR(o, [k.LinearLR(o, 0.1, 1, 5), k.ExponentialLR(o, 0.95)], [5]),
    ),
    "encoder": (
        encoder, _sequences, lambda o, p: o.Adam(p, lr=1e-3, amsgrad=True),
        lambda k, o: k.LambdaLR(o, lambda step: min(1.0, (step + 1) / 8)),
    ),
    "tokens": (
        tokens, _texts, lambda o, p: o.Adagrad(p, lr=0.05),
        lambda k, o: k.OneCycleLR(o, 0.05, 2 * STEPS, cycle_momentum=False),
    ),
}  # fmt: skip


class Run:
    """One run, from its seed on.

    Args:
        torch: the library.
        name: of `RUNS`.
    """

    def __init__(self, torch, name):
        self.torch = torch
        build, self.data, optimiser, schedule = RUNS[name]
        torch.manual_seed(len(name))
        self.model = build(torch.nn)
        self.optimiser = optimiser(torch.optim, self.model.parameters())
        self.schedule = schedule(torch.optim.lr_scheduler, self.optimiser)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=6)
        self.done = 0

    def steps(self, count):
        """Losses of the next steps; one of them overflows, which the scaler must notice."""
        losses = []
        for _ in range(count):
            x, target = self.data(self.torch)
            self.optimiser.zero_grad()
            loss = self.torch.nn.functional.cross_entropy(self.model(x), target)
            losses.append(loss.item())
            self.scaler.scale(loss * float("inf") if self.done == 13 else loss).backward()
            self.scaler.step(self.optimiser)
            self.scaler.update()
            kind = self.torch.optim.lr_scheduler.ReduceLROnPlateau
            arguments = (losses[-1],) if isinstance(self.schedule, kind) else ()
            self.schedule.step(*arguments)
            self.done += 1
        return losses

    def state(self):
        """What a checkpoint holds."""
        return {
            "model": self.model.state_dict(), "optimizer": self.optimiser.state_dict(),
            "scheduler": self.schedule.state_dict(), "scaler": self.scaler.state_dict(),
            "rng": self.torch.get_rng_state(), "step": self.done,
        }  # fmt: skip

    def go_on(self, state):
        """Take over a checkpoint."""
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["scheduler"])
        self.scaler.load_state_dict(state["scaler"])
        self.torch.set_rng_state(state["rng"])
        self.done = state["step"]
