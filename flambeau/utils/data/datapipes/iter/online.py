"""Pipes that read from the network: HTTP, Google Drive.

Owns requests, made with the standard library. Streams are read as the elements are; a failure is an
error, or a warning where it is to be passed over.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

from .._decorator import functional_datapipe
from .._late import Late
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, length_like

__all__ = ["GDriveReaderDataPipe", "HTTPReaderIterDataPipe", "OnlineReaderIterDataPipe"]

cookiejar: Any = Late("http.cookiejar")
parse: Any = Late("urllib.parse")
request: Any = Late("urllib.request")
_WARNING = re.compile(r"<title>Google Drive - (.+?)</title>")


class _Reader(IterDataPipe[tuple[str, StreamWrapper]]):
    """A source of addresses, and how they are asked for."""

    def __init__(
        self,
        source_datapipe: Any,
        timeout: float | None = None,
        skip_on_error: bool = False,
        headers: dict[str, str] | None = None,
        params: dict[str, Any] | None = None,
    ) -> None:
        self.source_datapipe = source_datapipe
        self.timeout = timeout
        self.skip_on_error = skip_on_error
        self.headers = headers or {}
        self.params = params or {}

    def _response(self, url: str) -> tuple[str, StreamWrapper]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[tuple[str, StreamWrapper]]:
        for url in self.source_datapipe:
            try:
                response = self._response(url)
            except Exception as error:
                if not self.skip_on_error:
                    raise
                warnings.warn(f"{error}, skipping...", stacklevel=2)
                continue
            yield response

    def _open(self, url: str, opener: Any) -> Any:
        if self.params:
            url += ("&" if "?" in url else "?") + parse.urlencode(self.params)
        asked = request.Request(url, headers=self.headers)
        return opener.open(asked, **({} if self.timeout is None else {"timeout": self.timeout}))

    def _http(self, url: str) -> tuple[str, StreamWrapper]:
        return url, StreamWrapper(self._open(url, request.build_opener()), name=url)

    def _google_drive(self, url: str) -> tuple[str, StreamWrapper]:
        cookies = cookiejar.CookieJar()
        opener = request.build_opener(request.HTTPCookieProcessor(cookies))
        response = self._open(url, opener)
        if "content-disposition" not in response.headers:
            with response:
                page = response.read().decode(errors="ignore")
            found = _WARNING.search(page)
            says = found.group(1) if found else ""
            if says == "Quota exceeded":
                raise RuntimeError(
                    f"Google drive link {url} is currently unavailable, because the quota was "
                    "exceeded."
                )
            token = next((c.value for c in cookies if c.name.startswith("download_warning")), None)
            if token is None and says == "Virus scan warning":
                token = "t"
            if token is not None:
                response = self._open(f"{url}&confirm={token}", opener)
        name = re.search('filename="(.+?)"', response.headers.get("content-disposition", ""))
        if name is None:
            response.close()
            raise RuntimeError(
                f"Google drive link {url} internal error: headers don't contain "
                "content-disposition. This is usually caused by using a sharing/viewing link "
                "instead of a download link."
            )
        return name.group(1), StreamWrapper(response, name=name.group(1))

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


@functional_datapipe("read_from_http")
class HTTPReaderIterDataPipe(_Reader):
    """(address, stream) of each address (functional name: `read_from_http`).

    Args:
        source_datapipe: source of addresses.
        timeout: seconds to wait for the server.
        skip_on_error: warn of what fails, and go on.
        headers: of the request.
        params: query to append to the address.

    Raises:
        OSError: while iterating, an address cannot be read.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper(["data:text/plain,abc"]).read_from_http()
        >>> [(url, stream.read()) for url, stream in pipe]
        [('data:text/plain,abc', b'abc')]
    """

    def _response(self, url: str) -> tuple[str, StreamWrapper]:
        return self._http(url)


@functional_datapipe("read_from_gdrive")
class GDriveReaderDataPipe(_Reader):
    """(file name, stream) of links to Google Drive (functional name: `read_from_gdrive`).

    Args:
        source_datapipe: source of links for download.
        timeout: seconds to wait for the server.
        skip_on_error: warn of what fails, and go on.
        headers: of the request.
        params: query to append to the address.

    Raises:
        OSError: while iterating, a link cannot be read.
        RuntimeError: while iterating, a link is none for download, or its quota is used up.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(["data:text/plain,page"]).read_from_gdrive())
        Traceback (most recent call last):
        ...
        RuntimeError: Google drive link data:text/plain,page internal error: headers don't...
    """

    def _response(self, url: str) -> tuple[str, StreamWrapper]:
        return self._google_drive(url)


@functional_datapipe("read_from_remote")
class OnlineReaderIterDataPipe(_Reader):
    """As `read_from_gdrive` for links to Google Drive, else as `read_from_http` (functional name:
    `read_from_remote`).

    Args:
        source_datapipe: source of addresses.
        timeout: seconds to wait for the server.
        skip_on_error: warn of what fails, and go on.
        headers: of the request.
        params: query to append to the address.

    Raises:
        OSError: while iterating, an address cannot be read.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper(["data:text/plain,abc"]).read_from_remote()
        >>> [stream.read() for url, stream in pipe]
        [b'abc']
    """

    def _response(self, url: str) -> tuple[str, StreamWrapper]:
        host = parse.urlparse(url).netloc
        is_drive = re.match(r"(drive|docs)\.google\.com", host)
        return self._google_drive(url) if is_drive else self._http(url)
