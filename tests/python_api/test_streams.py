"""Seeded numbers are PyTorch's bit for bit. `python tests/python_api/test_streams.py torch` prints
the digests below from PyTorch itself (2.13, CPU)."""

import hashlib
import importlib
import sys
from fractions import Fraction

SIZES = (1, 7, 15, 16, 17, 31, 4095, 4097, 4111, 70001)  # groups of 16, runs of 4096
DIGESTS = {
    "float32 rand": "1b51acb4ba25",
    "float32 uniform_": "04ea55fa7a78",
    "float32 bernoulli": "52e2f2c93218",
    "float32 bernoulli_": "2d38d6c5ac9e",
    "float32 random_": "fcea64c88442",
    "float32 dropout": "e2b4830cbaa8",
    "float32 multinomial": "e3e6a99f7fd2",
    "float32 randint": "83851fffc583",
    "float32 randperm": "ca6dedb38b38",
    "float32 randn": "c8fb225fa7c7",
    "float32 normal_": "1855e0a7aee1",
    "float32 normal_ of a view": "fe65f4f7a8c6",
    "float64 rand": "c120a66409c6",
    "float64 uniform_": "578b541e940f",
    "float64 bernoulli": "b393bbb4174c",
    "float64 bernoulli_": "abfc50658541",
    "float64 random_": "c574be48c285",
    "float64 dropout": "7f8aa2171a42",
    "float64 multinomial": "2a4096fc84eb",
    "float64 randint": "83851fffc583",
    "float64 randperm": "ca6dedb38b38",
    "float16 rand": "3214d8ea0fe6",
    "float16 uniform_": "7cfb69ffc14d",
    "float16 bernoulli": "26cd2bc7cd60",
    "float16 bernoulli_": "6cc26d463c91",
    "float16 random_": "fd2008d47b39",
    "float16 dropout": "423b675a52e3",
    "float16 multinomial": "06dadb2f53ca",
    "float16 randint": "83851fffc583",
    "float16 randperm": "ca6dedb38b38",
    "float16 randn": "9558c99bc1c2",
    "float16 normal_": "9fee054cb69f",
    "float16 normal_ of a view": "5d383f521a8b",
    "bfloat16 rand": "c74fd48bb09e",
    "bfloat16 uniform_": "937256df6e2e",
    "bfloat16 bernoulli": "053edc706137",
    "bfloat16 bernoulli_": "2d38d6c5ac9e",
    "bfloat16 random_": "fcea64c88442",
    "bfloat16 dropout": "e9000bd55e01",
    "bfloat16 multinomial": "040ff0cd429e",
    "bfloat16 randint": "83851fffc583",
    "bfloat16 randperm": "ca6dedb38b38",
    "bfloat16 randn": "1c82e76659cb",
    "bfloat16 normal_": "3962fa06deb3",
    "bfloat16 normal_ of a view": "91a7bb622e3c",
}


def draws(torch, kind):
    """Per name a function of a size and a dtype. Those of double precision that go through libm are
    not here: their last bits are the machine's."""
    e = lambda n, d: torch.empty(n, dtype=d)  # noqa: E731
    return {
        "rand": lambda n, d: torch.rand(n, dtype=d),
        "uniform_": lambda n, d: e(n, d).uniform_(-3, 2.5),
        "bernoulli": lambda n, d: torch.bernoulli(torch.rand(n, dtype=d)),
        "bernoulli_": lambda n, d: e(n, d).bernoulli_(0.3),
        "random_": lambda n, d: e(n, d).random_(0, 100),
        "dropout": lambda n, d: torch.nn.functional.dropout(torch.ones(n, dtype=d), 0.3),
        "multinomial": lambda n, d: torch.multinomial(
            torch.rand(3, n, dtype=d) + 0.01, 50, replacement=True
        ),
        "randint": lambda n, d: torch.randint(-5, 1000, (n,)),
        "randperm": lambda n, d: torch.randperm(n),
    } | (
        {
            "randn": lambda n, d: torch.randn(n, dtype=d),
            "normal_": lambda n, d: e(n, d).normal_(2, 0.3),
            "normal_ of a view": lambda n, d: torch.zeros(n, 3, dtype=d).t().normal_(),
        }
        if kind != "float64"
        else {}
    )


def digest(torch, name, kind):
    """Of the draws of all sizes, one after the other."""
    h = hashlib.sha256()
    torch.manual_seed(2147)
    for n in SIZES:
        x = draws(torch, kind)[name](n, getattr(torch, kind)).contiguous()
        h.update((x if x.dtype != torch.bfloat16 else x.float()).numpy().tobytes())
    return h.hexdigest()[:12]


def table(torch):
    return {
        f"{kind} {name}": digest(torch, name, kind)
        for kind in ("float32", "float64", "float16", "bfloat16")
        for name in draws(torch, kind)
    }


def test_the_digests_are_those_of_the_reference():
    import flambeau

    assert table(flambeau) == DIGESTS


def fused(a, b, c):
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def test_doubles_are_scaled_and_shifted_with_one_rounding():
    import flambeau as torch

    for n in (5, 640):
        x = torch.empty(n, dtype=torch.float64)
        torch.manual_seed(n)
        standard = x.normal_().tolist()
        torch.manual_seed(n)
        assert x.normal_(2, 0.3).tolist() == [fused(z, 0.3, 2) for z in standard]


if __name__ == "__main__":
    for key, value in table(importlib.import_module(sys.argv[1])).items():
        print(f'    "{key}": "{value}",')
