"""Files of PyTorch 2.13, some five hundred, and the same written here: what comes back is equal.

`tools/pytorch_files.py` made the archive, and compares both ways where PyTorch is installed.
"""

import copy
import io
import pathlib
import pickle
import tarfile
import warnings
import zipfile

import numpy as np
import pytest

import flambeau as fb
from flambeau.serialization import load, save

from .cases import CASES
from .cases.compare import differences

ARCHIVE = pathlib.Path(__file__).parent / "pytorch_files" / "cases.tar.gz"
with tarfile.open(ARCHIVE) as _archive:
    STORED = {entry.name: _archive.extractfile(entry).read() for entry in _archive}


def back(data, case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if case.run else "error")
        return load(io.BytesIO(data), weights_only=case.run is None)


def check(data, case):
    got, want = back(data, case), case.make(fb)
    assert differences(fb, got, want, case.close) == []
    if case.run is not None:
        assert differences(fb, case.run(fb, got), case.run(fb, want), True) == []


@pytest.mark.parametrize("name", sorted(STORED))
def test_files_of_pytorch(name):
    check(STORED[name], CASES[name.removesuffix(".pt").removesuffix(".legacy")])


def test_there_are_enough_of_them():
    assert len(STORED) >= 400 and len({n.split(".")[0] for n in STORED}) >= 200


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_is_saved_here(name):
    case = CASES[name]
    for legacy in (False, True) if case.legacy else (False,):
        stream = io.BytesIO()
        save(case.make(fb), stream, _use_new_zipfile_serialization=not legacy)
        check(stream.getvalue(), case)


# Modules: what PyTorch's classes need of a file


def names_of(value):
    stream = io.BytesIO()
    save(value, stream)
    return fb.serialization.get_unsafe_globals_in_checkpoint(stream)


def test_a_module_has_what_pytorchs_class_keeps():
    stream = io.BytesIO()
    save(fb.nn.LSTM(2, 3), stream)
    with zipfile.ZipFile(stream) as file:
        pickled = file.read("archive/data.pkl")
    for name in (
        "_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_hooks_always_called",
        "_forward_hooks_with_kwargs", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
        "_is_full_backward_hook", "_load_state_dict_post_hooks", "_load_state_dict_pre_hooks",
        "_non_persistent_buffers_set", "_state_dict_hooks", "_state_dict_pre_hooks",
        "_flat_weights", "_flat_weights_names",
    ):  # fmt: skip
        assert name.encode() in pickled, name
    assert b"_hooked" not in pickled


def test_classes_have_their_public_names():
    assert (
        names_of(fb.nn.MultiheadAttention(4, 2))[0]
        == "torch.nn.modules.activation.MultiheadAttention"
    )
    assert names_of(fb.nn.ParameterList([fb.ones(1)])) == [
        "torch.nn.modules.container.ParameterList"
    ]
    layer = fb.nn.TransformerEncoderLayer(4, 2, 8, activation=fb.relu)
    assert "torch.relu" in names_of(layer)
    assert not any("._" in name for name in names_of(layer))


def test_a_loaded_module_is_as_quick_as_a_new_one():
    stream = io.BytesIO()
    save(fb.nn.LSTM(2, 3), stream)
    with pytest.warns(UserWarning, match="can run any code"):
        got = load(stream, weights_only=False)
    assert not got._hooked and vars(got).keys() == vars(fb.nn.LSTM(2, 3)).keys()
    got.double()
    assert got._flat_weights[0].dtype == fb.float64
    assert vars(copy.deepcopy(got)).keys() == vars(got).keys()


def test_hooks_in_files():
    module = fb.nn.Linear(2, 2)
    module.register_forward_hook(_double)
    module.register_state_dict_pre_hook(_nothing)
    stream = io.BytesIO()
    save(module, stream)
    with pytest.warns(UserWarning, match="can run any code"):
        got = load(stream, weights_only=False)
    x = fb.ones(1, 2)
    assert fb.equal(got(x), module(x)) and got._hooked and len(got._state_dict_pre_hooks) == 1


def _double(module, args, output):
    return output * 2


def _nothing(module, prefix, keep_vars):
    pass


def test_a_class_that_describes_itself():
    stream = io.BytesIO()
    save(Described(5), stream)
    with pytest.warns(UserWarning, match="can run any code"):
        assert load(stream, weights_only=False).size == 5


class Described(fb.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def __reduce__(self):
        return Described, (self.size,)


def test_a_class_beside_its_source():
    """The older format keeps the source of modules' classes, by ids of another kind."""
    data = STORED["module_Linear.legacy.pt"]
    assert b"module" in data and b"class Linear" in data
    with pytest.raises(pickle.UnpicklingError, match=r"names torch\.nn\.modules\.linear\.Linear"):
        load(io.BytesIO(data))


# NumPy's generators: states that its own setters would believe


def generator_file(change):
    generator = np.random.Generator(np.random.MT19937(1))
    state = generator.bit_generator.state
    change(state)
    bits = type(generator.bit_generator)
    pickled = pickle.dumps(Reduced(np.random._pickle.__bit_generator_ctor, (bits,), state), 2)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("x/data.pkl", pickled)
    return stream


class Reduced:
    def __init__(self, *parts):
        self.parts = parts

    def __reduce__(self):
        return self.parts


def test_a_state_alone():
    got = load(generator_file(lambda state: None))
    assert type(got) is np.random.MT19937
    assert got.random_raw() == np.random.MT19937(1).random_raw()


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s["state"].update(pos=625), lambda s: s["state"].update(pos=-1),
        lambda s: s["state"].update(pos=1.0),
        lambda s: s["state"].update(key=s["state"]["key"][:9]),
        lambda s: s["state"].update(key=s["state"]["key"].astype("int64")),
        lambda s: s["state"].update(more=1), lambda s: s["state"].pop("pos"),
        lambda s: s.update(bit_generator="PCG64"), lambda s: s.update(state=[]),
        lambda s: s.update(buffer_pos=9), lambda s: s.update(other=1), lambda s: s.clear(),
    ],
)  # fmt: skip
def test_states_out_of_range(change):
    with pytest.raises(pickle.UnpicklingError, match="state of NumPy's MT19937 is malformed"):
        load(generator_file(change))


def test_generators_go_on_where_they_were():
    made = [
        np.random.RandomState(3),
        np.random.default_rng(3),
        np.random.Generator(np.random.SFC64(3)),
    ]
    for generator in made:
        generator.normal(size=3)
    stream = io.BytesIO()
    save(made, stream)
    for got, want in zip(load(stream), made, strict=True):
        assert got.normal(size=5).tolist() == want.normal(size=5).tolist()
    got, want = load(stream)[1], np.random.default_rng(3)
    spawned = [g.bit_generator.seed_seq.spawn(1)[0].entropy for g in (got, want)]
    assert spawned[0] == spawned[1]


def test_the_archive_is_small():
    assert ARCHIVE.stat().st_size < 400_000
