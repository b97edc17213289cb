"""Generate the message classes of `protos/*.proto` into a folder. Run it with `make protos`.

grpcio-tools 1.62.3 (protoc 25.1) is the newest generator whose output carries no version stamp: its output runs on
every protobuf from 4.21 to 7.x, while later generators refuse runtimes older than themselves.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import metadata
from pathlib import Path

GENERATOR = "1.62.3"
PACKAGE = "collector/protos"
ROOT = Path(__file__).resolve().parent.parent


def generate(target: Path) -> list[Path]:
    """Write `NAME_pb2.py` and `NAME_pb2.pyi` of every message file into `target`; returns the paths written."""
    from grpc_tools import protoc

    found = metadata.version("grpcio-tools")
    if found != GENERATOR:
        raise SystemExit(f"grpcio-tools {found} would write other bytes; install grpcio-tools=={GENERATOR}")
    sources = sorted(path.name for path in (ROOT / "protos").glob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        # The import path becomes the module path, so the files are compiled as if they were in the package.
        arguments = ["protoc", f"-I{PACKAGE}={ROOT / 'protos'}", f"--python_out={scratch}", f"--pyi_out={scratch}"]
        if protoc.main([*arguments, *(f"{PACKAGE}/{name}" for name in sources)]) != 0:
            raise SystemExit("protoc failed; its message is above")
        target.mkdir(parents=True, exist_ok=True)
        written = []
        for path in sorted((Path(scratch) / PACKAGE).iterdir()):
            written.append(target / path.name)
            written[-1].write_bytes(path.read_bytes())
    return written


if __name__ == "__main__":
    for generated in generate(Path(sys.argv[1])):
        print(generated)
