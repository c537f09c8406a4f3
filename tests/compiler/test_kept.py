"""What compiling came to, kept on disk: when it is found again, and when it must not be."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau._capture import back_ends
from flambeau._compiler import cache, kept, toolchain
from flambeau._ir import plain


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FLAMBEAU_VERIFY")  # which compiles in any case
    cached = toolchain.flags, toolchain._fixed_digest
    for f in cached:
        f.cache_clear()
    yield tmp_path / "cache"
    for f in cached:
        f.cache_clear()


@pytest.fixture
def lowered(monkeypatch):
    """How often a graph went through the passes."""
    ran = []
    lower = back_ends._lower
    monkeypatch.setattr(back_ends, "_lower", lambda *a: (ran.append(1), lower(*a))[1])
    return ran


def fresh(f, *args, **kwargs):
    """What a process that has compiled nothing gives."""
    torch.compiler.reset()
    return torch.compile(f, **kwargs)(*args)


def plans(folder):
    return sorted(folder.glob("*.plan"))


def rewritten(path, change):
    """The file with other contents, under a seal that fits."""
    data = plain.loads(cache.read(path.name))
    path.unlink()
    cache.write(path.name, plain.dumps(change(data)).encode())


def wave(x, y):
    return torch.softmax(x.sin() * 2.5, -1) @ y


def arguments(n=4, grad=True):
    x = torch.linspace(-1, 1, 8 * n).view(n, 8)
    return x.requires_grad_(grad), torch.linspace(0, 1, 8 * n).view(8, n)


def grads(y, x):
    x.grad = None
    (y * torch.arange(y.numel()).view(y.shape)).sum().backward()
    return x.grad


def test_the_second_time_no_pass_runs_and_results_are_the_same(folder, lowered):
    x, y = arguments()
    first = fresh(wave, x, y)
    given = grads(first, x)
    assert len(lowered) == 1 and len(plans(folder)) == 1
    second = fresh(wave, x, y)
    assert len(lowered) == 1
    assert torch.equal(first, second) and torch.equal(given, grads(second, x))
    assert torch.allclose(second, wave(x, y), atol=1e-6)


def test_a_process_that_finds_all_loads_no_pass(folder):
    program = (
        "import sys, flambeau as torch\n"
        "print(torch.compile(lambda x: torch.softmax(x * 3, -1))(torch.ones(2, 4)).tolist())\n"
        "print(sorted(m for m in sys.modules if m.startswith(('flambeau._aot', "
        "'flambeau._compiler.'))))"
    )

    def run():
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return done.stdout.splitlines()

    first, second = run(), run()
    assert first[0] == second[0] == str([[0.25] * 4] * 2)
    assert "flambeau._compiler.lower" in first[1]
    names = ("cache", "kept", "toolchain")
    assert second[1] == str([f"flambeau._compiler.{n}" for n in names])


@pytest.mark.parametrize(
    "other",
    [
        lambda x, y: torch.softmax(x.sin() * 2.5000002, -1) @ y,
        lambda x, y: torch.softmax(x.sin() * 2, -1) @ y,
        lambda x, y: torch.softmax(x.cos() * 2.5, -1) @ y,
        lambda x, y: torch.softmax(x.sin() * 2.5, -2) @ y,
        lambda x, y: torch.softmax(x.sin() * 2.5, -1).detach() @ y,
        lambda x, y: (torch.softmax(x.sin() * 2.5, -1) @ y, x.sin()),
    ],
    ids=["number", "type of number", "operation", "dim", "history", "outputs"],
)
def test_another_program_is_not_taken_for_it(folder, lowered, other):
    x, y = arguments()
    fresh(wave, x, y)
    result = fresh(other, x, y)
    assert len(lowered) == 2
    pairs = zip(*(r if isinstance(r, tuple) else (r,) for r in (result, other(x, y))), strict=True)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in pairs)


def _changed(x, y):
    return [
        (x.detach(), y),
        (x.detach().double(), y.double()),
        (x.detach()[:2], y),
        (x.detach().t().contiguous().t().requires_grad_(), y),
        (x, y.detach().requires_grad_()),
    ]


@pytest.mark.parametrize("k", range(5), ids=["no grad", "dtype", "shape", "strides", "other grad"])
def test_other_arguments_are_another_graph(folder, lowered, k):
    x, y = arguments()
    fresh(wave, x, y)
    args = _changed(x, y)[k]
    result = fresh(wave, *args)
    assert len(lowered) == 2
    assert torch.allclose(result, wave(*args), atol=1e-6)


def test_modes_of_the_thread_count(folder, lowered):
    x, y = arguments()
    trained = fresh(wave, x, y)
    with torch.no_grad():
        assert not fresh(wave, x, y).requires_grad
    assert len(lowered) == 2 and trained.requires_grad
    assert fresh(wave, x, y).requires_grad


def test_the_default_dtype_counts(folder, lowered):
    x = torch.arange(6)
    before = torch.get_default_dtype()
    try:
        for dtype in (torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            assert fresh(lambda x: x / 4 + torch.ones(6), x).dtype is dtype
    finally:
        torch.set_default_dtype(before)
    assert len(lowered) == 2


def test_sources_flags_and_processor_count(folder, lowered, monkeypatch):
    x, y = arguments()
    fresh(wave, x, y)
    monkeypatch.setattr(kept, "_environment", lambda: b"other sources")
    fresh(wave, x, y)
    assert len(lowered) == 2
    flags = toolchain.flags()
    monkeypatch.setattr(toolchain, "flags", lambda: (*flags, "-O1"))
    toolchain._fixed_digest.cache_clear()
    fresh(wave, x, y)
    assert len(lowered) == 3  # its library is another
    fresh(wave, x, y)
    assert len(lowered) == 3


def test_environment_reads_the_sources(monkeypatch, tmp_path):
    package = tmp_path / "flambeau"
    for name in kept._SOURCES:
        (package / name).mkdir(parents=True)
    (package / "_aot" / "a.py").write_text("one = 1\n")
    monkeypatch.setattr(kept, "_PACKAGE", package)
    digest = kept._environment.__wrapped__
    first = digest()
    assert digest() == first
    (package / "_aot" / "a.py").write_text("one = 2\n")
    second = digest()
    (package / "_aot" / "a.py").rename(package / "_aot" / "b.py")
    assert len({first, second, digest()}) == 3
    monkeypatch.setattr(toolchain, "processor", lambda: "another")
    assert digest() not in (first, second)


def test_guards_of_the_passes_are_known_again(folder, lowered):
    def rows(x, y):
        return (x + y).view(-1, 4).sum(0)

    def run():
        torch.compiler.reset()
        f = torch.compile(rows, dynamic=True)
        for n in (8, 8, 12, 6, 1):
            x, y = torch.linspace(0, 1, n * 4).view(n, 4), torch.ones(n, 4)
            assert torch.allclose(f(x, y), rows(x, y), atol=1e-6)
        return [part.guards for part in f._flambeau_config.parts]

    first = run()
    count = len(lowered)
    assert run() == first and len(lowered) == count


@pytest.mark.parametrize("damage", ["cut", "flipped", "no plan", "empty", "name"])
def test_a_damaged_file_is_made_again(folder, lowered, damage):
    x, y = arguments()
    first = fresh(wave, x, y)
    (path,) = plans(folder)
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[len(data) // 3] ^= 1
    path.write_bytes(
        {"cut": data[: len(data) // 2], "no plan": b"{}", "empty": b""}.get(damage, data)
    )
    if damage == "name":
        fresh(lambda x, y: x @ y, x, y)
        other = next(p for p in plans(folder) if p != path)
        path.write_bytes(other.read_bytes())
        lowered.pop()
    assert torch.equal(fresh(wave, x, y), first)
    assert len(lowered) == 2
    fresh(wave, x, y)
    assert len(lowered) == 2


def places(data, at=()):
    yield at
    if isinstance(data, tuple):
        for k, item in enumerate(data):
            yield from places(item, (*at, k))


def replaced(data, at, new):
    if not at:
        return new
    return (*data[: at[0]], replaced(data[at[0]], at[1:], new), *data[at[0] + 1 :])


@pytest.mark.parametrize("new", [None, (), "text", 1 << 70, -1, 99, 2.5])
def test_a_file_that_nobody_wrote_so_never_harms(folder, lowered, new):
    """Each part of a description replaced: it is made or refused, and the process lives."""
    torch.compiler.reset()
    f = torch.compile(wave)
    f(*arguments())
    (path,) = plans(folder)
    data = plain.loads(cache.read(path.name))
    (graph,) = (p.graph for p in f._flambeau_config.parts)
    for at in places(data):
        kept._from(replaced(data, at, new), graph, lambda function: None)
    assert len(lowered) == 1


def test_a_library_that_is_gone_is_compiled_again(folder, lowered):
    x, y = arguments()
    first = fresh(wave, x, y)
    for path in folder.glob("*.so"):
        path.unlink()
    assert torch.equal(fresh(wave, x, y), first)
    assert len(lowered) == 2 and list(folder.glob("*.so"))


def test_plans_count_in_the_bound(folder, lowered, monkeypatch):
    x, y = arguments()
    fresh(wave, x, y)
    (path,) = plans(folder)
    os.utime(path, (1, 1))
    monkeypatch.setenv("FLAMBEAU_CACHE_SIZE", "1")
    fresh(lambda x, y: x @ y + 1, x, y)
    assert not path.exists()


def test_verifying_compiles_again_and_compares(folder, lowered, monkeypatch):
    x, y = arguments()
    first = fresh(wave, x, y)
    monkeypatch.setenv("FLAMBEAU_VERIFY", "1")
    toolchain.flags.cache_clear()
    assert torch.equal(fresh(wave, x, y), first) and len(lowered) == 2
    (path,) = plans(folder)
    rewritten(path, lambda d: replaced(d, (0, 1, 2), d[0][1][2] + 1))
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="is not what compiling"):
        fresh(wave, x, y)


def test_where_a_line_is_does_not_matter(folder, lowered):
    text = "def f(x):\n    return x.exp() - 1\n"
    x = torch.ones(3)
    for k in range(2):
        space = {}
        exec(compile("\n" * k + text, f"file{k}.py", "exec"), space)
        assert torch.allclose(fresh(space["f"], x), space["f"](x))
    assert len(lowered) == 1


def test_how_many_lines_make_a_loop_does_not_matter(folder, lowered, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_VERIFY", "1")
    toolchain.flags.cache_clear()
    x = torch.ones(3)
    for text in ("y = x.exp(); return y - 1", "y = x.exp()\n    return y - 1"):
        space = {}
        exec(compile(f"def f(x):\n    {text}\n", "file.py", "exec"), space)
        assert torch.allclose(fresh(space["f"], x), space["f"](x))
    assert len(lowered) == 2 and len(plans(folder)) == 1


def test_generated_code_that_is_to_be_shown_is_made(folder, lowered, monkeypatch, capfd):
    x, y = arguments()
    fresh(wave, x, y)
    monkeypatch.setenv("FLAMBEAU_LOGS", "output_code")
    fresh(wave, x, y)
    assert len(lowered) == 2 and "[output_code]" in capfd.readouterr().err


@pytest.mark.parametrize(
    "x",
    [
        (), (1, -2.5, True, None, "a'\n"), ((1,), ((),)), 1 << 80, float("inf"), 1 - 2j,
        torch.bfloat16, torch.channels_last, torch.strided, torch.device("cpu"),
    ],
)  # fmt: skip
def test_plain_data_is_read_as_it_was_written(x):
    again = plain.loads(plain.dumps(x))
    assert again == x and type(again) is type(x)


@pytest.mark.parametrize(
    "text",
    ["", "[", '{"dtype":"nn"}', '{"dtype":"float99"}', '{"a":1,"b":2}', '{"device":"moon"}',
     '{"complex":[1]}', "[" * 100_000],
)  # fmt: skip
def test_text_of_no_data_is_refused(text):
    with pytest.raises(ValueError):
        plain.loads(text)


def test_what_is_no_data_is_not_written():
    for x in (object(), torch.ones(1), {1}, b"a", print):
        with pytest.raises(plain.NotPlain):
            plain.dumps((1, x))
