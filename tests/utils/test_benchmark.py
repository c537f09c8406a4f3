"""Timers, their figures and tables."""

import pickle

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils import benchmark
from flambeau.utils.benchmark import (
    Compare,
    FuzzedParameter,
    FuzzedTensor,
    Fuzzer,
    Measurement,
    ParameterAlias,
    TaskSpec,
    Timer,
)


def measured(times, number=100, **spec):
    given = {"stmt": "x", "setup": "pass", **spec}
    return Measurement(number, [t * number for t in times], TaskSpec(**given))


class Clock:
    """Time that passes when it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def work(self, seconds):
        self.now += seconds


def test_counts_and_times_by_a_clock_of_our_own():
    clock, calls = Clock(), []

    def work():
        calls.append(torch.get_num_threads())
        clock.work(0.003)

    timer = Timer("work()", globals={"work": work}, timer=clock, num_threads=2)
    before = torch.get_num_threads()
    m = timer.timeit(10)
    assert len(calls) == 12 and set(calls) == {2} and torch.get_num_threads() == before
    assert m.median == pytest.approx(0.003) and m.raw_times == [pytest.approx(0.03)]
    told = []
    m = timer.blocked_autorange(lambda n, t: told.append((n, t)), min_run_time=0.1)
    assert m.number_per_run == 1 and len(m.times) == 34 == len(told)
    m = timer.adaptive_autorange(min_run_time=0.02)
    assert m.median == pytest.approx(0.003) and m.iqr == pytest.approx(0) and len(m.times) == 7


def test_noise_is_measured_until_the_longest_time():
    clock, turn = Clock(), iter(range(10**6))
    work = lambda: clock.work(0.01 if next(turn) % 2 else 0.05)  # noqa: E731
    timer = Timer("work()", globals={"work": work}, timer=clock)
    m = timer.adaptive_autorange(max_run_time=0.5)
    assert m.has_warnings and 0.5 <= sum(m.raw_times) < 0.56


def test_real_time():
    timer = Timer("for _ in range(2000): n += 1", setup="n = 0")
    quick, slow = timer.timeit(20), Timer("for _ in range(40000): n += 1", "n = 0").timeit(20)
    assert slow.median > 4 * quick.median > 0
    m = Timer("x.add_(1)", "x = torch.zeros(3)", globals={"torch": torch}).blocked_autorange(
        min_run_time=0.02
    )
    assert m.number_per_run >= 10 and sum(m.raw_times) >= 0.02 and 1e-8 < m.median < 1e-3


def test_texts_are_run_with_their_names():
    names = {}
    timer = Timer(
        """
        seen.append(a + b)
        """,
        """
        a = 1
        b = 2
        """, globals={"seen": (seen := [])})  # fmt: skip
    timer.timeit(1)
    assert seen == [3, 3, 3] and names == {} and timer._task_spec.stmt == "seen.append(a + b)"


def test_statistics():
    times = [1e-6, 3e-6, 9e-6, 1.05e-6] * 3
    m = measured(times)
    low, high = np.quantile(times, [0.25, 0.75])
    assert m.median == pytest.approx(np.median(times)) and m.mean == pytest.approx(np.mean(times))
    assert m.iqr == pytest.approx(high - low) and m.has_warnings and m.significant_figures == 1
    assert not m.meets_confidence() and measured([1.0, 1.01, 1.02]).meets_confidence()
    assert measured([1e-6]).iqr == 0 and measured([1.0, 1.0]).significant_figures == 5
    assert pickle.loads(pickle.dumps(m)).times == m.times
    a, b = measured([1.0]), measured([2.0], number=10)
    (both,) = Measurement.merge([a, b])
    assert both.times == [pytest.approx(1.0), pytest.approx(2.0)]
    assert len(Measurement.merge([a, measured([1.0], num_threads=2)])) == 2
    with pytest.raises(ValueError, match="no times"):
        _ = measured([]).median


def test_shown_measurements():
    one = repr(measured([1e-6], stmt="x+y", setup="a = 1\nb = 2")).splitlines()[1:]
    assert one == ["x+y", "setup:", "  a = 1", "  b = 2", "", "  1.00 us",
                   "  1 measurement, 100 runs , 1 thread"]  # fmt: skip
    many = repr(
        measured([1e-6, 1.1e-6, 1.2e-6, 1.05e-6], label="L", sub_label="S", description="D",
                 num_threads=2)
    ).splitlines()[1:]  # fmt: skip
    assert many == ["L: S", "D", "  Median: 1.07 us", "  IQR:    0.09 us (1.04 to 1.12)",
                    "  4 measurements, 100 runs per measurement, 2 threads"]  # fmt: skip
    assert "WARNING" in repr(measured([1.0, 1.0, 5.0, 5.0]))


TABLE = """\
[---------- Batched dot -----------]
                |  mul/sum  |   bmm 
1 threads: -------------------------
      [1, 1]    |     6.5   |   12.4
      [64, 64]  |   130.5   |  247.1
4 threads: -------------------------
      [1, 1]    |     8.3   |   15.7
      [64, 64]  |   166.0   |  314.4

Times are in microseconds (us).
"""  # noqa: W291


def results():
    return [
        measured([t * f * (1 + 0.1 * n)] * 4, label="Batched dot", sub_label=size, description=d,
                 num_threads=n)
        for n in (1, 4) for size, f in (("[1, 1]", 1), ("[64, 64]", 20))
        for d, t in (("mul/sum", 5.93e-6), ("bmm", 11.23e-6))
    ]  # fmt: skip


def test_tables(capsys):
    compare = Compare(results())
    assert str(compare) == TABLE
    compare.print()
    assert capsys.readouterr().out == TABLE + "\n"
    compare.colorize(rowwise=True)
    plain = str(compare)
    for code in ("\033[92m", "\033[1m", "\033[0m", "\033[31m", "\033[34m", "\033[2m", "\033[91m"):
        plain = plain.replace(code, "")
    assert plain == TABLE and str(compare).count("\033[92m") == 4
    two = Compare([measured([0.5], env="a", sub_label="s"), measured([1e-3], label="M")])
    assert "(a) s" in str(two) and str(two).count("Times are in") == 2
    noisy = Compare([measured([1e-6, 3e-6, 9e-6, 1.05e-6] * 3, description="a")])
    noisy.highlight_warnings()
    noisy.trim_significant_figures()
    assert "2 (! 171%)" in str(noisy)
    assert str(Compare([])) == ""
    with pytest.raises(ValueError, match="instance of `Measurement`"):
        compare.extend_results([1])


def test_what_is_not_given_leaves_a_gap():
    rows = str(Compare([m for m in results() if m.num_threads == 1][:3])).splitlines()
    assert rows[4].split("|")[2].strip() == ""


def test_units_and_figures():
    units = [(3e-10, "ns"), (1e-9, "ns"), (5e-7, "ns"), (1e-6, "us"), (0.02, "ms"), (1, "s"),
             (5e4, "s")]  # fmt: skip
    assert [benchmark.select_unit(t)[0] for t, _ in units] == [u for _, u in units]
    assert [benchmark.trim_sigfig(x, 2) for x in (1234.5, 0.01234, 9.99, 0.0, -155.0)] == [
        1200, 0.012, 10, 0, -160,
    ]  # fmt: skip
    assert benchmark.unit_to_english("ms") == "millisecond"
    with pytest.raises(ValueError, match="positive number"):
        benchmark.trim_sigfig(1.0, 0)


def test_drawn_inputs():
    def fuzzer(seed):
        return Fuzzer(
            [
                FuzzedParameter("a", 1, 64, "loguniform"),
                [FuzzedParameter("b", distribution={16: 0.5, 32: 0.5}),
                 FuzzedParameter("c", distribution={ParameterAlias("a"): 1.0}),
                 FuzzedParameter("s", 1, 2, "uniform"), FuzzedParameter("n", 1, 3, "uniform")],
            ],
            [
                FuzzedTensor("x", ("a", "b", 3), ("s", 1, 1), 0.5, min_elements=100,
                             max_elements=4000, dim_parameter="n"),
                FuzzedTensor("y", ("c",), dtype=torch.int64),
            ],
            constraints=[lambda a, b, **_: a != b], seed=seed,
        )  # fmt: skip

    drawn = list(fuzzer(0).take(30))
    contiguous = 0
    for tensors, facts, p in drawn:
        x = tensors["x"]
        assert x.shape == (p["a"], p["b"], 3)[: p["n"]] and 100 <= x.numel() <= 4000
        assert p["c"] == p["a"] != p["b"] and tensors["y"].shape == (p["a"],)
        assert facts["x"]["is_contiguous"] == x.is_contiguous()
        assert facts["x"]["numel"] == x.numel() and tensors["y"].dtype == torch.int64
        contiguous += x.is_contiguous()
    assert 3 < contiguous < 27
    again = list(fuzzer(0).take(30))
    assert all(torch.equal(a[0]["x"], b[0]["x"]) for a, b in zip(drawn, again, strict=True))
    one = fuzzer(1)
    next(iter(one.take(1)))
    assert 0 <= one.rejection_rate < 1
    hopeless = Fuzzer([FuzzedParameter("a", 1, 2, "uniform")], [], [lambda a: a > 2], seed=0)
    with pytest.raises(ValueError, match="1000 draws"):
        list(hopeless.take(1))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Timer(3), TypeError, "stmt: expected str, got int"),
        (lambda: Timer("x", language="c++"), NotImplementedError, "load_inline"),
        (lambda: Timer("x", language="rust"), ValueError, "expected one of"),
        (lambda: Timer("x", global_setup="#include"), ValueError, "global_setup"),
        (lambda: Timer("x", num_threads=0), ValueError, "num_threads"),
        (lambda: Timer("nowhere").timeit(1), NameError, "nowhere"),
        (lambda: Timer("x +").timeit(1), SyntaxError, "invalid syntax"),
        (lambda: Timer().collect_callgrind(), NotImplementedError, "valgrind"),
        (lambda: Timer().repeat(), NotImplementedError, "blocked_autorange"),
        (lambda: FuzzedParameter("a", 0, 1, "loguniform"), ValueError, "minval > 0"),
        (lambda: FuzzedParameter("a", 2, 1, "uniform"), ValueError, "minval <= maxval"),
        (lambda: FuzzedParameter("a"), ValueError, "expected a distribution"),
        (lambda: FuzzedTensor("x", (1,), cuda=True), RuntimeError, "no such device"),
        (lambda: Fuzzer([FuzzedParameter("a", distribution={1: 1})] * 2, []), ValueError, "share"),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error, match=message):
        make()
