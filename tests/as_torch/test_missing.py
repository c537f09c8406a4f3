"""Names that packages read when they are imported, and names that are missing."""

import pathlib
import re
import textwrap
import tomllib

import flambeau

HERE = pathlib.Path(__file__).parent
PACKAGE = pathlib.Path(flambeau.__path__[-1])
TABLE = tomllib.loads((PACKAGE / "as_torch" / "missing.toml").read_text())


def test_every_name_read_at_import_is_there(run):
    """The list holds what importing transformers, timm, torchvision, lightning, torchmetrics,
    accelerate, peft, diffusers and safetensors reads."""
    program = f"""
        import importlib, pathlib, sys, torch
        lacking = []
        for name in pathlib.Path({str(HERE / "import_time_names.txt")!r}).read_text().split():
            value, at = torch, "torch"
            for part in name.split(".")[1:]:
                at += "." + part
                try: value = getattr(value, part)
                except AttributeError:
                    try: value = importlib.import_module(at)
                    except ImportError: lacking.append(name); break
        print(*lacking)
    """
    assert run("-c", textwrap.dedent(program)).split() == []


def test_a_missing_name_is_refused_when_it_is_used(run):
    program = """
        import sys, torch, torch.export, torch.nn.utils.prune
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        class Program(torch.export.ExportedProgram): pass
        def annotated(x: torch.export.Dim | None) -> torch.export.ExportedProgram: ...
        assert not isinstance(3, torch.export.Dim) and not isinstance(3, (int.__class__, FSDP))
        assert torch.export.Dim.__module__ == "torch.export" and torch.export.Dim.__name__ == "Dim"
        for make in (torch.export.ExportedProgram, Program, FSDP, torch.export.export):
            try: make(1)
            except NotImplementedError as e: print(e)
        try: torch.export.Dim.nope
        except AttributeError as e: print(e)
    """
    out = run("-c", textwrap.dedent(program)).splitlines()
    why = TABLE["export"]["reason"]
    words = f"Flambeau does not have it yet: {why}; see docs/missing.md"
    assert out[0] == f"torch.export.ExportedProgram: {words}"
    assert out[1] == f"torch.export.ExportedProgram: {words}"
    assert out[2].startswith("torch.distributed.fsdp.FullyShardedDataParallel: Flambeau")
    assert out[4] == f"torch.export.Dim.nope: torch.export.Dim: {words}"


def test_an_unknown_name_is_an_attribute_error(run):
    program = """
        import sys, torch, torch.nn.functional as F
        for module in (torch, torch.nn, F, torch.optim, torch.fx, torch.distributed):
            try: module.no_such_thing
            except AttributeError as e: print(e)
            assert not hasattr(module, "no_such_thing")
        try: from torch.nn import no_such_thing
        except ImportError as e: print(e.name)
    """
    out = run("-c", textwrap.dedent(program)).splitlines()
    assert len(out) == 7
    for line, name in zip(out, ("torch", "torch.nn", "torch.nn.functional"), strict=False):
        assert line == (
            f"module '{name}' has no attribute 'no_such_thing' "
            "(Flambeau has it not, or not yet: docs/missing.md)"
        )


def test_missing_numbers_say_their_limits_and_are_no_dtypes(run):
    program = """
        import sys, torch
        f8 = torch.float8_e4m3fn
        assert torch.finfo(f8).max == 448 and f8 != torch.float16 and f8 is torch.float8_e4m3fn
        assert repr(f8) == "torch.float8_e4m3fn" and not isinstance(f8, torch.dtype)
        for use in (lambda: torch.ones(1, dtype=f8), lambda: torch.ones(1).to(f8)):
            try: use()
            except TypeError: print("refused")
    """
    assert run("-c", textwrap.dedent(program)) == "refused\nrefused\n"


def test_nothing_listed_as_missing_is_there():
    """The table shrinks as things are built: a name in it that we have would hide ours."""
    there = []
    for area in TABLE.values():
        assert re.match(r"\S.*\S$", area["reason"])
        for module, names in area["names"].items():
            if area.get("exceptions") or module == "torch.ops.aten":
                continue
            file = PACKAGE.joinpath(*module.split(".")[1:])
            if module == "torch" or file.with_suffix(".py").exists() or file.is_dir():
                ours = __import__(module.replace("torch", "flambeau", 1), fromlist=["_"])
                there += [f"{module}.{n}" for n in names.split() if hasattr(ours, n)]
    assert there == []
