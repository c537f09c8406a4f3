"""Every overload that PyTorch declares, called with simple arguments there and here:
`python -m tools.call_forms`.

PyTorch has to be installed. Its schemas give the calls: each overload of each public function and
method on pairs of small tensors, then once more with each optional argument. Compared are dtypes,
shapes, strides and values of what both accept, and what only PyTorch accepts. Calls that only
Flambeau accepts are listed by `--accepted`.
"""

from __future__ import annotations

import argparse
import itertools
import pickle
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

#: differences that are meant: a regular expression over a finding, and the reason
MEANT = Path(__file__).with_suffix(".txt")
TENSORS = {
    "x": "torch.arange(1.0, 5).view(2, 2) / 4",
    "n": "torch.arange(1, 5).view(2, 2)",
    "v": "torch.arange(1.0, 4) / 4",
    "i": "torch.arange(3)",
    "s": "torch.tensor(1)",
    "m": "torch.tensor([[True, False], [True, True]])",
    "y": "torch.arange(1.0, 9).view(2, 2, 2)",
    "z": "torch.arange(1.0, 17).view(1, 2, 2, 4)",
}
#: the first tensor of a call and the others, which are called x_ where they are like x
PAIRS = "xx nn xn vv vi xm yy zz ss xs vs nx mm".split()
VALUES = {
    "number": ["2", "0.5"],
    "int": ["1", "0"],
    "float": ["0.5"],
    "bool": ["False", "True"],
    "List[int]": ["[0]", "[1]", "[2, 2]", "[1, 1]"],
    "List[float]": ["[0.5, 0.5]"],
    "str": ["'mean'", "'sum'"],
}
NAMED = {
    "dtype": "torch.float64",
    "memory_format": "torch.contiguous_format",
    "device": "'cpu'",
    "from": "",  # no name of an argument in Python
}
_APART = "save load compile normal bernoulli_ backward resize_ set_ share_memory_ requires_grad_"
_OTHER_BACK_ENDS = re.compile("quant|mkldnn|cudnn|miopen|sparse|fbgemm|^q_|vulkan|^sym_|^cuda$")
TRIED = 8  # combinations of required arguments


def _values(kind: str) -> list[str]:
    kind = re.sub(r"Optional\[(.*)\]$", r"\1", kind).replace("SymInt", "int")
    return VALUES.get(re.sub(r"^Scalar$", "number", kind), [])


def _call(place: str, given: list[tuple[Any, str]], extra: str) -> str:
    texts = [f"{a.name}={v}" if a.kwarg_only else v for a, v in given] + [extra] * bool(extra)
    if not place.startswith("Tensor."):
        return f"torch.{place}({', '.join(texts)})"
    return f"{texts[0]}{place.removeprefix('Tensor')}({', '.join(texts[1:])})"


def _of_overload(place: str, arguments: list[Any]) -> Iterator[tuple[str, list[str]]]:
    """Calls with the required arguments alone, each with those that have an optional one more."""
    required = [a for a in arguments if not a.has_default_value()]
    kinds = [str(a.type) for a in required]
    options = [["T"] if k == "Tensor" else ["L"] if "[Tensor]" in k or "[Optional[Tensor]]" in k
               else _values(k) for k in kinds]  # fmt: skip
    for chosen in itertools.islice(itertools.product(*options), TRIED):
        for pair in PAIRS:
            first, given = True, []
            for a, value in zip(required, chosen, strict=True):
                name = pair[0] if first else f"{pair[1]}_"
                text = {"T": name, "L": f"[{pair[0]}, {pair[1]}_]"}.get(value, value)
                first = first and value not in "TL"
                given.append((a, text))
            more = []
            for a in arguments:
                value = NAMED.get(a.name, (_values(str(a.type)) or [""])[0])
                if a.has_default_value() and value:
                    more.append(_call(place, given, f"{a.name}={value}"))
            yield _call(place, given, ""), more


def declared(torch: Any) -> Iterator[tuple[str, list[str]]]:
    """All calls, from PyTorch's schemas."""
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        arguments = list(schema.arguments)
        if space != "aten" or name.startswith("_") or name in _APART.split():
            continue
        if _OTHER_BACK_ENDS.search(name) or any(
            a.is_out or "Dimname" in str(a.type) for a in arguments
        ):
            continue
        places = [name, f"nn.functional.{name}"]
        places += [f"{s}.{name[len(s) + 1 :]}" for s in ("linalg", "special", "fft")]
        if arguments and arguments[0].name == "self" and str(arguments[0].type) == "Tensor":
            places.append(f"Tensor.{name}")
        for place in places:
            if callable(_resolved(torch, place)):
                yield from _of_overload(place, arguments)


def _resolved(torch: Any, place: str) -> Any:
    thing = torch
    for part in place.split("."):
        thing = getattr(thing, part, None)
    return thing


class _Fresh(dict[str, Any]):
    """Names of a call; tensors are made when they are first asked for."""

    def __missing__(self, name: str) -> Any:
        self[name] = eval(TENSORS[name[0]], {"torch": self["torch"]})
        return self[name]


def seen(torch: Any, result: Any) -> Any:
    """What is compared of a result, without its library."""
    if isinstance(result, torch.Tensor):
        x = result.detach().resolve_conj()
        kind = str(x.dtype).rpartition(".")[2]
        x = x.float() if kind == "bfloat16" else x
        strides = [s for s, n in zip(x.stride(), x.shape, strict=True) if n > 1]
        return kind, tuple(x.shape), strides, x.numpy().copy()
    if isinstance(result, (list, tuple)):
        return [seen(torch, r) for r in result]
    plain = isinstance(result, (int, float, complex, str)) or result is None
    return result if plain else type(result).__name__


def outcome(torch: Any, text: str) -> tuple[bool, Any]:
    torch.manual_seed(0)
    try:
        return True, seen(torch, eval(text, {}, _Fresh(torch=torch)))
    except Exception as e:
        return False, f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"


def difference(got: Any, want: Any) -> str:
    """How results differ, or an empty string."""
    if isinstance(want, list) and isinstance(got, list) and len(got) == len(want):
        return next(filter(None, map(difference, got, want)), "")
    if not (isinstance(want, tuple) and isinstance(got, tuple)):
        both = isinstance(got, float) and isinstance(want, float)
        same = np.isclose(got, want, rtol=1e-4, equal_nan=True) if both else got == want
        return "" if same and type(got) is type(want) else f"{want!r:.60} there, {got!r:.60} here"
    for what, a, b in zip(("dtype", "shape"), got, want, strict=False):
        if a != b:
            return f"{what} {b} there, {a} here"
    loose = 1e-2 if want[0] in ("float16", "bfloat16") else 2e-4
    with np.errstate(all="ignore"):
        if not np.allclose(got[3], want[3], rtol=loose, atol=1e-5, equal_nan=True):
            return f"values {want[3].ravel()[:4]} there, {got[3].ravel()[:4]} here"
    return "" if got[2] == want[2] else f"strides {want[2]} there, {got[2]} here"


def _name(text: str) -> str:
    """Of the function or method that a call is of."""
    return re.sub(r"^\w\.", "Tensor.", text.partition("(")[0])


def _is_missing(fine: bool, result: Any) -> bool:
    return not fine and bool(re.match(r"AttributeError: .* has no attribute", result))


def findings(theirs: dict[str, Any], ours: dict[str, Any], accepted: bool) -> Iterator[str]:
    """One line for each way in which a form differs, with its first call."""
    known: set[tuple[str, str]] = set()
    for text, (fine, want) in theirs.items():
        here, got = ours[text]
        if _is_missing(here, got):
            continue
        if fine and here:
            why = difference(got, want)
        elif fine:
            why = f"refused here: {got}"
        else:
            why = f"refused there: {want}" if accepted and here else ""
        form = _name(text), why.partition(":")[0].partition(" ")[0]
        if why and form not in known:
            known.add(form)
            yield " ".join(f"{text}: {why}".split())


def work(library: str, file: Path) -> None:
    """Runs the calls in `file`, or writes PyTorch's own there first, and adds their outcomes."""
    warnings.simplefilter("ignore")
    torch = __import__(library)
    if library == "torch":
        done: dict[str, Any] = {}
        for text, more in declared(torch):
            if text not in done:
                done[text] = outcome(torch, text)
                if done[text][0]:
                    done.update((t, outcome(torch, t)) for t in more)
    else:
        done = {text: outcome(torch, text) for text in pickle.loads(file.read_bytes())}
    file.write_bytes(pickle.dumps(done))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--accepted", action="store_true", help="also what PyTorch refuses")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.work:
        work(a.work[0], Path(a.work[1]))
        return 0
    sides = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "calls"
        for library in ("torch", "flambeau"):
            command = [sys.executable, "-m", "tools.call_forms", "--work", library, str(file)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            sides.append(pickle.loads(file.read_bytes()))
    lines = [x.partition("  # ")[0] for x in MEANT.read_text().splitlines() if x[:1] != "#"]
    meant = [re.compile(x) for x in lines]
    count = 0
    for line in findings(sides[0], sides[1], a.accepted):
        if not any(x.search(line) for x in meant):
            count += 1
            print(line)
    gone = {_name(t) for t in sides[0] if sides[0][t][0] and _is_missing(*sides[1][t])}
    print("not there:", *sorted(gone))
    both = sum(sides[0][t][0] and sides[1][t][0] for t in sides[0])
    print(f"{len(sides[0])} calls, {both} accepted by both; {count} forms differ")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
