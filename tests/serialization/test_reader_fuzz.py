"""The reader of files below Python, built without it, under the sanitizers, on damaged files."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import tarfile
import zipfile

HERE = pathlib.Path(__file__).parent
CORE = HERE.parents[1] / "csrc"
PARTS = ("files/crc32.cpp", "files/source.cpp", "files/zip.cpp", "core/error.cpp")
PARTS += ("files/json.cpp", "files/safetensors.cpp")


def test_damaged_files_under_the_sanitizers(tmp_path):
    program, files = tmp_path / "reader_fuzz", tmp_path / "files"
    compiler = shutil.which("g++") or shutil.which("c++")
    command = [compiler, "-std=c++20", "-O1", "-g", "-fsanitize=address,undefined"]
    command += ["-fno-sanitize-recover=all", f"-I{CORE}", "-o", str(program)]
    command += [str(HERE / "reader_fuzz.cpp"), *(str(CORE / p) for p in PARTS)]
    subprocess.run(command, check=True)
    files.mkdir()
    with tarfile.open(HERE / "pytorch_files/cases.tar.gz") as stored:
        for k, entry in enumerate(stored):
            data = stored.extractfile(entry).read()
            (files / f"{k}").write_bytes(data)
            if data[:2] == b"PK" and k % 4 == 0:
                with zipfile.ZipFile(files / f"{k}") as archive:
                    inner = next(n for n in archive.namelist() if n.endswith("data.pkl"))
                    (files / f"{k}.pkl").write_bytes(archive.read(inner))
    done = subprocess.run([str(program), str(files), "1000"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "damaged archives" in done.stdout
