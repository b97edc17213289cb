"""What datasets cost: bytes and time of writing, seven answers from Parquet, and views beside queries written by hand.

Goals: at most 10 bytes a kernel and 3 million rows a second when rows are written; seven standard answers about a
million kernels in a second, the start of the program included; each view of DuckDB within 1.5 times of the query that a
person would write. The peers are pyarrow's own writer of the same rows with its defaults, and DuckDB with queries
written by hand over the same files. CPU seconds of all threads, medians of three; only the seven answers are wall time.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _cpu_time import cpu_seconds
from analysis import recording

from collector.dataset import Dataset, DatasetWriter
from collector.dataset.database import Database
from collector.dataset.dataset_folder import tables
from collector.dataset.step_tables import step_tables
from collector.recording.recording import Recording

REPEATS = 3
SEVEN = {
    "kernels": "SELECT name, sum(count) AS kernels, sum(total_ns) AS total_ns FROM step_kernels GROUP BY name "
    "ORDER BY total_ns DESC LIMIT 10",
    "devices": "SELECT device_id, busy_ns, idle_ns FROM step_devices",
    "overlap": "SELECT device_id, exposed_communication_ns FROM step_overlap",
    "idle": "SELECT * FROM answer_idle",
    "streams": "SELECT device_id, stream_id, busy_ns FROM step_streams",
    "ops": "SELECT path, total_ns FROM step_ops ORDER BY total_ns DESC LIMIT 10",
    "longest": "SELECT name, duration_ns FROM kernels ORDER BY duration_ns DESC LIMIT 10",
}
EDGES = """in_step AS (
          SELECT run, rank, step, device_id, greatest(k.start_ns, s.start_ns) AS start_ns,
            least(k.start_ns + duration_ns, end_ns) AS end_ns, (class = 'compute')::INT AS c
          FROM kernels AS k JOIN steps AS s USING (run, rank, step)
        ), edges AS (
          SELECT run, rank, step, device_id, start_ns AS t, c, 1 - c AS n FROM in_step WHERE end_ns > start_ns
          UNION ALL
          SELECT run, rank, step, device_id, end_ns, -c, c - 1 FROM in_step WHERE end_ns > start_ns)"""
BY_HAND = {
    "answer_kernels": """
        SELECT run, rank, step, name, count(*), sum(duration_ns), min(duration_ns), max(duration_ns),
          quantile_disc(duration_ns, 0.5)
        FROM kernels GROUP BY run, rank, step, name""",
    "computed_kernels": """
        SELECT run, rank, step, name, count(*), sum(duration_ns), min(duration_ns), max(duration_ns),
          max(CASE WHEN 2 * place IN (rows, rows + 1) THEN duration_ns END) AS median_ns
        FROM (
          SELECT run, rank, step, name, duration_ns, count(*) OVER (PARTITION BY run, rank, step, name) AS rows,
            row_number() OVER (PARTITION BY run, rank, step, name ORDER BY duration_ns, id) AS place FROM kernels)
        GROUP BY run, rank, step, name""",
    "busy": """
        SELECT run, rank, step, device_id,
          sum(greatest(0, end_ns - greatest(start_ns, coalesce(reached, start_ns)))) AS busy_ns FROM (
          SELECT run, rank, step, device_id, start_ns, start_ns + duration_ns AS end_ns, max(start_ns + duration_ns)
            OVER (PARTITION BY run, rank, step, device_id ORDER BY start_ns
              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
          FROM kernels) GROUP BY run, rank, step, device_id""",
    "answer_overlap": f"""
        WITH {EDGES}, running AS (
          SELECT run, rank, step, device_id, lead(t) OVER w - t AS length, sum(c) OVER w AS c, sum(n) OVER w AS n
          FROM edges WINDOW w AS (PARTITION BY run, rank, step, device_id ORDER BY t ROWS UNBOUNDED PRECEDING))
        SELECT run, rank, step, device_id, sum(CASE WHEN c + n > 0 THEN length ELSE 0 END) AS busy_ns,
          sum(CASE WHEN c > 0 THEN length ELSE 0 END) AS compute_ns,
          sum(CASE WHEN n > 0 THEN length ELSE 0 END) AS communication_ns,
          sum(CASE WHEN n > 0 AND c = 0 THEN length ELSE 0 END) AS exposed_communication_ns,
          sum(CASE WHEN c > 0 AND n > 0 THEN length ELSE 0 END) AS compute_communication_ns
        FROM running GROUP BY run, rank, step, device_id""",
    "answer_launch_delays": """
        SELECT k.run, k.rank, k.step, k.device_id, k.stream_id, a.id AS api_row, a.duration_ns AS api_ns,
          k.start_ns - a.start_ns AS delay_ns, greatest(k.start_ns - a.start_ns - a.duration_ns, 0) AS queue_ns
        FROM kernels AS k JOIN api_calls AS a
        ON a.run = k.run AND a.rank = k.rank AND a.step = k.step AND a.correlation_id = k.correlation_id""",
}
"""View -> the query that a person would write for the same columns over kernels alone, of any number of runs and
ranks. ``computed_kernels`` stands beside a median in portable SQL, ``answer_kernels`` beside DuckDB's own."""
BY_HAND["computed_overlap"] = BY_HAND["answer_overlap"]


def writing(step: Recording, folder: Path) -> list[str]:
    """Bytes of a kernel and rows a second, beside pyarrow's own writer."""
    import pyarrow.parquet

    numbers = iter(range(REPEATS + 1))
    base_ns = step.clock.cupti_start_ns

    def write() -> None:
        recording = fresh.pop()
        with DatasetWriter(folder / f"written{next(numbers)}", run="a") as writer:
            writer.write(recording)

    made: dict[str, Any] = step_tables(step, 0, base_ns, tables())
    rows = sum(table.num_rows for table in made.values())
    shaped = cpu_seconds(lambda: step_tables(step, 0, base_ns, tables()))
    capture = step.to_capture()
    fresh = [Recording.from_capture(capture)]
    write()  # loads the questions
    fresh = [Recording.from_capture(capture) for _ in range(REPEATS)]  # which remember nothing of an earlier write
    whole = cpu_seconds(write)
    plain = cpu_seconds(
        lambda: [pyarrow.parquet.write_table(table, folder / f"{name}.parquet") for name, table in made.items()]
    )
    dataset = Dataset(folder / "written0")
    paths = [path for table in dataset.files.by_table for path in dataset.files.of(table)]
    written = sum(pyarrow.parquet.read_metadata(path).num_rows for path in paths)
    own = sum(path.stat().st_size for path in dataset.files.of("kernels")) / len(step.kernels)
    theirs = (folder / "kernels.parquet").stat().st_size / len(step.kernels)
    return [
        f"| kernels in a file | {own:.1f} bytes each | pyarrow's defaults {theirs:.1f} | at most 10 |",
        f"| rows made of a recording | {rows / shaped / 1e6:.1f} M/s | | |",
        f"| a step written, with its facts | {written / whole / 1e6:.1f} M rows/s | pyarrow's defaults, rows that are "
        f"made already, no facts {rows / plain / 1e6:.1f} | at least 3 |",
    ]


def seven_answers(folder: Path) -> list[str]:
    """Wall time of a program that opens a dataset and asks seven questions."""
    program = (
        "import sys\n"
        "from collector.dataset.dataset import Dataset\n"
        "from collector.dataset.database import Database\n"
        "with Database.of_dataset(Dataset(sys.argv[1])) as database:\n"
        "    for query in sys.argv[2:]:\n"
        "        database.sql(query)\n"
    )
    spent, busy = [], []
    for _ in range(REPEATS):
        begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program, str(folder), *SEVEN.values()], check=True)
        spent.append(time.perf_counter() - begin)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    wall, cpu = statistics.median(spent), statistics.median(busy)
    return [f"| seven answers, start included | {wall:.2f} s, {cpu:.2f} CPU s | | at most 1 s |"]


def views(folder: Path) -> list[str]:
    """CPU time of views, and of queries written by hand over the same files."""
    found = []
    with Database.of_dataset(Dataset(folder)) as database:
        connection = database._connection
        for view, by_hand in BY_HAND.items():
            own, theirs = (
                cpu_seconds(lambda query=query: connection.sql(query).to_arrow_table())
                for query in (f'SELECT * FROM "{view}"', by_hand)
            )
            found.append(f"| {view} | {own:.2f} s | by hand {theirs:.2f} s | {own / theirs:.2f} times, at most 1.5 |")
    return found


def main() -> None:
    """Print a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    arguments = parser.parse_args()
    step = recording(arguments.kernels)
    print(
        f"{arguments.kernels:,} kernels with a call each\n\n| what | ours | beside | goal |\n| --- | --- | --- | --- |"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = writing(step, folder)
        print("\n".join([*lines, *seven_answers(folder / "written0"), *views(folder / "written0")]))


if __name__ == "__main__":
    main()
