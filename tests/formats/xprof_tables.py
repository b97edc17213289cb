"""Print what xprof's own converter makes of an XSpace, as JSON: {kernels: [...], events: [...], steps: [...]}.

python xprof_tables.py plugins/profile/RUN/HOST.xplane.pb
"""

from __future__ import annotations

import json
import sys

from xprof.convert import raw_to_tool_data

OPTIONS = {"use_saved_result": False}


def tool(path: str, name: str):
    """One tool's answer, parsed."""
    answer, _ = raw_to_tool_data.xspace_to_tool_data([path], name, OPTIONS)
    return json.loads(answer)


def main(path: str) -> None:
    """Ask the kernel table, the trace viewer and the overview."""
    table = tool(path, "kernel_stats")
    table = table[0] if isinstance(table, list) else table
    columns = [column["id"] for column in table["cols"]]
    kernels = [dict(zip(columns, (cell.get("v") for cell in row["c"]), strict=True)) for row in table["rows"]]
    events = tool(path, "trace_viewer")["traceEvents"]
    json.dump({"kernels": kernels, "events": events, "steps": steps(path)}, sys.stdout)


def steps(path: str) -> list[dict]:
    """The overview's table of steps."""
    [table] = [
        table
        for table in tool(path, "overview_page")
        if any(column["id"] == "stepnum" for column in table.get("cols", []))
    ]
    columns = [column["id"] for column in table["cols"]]
    return [dict(zip(columns, (cell.get("v") for cell in row["c"]), strict=True)) for row in table["rows"]]


if __name__ == "__main__":
    main(sys.argv[1])
