"""Pipes that read text: lines, CSV, JSON, paragraphs.

Owns decoding and what is done to each line. A stream is closed when it has been read.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import _check_unpickable_fn, length_like

__all__ = [
    "CSVDictParserIterDataPipe",
    "CSVParserIterDataPipe",
    "JsonParserIterDataPipe",
    "LineReaderIterDataPipe",
    "ParagraphAggregatorIterDataPipe",
]


class _Lines(IterDataPipe[Any]):
    """What readers of lines share: which lines, and as what."""

    def __init__(
        self,
        source_datapipe: Any,
        skip_lines: int,
        decode: bool,
        encoding: str,
        errors: str,
        return_path: bool,
    ) -> None:
        if skip_lines < 0:
            raise ValueError("'skip_lines' is required to be a positive integer.")
        self.source_datapipe = source_datapipe
        self.skip_lines = skip_lines
        self.decode = decode
        self.encoding = encoding
        self.errors = errors
        self.return_path = return_path

    def _lines(self, file: Any) -> Iterator[Any]:
        lines: Iterator[Any] = itertools.islice(file, self.skip_lines, None)
        return map(self._decoded, lines) if self.decode else lines

    def _decoded(self, line: Any) -> Any:
        return line.decode(self.encoding, self.errors) if isinstance(line, bytes) else line

    def _parsed(self, lines: Iterator[Any]) -> Iterator[Any]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        for path, file in self.source_datapipe:
            try:
                parsed = self._parsed(self._lines(file))
                if self.return_path:
                    yield from zip(itertools.repeat(path), parsed, strict=False)
                else:
                    yield from parsed
            finally:
                file.close()


def _by_name(rows: Iterator[list[str]]) -> Iterator[dict[Any, Any]]:
    """What `csv.DictReader` makes of rows: empty ones are passed over, what is more than names is
    under None, and what is less is None."""
    names = next(rows, [])
    count = len(names)
    for row in rows:
        if len(row) == count:
            yield dict(zip(names, row, strict=True))
        elif row:
            named: dict[Any, Any] = dict(itertools.zip_longest(names, row[:count]))
            if len(row) > count:
                named[None] = row[count:]
            yield named


def _stripped(line: Any) -> Any:
    return line.strip("\r\n" if isinstance(line, str) else b"\r\n")


@functional_datapipe("readlines")
class LineReaderIterDataPipe(_Lines):
    """(path, line) of each (path, stream) (functional name: `readlines`).

    Args:
        source_datapipe: source of (path, stream).
        skip_lines: lines to leave out at the start of each stream.
        strip_newline: without the ends of lines.
        decode: bytes as text.
        encoding: of that text.
        errors: what `bytes.decode` does with what is no text.
        return_path: lines alone, if False.

    Raises:
        ValueError: `skip_lines` is negative.

    Example:
        >>> import io
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> files = IterableWrapper([("a", io.StringIO("one\\ntwo\\n"))], deepcopy=False)
        >>> list(files.readlines())
        [('a', 'one'), ('a', 'two')]
    """

    def __init__(
        self,
        source_datapipe: Any,
        *,
        skip_lines: int = 0,
        strip_newline: bool = True,
        decode: bool = False,
        encoding: str = "utf-8",
        errors: str = "ignore",
        return_path: bool = True,
    ) -> None:
        super().__init__(source_datapipe, skip_lines, decode, encoding, errors, return_path)
        self.strip_newline = strip_newline

    def _parsed(self, lines: Iterator[Any]) -> Iterator[Any]:
        return map(_stripped, lines) if self.strip_newline else lines


@functional_datapipe("parse_csv")
class CSVParserIterDataPipe(_Lines):
    """The rows of CSV files, as lists of strings (functional name: `parse_csv`).

    Args:
        source_datapipe: source of (path, stream).
        skip_lines: lines to leave out at the start of each stream.
        decode: bytes as text.
        encoding: of that text.
        errors: what `bytes.decode` does with what is no text.
        return_path: (path, row), if True.
        as_tuple: rows as tuples.
        **fmtparams: form of the file, as `csv.reader` takes it: `delimiter`, `quotechar`, …

    Raises:
        ValueError: `skip_lines` is negative.

    Example:
        >>> import io
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> files = IterableWrapper([("a", io.BytesIO(b"x\\ty\\n1\\t2\\n"))], deepcopy=False)
        >>> list(files.parse_csv(skip_lines=1, delimiter="\\t"))
        [['1', '2']]
    """

    def __init__(
        self,
        source_datapipe: Any,
        *,
        skip_lines: int = 0,
        decode: bool = True,
        encoding: str = "utf-8",
        errors: str = "ignore",
        return_path: bool = False,
        as_tuple: bool = False,
        **fmtparams: Any,
    ) -> None:
        super().__init__(source_datapipe, skip_lines, decode, encoding, errors, return_path)
        self.as_tuple = as_tuple
        self.fmtparams = fmtparams

    def _parsed(self, lines: Iterator[Any]) -> Iterator[Any]:
        rows = csv.reader(lines, **self.fmtparams)
        return map(tuple, rows) if self.as_tuple else rows


@functional_datapipe("parse_csv_as_dict")
class CSVDictParserIterDataPipe(_Lines):
    """The rows of CSV files, as dictionaries by the first row (functional name:
    `parse_csv_as_dict`).

    Args:
        source_datapipe: source of (path, stream).
        skip_lines: lines to leave out at the start of each stream, before the row of names.
        decode: bytes as text.
        encoding: of that text.
        errors: what `bytes.decode` does with what is no text.
        return_path: (path, row), if True.
        **fmtparams: form of the file, as `csv.DictReader` takes it.

    Raises:
        ValueError: `skip_lines` is negative.

    Example:
        >>> import io
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> files = IterableWrapper([("a", io.StringIO("x,y\\n1,2\\n"))], deepcopy=False)
        >>> list(files.parse_csv_as_dict())
        [{'x': '1', 'y': '2'}]
    """

    def __init__(
        self,
        source_datapipe: Any,
        *,
        skip_lines: int = 0,
        decode: bool = True,
        encoding: str = "utf-8",
        errors: str = "ignore",
        return_path: bool = False,
        **fmtparams: Any,
    ) -> None:
        super().__init__(source_datapipe, skip_lines, decode, encoding, errors, return_path)
        self.fmtparams = fmtparams

    def _parsed(self, lines: Iterator[Any]) -> Iterator[Any]:
        if self.fmtparams.keys() & {"fieldnames", "restkey", "restval"}:
            return csv.DictReader(lines, **self.fmtparams)
        return _by_name(csv.reader(lines, **self.fmtparams))


@functional_datapipe("parse_json_files")
class JsonParserIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """(path, value) of JSON files (functional name: `parse_json_files`).

    Args:
        source_datapipe: source of (path, stream).
        **kwargs: arguments of `json.loads`.

    Raises:
        json.JSONDecodeError: while iterating, a file is no JSON.

    Example:
        >>> import io
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> files = IterableWrapper([("a", io.StringIO('{"x": [1, 2]}'))], deepcopy=False)
        >>> list(files.parse_json_files())
        [('a', {'x': [1, 2]})]
    """

    def __init__(self, source_datapipe: Any, **kwargs: Any) -> None:
        self.source_datapipe = source_datapipe
        self.kwargs = kwargs

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path, stream in self.source_datapipe:
            content = stream.read()
            stream.close()
            yield path, json.loads(content, **self.kwargs)

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


@functional_datapipe("lines_to_paragraphs")
class ParagraphAggregatorIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """(path, paragraph) of (path, line): paragraphs end at empty lines and with their file
    (functional name: `lines_to_paragraphs`).

    Args:
        source_datapipe: source of (path, line), as `readlines` hands them out.
        joiner: function of a list of lines; joins them by newlines by default.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> lines = [("f", "a"), ("f", "b"), ("f", ""), ("f", "c"), ("g", "d")]
        >>> list(IterableWrapper(lines).lines_to_paragraphs(" ".join))
        [('f', 'a b'), ('f', 'c'), ('g', 'd')]
    """

    def __init__(
        self, source_datapipe: Any, joiner: Callable[[list[Any]], Any] = "\n".join
    ) -> None:
        self.source_datapipe = source_datapipe
        _check_unpickable_fn(joiner)
        self.joiner = joiner

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        waiting: list[Any] = []
        current: Any = None
        for path, line in self.source_datapipe:
            if waiting and (not line or path != current):
                yield current, self.joiner(waiting)
                waiting = []
            if line:
                waiting.append(line)
            current = path
        if waiting:
            yield current, self.joiner(waiting)
