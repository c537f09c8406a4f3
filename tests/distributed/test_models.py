"""Models trained by several processes: losses of 50 steps are those of one on the joined batch.

Every combination of model, kind of graph, accumulation, checkpointing and bucket views runs with
DIST=all in the environment (`make dist`); otherwise a few that have each of them.
"""

import itertools
import os

import numpy as np

import flambeau as torch
from flambeau import nn
from flambeau.utils.checkpoint import checkpoint
from tests.distributed import worlds

dist = torch.distributed
DDP = nn.parallel.DistributedDataParallel
F = nn.functional
EACH, STEPS, CLASSES = 2, 50, 5  # samples of a rank and step


class Part(nn.Module):
    """Runs a module, and once more in backward where it is checkpointed: None, False or True."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.again = inner, None

    def forward(self, x):
        if self.again is None:
            return self.inner(x)
        return checkpoint(self.inner, x, use_reentrant=self.again)


class Sided(nn.Module):
    """Adds a head that some steps leave out."""

    def __init__(self, body, width):
        super().__init__()
        self.body, self.head, self.side = body, nn.Linear(width, CLASSES), nn.Linear(width, CLASSES)

    def forward(self, x, side):
        x = self.body(x)
        return self.head(x) + (self.side(x) if side else 0)


def mlp(norm):
    layers = (Part(nn.Sequential(nn.Linear(12, 12), nn.Tanh())) for _ in range(2))
    return Sided(nn.Sequential(nn.Linear(6, 12), *layers), 12)


class Block(nn.Module):
    def __init__(self, norm, before, after, stride):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm = norm(after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.again = norm(after)
        self.short = nn.Identity()
        if stride > 1:
            self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), norm(after))

    def forward(self, x):
        y = F.relu(self.norm(self.first(x)))
        return F.relu(self.again(self.second(y)) + self.short(x))


def resnet(norm):
    parts = [nn.Conv2d(2, 4, 3, 1, 1, bias=False), norm(4), nn.ReLU()]
    for before, after in ((4, 4), (4, 6), (6, 8)):
        parts += [Block(norm, before, after, 1 + (before < after)), Block(norm, after, after, 1)]
    return Sided(nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten()), 8)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.joint = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out, self.then = nn.Linear(width, width), nn.LayerNorm(width)
        self.wide = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        n, length, width = x.shape
        joint = self.joint(self.norm(x)).view(n, length, 3, self.heads, width // self.heads)
        q, k, v = joint.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        return x + self.wide(self.then(x))


class Embedded(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.word, self.place = nn.Embedding(CLASSES, width), nn.Embedding(length, width)

    def forward(self, x):
        return self.word(x) + self.place(torch.arange(x.shape[1]))


def gpt(norm):
    body = [Embedded(8, 6), Part(Layer(8, 2)), Part(Layer(8, 2)), nn.LayerNorm(8)]
    return Sided(nn.Sequential(*body), 8)


MODELS = {"mlp": (mlp, (6,)), "resnet": (resnet, (2, 8, 8)), "gpt": (gpt, (6,))}


def batches(name, size):
    draw = np.random.default_rng(0)
    shape = (EACH * size, *MODELS[name][1])
    for _ in range(STEPS):
        words = torch.from_numpy(draw.integers(0, CLASSES, shape))
        values = torch.from_numpy(draw.normal(size=shape))
        if name == "gpt":
            yield words, words.roll(-1, 1)
        else:
            yield values, torch.from_numpy(draw.integers(0, CLASSES, shape[0]))


def train(net, name, size, mine, how, every):
    """The losses of the samples `mine`, and the parameters at the end."""
    optim = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for i, (x, y) in enumerate(batches(name, size)):
        side = how == "plain" or how == "unused" and i % 3 == 0
        ends = (i + 1) % every == 0
        with net.no_sync() if isinstance(net, DDP) and not ends else torch.enable_grad():
            out = net(x[mine], side)
            loss = F.cross_entropy(out.reshape(-1, CLASSES), y[mine].reshape(-1))
            loss.backward()
        losses.append(loss.detach())
        if ends:
            optim.step()
            optim.zero_grad()
    return torch.stack(losses), [p.detach() for p in net.parameters()]


def combinations():
    """(model, graph, accumulation, checkpointing, views): all that are allowed."""
    for case in itertools.product(
        MODELS, ("plain", "unused", "static"), (1, 2), (None, False, True), (False, True)
    ):
        name, how, _, again, _ = case
        if name == "resnet" and again is not None:
            continue  # what runs twice moves its batch normalisation's means twice
        if how == "unused" and again:
            continue  # a reentrant checkpoint hides its parameters from the search
        yield case


def few():
    yield from (("mlp", "plain", 2, True, True), ("mlp", "unused", 1, False, False))
    yield from (("gpt", "static", 2, True, False), ("resnet", "static", 1, None, True))


def made(name, norm, again=None):
    torch.manual_seed(5)
    net = MODELS[name][0](norm)
    for part in net.modules():
        if isinstance(part, Part):
            part.again = again
    return net


def equal(rank, size):
    torch.set_default_dtype(torch.float64)
    mine = slice(EACH * rank, EACH * (rank + 1))
    known = {}
    for case in few() if os.environ.get("DIST") != "all" else combinations():
        name, how, every, again, as_view = case
        if (name, how, every) not in known:
            one = made(name, nn.BatchNorm2d)
            known[name, how, every] = train(one, name, size, slice(None), how, every)
        expected, ended = known[name, how, every]
        net = DDP(
            made(name, nn.SyncBatchNorm, again),
            find_unused_parameters=how == "unused",
            static_graph=how == "static",
            gradient_as_bucket_view=as_view,
            bucket_cap_mb=(25, 1e-3)[as_view],
        )
        losses, params = train(net, name, size, mine, how, every)
        dist.all_reduce(losses, dist.ReduceOp.AVG)
        told = f"{case} of {size}"
        np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-12, err_msg=told)
        for p, q in zip(params, ended, strict=True):
            np.testing.assert_allclose(p, q, rtol=0, atol=1e-12, err_msg=told)


@worlds.engines("size", [2], more=[4])
def test_models(engine, size):
    worlds.run("test_models", "equal", size, timeout=1500, **{worlds.ENGINE: engine})
