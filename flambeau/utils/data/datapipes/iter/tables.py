"""Pipes of tables and of data sets that packages read: Arrow, Parquet, WebDataset, the Hub.

Owns what is handed out: Arrow's tables as they are. pyarrow and datasets are imported when such a
pipe is made.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import no_length

__all__ = [
    "DataFrameMakerIterDataPipe",
    "HuggingFaceHubReaderIterDataPipe",
    "ParquetDFLoaderIterDataPipe",
    "WebDatasetIterDataPipe",
]


def _needed(package: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"Package `{package}` is required to be installed to use this datapipe. Please use `pip "
        f"install {package}` to install the package"
    )


def _check_device(name: str, device: str) -> None:
    if device not in ("", "cpu"):
        raise NotImplementedError(f"{name}: expected device '' or 'cpu', got {device!r}")


def _table(rows: list[Any], schema: Any, make_schema: Any, columns: list[str] | None) -> Any:
    import pyarrow

    if schema is None and make_schema is not None:
        schema = make_schema()
    if rows and not isinstance(rows[0], dict):
        if not isinstance(rows[0], tuple | list):
            rows = [(row,) for row in rows]
        names = columns or (schema.names if schema is not None else None)
        if names is None:
            names = [f"f{i}" for i in range(len(rows[0]))]
        rows = [dict(zip(names, row, strict=True)) for row in rows]
    table = pyarrow.Table.from_pylist(list(rows), schema=schema)
    return table if columns is None else table.select(columns)


@functional_datapipe("dataframe")
class DataFrameMakerIterDataPipe(IterDataPipe[Any]):
    """Arrow tables of so many rows (functional name: `dataframe`).

    Args:
        source_dp: source of rows: dictionaries, tuples, lists, or single values.
        dataframe_size: rows per table.
        dtype: a `pyarrow.Schema`; found from the rows by default.
        dtype_generator: function that returns it.
        columns: names of the columns of rows that have none; of dictionaries, those to keep.
        device: "" or "cpu".

    Raises:
        ModuleNotFoundError: pyarrow is not installed.
        NotImplementedError: another device.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> rows = IterableWrapper([("a", 1), ("b", 2)])
        >>> [table.to_pydict() for table in rows.dataframe(columns=["x", "y"])]  # doctest: +SKIP
        [{'x': ['a', 'b'], 'y': [1, 2]}]
    """

    def __new__(
        cls,
        source_dp: Any,
        dataframe_size: int = 1000,
        dtype: Any = None,
        dtype_generator: Callable[[], Any] | None = None,
        columns: list[str] | None = None,
        device: str = "",
    ) -> Any:
        _check_device("dataframe", device)
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise _needed("pyarrow") from None
        make = functools.partial(_table, schema=dtype, make_schema=dtype_generator, columns=columns)
        return source_dp.batch(dataframe_size).map(make)


@functional_datapipe("load_parquet_as_df")
class ParquetDFLoaderIterDataPipe(IterDataPipe[Any]):
    """Arrow tables, one of each row group of Parquet files (functional name:
    `load_parquet_as_df`).

    Args:
        source_dp: source of paths.
        dtype: a `pyarrow.Schema` that tables are converted to.
        columns: names of the columns to read; all by default.
        device: "" or "cpu".
        use_threads: decode columns in threads.

    Raises:
        ModuleNotFoundError: pyarrow is not installed.
        NotImplementedError: another device.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import FileLister
        >>> tables = FileLister("data", "*.parquet").load_parquet_as_df()  # doctest: +SKIP
        >>> rows = tables.flatmap(lambda table: table.to_pylist())  # doctest: +SKIP
    """

    def __init__(
        self,
        source_dp: Any,
        dtype: Any = None,
        columns: list[str] | None = None,
        device: str = "",
        use_threads: bool = False,
    ) -> None:
        _check_device("load_parquet_as_df", device)
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise _needed("pyarrow") from None
        self.source_dp = source_dp
        self.dtype = dtype
        self.columns = columns
        self.device = device
        self.use_threads = use_threads

    def __iter__(self) -> Iterator[Any]:
        import pyarrow.parquet

        for path in self.source_dp:
            with pyarrow.parquet.ParquetFile(path) as file:
                for i in range(file.num_row_groups):
                    table = file.read_row_group(
                        i, columns=self.columns, use_threads=self.use_threads
                    )
                    yield table if self.dtype is None else table.cast(self.dtype)


_STEM = re.compile(r"^(.*?)(\.[^/]*)$")


@functional_datapipe("webdataset")
class WebDatasetIterDataPipe(IterDataPipe[dict[str, Any]]):
    """Samples of files that differ in their endings alone (functional name: `webdataset`).

    Args:
        source_datapipe: source of (path, content), those of a sample one after another. The key of
            a sample, "__key__", is the path up to the first dot of the name; files without one are
            left out.

    Raises:
        TypeError: while iterating, a path is no string.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> files = [("t/1.jpg", b"J"), ("t/1.cls", b"3"), ("t/2.jpg", b"K")]
        >>> list(IterableWrapper(files).webdataset())
        [{'__key__': 't/1', '.jpg': b'J', '.cls': b'3'}, {'__key__': 't/2', '.jpg': b'K'}]
    """

    def __init__(self, source_datapipe: Any) -> None:
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[dict[str, Any]]:
        sample: dict[str, Any] = {}
        for path, data in self.source_datapipe:
            if not isinstance(path, str):
                raise TypeError(f"webdataset: expected a path as str, got {type(path)}")
            found = _STEM.match(path.replace("\\", "/"))
            if found is None:
                continue
            stem, ending = found.groups()
            if sample and sample["__key__"] != stem:
                yield sample
                sample = {}
            sample.setdefault("__key__", stem)
            sample[ending] = data
        if sample:
            yield sample


class HuggingFaceHubReaderIterDataPipe(IterDataPipe[Any]):
    """The samples of a data set of the Hugging Face Hub, as they stream in.

    Args:
        dataset: its name.
        **config_kwargs: more arguments of `datasets.load_dataset`.

    Raises:
        ModuleNotFoundError: the package datasets is not installed.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import HuggingFaceHubReader
        >>> pipe = HuggingFaceHubReader("lhoestq/demo1", split="train")  # doctest: +SKIP
    """

    def __init__(self, dataset: str, **config_kwargs: Any) -> None:
        try:
            import datasets  # noqa: F401
        except ImportError:
            raise _needed("datasets") from None
        self.dataset = dataset
        self.config_kwargs = config_kwargs

    def __iter__(self) -> Iterator[Any]:
        import datasets

        options = {"streaming": True, **self.config_kwargs}
        yield from datasets.load_dataset(path=self.dataset, **options)

    def __len__(self) -> int:
        raise no_length(self)
