"""Values and errors of every pipe, by its public name; what is not listed fails the last test.

Values are those of the definitions, worked out by hand; where a seed is involved, those that
PyTorch 2.13 and torchdata 0.9 give.
"""

import asyncio
import io
import itertools
import json
import warnings

import pytest

import flambeau as fb
from flambeau.utils.data import DataChunk, IterDataPipe, MapDataPipe, RandomSampler
from flambeau.utils.data.datapipes import iter as iterable
from flambeau.utils.data.datapipes import map as mapped
from flambeau.utils.data.datapipes.iter import IterableWrapper as W
from flambeau.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from flambeau.utils.data.datapipes.map import SequenceWrapper as S


def n(count=6):
    return W(range(count))


def rows():
    return W([("a", 1, [2]), ("b", 3, [4])])


def dicts():
    return W([{"x": 1, "y": {"z": 2}}, {"x": 3, "y": {"z": 4}}])


def text(content="a,b\n1,2\n3,4\n"):
    return W([("f.csv", io.StringIO(content))], deepcopy=False)


def quiet(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function()


async def later(x):
    await asyncio.sleep(0.001 * (3 - x % 3))
    return x * 10


ITER_VALUES = {
    "BatchAsyncMapper": [
        (lambda: n(4).async_map_batches(later, 3), [0, 10, 20, 30]),
        (lambda: n(3).async_map_batches(later, 2, flatten=False), [[0, 10], [20]]),
        (
            lambda: rows().async_map_batches(later, 2, 1, -1),
            [
                ("a", 1, [2], 10),
                ("b", 3, [4], 30),
            ],
        ),
        (lambda: [len(n(5).async_map_batches(later, 2))], [5]),
    ],
    "BatchMapper": [
        (lambda: n(5).map_batches(lambda b: [b], 2), [[0, 1], [2, 3], [4]]),
        (lambda: rows().map_batches(lambda b: b, 2, [0, 1]), [["a", 1], ["b", 3]]),
        (lambda: rows().map_batches(lambda b: b, 2, 1), [1, 3]),
    ],
    "Batcher": [
        (lambda: n(5).batch(2), [[0, 1], [2, 3], [4]]),
        (lambda: n(5).batch(2, drop_last=True), [[0, 1], [2, 3]]),
        (lambda: n(4).batch(2), [[0, 1], [2, 3]]),
        (lambda: n(3).batch(2, wrapper_class=tuple), [(0, 1), (2,)]),
        (lambda: W([]).batch(2), []),
        (lambda: [type(b) for b in n(2).batch(2)], [DataChunk]),
        (lambda: [len(n(5).batch(2)), len(n(5).batch(2, True)), len(n(4).batch(2))], [3, 2, 2]),
    ],
    "BucketBatcher": [
        (
            lambda: n(8).bucketbatch(2, batch_num=2, sort_key=lambda b: sorted(b, reverse=True)),
            [
                [3, 2],
                [1, 0],
                [7, 6],
                [5, 4],
            ],
        ),
        (
            lambda: _seeded(
                lambda: n(8).bucketbatch(2, batch_num=2, bucket_num=2, sort_key=sorted)
            ),
            [
                [1, 2],
                [3, 7],
                [0, 4],
                [5, 6],
            ],
        ),
    ],
    "CSVDictParser": [
        (lambda: text().parse_csv_as_dict(), [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),
        (
            lambda: text().parse_csv_as_dict(skip_lines=1, return_path=True),
            [("f.csv", {"1": "3", "2": "4"})],
        ),
        (
            lambda: text("a,b\n1\n\n1,2,3,4\n").parse_csv_as_dict(),
            [{"a": "1", "b": None}, {"a": "1", "b": "2", None: ["3", "4"]}],
        ),
        (lambda: text("").parse_csv_as_dict(), []),
        (
            lambda: text("1,2,3\n4\n").parse_csv_as_dict(
                fieldnames=["x", "y"], restval=0, restkey="z"
            ),
            [{"x": "1", "y": "2", "z": ["3"]}, {"x": "4", "y": 0}],
        ),
    ],
    "CSVParser": [
        (lambda: text().parse_csv(), [["a", "b"], ["1", "2"], ["3", "4"]]),
        (lambda: text('x\t"y\tz"\n').parse_csv(delimiter="\t", as_tuple=True), [("x", "y\tz")]),
        (lambda: text().parse_csv(skip_lines=2, return_path=True), [("f.csv", ["3", "4"])]),
        (
            lambda: W([("f", io.BytesIO(b"\xc3\xa9,1\n\xff2,3"))], deepcopy=False).parse_csv(),
            [
                ["é", "1"],
                ["2", "3"],
            ],
        ),
    ],
    "Collator": [
        (lambda: [b.tolist() for b in n(5).batch(2).collate()], [[0, 1], [2, 3], [4]]),
        (lambda: n(4).batch(2).collate(collate_fn=sum), [1, 5]),
        (lambda: n(4).batch(2).collate(sum), [1, 5]),
        (lambda: [len(n(5).batch(2).collate())], [3]),
    ],
    "Concater": [
        (lambda: n(2).concat(W("ab"), n(1)), [0, 1, "a", "b", 0]),
        (lambda: [len(n(2).concat(W("ab")))], [4]),
    ],
    "Cycler": [
        (lambda: n(2).cycle(3), [0, 1, 0, 1, 0, 1]),
        (lambda: n(2).cycle(0), []),
        (lambda: itertools.islice(n(2).cycle(), 5), [0, 1, 0, 1, 0]),
        (lambda: [len(n(2).cycle(3))], [6]),
    ],
    "Demultiplexer": [
        (lambda: map(list, n(5).demux(2, lambda x: x % 2)), [[0, 2, 4], [1, 3]]),
        (lambda: map(list, n(5).demux(2, _or_none, drop_none=True)), [[2, 4], [1, 3]]),
        (lambda: map(list, reversed(n(5).demux(2, lambda x: x % 2))), [[1, 3], [0, 2, 4]]),
        (lambda: map(list, n(3).demux(1, lambda x: 0)), [[0, 1, 2]]),
    ],
    "Dropper": [
        (lambda: rows().drop([0, 2]), [(1,), (3,)]),
        (lambda: W([[0, 1, 2]]).drop(0), [[1, 2]]),
        (lambda: dicts().drop("y"), [{"x": 1}, {"x": 3}]),
        (lambda: [len(rows().drop(0))], [2]),
    ],
    "Enumerator": [
        (lambda: W("ab").enumerate(5), [(5, "a"), (6, "b")]),
        (lambda: [len(W("ab").enumerate())], [2]),
    ],
    "Filter": [
        (lambda: n(6).filter(lambda x: x % 2 == 0), [0, 2, 4]),
        (lambda: rows().filter(lambda x: x > 1, input_col=1), [("b", 3, [4])]),
        (lambda: rows().filter(lambda a, x: a == "a" and x == 1, [0, 1]), [("a", 1, [2])]),
    ],
    "FlatMapper": [
        (lambda: n(3).flatmap(lambda x: [x] * x), [1, 2, 2]),
        (lambda: W([[1], [], [2, 3]]).flatmap(), [1, 2, 3]),
        (lambda: rows().flatmap(lambda a, x: (a, x), [0, 1]), ["a", 1, "b", 3]),
        (lambda: rows().flatmap(input_col=2), [2, 4]),
    ],
    "Flattener": [
        (lambda: W([(0, (1, 2), [3, (4,)])]).flatten(), [(0, 1, 2, 3, (4,))]),
        (lambda: W([[0, (1, 2), [3]]]).flatten(2), [[0, (1, 2), 3]]),
        (lambda: dicts().flatten(), [{"x": 1, "z": 2}, {"x": 3, "z": 4}]),
        (lambda: dicts().flatten("x"), [{"x": 1, "y": {"z": 2}}, {"x": 3, "y": {"z": 4}}]),
        (lambda: W([((1,), 2)]).flatten(0), [(1, 2)]),
    ],
    "Forker": [
        (lambda: map(list, n(3).fork(3)), [[0, 1, 2]] * 3),
        (lambda: n(3).fork(1), [0, 1, 2]),
        (lambda: _zipped(n(3).fork(2)), [(0, 0), (1, 1), (2, 2)]),
        (lambda: [x is y for x, y in _zipped(W([[1]]).fork(2))], [True]),
        (lambda: [x is y for x, y in _zipped(W([[1]]).fork(2, copy="shallow"))], [False]),
        (lambda: [a[0] is b[0] for a, b in _zipped(W([[[1]]]).fork(2, copy="deep"))], [False]),
        (lambda: [len(n(3).fork(2)[1])], [3]),
    ],
    "Grouper": [
        (lambda: n(6).groupby(lambda x: x % 3), [[0, 3], [1, 4], [2, 5]]),
        (lambda: n(5).groupby(lambda x: x % 2, group_size=2), [[0, 2], [1, 3], [4]]),
        (lambda: n(3).groupby(lambda x: x % 2, keep_key=True), [(0, [0, 2]), (1, [1])]),
        (
            lambda: n(6).groupby(lambda x: x, buffer_size=2, group_size=2, drop_remaining=True),
            [[5]],
        ),
        (
            lambda: W("aabcc").groupby(
                ord, buffer_size=3, group_size=3, guaranteed_group_size=2, keep_key=True
            ),
            [(97, ["a", "a"]), (99, ["c", "c"]), (98, ["b"])],
        ),
    ],
    "HashChecker": [
        (lambda: W([("a", "abc")]).check_hash(MD5, "md5"), [("a", "abc")]),
        (lambda: [s.read() for _, s in _stream().check_hash(MD5, "md5")], [b"abc"]),
        (lambda: [s.read() for _, s in _stream().check_hash(MD5, "md5", rewind=False)], [b""]),
        (lambda: [s.read() for _, s in W([("a", _Once())]).check_hash(MD5, "md5")], [b"abc"]),
        (lambda: W([("a", b"abc")]).check_hash(SHA), [("a", b"abc")]),
    ],
    "Header": [
        (lambda: n(5).header(2), [0, 1]),
        (lambda: n(5).header(0), []),
        (lambda: n(20).header(), list(range(10))),
        (lambda: n(3).header(None), [0, 1, 2]),
        (lambda: [len(n(5).header(2)), len(n(5).header(9))], [2, 5]),
    ],
    "InBatchShuffler": [
        (lambda: n(6).batch(3).in_batch_shuffle().set_seed(0), [[1, 2, 0], [4, 5, 3]]),
        (lambda: n(4).batch(2).in_batch_shuffle().set_shuffle(False), [[0, 1], [2, 3]]),
        (lambda: [len(n(6).batch(3).in_batch_shuffle())], [2]),
    ],
    "InMemoryCacheHolder": [
        (lambda: _twice(n(4).in_memory_cache()), [0, 1, 2, 3] * 2),
        (lambda: _twice(W(["x" * 700_000] * 3).in_memory_cache(size=1).map(len)), [700_000] * 6),
        (lambda: _twice(W([]).in_memory_cache()), []),
        (lambda: [len(n(4).in_memory_cache())], [4]),
    ],
    "IndexAdder": [
        (lambda: W([{"a": 1}, {}]).add_index(), [{"a": 1, "index": 0}, {"index": 1}]),
        (lambda: [len(W([{}]).add_index())], [1]),
    ],
    "IterKeyZipper": [
        (
            lambda: W("ab").zip_with_iter(W(["b1", "a2"]), key_fn=str, ref_key_fn=_first),
            [
                ("a", "a2"),
                ("b", "b1"),
            ],
        ),
        (
            lambda: n(2).zip_with_iter(
                n(2), lambda x: x, keep_key=True, merge_fn=lambda a, b: a + b, buffer_size=None
            ),
            [(0, 0), (1, 2)],
        ),
        (lambda: [len(n(2).zip_with_iter(n(2), abs))], [2]),
    ],
    "IterableWrapper": [
        (lambda: W((1, 2)), [1, 2]),
        (lambda: W({"a": 1}), ["a"]),
        (lambda: quiet(lambda: list(W(x for x in "ab"))), ["a", "b"]),
        (lambda: [len(W("ab"))], [2]),
    ],
    "JsonParser": [
        (lambda: text('{"a": [1, null]}').parse_json_files(), [("f.csv", {"a": [1, None]})]),
        (lambda: text("[0.5]").parse_json_files(parse_float=str), [("f.csv", ["0.5"])]),
    ],
    "LengthSetter": [
        (lambda: n(2).set_length(7), [0, 1]),
        (lambda: [len(n(2).set_length(7))], [7]),
    ],
    "LineReader": [
        (lambda: text("a\r\nb\n\nc").readlines(), [("f.csv", x) for x in ("a", "b", "", "c")]),
        (
            lambda: text("a\nb\n").readlines(skip_lines=1, strip_newline=False, return_path=False),
            ["b\n"],
        ),
        (lambda: text("a\n").readlines(skip_lines=5), []),
        (lambda: _stream(b"\xe9\n").readlines(decode=True, encoding="latin1"), [("a", "é")]),
        (lambda: _stream(b"x\n").readlines(), [("a", b"x")]),
    ],
    "MapKeyZipper": [
        (lambda: W("ba").zip_with_map(S({"a": 1, "b": 2}), str), [("b", 2), ("a", 1)]),
        (
            lambda: n(2).zip_with_map(S("xy"), abs, merge_fn=lambda i, c: c * i, keep_key=True),
            [(0, ""), (1, "y")],
        ),
    ],
    "MapToIterConverter": [
        (lambda: S("abc").to_iter_datapipe(), ["a", "b", "c"]),
        (lambda: S({"x": 1, "y": 2}).to_iter_datapipe(["y"]), [2]),
        (lambda: [len(S("abc").to_iter_datapipe([0]))], [1]),
    ],
    "Mapper": [
        (lambda: n(3).map(lambda x: x + 1), [1, 2, 3]),
        (lambda: rows().map(str.upper, 0), [("A", 1, [2]), ("B", 3, [4])]),
        (lambda: rows().map(lambda a, x: a * x, [0, 1]), [("a", [2]), ("bbb", [4])]),
        (lambda: rows().map(lambda x: -x, 1, 0), [(-1, 1, [2]), (-3, 3, [4])]),
        (lambda: rows().map(lambda x: -x, 1, [-1]), [("a", 1, [2], -1), ("b", 3, [4], -3)]),
        (lambda: dicts().map(lambda x: x + 1, "x", "w").map(len), [3, 3]),
        (lambda: W([[1, 2]]).map(lambda a, b: a + b, (1, 0)), [[3]]),
        (lambda: [len(n(3).map(abs))], [3]),
    ],
    "MaxTokenBucketizer": [
        (lambda: W(["11", "1", "1111"]).max_token_bucketize(4), [["1", "11"], ["1111"]]),
        (
            lambda: W(["11", "1", "1111"]).max_token_bucketize(4, include_padding=True),
            [
                ["1", "11"],
                ["1111"],
            ],
        ),
        (
            lambda: W(["1", "11", "11"]).max_token_bucketize(5, include_padding=True),
            [
                ["1", "11"],
                ["11"],
            ],
        ),
        (lambda: W(["1", "22", "333"]).max_token_bucketize(9, min_len=2, max_len=2), [["22"]]),
        (lambda: W([3, 1, 2]).max_token_bucketize(3, len_fn=abs, buffer_size=1), [[3], [1, 2]]),
    ],
    "Multiplexer": [
        (lambda: n(3).mux(W("abcd")), [0, "a", 1, "b", 2, "c"]),
        (lambda: W("abcd").mux(n(3)), ["a", 0, "b", 1, "c", 2]),
        (lambda: [len(n(3).mux(W("abcd"), n(9)))], [9]),
    ],
    "MultiplexerLongest": [
        (lambda: n(1).mux_longest(W("abc"), n(2)), [0, "a", 0, "b", 1, "c"]),
        (lambda: [len(n(1).mux_longest(W("abc")))], [4]),
    ],
    "Prefetcher": [
        (lambda: n(50).prefetch(3), list(range(50))),
        (lambda: W([]).prefetch(), []),
        (lambda: itertools.islice(n(50).prefetch(), 2), [0, 1]),
        (lambda: _twice(n(5).shuffle().set_shuffle(False).prefetch(1)), list(range(5)) * 2),
        (lambda: [len(n(3).prefetch())], [3]),
    ],
    "RandomSplitter": [
        (
            lambda: map(list, n(6).random_split({"train": 4, "test": 2}, seed=0)),
            [
                [1, 2, 3, 5],
                [0, 4],
            ],
        ),
        (lambda: n(6).random_split({"train": 4, "test": 2}, 0, target="test"), [0, 4]),
        (lambda: map(len, n(6).random_split({"a": 4, "b": 2}, 0)), [4, 2]),
        (lambda: map(len, n(10).random_split({"a": 0.5, "b": 0.5}, 0)), [5, 5]),
        (lambda: sorted(itertools.chain(*n(9).random_split({0: 0.7, 1: 0.3}, 3))), list(range(9))),
    ],
    "Repeater": [
        (lambda: W("ab").repeat(3), ["a", "a", "a", "b", "b", "b"]),
        (lambda: [len(W("ab").repeat(3))], [6]),
    ],
    "RoundRobinDemultiplexer": [
        (lambda: map(list, n(5).round_robin_demux(3)), [[0, 3], [1, 4], [2]]),
        (lambda: _zipped(n(5).round_robin_demux(2)), [(0, 1), (2, 3)]),
        (lambda: map(len, n(5).round_robin_demux(3)), [2, 2, 1]),
        (lambda: quiet(lambda: n(2).round_robin_demux(1))[0], [0, 1]),
    ],
    "RoutedDecoder": [
        (
            lambda: quiet(lambda: W([("a.json", b"[1]"), ("b.x", b"?")]).routed_decode()),
            [
                ("a.json", [1]),
                ("b.x", b"?"),
            ],
        ),
        (
            lambda: quiet(lambda: _stream().routed_decode(lambda key, data: data[::-1])),
            [("a", b"cba")],
        ),
    ],
    "Rows2Columnar": [
        (
            lambda: rows().batch(2).rows2columnar(["p", "q", "r"]),
            [{"p": ["a", "b"], "q": [1, 3], "r": [[2], [4]]}],
        ),
        (lambda: dicts().batch(2).rows2columnar(), [{"x": [1, 3], "y": [{"z": 2}, {"z": 4}]}]),
        (lambda: dicts().batch(2).rows2columnar(["x"]), [{"x": [1, 3]}]),
    ],
    "SampleMultiplexer": [
        (
            lambda: iterable.SampleMultiplexer({W("abc"): 0.9, n(2): 0.1}, seed=0),
            [
                "a",
                "b",
                "c",
                0,
                1,
            ],
        ),
        (lambda: sorted(iterable.SampleMultiplexer({n(3): 1, n(4): 5})), [0, 0, 1, 1, 2, 2, 3]),
        (lambda: [len(iterable.SampleMultiplexer({n(3): 1, n(4): 5}))], [7]),
    ],
    "Sampler": [
        (lambda: iterable.Sampler(n(3)), [0, 1, 2]),
        (lambda: sorted(iterable.Sampler(n(3), RandomSampler, (), {"num_samples": 3})), [0, 1, 2]),
        (lambda: [len(iterable.Sampler(n(3)))], [3]),
    ],
    "ShardExpander": [
        (lambda: W(["x{0..2}", "y"]).shard_expand(), ["x0", "x1", "x2", "y"]),
        (lambda: W(["{8..11}"]).shard_expand(), ["8", "9", "10", "11"]),
        (lambda: W(["{098..101}"]).shard_expand(), ["098", "099", "100", "101"]),
        (lambda: W(["a{0..1}b{0..1}"]).shard_expand(), ["a0b0", "a0b1", "a1b0", "a1b1"]),
    ],
    "ShardingFilter": [
        (lambda: n(5).sharding_filter(), [0, 1, 2, 3, 4]),
        (lambda: _sharded((3, 1)), [1, 4]),
        (lambda: _sharded((2, 1, SHARDING_PRIORITIES.DISTRIBUTED)), [1, 3]),
        (
            lambda: _sharded(
                (2, 1, SHARDING_PRIORITIES.DISTRIBUTED), (2, 0, SHARDING_PRIORITIES.MULTIPROCESSING)
            ),
            [2],
        ),
    ],
    "ShardingRoundRobinDispatcher": [
        (
            lambda: n(3).sharding_round_robin_dispatch(SHARDING_PRIORITIES.MULTIPROCESSING),
            [0, 1, 2],
        ),
    ],
    "ShuffledFlatMapper": [
        (
            lambda: W([[1, 2, 3], "ab"]).shuffled_flatmap(buffer_size=2).set_seed(0),
            [
                "a",
                1,
                "b",
                2,
                3,
            ],
        ),
        (lambda: n(3).shuffled_flatmap(lambda x: [x] * x).set_shuffle(False), [1, 2, 2]),
        (
            lambda: sorted(n(9).shuffled_flatmap(lambda x: [x, x], buffer_size=3)),
            sorted(2 * list(range(9))),
        ),
        (lambda: [len(W(["ab", "c"]).shuffled_flatmap())], [3]),
    ],
    "Shuffler": [
        (lambda: n(6).shuffle().set_seed(0), [3, 4, 0, 2, 5, 1]),
        (lambda: n(4).shuffle(buffer_size=1), [0, 1, 2, 3]),
        (lambda: n(4).shuffle().set_shuffle(False), [0, 1, 2, 3]),
        (lambda: sorted(n(4).batch(3).shuffle(unbatch_level=1)), [0, 1, 2, 3]),
        (lambda: sorted(n(99).shuffle(buffer_size=7)), list(range(99))),
        (lambda: [len(n(4).shuffle())], [4]),
    ],
    "Slicer": [
        (lambda: rows().slice(0, 2), [("a", 1), ("b", 3)]),
        (lambda: W([[0, 1, 2, 3]]).slice(0, None, 2), [[0, 2]]),
        (lambda: rows().slice([2, 0, 2]), [("a", [2]), ("b", [4])]),
        (lambda: quiet(lambda: list(W([(0, 1), [5]]).slice([1, 0]))), [(0, 1), [5]]),
        (lambda: dicts().slice("x"), [{"x": 1}, {"x": 3}]),
        (lambda: dicts().slice(["x"]), [{"x": 1}, {"x": 3}]),
        (lambda: [len(rows().slice(0))], [2]),
    ],
    "StreamReader": [
        (lambda: text("abcde").read_from_stream(), [("f.csv", "abcde")]),
        (lambda: text("abcde").read_from_stream(chunk=3), [("f.csv", "abc"), ("f.csv", "de")]),
        (lambda: text("").read_from_stream(), []),
    ],
    "ParagraphAggregator": [
        (
            lambda: _lines("f:a f:b f: f: f:c g:d").lines_to_paragraphs(),
            [
                ("f", "a\nb"),
                ("f", "c"),
                ("g", "d"),
            ],
        ),
        (lambda: _lines("f: f:a g:").lines_to_paragraphs("".join), [("f", "a")]),
    ],
    "ThreadPoolMapper": [
        (lambda: n(50).threadpool_map(lambda x: x + 1, max_workers=3), list(range(1, 51))),
        (lambda: n(5).threadpool_map(lambda x: x, scheduled_tasks=1), [0, 1, 2, 3, 4]),
        (lambda: rows().threadpool_map(str.upper, 0, -1), [("a", 1, [2], "A"), ("b", 3, [4], "B")]),
        (lambda: itertools.islice(n(99).threadpool_map(abs), 2), [0, 1]),
        (lambda: [len(n(3).threadpool_map(abs))], [3]),
    ],
    "UnBatcher": [
        (lambda: W([[1, [2]], [3]]).unbatch(), [1, [2], 3]),
        (lambda: W([[[1], [2]], [[3]]]).unbatch(2), [1, 2, 3]),
        (lambda: W([[[1], 2], 3]).unbatch(-1), [1, 2, 3]),
        (lambda: W([[1]]).unbatch(0), [[1]]),
    ],
    "UnZipper": [
        (lambda: map(list, rows().unzip(3)), [["a", "b"], [1, 3], [[2], [4]]]),
        (lambda: map(list, rows().unzip(3, columns_to_skip=[0, 2])), [[1, 3]]),
        (lambda: map(len, rows().unzip(3)), [2, 2, 2]),
    ],
    "WebDataset": [
        (
            lambda: W(
                [("d.x/1.jpg", 1), ("d.x/1.seg.png", 2), ("e", 0), ("f.cls", 3)]
            ).webdataset(),
            [
                {"__key__": "d.x/1", ".jpg": 1, ".seg.png": 2},
                {"__key__": "f", ".cls": 3},
            ],
        ),
        (lambda: W([]).webdataset(), []),
    ],
    "Zipper": [
        (lambda: n(3).zip(W("ab")), [(0, "a"), (1, "b")]),
        (lambda: [len(n(3).zip(W("ab")))], [2]),
    ],
    "ZipperLongest": [
        (lambda: n(1).zip_longest(W("ab")), [(0, "a"), (None, "b")]),
        (lambda: n(1).zip_longest(W("ab"), fill_value=9), [(0, "a"), (9, "b")]),
        (lambda: [len(n(1).zip_longest(W("ab")))], [2]),
    ],
}

MD5 = {"a": "900150983cd24fb0d6963f7d28e17f72"}
SHA = {"a": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}


class _Once:
    """A stream that cannot be sought in."""

    def __iter__(self):
        return iter([b"ab", b"c"])


def _stream(content=b"abc"):
    return W([("a", io.BytesIO(content))], deepcopy=False)


def _lines(short):
    return W([tuple(part.split(":")) for part in short.split(" ")])


def _first(text):
    return text[0]


def _or_none(x):
    return x % 2 if x else None


def _twice(pipe):
    return [*pipe, *pipe]


def _zipped(pipes):
    return pipes[0].zip(*pipes[1:])


def _sharded(*groups):
    pipe = n(5).sharding_filter()
    for group in groups:
        pipe.apply_sharding(*group)
    assert len(pipe) == len(list(pipe))
    return pipe


def _seeded(make):
    fb.manual_seed(0)
    return list(make())


MAP_VALUES = {
    "Batcher": [
        (lambda: S(range(5)).batch(2), [[0, 1], [2, 3], [4]]),
        (lambda: S(range(5)).batch(2, drop_last=True), [[0, 1], [2, 3]]),
        (lambda: [len(S(range(5)).batch(2)), len(S(range(5)).batch(2, True))], [3, 2]),
    ],
    "Concater": [(lambda: S("ab").concat(S([1]), S("c")), ["a", "b", 1, "c"])],
    "InMemoryCacheHolder": [(lambda: S("ab").in_memory_cache(), ["a", "b"])],
    "IterToMapConverter": [
        (lambda: [W([(1, "a"), (2, "b")]).to_map_datapipe()[2]], ["b"]),
        (lambda: [n(3).to_map_datapipe(lambda x: (x, x * x))[2]], [4]),
        (lambda: [len(n(3).to_map_datapipe(lambda x: (x, 0)))], [3]),
        (lambda: [quiet(lambda: len(n(4).filter(bool_).to_map_datapipe(lambda x: (x, 0))))], [3]),
    ],
    "Mapper": [
        (lambda: S("ab").map(str.upper), ["A", "B"]),
        (lambda: mapped.Mapper(S("ab")), ["a", "b"]),
    ],
    "SequenceWrapper": [(lambda: S("ab"), ["a", "b"]), (lambda: [S({"k": 1})["k"]], [1])],
    "Shuffler": [
        (lambda: S(range(6)).shuffle().set_seed(0), [4, 2, 1, 0, 5, 3]),
        (lambda: S("abc").shuffle().set_shuffle(False), ["a", "b", "c"]),
        (lambda: S({"x": 1}).shuffle(indices=["x"]), [1]),
        (lambda: sorted(_twice(S("abc").shuffle())), ["a", "a", "b", "b", "c", "c"]),
    ],
    "UnZipper": [
        (lambda: map(list, S([(1, 2), (3, 4)]).unzip(2)), [[1, 3], [2, 4]]),
        (lambda: map(list, S([(1, 2), (3, 4)]).unzip(2, [0])), [[2, 4]]),
    ],
    "Zipper": [(lambda: S("ab").zip(S([1, 2, 3])), [("a", 1), ("b", 2)])],
}


def bool_(x):
    return bool(x)


ITER_ERRORS = {
    "BatchAsyncMapper": (lambda: n().async_map_batches(abs, 2), ValueError, "coroutine"),
    "BatchMapper": (lambda: n().map_batches(abs, 0), AssertionError, "larger than 0"),
    "Batcher": (lambda: n().batch(0), AssertionError, "larger than 0"),
    "BucketBatcher": (lambda: n().bucketbatch(2, batch_num=0), AssertionError, "batch_num"),
    "CSVDictParser": (lambda: text().parse_csv_as_dict(skip_lines=-1), ValueError, "skip_lines"),
    "CSVParser": (lambda: text().parse_csv(skip_lines=-1), ValueError, "skip_lines"),
    "Collator": (lambda: n().collate({"a": sum}), NotImplementedError, "data frames"),
    "Concater": (lambda: n().concat([1]), TypeError, "Expected all inputs to be `IterDataPipe`"),
    "Cycler": (lambda: n().cycle(-1), ValueError, "non-negative count, got -1"),
    "Demultiplexer": (lambda: list(n().demux(2, abs)[0]), ValueError, "between 0 and 1. 2 is"),
    "Dropper": (lambda: list(rows().drop(9)), UserWarning, "At least one index"),
    "Enumerator": (
        lambda: len(n().filter(bool_).enumerate()),
        TypeError,
        "valid length|has no len",
    ),
    "Filter": (lambda: list(n().filter(abs)), ValueError, "Boolean output is required"),
    "FlatMapper": (lambda: len(n().flatmap()), TypeError, "relies on the output"),
    "Flattener": (lambda: list(rows().flatten(9)), UserWarning, "At least one index"),
    "Forker": (lambda: list(n().fork(2, buffer_size=2)[0]), BufferError, "size 2 is insufficient"),
    "Grouper": (lambda: n().groupby(abs, group_size=0), AssertionError, "group_size must be"),
    "HashChecker": (lambda: list(W([("b", b"")]).check_hash({})), RuntimeError, "Unspecified hash"),
    "Header": (lambda: len(n().filter(bool_).header(None)), TypeError, "cannot be determined"),
    "InBatchShuffler": (lambda: list(n().in_batch_shuffle()), TypeError, "len"),
    "InMemoryCacheHolder": (
        lambda: len(n().filter(bool_).in_memory_cache()),
        TypeError,
        "until the cache is loaded",
    ),
    "IndexAdder": (lambda: list(n().add_index()), NotImplementedError, "dict type"),
    "IterKeyZipper": (lambda: list(n().zip_with_iter(n(1), abs)), BufferError, "No matching key"),
    "IterableWrapper": (lambda: len(W(iter([]))), TypeError, "valid length"),
    "JsonParser": (lambda: list(text("{").parse_json_files()), json.JSONDecodeError, "Expecting"),
    "LengthSetter": (lambda: n().set_length(-1), AssertionError, "at least 0, got -1"),
    "LineReader": (lambda: text().readlines(skip_lines=-1), ValueError, "skip_lines"),
    "MapKeyZipper": (lambda: list(n().zip_with_map(S("a"), abs)), KeyError, "not a valid key"),
    "MapToIterConverter": (lambda: iterable.MapToIterConverter(n()), TypeError, "MapDataPipe"),
    "Mapper": (lambda: n().map(abs, output_col=1), ValueError, "`output_col` must be None"),
    "MaxTokenBucketizer": (lambda: n().max_token_bucketize(2, max_len=3), ValueError, "max_token"),
    "Multiplexer": (lambda: len(n().mux(n().filter(bool_))), TypeError, "has no len|valid length"),
    "MultiplexerLongest": (
        lambda: len(n().mux_longest(n().filter(bool_))),
        TypeError,
        "has no len|valid length",
    ),
    "ParagraphAggregator": (lambda: n().lines_to_paragraphs(1), TypeError, "callable"),
    "PinMemory": (lambda: n().pin_memory(), RuntimeError, "when CUDA is available"),
    "Prefetcher": (lambda: n().prefetch(0), ValueError, "positive integer"),
    "RandomSplitter": (lambda: n().random_split({"a": 1}, 0, target="b"), KeyError, "target=b"),
    "Repeater": (lambda: n().repeat(1), ValueError, "must be > 1, got 1"),
    "RoundRobinDemultiplexer": (lambda: n().round_robin_demux(0), ValueError, "larger than 0"),
    "RoutedDecoder": (lambda: W([]).routed_decode(), FutureWarning, "deprecated since 1.12"),
    "Rows2Columnar": (lambda: list(rows().batch(2).rows2columnar(["a"])), IndexError, "range"),
    "SampleMultiplexer": (
        lambda: iterable.SampleMultiplexer({n(): 0}),
        ValueError,
        "positive and non-zero weight, got 0",
    ),
    "Sampler": (lambda: iterable.Sampler(n().filter(bool_)), AssertionError, "__len__"),
    "ShardExpander": (lambda: list(W(["{3..1}"]).shard_expand()), ValueError, "bad range"),
    "ShardingFilter": (lambda: _sharded((2, 2)), ValueError, "should be smaller than"),
    "ShardingRoundRobinDispatcher": (
        lambda: n().sharding_round_robin_dispatch(),
        NotImplementedError,
        "only supports",
    ),
    "ShuffledFlatMapper": (lambda: n().shuffled_flatmap(buffer_size=0), AssertionError, "larger"),
    "Shuffler": (lambda: n().shuffle(buffer_size=0), AssertionError, "larger than 0"),
    "Slicer": (lambda: n().slice([0], 2), UserWarning, "only the indices list"),
    "StreamReader": (lambda: list(n().read_from_stream()), TypeError, "unpack"),
    "ThreadPoolMapper": (lambda: n().threadpool_map(abs, max_workers=0), ValueError, "max_workers"),
    "UnBatcher": (lambda: list(n().unbatch()), IndexError, "exceeds the depth"),
    "UnZipper": (lambda: rows().unzip(1, columns_to_skip=[0]), RuntimeError, "filtered out"),
    "WebDataset": (lambda: list(W([(1, 2)]).webdataset()), TypeError, "path as str"),
    "Zipper": (lambda: n().zip([1]), TypeError, "required to be `IterDataPipe`"),
    "ZipperLongest": (lambda: n().zip_longest([1]), TypeError, "required to be `IterDataPipe`"),
}

MAP_ERRORS = {
    "Batcher": (lambda: S("ab").batch(2)[1], IndexError, "Index 1 is out of bound"),
    "Concater": (lambda: S("ab").concat(S("c"))[3], IndexError, "Index 3 is out of range"),
    "InMemoryCacheHolder": (lambda: S("ab").in_memory_cache()[2], IndexError, "out of range"),
    "IterToMapConverter": (lambda: n(2).to_map_datapipe()[0], TypeError, "to a sequence"),
    "Mapper": (lambda: S("ab").map(3), TypeError, "A callable function is expected"),
    "SequenceWrapper": (lambda: S("ab")[2], IndexError, "out of range"),
    "Shuffler": (lambda: list(S("ab").shuffle(indices=[5])), IndexError, "out of range"),
    "UnZipper": (lambda: S("ab").unzip(0), ValueError, "larger than 0, but 0"),
    "Zipper": (lambda: S("ab").zip(S("c"))[1], IndexError, "for one of the input MapDataPipes"),
}


def cases(table):
    return [
        pytest.param(make, expected, id=f"{name}-{i}")
        for name, entries in table.items()
        for i, (make, expected) in enumerate(entries)
    ]


@pytest.mark.parametrize(("make", "expected"), cases(ITER_VALUES))
def test_values(make, expected):
    assert list(make()) == expected


@pytest.mark.parametrize(("make", "expected"), cases(MAP_VALUES))
def test_values_of_map_style(make, expected):
    found = make()
    if isinstance(found, MapDataPipe):
        found = [found[i] for i in range(len(found))]
    assert list(found) == expected


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        pytest.param(*case, id=name)
        for table in (ITER_ERRORS, {f"map.{k}": v for k, v in MAP_ERRORS.items()})
        for name, case in table.items()
    ],
)
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("make", [make for make, _ in itertools.chain(*ITER_VALUES.values())])
def test_stopped_at_every_element_and_put_back(make):
    """Each pipe of the table above gives the rest, whatever has been drawn in between."""

    def again():
        fb.manual_seed(0)
        return quiet(make)

    pipe = again()
    if not isinstance(pipe, IterDataPipe):
        return  # several pipes, or numbers
    for stop in range(1, len(list(pipe)) + 1):
        pipe = again()
        elements = iter(pipe)
        for _ in range(stop):
            next(elements)
        state, rest = json.loads(json.dumps(pipe.state_dict())), list(elements)
        other = again()
        other.load_state_dict(state)
        fb.manual_seed(stop)
        assert list(other) == rest


#: pipes of files, archives, networks and packages: see test_files.py and test_packages.py
ELSEWHERE = set(
    """AISFileLister AISFileLoader Bz2FileLoader DataFrameMaker Decompressor EndOnDiskCacheHolder
    Extractor FSSpecFileLister FSSpecFileOpener FSSpecSaver FileLister FileOpener FullSync
    GDriveReader HttpReader HuggingFaceHubReader IoPathFileLister IoPathFileOpener IoPathSaver
    OnDiskCacheHolder OnlineReader ParquetDataFrameLoader PinMemory RarArchiveLoader S3FileLister
    S3FileLoader Saver TFRecordLoader TarArchiveLoader XzFileLoader ZipArchiveLoader""".split()
)


def test_every_pipe_is_listed():
    names = set(iterable.__all__) - {"IterDataPipe"}
    assert set(ITER_VALUES) | ELSEWHERE == names
    assert set(ITER_ERRORS) | ELSEWHERE == names
    assert set(MAP_VALUES) == set(MAP_ERRORS) == set(mapped.__all__) - {"MapDataPipe"}
    assert len(names) >= 60
