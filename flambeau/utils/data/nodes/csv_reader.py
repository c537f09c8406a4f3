"""A node that reads a file of rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import Any

from .base_node import BaseNode

__all__ = ["CSVReader"]


class CSVReader(BaseNode[Any]):
    """The rows of a CSV file, as lists or as dictionaries.

    Args:
        file_path: the file, opened in each pass and closed at its end.
        has_header: the first row names the columns.
        delimiter: between fields.
        return_dict: rows by the names of columns; needs `has_header`.
        encoding: of the file.

    Raises:
        ValueError: `return_dict` without `has_header`; a state of the other kind of file.

    Example:
        >>> import tempfile
        >>> from flambeau.utils.data.nodes import CSVReader
        >>> file = tempfile.NamedTemporaryFile("w+", suffix=".csv")
        >>> _ = file.write("text,label\\ngood,1\\nbad,0\\n")
        >>> file.flush()
        >>> list(CSVReader(file.name, has_header=True, return_dict=True))
        [{'text': 'good', 'label': '1'}, {'text': 'bad', 'label': '0'}]
        >>> file.close()
    """

    NUM_LINES_YIELDED = "num_lines_yielded"
    HEADER_KEY = "header"

    def __init__(
        self,
        file_path: str,
        has_header: bool = False,
        delimiter: str = ",",
        return_dict: bool = False,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__()
        if return_dict and not has_header:
            raise ValueError("CSVReader: return_dict=True requires has_header=True")
        self.file_path, self.has_header, self.delimiter = file_path, has_header, delimiter
        self.return_dict, self.encoding = return_dict, encoding
        self._file: io.TextIOBase | None = None
        self._rows: Iterator[Any] = iter(())
        self._header: list[str] | None = None
        self._yielded = 0

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        self.close()
        if initial_state and (initial_state[self.HEADER_KEY] is not None) and not self.has_header:
            raise ValueError(
                "CSVReader.reset: expected a state without a header, as has_header=False, got one "
                f"with {initial_state[self.HEADER_KEY]}"
            )
        file = self._file = open(self.file_path, encoding=self.encoding, newline="")  # noqa: SIM115
        rows: Iterator[Any] = csv.reader(file, delimiter=self.delimiter)
        self._header = next(rows, None) if self.has_header else None
        self._yielded = 0 if initial_state is None else initial_state[self.NUM_LINES_YIELDED]
        self._rows = islice(filter(None, rows), self._yielded, None)

    def next(self) -> Any:
        try:
            row = next(self._rows)
        except StopIteration:
            self.close()
            self._rows = iter(())
            raise
        self._yielded += 1
        if self.return_dict and self._header is not None:
            return dict(zip(self._header, row, strict=False))
        return row

    def get_state(self) -> dict[str, Any]:
        return {self.NUM_LINES_YIELDED: self._yielded, self.HEADER_KEY: self._header}

    def close(self) -> None:
        """Close the file; the next pass opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()
