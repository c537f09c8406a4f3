"""Small models of the architectures that people train, and what they are called with.

A case is (model, inputs for a batch size, loss of the output and of a target drawn for it).
"""

from __future__ import annotations

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.first = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(b), nn.BatchNorm2d(b)])
        self.shortcut = None
        if stride != 1 or a != b:
            self.shortcut = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        y = self.norms[1](self.second(y))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Module):
    def __init__(self, widths=(4, 6, 8), classes=5):
        super().__init__()
        first = widths[0]
        self.stem = nn.Sequential(
            nn.Conv2d(3, first, 7, 2, 3, bias=False),
            nn.BatchNorm2d(first),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        pairs = zip((first, *widths), widths, strict=False)
        self.blocks = nn.Sequential(
            *(Residual(a, b, 1 if k == 0 else 2) for k, (a, b) in enumerate(pairs))
        )
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean(dim=(2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        parts = self.qkv(x).split(c, dim=2)
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class GPTBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class GPT(nn.Module):
    def __init__(self, vocabulary=11, width=16, layers=2, heads=2, context=12):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([GPTBlock(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def pair(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
        nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, width=4, classes=2):
        super().__init__()
        w = [width, 2 * width, 4 * width]
        self.downs = nn.ModuleList([pair(3, w[0]), pair(w[0], w[1])])
        self.pool, self.bottom = nn.MaxPool2d(2), pair(w[1], w[2])
        self.ups = nn.ModuleList(nn.ConvTranspose2d(2 * a, a, 2, stride=2) for a in (w[1], w[0]))
        self.merges = nn.ModuleList(pair(2 * a, a) for a in (w[1], w[0]))
        self.head = nn.Conv2d(w[0], classes, 1)

    def forward(self, x):
        kept = []
        for down in self.downs:
            x = down(x)
            kept.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for up, merge, skip in zip(self.ups, self.merges, reversed(kept), strict=True):
            x = merge(torch.cat((up(x), skip), dim=1))
        return self.head(x)


class CharLSTM(nn.Module):
    def __init__(self, vocabulary=11, width=8, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        y, _ = self.lstm(self.embedding(ids))
        return self.head(y)


class DLRM(nn.Module):
    def __init__(self, tables=3, rows=20, width=4, dense=5):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = mlp(dense, 8, width)
        self.top = mlp((tables + 1) * tables // 2 + width, 8, 1)
        pairs = [(i, j) for i in range(tables + 1) for j in range(i)]
        self.rows, self.columns = zip(*pairs, strict=True)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        features = [x] + [bag(sparse[:, i]) for i, bag in enumerate(self.bags)]
        stacked = torch.stack(features, dim=1)
        dots = torch.bmm(stacked, stacked.transpose(1, 2))
        return self.top(torch.cat((x, dots[:, list(self.rows), list(self.columns)]), dim=1))


class Encoder(nn.Module):
    """`nn.TransformerEncoder` with a mask."""

    def __init__(self, dropout=0.0):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(6))

    def forward(self, x):
        return self.encoder(x, mask=self.mask, is_causal=True)


class EncoderDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True)

    def forward(self, source, target):
        return self.transformer(source, target)


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        y, weights = self.attention(x, x, x)
        return y + weights.sum()


class Recurrent(nn.Module):
    """Plain RNN, GRU both ways, cells called step by step."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 6, batch_first=True)
        self.gru = nn.GRU(6, 5, bidirectional=True, batch_first=True)
        self.cell = nn.GRUCell(10, 3)

    def forward(self, x):
        y, _ = self.rnn(x)
        y, last = self.gru(y)
        h = x.new_zeros(x.shape[0], 3)
        for t in range(y.shape[1]):
            h = self.cell(y[:, t], h)
        return torch.cat((h, last[0]), dim=1)


class Normed(nn.Module):
    """Every normalisation, dropout that is off, several activations."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(4, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.InstanceNorm1d(8),
            nn.BatchNorm1d(8), nn.Dropout(0.0), nn.ELU(), nn.AdaptiveAvgPool1d(3),
            nn.Flatten(), nn.RMSNorm(24), nn.PReLU(), nn.Linear(24, 3), nn.Softplus(),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


def _ids(*shape, below=11):
    return torch.randint(below, shape)


def _flat_cross_entropy(out):
    return F.cross_entropy(out.flatten(0, -2), _ids(out.numel() // out.shape[-1], below=3))


def _pixels(out):
    return F.cross_entropy(out, _ids(out.shape[0], *out.shape[2:], below=2))


def _clicks(out):
    return F.binary_cross_entropy_with_logits(out, (torch.rand(out.shape) > 0.5).float())


def _squares(out):
    return F.mse_loss(out, torch.randn(out.shape))


CASES = {
    "mlp": (lambda: mlp(7, 16, 8, 3), lambda n: (torch.randn(n, 7),), _flat_cross_entropy),
    "resnet": (ResNet, lambda n: (torch.randn(n, 3, 16, 16),), _flat_cross_entropy),
    "gpt": (GPT, lambda n: (_ids(n, 12),), _flat_cross_entropy),
    "unet": (UNet, lambda n: (torch.randn(n, 3, 8, 8),), _pixels),
    "char_lstm": (CharLSTM, lambda n: (_ids(n, 6),), _flat_cross_entropy),
    "dlrm": (DLRM, lambda n: (torch.randn(n, 5), _ids(n, 3, 4, below=20)), _clicks),
    "encoder": (Encoder, lambda n: (torch.randn(n, 6, 8),), _squares),
    "transformer": (
        EncoderDecoder, lambda n: (torch.randn(n, 5, 8), torch.randn(n, 3, 8)), _squares,
    ),
    "attention": (SelfAttention, lambda n: (torch.randn(n, 5, 8),), _squares),
    "recurrent": (Recurrent, lambda n: (torch.randn(n, 4, 4),), _squares),
    "normed": (Normed, lambda n: (torch.randn(n, 4, 9),), _squares),
}  # fmt: skip
