"""What the package names in profiles: stages of pipes, loaders, steps of optimisers."""

import time
from collections import Counter

import flambeau as torch
from flambeau.profiler import profile, schedule
from flambeau.utils.data import DataLoader, IterDataPipe
from flambeau.utils.data.datapipes.iter import IterableWrapper


class Counting:
    """An iterator with an attribute."""

    def __init__(self, n):
        self.left = n

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left


class Plain(IterDataPipe):
    def __iter__(self):
        return Counting(3)


def slow(x):
    time.sleep(0.003)
    return torch.tensor(x) * 2


def test_each_stage_of_a_pipe_has_its_time():
    pipe = IterableWrapper(range(5)).map(slow).batch(2)
    with profile() as prof:
        assert len(list(pipe)) == 3
    names = Counter(e.key for e in prof.events())
    stages = [f"enumerate(DataPipe)#{n}" for n in ("IterableWrapper", "Mapper", "Batcher")]
    # Each element, and the question that finds the end.
    assert [names[s] for s in stages] == [6, 6, 4]
    own = {e.key: e.self_cpu_time_total for e in prof.key_averages()}
    assert own[stages[1]] >= 5 * 3000 > own[stages[0]] + own[stages[2]]
    mul = next(e for e in prof.events() if e.key == "aten::mul")
    assert mul.cpu_parent.key == stages[1] and mul.cpu_parent.cpu_parent.key == stages[2]


def test_pipes_of_iterators_keep_their_attributes():
    with profile() as prof:
        elements = iter(Plain())
        assert elements.left == 3 and list(elements) == [2, 1, 0] and elements.left == 0
    assert [e.key for e in prof.events()].count("enumerate(DataPipe)#Plain") == 4


def test_steps_that_are_recorded_show_the_loader_and_the_optimiser():
    layer = torch.nn.Linear(1, 1)
    optimiser = torch.optim.SGD(layer.parameters(), 0.1)
    pipe = IterableWrapper(range(8)).map(lambda n: torch.ones(1) * n)
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(schedule=plan) as prof:
        for batch in DataLoader(pipe, batch_size=2):
            optimiser.zero_grad()
            layer(batch).sum().backward()
            optimiser.step()
            prof.step()
    names = Counter(e.key for e in prof.events())
    assert names["Optimizer.step#SGD.step"] == names["LinearBackward0"] == 2
    assert names["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 2
    assert names["enumerate(DataPipe)#Mapper"] == 4
    assert names["ProfilerStep#2"] == names["ProfilerStep#3"] == 1
    assert torch.autograd.profiler._watchers == 0


def test_nobody_watches_after_profiles_that_failed():
    for failing in (lambda p: 1 / 0, lambda p: p.step()):
        try:
            with profile(schedule=schedule(wait=1, warmup=1, active=1)) as p:
                failing(p)
        except ZeroDivisionError:
            pass
        assert torch.autograd.profiler._watchers == 0
        assert not torch.autograd.profiler._is_profiler_enabled


def test_ranges_in_compiled_functions_are_left_out():
    def f(x):
        with torch.profiler.record_function("inner"):
            return x.sin() * 2

    compiled = torch.compile(f, fullgraph=True)
    x = torch.rand(3)
    assert torch.equal(compiled(x), f(x))
    with profile() as prof:
        compiled(x)
    names = [e.key for e in prof.events()]
    assert names.count("CompiledFunction") == 1 and "inner" not in names
