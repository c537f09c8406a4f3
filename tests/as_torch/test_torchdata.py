"""Packages of `torchdata` under the alias, with and without a real one; an article's pipes."""

import textwrap

PROGRAM = """
import torchdata.datapipes as dp
from torchdata.datapipes.iter import IterDataPipe, IterableWrapper, CSVParser
from torchdata.datapipes.map import MapDataPipe, SequenceWrapper
from torchdata.datapipes.utils import StreamWrapper, janitor
import torch.utils.data.datapipes.iter
import torchdata, torch

assert dp.iter is torch.utils.data.datapipes.iter is torchdata.datapipes.iter
assert IterDataPipe is torch.utils.data.IterDataPipe
assert torch.utils.data.IterDataPipe.__module__ == "torch.utils.data.datapipes.datapipe"
assert list(IterableWrapper(range(4)).cycle(2).batch(3)) == [[0, 1, 2], [3, 0, 1], [2, 3]]
assert dp.functional_datapipe is torch.utils.data.functional_datapipe
from torchdata.nodes import Batcher, Loader, SamplerWrapper
from torchdata.nodes.base_node import BaseNode
from torchdata.nodes.samplers.stop_criteria import StopCriteria
assert torchdata.nodes.BaseNode is BaseNode is torch.utils.data.nodes.BaseNode
assert list(Loader(Batcher(SamplerWrapper(range(4)), 2))) == [[0, 1], [2, 3]]
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.stateful import Stateful
loader = StatefulDataLoader(range(4), batch_size=2)
assert isinstance(loader, torch.utils.data.DataLoader) and isinstance(loader, Stateful)
next(iter(loader))
other = torchdata.stateful_dataloader.StatefulDataLoader(range(4), batch_size=2)
other.load_state_dict(loader.state_dict())
assert [b.tolist() for b in other] == [[2, 3]]
print(getattr(torchdata, "__version__", "none"))
"""


def test_where_none_is_installed(run):
    assert run("-c", PROGRAM + "assert torchdata.janitor is janitor") == "none\n"
    done = run("-c", "import torchdata.other", check=False)
    assert "ModuleNotFoundError: No module named 'torchdata.other'" in done.stderr
    done = run("-c", "import torchdata.datapipes.iter.never", check=False)
    assert "ModuleNotFoundError" in done.stderr


def test_beside_an_installed_one(run, tmp_path):
    """Its pipes are ours, what else it has is its own."""
    package = tmp_path / "torchdata"
    (package / "datapipes").mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '0.9.0'\n")
    (package / "datapipes" / "__init__.py").write_text("raise ImportError('theirs')\n")
    (package / "nodes.py").write_text("raise ImportError('theirs')\n")
    (package / "other.py").write_text("x = 1\n")
    program = PROGRAM + "import torchdata.other; assert torchdata.other.x == 1"
    for _ in range(2):
        script = tmp_path / "program.py"
        script.write_text(program)
        assert run(script) == "0.9.0\n"


def test_it_is_imported_before_torch(run):
    assert run("-c", "import torchdata.datapipes.iter as i; print(i.Batcher.__name__)") == (
        "BatcherIterDataPipe\n"
    )


def test_the_example_of_the_announcement(run, tmp_path):
    """What the announcement of PyTorch 1.11 shows, with the two names that it leaves out."""
    for name in ("a.file", "b.file"):
        (tmp_path / name).write_text(f"in {name}")
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            from torch.utils.data import functional_datapipe
            decoder = lambda pair: pair[1].read()

            from torchdata.datapipes.iter import IterDataPipe
            import torchdata.datapipes as dp

            @functional_datapipe("map")
            class MapperIterDataPipe(IterDataPipe):
                def __init__(self, source_dp: IterDataPipe, fn) -> None:
                    super().__init__()
                    self.dp = source_dp
                    self.fn = fn

                def __iter__(self):
                    for d in self.dp:
                        yield self.fn(d)

            # Using functional form (recommended)
            datapipes1 = dp.iter.FileOpener(['a.file', 'b.file']).map(fn=decoder)
            print(type(datapipes1).__module__, list(datapipes1))
            """
        )
    )
    assert run(script, cwd=tmp_path) == "__main__ ['in a.file', 'in b.file']\n"


SENTIMENT = """
import functools, hashlib, http.server, io, os, threading, zipfile

import torch
from torch.utils.data import DataLoader
from torchdata.datapipes.iter import FileOpener, HttpReader, IterableWrapper

TEXT = "sentence\\tlabel\\n" + "".join(
    f"{'a fine and moving film' if i % 2 else 'dull , long , lost'} {i}\\t{i % 2}\\n"
    for i in range(40)
)
archive = io.BytesIO()
with zipfile.ZipFile(archive, "w") as file:
    file.writestr("SST-2/train.tsv", TEXT)
    file.writestr("SST-2/dev.tsv", TEXT)
requests = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        requests.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(archive.getvalue())

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{server.server_port}/SST-2.zip"
MD5 = hashlib.md5(archive.getvalue()).hexdigest()
ROOT = "root"
ZIP = os.path.join(ROOT, "SST-2.zip")
EXTRACTED = os.path.join(ROOT, "SST-2", "train.tsv")


def sst2():
    url_dp = IterableWrapper([URL])
    compressed = url_dp.on_disk_cache(
        filepath_fn=lambda url: ZIP, hash_dict={ZIP: MD5}, hash_type="md5"
    )
    compressed = HttpReader(compressed).end_caching(mode="wb", same_filepath_fn=True)
    extracted = compressed.on_disk_cache(filepath_fn=lambda path: EXTRACTED)
    extracted = FileOpener(extracted, mode="b").load_from_zip()
    extracted = extracted.filter(lambda file: "train.tsv" in file[0])
    extracted = extracted.end_caching(mode="wb", same_filepath_fn=True)
    rows = FileOpener(extracted, encoding="utf-8").parse_csv(skip_lines=1, delimiter="\\t")
    rows = rows.map(lambda row: (row[0], int(row[1])))
    return rows.shuffle().set_shuffle(False).sharding_filter()


vocabulary = {}


def text_transform(text):
    return [vocabulary.setdefault(word, len(vocabulary) + 1) for word in text.split()]


def apply_transform(x):
    return text_transform(x[0]), x[1]


batch_size = 16
train_datapipe = sst2()
train_datapipe = train_datapipe.map(apply_transform)
train_datapipe = train_datapipe.batch(batch_size)
train_datapipe = train_datapipe.rows2columnar(["token_ids", "target"])
train_dataloader = DataLoader(train_datapipe, batch_size=None)

torch.manual_seed(0)
model = torch.nn.EmbeddingBag(100, 2)
optim = torch.optim.Adam(model.parameters(), lr=0.05)
losses = []
for epoch in range(8):
    total = 0.0
    for batch in train_dataloader:
        tokens = batch["token_ids"]
        flat = torch.tensor([t for row in tokens for t in row])
        starts = torch.tensor([0, *map(len, tokens[:-1])]).cumsum(0)
        loss = torch.nn.functional.cross_entropy(
            model(flat, starts), torch.as_tensor(batch["target"])
        )
        optim.zero_grad()
        loss.backward()
        optim.step()
        total += loss.item() * len(tokens)
    losses.append(total / 40)
assert losses[-1] < 0.5 * losses[0], losses
assert requests == ["/SST-2.zip"], requests
assert sorted(os.listdir(ROOT)) == ["SST-2", "SST-2.zip"]

order = lambda **kw: [row for row in DataLoader(sst2(), batch_size=None, **kw)]
assert [label for _, label in order()] == [0, 1] * 20
shuffled = order(shuffle=True, num_workers=2)
assert shuffled != order() and sorted(map(tuple, shuffled)) == sorted(map(tuple, order()))
assert requests == ["/SST-2.zip"]
server.shutdown()
print("learned")
"""


def test_a_text_pipeline_of_reviews(run, tmp_path):
    """From the network through caches to training, as torchtext built SST-2 and its tutorial."""
    script = tmp_path / "script.py"
    script.write_text(SENTIMENT)
    assert run(script, cwd=tmp_path) == "learned\n"
