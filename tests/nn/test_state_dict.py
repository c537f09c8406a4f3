"""state_dict and load_state_dict: keys, hooks, messages."""

import pytest

import flambeau as fb
from flambeau import nn


def net():
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))


def test_keys_and_metadata():
    state = net().state_dict()
    assert list(state) == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    ]
    assert dict(state._metadata) == {"": {"version": 1}, "0": {"version": 1}, "1": {"version": 2}}
    assert not state["0.weight"].requires_grad
    assert net().state_dict(keep_vars=True)["0.weight"].requires_grad
    assert list(nn.Linear(1, 1).state_dict(prefix="p.")) == ["p.weight", "p.bias"]


def test_values_are_shared_on_save_and_copied_on_load():
    source, target = net(), net()
    state = source.state_dict()
    assert state["0.weight"].data_ptr() == source[0].weight.data_ptr()
    result = target.load_state_dict(state)
    assert str(result) == "<All keys matched successfully>"
    assert fb.equal(target[0].weight, source[0].weight)
    assert target[0].weight.data_ptr() != source[0].weight.data_ptr()


def test_every_mismatch_is_reported_at_once():
    state = net().state_dict()
    state["0.weight"] = fb.ones(3, 3)
    del state["0.bias"]
    state["1.bias"] = 3
    state["extra"] = fb.ones(1)
    state["0.odd"] = fb.ones(1)
    with pytest.raises(RuntimeError) as caught:
        net().load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "0.bias". \n'
        '\tUnexpected key(s) in state_dict: "extra", "0.odd". \n'
        "\tsize mismatch for 0.weight: copying a param with shape torch.Size([3, 3]) from "
        "checkpoint, the shape in current model is torch.Size([2, 3]).\n"
        '\tWhile copying the parameter named "1.bias", expected torch.Tensor or Tensor-like '
        "object from checkpoint but received <class 'int'>"
    )


def test_not_strict():
    result = net().load_state_dict({"0.weight": fb.ones(2, 3), "x": fb.ones(1)}, strict=False)
    assert "0.bias" in result.missing_keys and result.unexpected_keys == ["x"]


def test_not_a_mapping():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        net().load_state_dict(3)


def test_assign():
    layer = nn.Linear(2, 1)
    weight = fb.ones(1, 2, dtype=fb.float64)
    layer.load_state_dict({"weight": weight, "bias": fb.zeros(1)}, assign=True)
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.dtype == fb.float64
    assert layer.weight.data_ptr() == weight.data_ptr() and layer.weight.requires_grad


def test_hooks():
    log = []
    model = net()
    model[0].register_state_dict_pre_hook(lambda m, prefix, keep_vars: log.append(prefix))

    def add(module, state, prefix, metadata):
        state[prefix + "z"] = fb.ones(1)

    model[0].register_state_dict_post_hook(add)
    state = model.state_dict()
    assert log == ["0."] and "0.z" in state

    def take_out(module, state, prefix, *rest):
        log.append(type(module).__name__)
        state.pop(prefix + "z")

    model[0].register_load_state_dict_pre_hook(take_out)
    model.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    del state["1.bias"]
    model.load_state_dict(state)
    assert log[-1] == "Linear"

    model[0].register_state_dict_post_hook(lambda *args: 3)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        model.state_dict()


def test_extra_state():
    class Counter(nn.Module):
        n = 0

        def get_extra_state(self):
            return self.n

        def set_extra_state(self, state):
            self.n = state

    box = nn.Sequential(Counter())
    box[0].n = 4
    state = box.state_dict()
    assert dict(state) == {"0._extra_state": 4}
    fresh = nn.Sequential(Counter())
    fresh.load_state_dict(state)
    assert fresh[0].n == 4
    with pytest.raises(RuntimeError, match='Missing key.*"0._extra_state"'):
        fresh.load_state_dict({})
    with pytest.raises(RuntimeError, match="not overridden"):
        nn.Module().get_extra_state()


def test_batch_norm_reads_states_without_a_count():
    layer = nn.BatchNorm1d(2)
    state = {k: v for k, v in layer.state_dict().items() if k != "num_batches_tracked"}
    layer.load_state_dict(state)  # plain dict: no version
    assert int(layer.num_batches_tracked) == 0


def test_scalars_saved_with_one_element():
    class Scalar(nn.Module):
        def __init__(self):
            super().__init__()
            self.x = nn.Parameter(fb.zeros(()))

    module = Scalar()
    module.load_state_dict({"x": fb.ones(1)})
    assert module.x.item() == 1


def test_prefix_helper():
    from flambeau.nn.modules.utils import consume_prefix_in_state_dict_if_present

    wrapped = nn.ModuleDict({"module": nn.Linear(1, 1)})
    state = wrapped.state_dict()
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"]
    nn.Linear(1, 1).load_state_dict(state)
