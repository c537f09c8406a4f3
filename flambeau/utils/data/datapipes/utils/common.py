"""Helpers of many pipes: checks of functions and columns, file names, streams.

Owns `StreamWrapper`, which closes the file it holds when nothing refers to it any more, and the
rules by which functions are applied to columns of a sample. It knows no pipe.
"""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from io import IOBase
from typing import Any, ClassVar

__all__ = [
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_input_col",
    "validate_pathname_binary_tuple",
]


def length_like(owner: Any, source: Any) -> int:
    """The length of `source`; TypeError in the owner's name if it has none."""
    if isinstance(source, Sized):
        return len(source)
    raise no_length(owner)


def no_length(owner: Any) -> TypeError:
    return TypeError(f"{type(owner).__name__} instance doesn't have valid length")


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """Check that a function takes as many positional arguments as there are columns.

    Args:
        fn: the function; without keyword-only arguments that must be given.
        input_col: a column, or a list or tuple of them; None counts as one.

    Raises:
        ValueError: it does not.

    >>> from flambeau.utils.data.datapipes.utils.common import validate_input_col
    >>> validate_input_col(lambda a, b: a + b, [0, 2])
    """
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # written in C
        return
    wanted = len(input_col) if isinstance(input_col, list | tuple) else 1
    kinds = inspect.Parameter
    positional = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    takes_more = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    named = [p for p in parameters if p.kind is kinds.KEYWORD_ONLY and p.default is p.empty]
    inner = fn.func if isinstance(fn, functools.partial) else fn
    name = getattr(inner, "__name__", repr(inner))
    if named:
        raise ValueError(
            f"The function {name} takes {len(named)} non-default keyword-only parameters, which "
            "is not allowed."
        )
    required = [p for p in positional if p.default is p.empty]
    if len(required) > wanted or (len(positional) < wanted and not takes_more):
        raise ValueError(
            f"The function {name} takes {len(positional)} positional parameters, but {wanted} "
            "are required."
        )


def single_column(input_col: Any, output_col: Any) -> Any:
    """The output column out of a list of one.

    Raises:
        ValueError: it is given without an input column, or is several.
    """
    if input_col is None and output_col is not None:
        raise ValueError("`output_col` must be None when `input_col` is None.")
    if isinstance(output_col, list | tuple):
        if len(output_col) > 1:
            raise ValueError("`output_col` must be a single-element list or tuple")
        output_col = output_col[0]
    return output_col


def on_columns(fn: Callable[..., Any], input_col: Any) -> Callable[[Any], Any]:
    """`fn` as a function of a whole sample: it gets the columns named."""
    if input_col is None:
        return fn
    if isinstance(input_col, list | tuple):
        return lambda sample: fn(*[sample[column] for column in input_col])
    return lambda sample: fn(sample[input_col])


def with_column(data: Any, result: Any, input_col: Any, output_col: Any) -> Any:
    """The sample with a result put where the columns say; a tuple stays a tuple."""
    is_tuple = isinstance(data, tuple)
    if is_tuple:
        data = list(data)
    if output_col is not None:
        if output_col == -1:
            data.append(result)
        else:
            data[output_col] = result
    elif isinstance(input_col, list | tuple):
        data[input_col[0]] = result
        for column in sorted(input_col[1:], reverse=True):
            del data[column]
    else:
        data[input_col] = result
    return tuple(data) if is_tuple else data


def on_sample(fn: Callable[..., Any], input_col: Any, output_col: Any) -> Callable[[Any], Any]:
    """`fn` as a function from sample to sample: it gets columns, and its result becomes one."""
    if input_col is None:
        return fn
    apply = on_columns(fn, input_col)
    return lambda sample: with_column(sample, apply(sample), input_col, output_col)


def _check_unpickable_fn(fn: Any) -> None:
    """Check that a pipe is given a function.

    Lambdas and local functions are accepted without a word: they work everywhere but in workers
    that are spawned, where pickling says so itself.
    """
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a file name fits one of the masks of a shell; no mask fits all.

    >>> from flambeau.utils.data.datapipes.utils.common import match_masks
    >>> match_masks("a.csv", ["*.tsv", "*.csv"]), match_masks("a.csv", "")
    (True, True)
    """
    fits = _mask(masks)
    return fits is None or fits(name) is not None


def _mask(masks: str | list[str]) -> Callable[[str], Any] | None:
    """What a name is tried with; None if every name fits."""
    if not masks:
        return None
    patterns = [fnmatch.translate(m) for m in ([masks] if isinstance(masks, str) else masks)]
    return re.compile("|".join(patterns)).match


def get_file_pathnames_from_root(
    root: str,
    masks: str | list[str],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterator[str]:
    """Paths of the files in a folder, or of the file itself; sorted unless `non_deterministic`."""
    fits = _mask(masks)
    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if fits is None or fits(os.path.basename(path)):
            yield path
        return
    left = [root]
    while left:
        path = left.pop()
        files, folders = _entries(path)
        if abspath:
            path = os.path.abspath(path)
        if not non_deterministic:
            files.sort()
            folders.sort()
        start = os.path.join(path, "")
        for name in files:
            if fits is None or fits(name):
                yield start + name
        if recursive:
            left += [start + name for name in reversed(folders)]


def _entries(path: str) -> tuple[list[str], list[str]]:
    """The files of a folder, and the folders; links to folders are neither."""
    files, folders = [], []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_dir():
                    files.append(entry.name)
                elif not entry.is_symlink():
                    folders.append(entry.name)
    except OSError as error:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=4)
        raise
    return files, folders


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str], mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """(path, stream) of each path."""
    if not isinstance(pathnames, Iterable):
        pathnames = [pathnames]
    if mode in ("b", "t"):
        mode = "r" + mode
    for pathname in pathnames:
        if not isinstance(pathname, str):
            raise TypeError(f"Expected string type for pathname, but got {type(pathname)}")
        yield pathname, StreamWrapper(open(pathname, mode, encoding=encoding))


def validate_pathname_binary_tuple(data: Any) -> None:
    """Check that a sample is (path, stream).

    Raises:
        TypeError: it is not.
    """
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(
            "pathname within the tuple should have string type pathname, but it is type "
            f"{type(data[0])}"
        )
    if not isinstance(data[1], IOBase | StreamWrapper):
        raise TypeError(
            "binary stream within the tuple should have IOBase or its subclasses as type, but it "
            f"is type {type(data[1])}"
        )


class StreamWrapper:
    """A file that is closed with the last reference to it, or with the last of its children.

    Args:
        file_obj: what is read from; its attributes are this object's.
        parent_stream: the stream this one reads from, a `StreamWrapper`.
        name: what to print.

    Example:
        >>> import io
        >>> from flambeau.utils.data.datapipes.utils import StreamWrapper
        >>> stream = StreamWrapper(io.StringIO("two\\nlines"), name="text")
        >>> list(stream)
        ['two\\n', 'lines']
        >>> stream.close()
        >>> stream.closed
        True
    """

    session_streams: ClassVar[dict[Any, int]] = {}
    debug_unclosed_streams: ClassVar[bool] = False

    def __init__(
        self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: Any = None
    ) -> None:
        self.closed = True  # until there is something to close
        if parent_stream is not None and not isinstance(parent_stream, StreamWrapper):
            raise RuntimeError(
                f"Parent stream should be StreamWrapper, {type(parent_stream)} was given"
            )
        self.file_obj = file_obj
        self.child_counter = 0
        self.parent_stream = parent_stream
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        if parent_stream is not None:
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close the streams in a structure of dictionaries, lists and tuples."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for inner in v.values():
                cls.close_streams(inner, depth + 1)
        elif isinstance(v, list | tuple):
            for inner in v:
                cls.close_streams(inner, depth + 1)

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":  # not there yet: being made or unpickled
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the file, and the parent if this was its last child and it waits for that."""
        if self.closed:
            return
        self.closed = True
        StreamWrapper.session_streams.pop(self, None)
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        close = getattr(self.file_obj, "close", None)
        if close is not None:
            close(*args, **kwargs)

    def autoclose(self) -> None:
        """Close with the last child; at once if there are none."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __enter__(self) -> StreamWrapper:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *dir(StreamWrapper), *dir(self.file_obj)})

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name},"
        return f"StreamWrapper<{name}{self.file_obj!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.__init__(obj)  # type: ignore[misc]
