"""A server on loopback that answers as GitHub does, for the tests of `hub`.

Owns the repositories it serves and the log of what it was asked. It knows nothing of the module
under test.
"""

import http.server
import io
import json
import stat
import threading
import zipfile


def archive(entries, links=()):
    """Bytes of a zip archive with the named texts and symbolic links."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, text in entries.items():
            file.writestr(name, text)
        for name, target in links:
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            file.writestr(info, target)
    return stream.getvalue()


class GitHub:
    """Serves repositories by `owner/name`, each a dict of refs to archives.

    Args:
        repositories: `{"owner/name": {"ref": archive bytes}}`.
        files: other paths and their bytes.
    """

    def __init__(self, repositories, files=None):
        self.repositories, self.files = repositories, files or {}
        self.asked = []
        self.headers = []
        self.page = 1  # entries of a page of the API
        self.refused_token = None
        self.ambiguous = set()
        self.length_of = {}
        github = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                github.asked.append(self.path)
                github.headers.append(dict(self.headers))
                status, headers, body = github.answer(self.path, self.headers)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                length = github.length_of.get(self.path, len(body))
                if length is not None:
                    self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def answer(self, path, headers):
        path, _, query = path.partition("?")
        if path in self.files:
            return 200, {}, self.files[path]
        parts = path.strip("/").split("/")
        if parts[:3] == ["api", "v3", "repos"]:
            return self.api("/".join(parts[3:5]), parts[5], query, headers)
        refs = self.repositories.get("/".join(parts[:2]), {})
        kind, ref = parts[2:3], "/".join(parts[3:])
        if kind == ["tree"]:
            return (200 if ref in refs else 404), {}, b""
        if kind == ["zipball"] and ref in self.ambiguous:
            return 300, {}, b""
        if kind == ["zipball"] and ref in refs:  # as GitHub: the bytes are elsewhere
            return 302, {"Location": f"{self.address}/{parts[0]}/{parts[1]}/legacy.zip/{ref}"}, b""
        if kind == ["legacy.zip"]:
            return 200, {}, refs[ref]
        return 404, {}, b"404: Not Found"

    def api(self, repository, kind, query, headers):
        if self.refused_token and self.refused_token in headers.get("Authorization", ""):
            return 401, {}, b"{}"
        names = sorted(self.repositories[repository]) if kind == "branches" else []
        page = int(dict(pair.split("=") for pair in query.split("&"))["page"])
        found = names[self.page * (page - 1) : self.page * page]
        text = [{"name": n, "commit": {"sha": n.encode().hex().ljust(40, "0")}} for n in found]
        return 200, {}, json.dumps(text).encode()
