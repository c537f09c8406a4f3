"""`hub`: repositories and weights, from a server on loopback that answers as GitHub does."""

import hashlib
import io
import os
import pathlib
import stat
import subprocess
import sys
import types
import urllib.error
import zipfile

import pytest

import flambeau as torch

from .hub_server import GitHub, archive

CONF = """
dependencies = ["json"]
from helper import weight

def net(n=1, *, scale=1):
    "A net."
    import late  # found while the callable runs
    return [weight * scale] * n

def _internal():
    pass
"""
FILES = {"a-net-1/hubconf.py": CONF, "a-net-1/helper.py": "weight = 7", "a-net-1/late.py": ""}


def packed(conf=CONF, links=()):
    return archive({**FILES, "a-net-1/hubconf.py": conf}, links)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(torch.hub, "_dir", None)
    with GitHub({"a/net": {"main": packed(), "v1": packed(), "fix/x": packed()}}) as github:
        monkeypatch.setenv("FLAMBEAU_HUB_URL", github.address)
        monkeypatch.delenv("GITHUB_TOKEN", raising=False)
        yield github
    sys.modules.pop("helper", None)
    sys.modules.pop("late", None)


def home():
    return pathlib.Path(torch.hub.get_dir())


# Repositories


def test_a_repository_is_downloaded_once(hub, capsys):
    assert torch.hub.load("a/net", "net", 2, scale=3, trust_repo=True) == [21, 21]
    assert "Downloading" in capsys.readouterr().out
    asked = len(hub.asked)
    assert torch.hub.load("a/net:main", "net") == [7]  # of the cache, and trusted since
    assert "Using cache found in" in capsys.readouterr().err
    assert len(hub.asked) == asked
    assert torch.hub.load("a/net:main", "net", verbose=False) == [7]
    assert capsys.readouterr().err == ""
    assert sorted(os.listdir(home())) == ["a_net_main", "trusted_list"]
    assert (home() / "trusted_list").read_text() == "a_net\n"
    assert str(home() / "a_net_main") not in sys.path


def test_list_and_help(hub):
    assert torch.hub.list("a/net:v1", trust_repo=True) == ["net"]
    assert torch.hub.help("a/net:v1", "net") == "A net."
    with pytest.raises(RuntimeError, match="Cannot find callable nope in hubconf, which has net"):
        torch.hub.help("a/net:v1", "nope")


def test_force_reload(hub):
    torch.hub.load("a/net:v1", "net", trust_repo=True)
    hub.repositories["a/net"]["v1"] = packed("def net(): return 'new'")
    assert torch.hub.load("a/net:v1", "net") == [7]
    assert torch.hub.load("a/net:v1", "net", force_reload=True) == "new"
    assert sorted(os.listdir(home() / "a_net_v1")) == ["helper.py", "hubconf.py", "late.py"]


def test_a_failed_reload_leaves_the_cache(hub):
    torch.hub.load("a/net:v1", "net", trust_repo=True)
    hub.repositories["a/net"]["v1"] = b"no zip"
    with pytest.raises(zipfile.BadZipFile):
        torch.hub.load("a/net:v1", "net", force_reload=True)
    assert torch.hub.load("a/net:v1", "net") == [7]
    assert sorted(os.listdir(home())) == ["a_net_v1", "trusted_list"]


def test_the_default_branch(hub):
    hub.repositories["b/net"] = {"master": packed()}
    assert torch.hub.load("b/net", "net", trust_repo=True) == [7]
    assert (home() / "b_net_master").is_dir()
    hub.repositories["b/net"]["main"] = packed("def net(): return 'main'")
    assert torch.hub.load("b/net", "net") == "main"


def test_the_cache_serves_without_a_network(hub, monkeypatch):
    torch.hub.load("a/net", "net", trust_repo=True)
    monkeypatch.setenv("FLAMBEAU_HUB_URL", "http://127.0.0.1:9")
    assert torch.hub.load("a/net", "net") == [7]
    with pytest.raises(RuntimeError, match="no internet connection and the repo a/other could"):
        torch.hub.load("a/other", "net", trust_repo=True)


def test_a_ref_with_slashes_and_validation_over_pages(hub):
    assert torch.hub.load("a/net:fix/x", "net", trust_repo=True) == [7]
    assert (home() / "a_net_fix_x").is_dir()
    torch.hub.load("a/net:v1", "net")
    assert [a for a in hub.asked if "branches" in a and "page=3" in a]


def test_a_commit_at_the_head_of_a_branch(hub):
    commit = b"v1".hex()
    hub.repositories["a/net"][commit] = packed("def net(): return 'commit'")
    assert torch.hub.load(f"a/net:{commit}", "net", trust_repo=True) == "commit"


def test_a_ref_of_a_fork_is_refused(hub, monkeypatch):
    hub.repositories["b/net"] = {"main": packed()}
    hub.repositories["a/net"].pop("v1")
    with pytest.raises(ValueError, match="Cannot find v1 in http.*/a/net.*forked repo"):
        torch.hub.load("a/net:v1", "net", trust_repo=True)
    hub.repositories["a/net"]["v1"] = packed()
    hub.api = lambda *args: (500, {}, b"")
    with pytest.raises(urllib.error.HTTPError):
        torch.hub.load("a/net:v1", "net")
    assert torch.hub.load("a/net:v1", "net", skip_validation=True) == [7]
    monkeypatch.setattr(torch.hub, "_validate_not_a_forked_repo", lambda *args: True)
    assert torch.hub.load("a/net:main", "net") == [7]  # as scripts switch it off


def test_the_token_is_for_the_api_alone(hub, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    torch.hub.load("a/net:v1", "net", trust_repo=True)
    with_token = [a for a, h in zip(hub.asked, hub.headers, strict=True) if "secret" in str(h)]
    assert with_token
    assert all(a.startswith("/api/v3/repos/a/net/") for a in with_token)
    hub.refused_token = "secret"  # it has too few rights: asked again without
    assert torch.hub.load("a/net:main", "net") == [7]


def test_a_server_of_ones_own_for_the_api(hub, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_HUB_API_URL", hub.address + "/elsewhere")
    with pytest.raises(urllib.error.HTTPError):
        torch.hub.load("a/net:v1", "net", trust_repo=True)
    assert hub.asked[-1].startswith("/elsewhere/repos/a/net/branches?")


def test_an_ambiguous_ref_is_the_branch(hub):
    hub.repositories["a/net"]["refs/heads/v1"] = packed("def net(): return 'branch'")
    hub.ambiguous.add("v1")
    with pytest.warns(UserWarning, match="The ref v1 is ambiguous"):
        assert torch.hub.load("a/net:v1", "net", trust_repo=True) == "branch"


@pytest.mark.parametrize(
    "name", ["net", "a/b/c", "../net", "a/..", "a/", "a/n:", "a/n:x:y", "a\\b/c"]
)
def test_other_spellings_are_refused(hub, name):
    with pytest.raises(ValueError, match="expected a repository as 'owner/name'"):
        torch.hub.load(name, "net", trust_repo=True)
    assert hub.asked == []


# Trust


@pytest.mark.parametrize("trust", ["check", False, "ask"])
def test_who_is_not_trusted_is_asked_about(hub, monkeypatch, trust):
    asked = []
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or "n")
    with pytest.raises(RuntimeError, match="Untrusted repository"):
        torch.hub.load("a/net:v1", "net", trust_repo=trust)
    assert "The repository a_net does not belong to the list" in asked[0]
    assert hub.asked == []
    monkeypatch.setattr("builtins.input", lambda text: "maybe")
    with pytest.raises(ValueError, match="Unrecognized response 'maybe'"):
        torch.hub.load("a/net:v1", "net", trust_repo=trust)
    monkeypatch.setattr("builtins.input", lambda text: "Yes")
    assert torch.hub.load("a/net:v1", "net", trust_repo=trust) == [7]
    assert (home() / "trusted_list").read_text() == "a_net\n"


def test_trust_lasts(hub, monkeypatch, capsys):
    torch.hub.load("a/net:v1", "net", trust_repo=True)
    monkeypatch.setattr("builtins.input", lambda text: pytest.fail("asked"))
    torch.hub.load("a/net:main", "net")  # another ref of the same repository
    monkeypatch.setattr("builtins.input", lambda text: "y")
    torch.hub.load("a/net:main", "net", trust_repo=False)  # asks in any case
    assert "already trusted" in capsys.readouterr().out
    assert (home() / "trusted_list").read_text() == "a_net\n"


def test_owners_that_are_trusted(hub, monkeypatch):
    hub.repositories["pytorch/net"] = {"main": packed()}
    monkeypatch.setattr("builtins.input", lambda text: pytest.fail("asked"))
    assert torch.hub.load("pytorch/net", "net") == [7]


def test_nobody_can_be_asked(hub, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(RuntimeError, match="there is nobody to ask.*trust_repo=True"):
        torch.hub.load("a/net", "net")
    with pytest.raises(ValueError, match="expected trust_repo to be True, .* got None"):
        torch.hub.load("a/net", "net", trust_repo=None)


# Archives


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("../escaped.py", "contains directory traversal"),
        ("a-net-1/../../escaped.py", "contains directory traversal"),
        ("a-net-1\\..\\..\\escaped.py", "contains directory traversal"),
        ("/escaped.py", "has absolute path"),
        ("C:/escaped.py", "has absolute path"),
        ("other/escaped.py", "one folder at its top"),
    ],
)
def test_entries_that_lead_out(hub, tmp_path, entry, message):
    hub.repositories["a/net"]["v1"] = archive({**FILES, entry: "x = 1"})
    with pytest.raises(ValueError, match=message):
        torch.hub.load("a/net:v1", "net", trust_repo=True)
    assert not list(tmp_path.rglob("*escaped.py"))
    assert os.listdir(home()) == ["trusted_list"]


@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret", "../other/x"])
def test_links_that_lead_out(hub, tmp_path, target):
    hub.repositories["a/net"]["v1"] = packed(links=[("a-net-1/link", target)])
    with pytest.raises(ValueError, match="symlink that leads out of the archive: 'a-net-1/link'"):
        torch.hub.load("a/net:v1", "net", trust_repo=True)
    assert os.listdir(home()) == ["trusted_list"]


def test_a_link_inside_is_no_link(hub):
    links = [("a-net-1/docs/link", "../helper.py")]
    hub.repositories["a/net"]["v1"] = packed(links=links)
    assert torch.hub.load("a/net:v1", "net", trust_repo=True) == [7]
    link = home() / "a_net_v1" / "docs" / "link"
    assert not link.is_symlink()
    assert link.read_text() == "../helper.py"


def test_an_entry_through_a_link_is_refused(hub, tmp_path):
    links = [("a-net-1/door", "..")]  # the top of the archive's folder, then through it
    hub.repositories["a/net"]["v1"] = packed(links=links)
    with pytest.raises(ValueError, match="symlink"):
        torch.hub.load("a/net:v1", "net", trust_repo=True)


def test_a_pipe_is_refused(hub):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        info = zipfile.ZipInfo("a-net-1/pipe")
        info.external_attr = (stat.S_IFIFO | 0o600) << 16
        file.writestr(info, "")
    hub.repositories["a/net"]["v1"] = stream.getvalue()
    with pytest.raises(ValueError, match="no file, folder or link: 'a-net-1/pipe'"):
        torch.hub.load("a/net:v1", "net", trust_repo=True)


# Folders


def test_local_folders(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['json']\ndef net(n=1): 'A net.'; return n"
    )
    assert torch.hub.load(tmp_path, "net", source="local", n=3) == 3
    assert torch.hub.list(str(tmp_path), source="local") == ["net"]
    assert torch.hub.help(str(tmp_path), "net", source="LOCAL") == "A net."
    with pytest.raises(RuntimeError, match="Cannot find callable nope"):
        torch.hub.load(str(tmp_path), "nope", source="local")
    with pytest.raises(ValueError, match="model should be a string of function name, got int"):
        torch.hub.load(str(tmp_path), 3, source="local")
    with pytest.raises(ValueError, match='Unknown source: "gitlab"'):
        torch.hub.load(str(tmp_path), "net", source="gitlab")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']\ndef net(): pass")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        torch.hub.load(tmp_path, "net", source="local")


def test_set_dir(hub, tmp_path):
    torch.hub.set_dir(tmp_path / "cache")
    torch.hub.load("a/net:v1", "net", trust_repo=True)
    assert (tmp_path / "cache" / "a_net_v1" / "hubconf.py").is_file()


# Weights


def weights(value=1):
    stream = io.BytesIO()
    torch.save({"w": torch.full((2,), value)}, stream)
    return stream.getvalue()


def test_weights_are_kept(hub):
    data = weights()
    name = f"weights-{hashlib.sha256(data).hexdigest()[:8]}.pth"
    hub.files[f"/{name}"] = data
    load = torch.hub.load_state_dict_from_url
    assert load(f"{hub.address}/{name}", check_hash=True, progress=False)["w"].tolist() == [1, 1]
    del hub.files[f"/{name}"]
    assert load(f"{hub.address}/{name}")["w"].tolist() == [1, 1]  # from the folder
    assert os.listdir(home() / "checkpoints") == [name]
    hub.files["/other"] = weights(2)
    assert load(f"{hub.address}/other?x=1", file_name="b.pt", progress=False)["w"][0] == 2
    assert sorted(os.listdir(home() / "checkpoints")) == sorted([name, "b.pt"])
    with pytest.raises(ValueError, match="has no file name at its end; give file_name"):
        load(hub.address + "/folder/")


def test_a_zip_made_by_hand(hub):
    hub.files["/old.pth"] = archive({"inner.pth": weights()})
    with pytest.warns(FutureWarning, match="zipped by hand"):
        state = torch.hub.load_state_dict_from_url(hub.address + "/old.pth", progress=False)
    assert state["w"].tolist() == [1, 1]
    assert os.listdir(home() / "checkpoints") == ["old.pth"]


def test_another_hash(hub, tmp_path):
    hub.files["/a-00000000.bin"] = b"x"
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "00000000", got'):
        torch.hub.load_state_dict_from_url(
            hub.address + "/a-00000000.bin", tmp_path / "m", check_hash=True, progress=False
        )
    assert os.listdir(tmp_path / "m") == []


def test_a_download_that_ends_early(hub, tmp_path):
    hub.files["/a"] = b"x" * 100
    hub.length_of["/a"] = 200
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(urllib.error.ContentTooShortError, match="expected 200 bytes, got 100"):
        torch.hub.download_url_to_file(hub.address + "/a", tmp_path / "a", progress=False)
    assert (tmp_path / "a").read_bytes() == b"old"
    hub.length_of["/a"] = None  # a server that does not say how much comes
    torch.hub.download_url_to_file(hub.address + "/a", tmp_path / "a", progress=False)
    assert (tmp_path / "a").read_bytes() == b"x" * 100
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_bar(hub, tmp_path, capsys, monkeypatch):
    hub.files["/a"] = b"x" * 300_000
    monkeypatch.setitem(sys.modules, "tqdm", None)
    torch.hub.download_url_to_file(hub.address + "/a", tmp_path / "a")
    shown = capsys.readouterr().err
    assert shown.startswith("\r43.7%")
    assert shown.endswith("\r100.0%\n")
    assert torch.hub.tqdm is torch.hub._Faketqdm
    torch.hub.download_url_to_file(hub.address + "/a", tmp_path / "a", progress=False)
    assert capsys.readouterr().err == ""
    made = []

    class Tqdm(torch.hub._Faketqdm):
        def __init__(self, **options):
            made.append(options)
            super().__init__(**options)

    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Tqdm))
    torch.hub.download_url_to_file(hub.address + "/a", tmp_path / "a")
    assert made[0]["total"] == 300_000
    assert torch.hub.tqdm is Tqdm


def test_proxies_of_the_environment(hub, tmp_path):
    hub.files["http://weights.invalid/a.bin"] = b"through the proxy"
    code = (
        "import sys, flambeau as torch\n"
        "torch.hub.download_url_to_file('http://weights.invalid/a.bin', sys.argv[1])"
    )
    environment = {**os.environ, "http_proxy": hub.address, "no_proxy": ""}
    subprocess.run(
        [sys.executable, "-c", code, tmp_path / "a"], env=environment, check=True, timeout=120
    )
    assert (tmp_path / "a").read_bytes() == b"through the proxy"
