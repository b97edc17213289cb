"""Every view of reports of many kinds of recordings in headless Chromium: what is shown, in which order, by which keys.

Each report is opened once under its own policy; its views are opened by their addresses. A page that asks for anything
outside of the file, or writes anything to the console, fails its test: see `report_pages`.
"""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from captures import START_NS
from hostile_names import EVIL
from many_annotations import OP_NS, VALIDATE_NS, many_annotations
from markdown_cells import markdown_cells
from report_pages import page_of

import collector
from collector import analysis
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.named_question import NamedQuestion
from collector.analysis.questions import QUESTIONS
from collector.demo.demo_run import run_demo
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.recording.capture import empty_capture
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.text.quantities import time_text
from collector.text.terminal import printable
from collector.web.given_rows import MOST_ROWS
from collector.web.report_file import write_report

pytestmark = [pytest.mark.viewer, pytest.mark.slow]

TORCH = "torch_tutorial/h100_transformer_before.json.gz"
AFTER = "torch_tutorial/h100_transformer_after.json.gz"
OTHERS = {
    "nsys": "nsys_ai/mfu_2gpu_before.sqlite.gz",
    "tensorflow": "tf_ikhlestov/gpu_timeline_01.json.gz",
    "no GPU": "hta/odd_cpu_only_rank34.json.gz",
    "damaged": "broken_derived/truncated_mid_event.json.gz",
}
ALWAYS = ["overview", "findings", "trust"]
SETTLED_MS = 1000
"""Time in which a window settles and the answers about it are made, with room."""
WORK = ["timeline", "idle", "kernels", "ops", "steps"]
"""Views of every recording in which a kernel ran."""


@pytest.fixture(scope="module")
def two_runs(shared, tmp_path_factory):
    """A report of two runs of the same program, the second against the first."""
    path = tmp_path_factory.mktemp("two") / "two.html"
    steps = [(name, collector.load(shared / "data" / "gpu_traces" / name)) for name in (TORCH, AFTER)]
    write_report(path, steps[1:], before=steps[:1], title="two runs")
    return path


@pytest.fixture
def small(build):
    """A step with a gap, a copy, annotations, and a launch without a kernel."""
    build.annotation("train/layer", 0, 900, 40, 1)
    for number, start in enumerate((100, 300, 2_000_000)):
        build.call("cudaLaunchKernel_v7000", start - 60, 20, correlation_id=number + 1)
        build.kernel(f"kernel_{number % 2}", start, 100, correlation_id=number + 1)
    build.call("cudaLaunchKernel_v7000", 700, 20, correlation_id=9)
    build.memcpy(500, 100, stream_id=8)
    return build


def written(path, recording, name="step.pb"):
    write_report(path, [(name, Step(RecordingSource(recording)))])
    return path


def answers(path):
    """The answers of the step that a report opens at, and those of all together."""
    page = page_of(path)
    return {**page["steps"][page["first"]]["answers"], **page["answers"]}


def first_texts(answer):
    """The texts of the first rows of an answer, column after column, as a table has them."""
    texts = [at for at, column in enumerate(answer["columns"]) if column["unit"] == "text"]
    return [[printable(answer["values"][at][row]) for at in texts] for row in range(min(answer["rows"], 200))]


def shown_texts(page, label, answer):
    """The same of the table that is shown."""
    texts = [at for at, column in enumerate(answer["columns"]) if column["unit"] == "text"]
    return [[row[at] for at in texts] for row in page.table(label)]


def test_the_check_finds_colours_without_contrast_in_one_theme_and_a_field_without_a_name(report_page, two_runs):
    page = report_page.open(two_runs).turn("kernels").drawn()
    pale = (
        "@media (prefers-color-scheme: dark) { tbody tr:first-child td:last-child { color: #222; background: #223; } }"
    )
    adopt = (
        "css => { const sheet = new CSSStyleSheet(); sheet.replaceSync(css); document.adoptedStyleSheets = [sheet]; }"
    )
    page.page.evaluate(adopt, pale)
    page.page.evaluate("() => document.querySelector('main').append(document.createElement('input'))")
    found = [(theme, rule) for theme, rule, _ in page.unlawful_in_both_themes()]
    assert found == [("light", "label"), ("dark", "color-contrast")]


def test_every_view_is_accessible_in_both_themes(report_page, two_runs):
    views = report_page.open(two_runs).views()
    assert {*ALWAYS, *WORK, "compare", "memory", "launches", "streams", "critical-path"} <= set(views)
    assert report_page.unlawful_views(views) == []
    report_page.turn("kernels", "group=name&by=kernels/shape&from=0&to=2000000")
    report_page.page.keyboard.press("?")
    assert report_page.unlawful() == []
    report_page.page.set_viewport_size({"width": 400, "height": 400})  # in which not all keys have room
    assert report_page.unlawful() == []


def test_devices_and_threads_have_their_names(report_page, build, tmp_path):
    threads = {1: "MainThread", 2: "thread 2 (x)", 3: f"{EVIL} {'long ' * 200}"}
    build.environment.update(simulated=False, devices={0: "NVIDIA H200"}, thread_names=threads)
    for thread in (1, 2, 3, 4):
        build.call("cudaLaunchKernel_v7000", 10 * thread, 5, correlation_id=thread, thread_id=thread)
        build.kernel("k", 1000 * thread, 500, correlation_id=thread, device_id=thread % 2)
    page = report_page.open(written(tmp_path / "step.html", build.recording())).drawn().page
    assert [(row[0], row[-1]) for row in report_page.table("Devices")] == [("0", "NVIDIA H200"), ("1", "")]
    report_page.turn("timeline").drawn()
    lanes = page.locator(".lane-names li")
    named = [f"thread {name} CUDA calls" for name in ("1 (MainThread)", "2 (x)", f"3 ({threads[3]})", "4")]
    assert lanes.evaluate_all("all => all.map(each => each.textContent)")[-4:] == list(map(printable, named))
    assert lanes.first.get_attribute("title") == "GPU 0: NVIDIA H200"
    ends = page.locator(".lane-names li span:last-child")
    for width in (1440, 400):
        page.set_viewport_size({"width": width, "height": 800})
        names, drawn, end = (each.bounding_box() for each in (lanes.last, page.locator(".drawn"), ends.nth(-2)))
        assert drawn["width"] > 0.45 * (names["width"] + drawn["width"])
        assert ends.nth(-2).inner_text().strip() == "CUDA calls"
        assert end["x"] + end["width"] <= drawn["x"]  # what a lane shows is seen, however long its name is


def test_a_question_that_no_view_names_has_its_answer_in_the_last_view_of_tables(
    report_page, small, tmp_path, monkeypatch
):
    question = Question(
        "toys", "Toys are counted.", (Column("toy", "text", "Its name."), Column("count", "count", "N."))
    )
    asked = NamedQuestion(lambda steps: question.ask(steps, lambda _: Part([("bear", 2)])), {"": question})
    monkeypatch.setitem(QUESTIONS, "toys", asked)
    page = report_page.open(written(tmp_path / "step.html", small.recording()))
    assert page.views()[-3:] == ["others", "findings", "trust"]
    assert page.turn("others").drawn().table("Toys") == [["bear", "2"]]


def test_there_is_no_view_of_others_where_every_answer_has_its_own(report_page, two_runs):
    assert "others" not in report_page.open(two_runs).views()


@pytest.mark.parametrize("width", [400, 900, 1180, 1440])
def test_the_button_of_the_keys_stands_at_the_right_whatever_stands_before_it(report_page, two_runs, width):
    page = report_page.open(two_runs).page
    page.set_viewport_size({"width": width, "height": 800})
    for length in range(5, 80, 5):  # until each part of the line was the last one that fits
        page.locator("h1").evaluate("(title, text) => { title.textContent = text; }", "x" * length)
        button, line = (
            page.locator("header button", has_text="keys").bounding_box(),
            page.locator("header").bounding_box(),
        )
        assert abs(button["x"] + button["width"] - line["x"] - line["width"]) < 8, length


def test_the_marks_of_losses_are_explained(report_page, build, tmp_path):
    hint = "A dashed line with a triangle marks the time of a loss."
    report_page.open(written(tmp_path / "whole.html", build.kernel("k", 1000).recording()), "view=timeline").drawn()
    assert hint not in report_page.page.locator(".under-lanes").inner_text()
    build.launch(5, 10)
    report_page.open(written(tmp_path / "lossy.html", build.recording()), "view=timeline").drawn()
    assert hint in report_page.page.locator(".under-lanes").inner_text()


@pytest.mark.parametrize("width", [320, 640, 1280, 2560])
def test_no_view_is_wider_than_the_window(report_page, two_runs, build, tmp_path, width):
    """Tables alone are scrolled to the side. 640 is a window of 1280 pixels at 200 %."""
    name = "very_long_name_" * 20
    build.annotation(f"{name}/{name}", 0, 900, 40, 1).call("cudaLaunchKernel_v7000", 10, 20, correlation_id=1)
    build.kernel(name, 100, correlation_id=1, stream_id=8, device_id=3).memcpy(5000, 100)
    page = report_page.page
    for path in (two_runs, written(tmp_path / "names.html", build.recording(), f"{name[:200]}.pb")):
        page.set_viewport_size({"width": width, "height": 800})
        for view in report_page.open(path).views():
            report_page.turn(view).drawn()
            page.keyboard.press("?")
            page.evaluate("() => document.querySelectorAll('details').forEach(each => { each.open = true; })")
            assert page.evaluate("() => document.documentElement.scrollWidth") == width, (path.name, view)
            page.keyboard.press("Escape")
    report_page.turn("ops")
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_function("() => document.querySelector('.icicle svg')?.clientWidth <= 400", timeout=60_000)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] if name == "nsys" else []) for name in OTHERS]
)
def test_every_view_of_other_recordings(report_page, shared, tmp_path, name):
    path = tmp_path / "step.html"
    collector.load(shared / "data" / "gpu_traces" / OTHERS[name]).save(path)
    views = report_page.open(path).views()
    assert set(ALWAYS) | set(() if name == "no GPU" else WORK) <= set(views)
    assert report_page.unlawful_views(views) == []
    text = report_page.turn("overview").page.inner_text("main")
    if name == "no GPU":
        assert "No GPU did anything in this step." in text
        assert "The file has no GPU work" in text
        assert "likely causes" not in text
        assert "○ no GPU work" in text
    if name == "damaged":
        assert "⚠ incomplete" in text
        assert "Damaged: not all of it could be read" in text
        assert str(shared) not in path.read_text("utf-8")
        assert "Nothing: every launch" not in report_page.turn("trust").page.inner_text("main")


def test_damaged_parts_of_a_file_are_listed_once(report_page, small, tmp_path):
    path = tmp_path / "step.pb"
    small.recording().save(path)
    path.write_bytes(path.read_bytes()[:-10])
    step = collector.load(path)
    assert step.warning
    step.save(tmp_path / "step.html")
    lost = report_page.open(tmp_path / "step.html", "view=trust").page.locator("h2:has-text('What was lost') + ul > li")
    lost.first.wait_for()
    assert [line.partition(", at ")[0] for line in lost.all_inner_texts()] == step.recording.ledger.losses()


def test_every_view_of_several_ranks(report_page, shared, tmp_path):
    folder = shared / "data" / "gpu_traces" / "hta" / "sampled_of128"
    steps = [(f"rank{rank}", collector.load(folder / f"rank{rank}.json.gz")) for rank in (0, 1)]
    path = tmp_path / "ranks.html"
    write_report(path, steps)
    views = report_page.open(path).views()
    assert "ranks" in views
    for view in views:
        report_page.turn(view, "step=1").drawn()
    rows = report_page.turn("ranks", "step=1&cols=-").table("Ranks")
    assert [row[:3] for row in rows] == [["1", "5", "5"], ["0", "5", "0"]]
    assert "Incomplete: 10 collectives are left out" in report_page.page.inner_text("main")
    report_page.page.keyboard.press("K")
    assert "step" not in report_page.chosen()


def test_tables_stand_in_the_order_of_their_answers(report_page, two_runs):
    report_page.open(two_runs)
    found = answers(two_runs)
    for view, key, label in (
        ("kernels", "kernels/name", "Kernels"),
        ("kernels", "tensor_cores/name", "Tensor cores"),
        ("launches", "calls", "Calls"),
        ("critical-path", "critical_path/op", "Critical path"),
    ):
        report_page.turn(view, f"by={key}&cols=-")
        assert shown_texts(report_page, label, found[key]) == first_texts(found[key]), key
    for by, answer in page_of(two_runs)["compare"]["answers"].items():
        if by != "step":
            report_page.turn("compare", f"by={by}&cols=-")
            assert shown_texts(report_page, f"What changed, by {by}", answer) == first_texts(answer), by


def test_two_runs_are_compared_in_a_sentence_and_by_parts(report_page, two_runs):
    text = report_page.open(two_runs, "view=compare").page.inner_text("main")
    assert "A step took 936.7 µs before and takes 944.3 µs now, 1.01 times as long: not enough steps." in text
    assert "need 5 steps of each side for a verdict, and there are 3 and 3" in text
    report_page.page.get_by_role("button", name="kernel", exact=True).click()
    assert report_page.chosen() == {"view": "compare", "by": "kernel"}
    report_page.page.go_back()
    assert report_page.chosen() == {"view": "compare"}


def test_a_step_is_opened_by_its_row(report_page, two_runs):
    for row, step, chosen in ((2, 0, {"step": "0"}), (5, 1, {})):
        start, end = page_of(two_runs)["steps"][step]["marks"][2]
        report_page.open(two_runs, "view=steps")
        report_page.page.locator("section[aria-label=Steps] tbody tr button.row").nth(row).click()
        assert report_page.chosen() == {**chosen, "from": str(start), "to": str(end)}
        assert report_page.page.input_value("header select") == str(step)
        report_page.page.go_back()
        assert report_page.chosen() == {"view": "steps"}


def test_a_window_governs_every_table(report_page, two_runs, shared):
    step = page_of(two_runs)["steps"][1]
    start, end = step["marks"][1]
    part = analysis.between(collector.load(shared / "data" / "gpu_traces" / AFTER), start, end)
    window = f"from={start}&to={end}"
    report_page.open(two_runs, f"view=kernels&{window}")
    report_page.page.wait_for_selector("text=These are the figures of the window")
    counts = [int(row[1]) for row in report_page.table("Kernels")]
    assert counts == analysis.kernels(part)["count"].tolist()
    for view, key, label, answer in (
        ("launches", "launches", "Launches", analysis.launches(part)),
        ("ops", "ops", "Ops", analysis.ops(part)),
        ("streams", "streams", "Streams", analysis.streams(part)),
        ("idle", "idle_gaps", "Gaps", analysis.idle_gaps(part)),
    ):
        report_page.turn(view, f"{window}&cols=-&by={key}").drawn()
        report_page.page.wait_for_selector(f"section[aria-label={label}] >> text=figures of the window")
        column = next(at for at, each in enumerate(answer.columns) if each.unit == "ns")
        times = [row[column] for row in report_page.table(label)]
        assert times == [time_text(each) for each in answer[answer.columns[column].name].tolist()[: len(times)]]
        report_page.page.get_by_text("the same in Python and on the command line").last.click()
        assert f"--question {key} --window {start}ns..{end}ns" in report_page.page.inner_text("main")
    report_page.turn("critical-path", window)
    report_page.page.get_by_text("the same in Python and on the command line").click()
    text = report_page.page.inner_text("main")
    assert "These are the figures of the whole step" in text
    assert f"analysis.between(step, {start}, {end})" in text
    report_page.turn("overview", "from=1&to=2").page.wait_for_selector("text=Nothing ran on any device")


def test_a_kernel_leads_to_its_longest_run(report_page, small, tmp_path):
    path = written(tmp_path / "step.html", small.recording())
    report_page.open(path, "view=kernels")
    report_page.page.get_by_role("button", name="kernel_1").click()
    report_page.page.wait_for_function("() => location.hash.includes('from=')")
    assert report_page.chosen() == {"view": "timeline", "from": "200", "to": "500"}


def test_a_loss_is_shown_when_it_was(report_page, small, tmp_path):
    """A launch of which no kernel was recorded: its time leads to the lanes, in Trust."""
    path = written(tmp_path / "step.html", small.recording())
    [step] = page_of(path)["steps"]
    assert step["loss_times"] == {"launches_without_kernel": [700]}
    report_page.open(path, "view=trust")
    assert "1 launch succeeded but no activity of it was recorded, at 700 ns" in report_page.page.inner_text("main")
    report_page.page.get_by_role("link", name="700 ns").click()
    report_page.page.wait_for_selector("nav a[aria-current=page][href^='#view=timeline']")
    assert int(report_page.chosen()["from"]) <= 700 < int(report_page.chosen()["to"])


def test_a_finding_leads_to_its_rows(report_page, shared, tmp_path):
    path = tmp_path / "step.html"
    collector.load(shared / "data" / "gpu_traces" / TORCH).save(path)
    report_page.open(path, "view=findings")
    report_page.page.get_by_role("link", name="the longest of them").click()
    report_page.page.wait_for_selector("nav a[aria-current=page][href^='#view=idle']")
    chosen = report_page.chosen()
    gaps = answers(path)["idle_gaps"]["values"]
    assert int(chosen["from"]) <= gaps[1][0] < gaps[2][0] < int(chosen["to"])
    report_page.page.go_back()
    report_page.page.get_by_role("link", name="its gaps").click()
    report_page.page.wait_for_selector("th[aria-sort=descending]")
    assert report_page.chosen() == {"view": "idle", "sort": "host_ns.desc"}


@pytest.fixture
def late_launches(build):
    """A step whose host launches too late, with its longest gap in its last third and short ones elsewhere."""
    for number in range(100):
        start = 10_000 * number + 2_000
        if not 70 <= number < 76:
            build.call("cudaLaunchKernel_v7000", start, correlation_id=number + 1, process_id=1)
            build.kernel("gemm", start + 1_500, 3_000, correlation_id=number + 1, grid_x=5000)
    return build


@pytest.mark.parametrize("window", ["", "from=600000&to=900000", "from=800000&to=900000"])
def test_a_finding_leads_to_the_longest_gap_of_the_step_whatever_window_is_chosen(
    report_page, late_launches, tmp_path, window
):
    recording = late_launches.recording()
    path = written(tmp_path / "step.html", recording)
    gaps = analysis.idle_gaps(recording)
    start, end = int(gaps["start_ns"][0]), int(gaps["end_ns"][0])
    report_page.open(path, f"view=findings&{window}")
    report_page.page.wait_for_timeout(SETTLED_MS)
    report_page.page.get_by_role("link", name="the longest of them").first.click()
    chosen = report_page.chosen()
    assert (int(chosen["from"]), int(chosen["to"])) == (start - (end - start), end + (end - start))


def test_a_kernel_leads_to_its_longest_run_in_the_window(report_page, build, tmp_path):
    for start, duration in ((1000, 900), (50_000, 200), (60_000, 300)):
        build.kernel("gemm", start, duration)
    path = written(tmp_path / "step.html", build.recording())
    report_page.open(path, "view=kernels&from=40000&to=90000")
    report_page.page.wait_for_selector("text=These are the figures of the window")
    report_page.page.get_by_role("button", name="gemm").click()
    report_page.page.wait_for_selector("nav a[aria-current=page][href^='#view=timeline']")
    assert report_page.chosen() == {"view": "timeline", "from": "59700", "to": "60600"}


def test_that_no_gpu_did_anything_is_said_of_the_step_alone(report_page, build, tmp_path):
    path = written(tmp_path / "step.html", build.kernel("gemm", 100, 999_000, grid_x=5000).recording())
    for window in ("", "&from=1&to=50"):
        report_page.open(path, f"view=findings{window}")
        report_page.page.wait_for_timeout(SETTLED_MS)
        assert "no GPU did anything" not in report_page.page.inner_text("article"), window


def icicle(page):
    """The texts of the boxes of an icicle."""
    page.page.wait_for_selector(".icicle g title", state="attached")
    return page.page.eval_on_selector_all(".icicle g title", "all => all.map(each => each.textContent)")


def test_the_largest_annotations_are_shown_where_not_all_fit(report_page, build, tmp_path):
    recording = many_annotations(build).recording()
    path, answer = written(tmp_path / "step.html", recording), analysis.ops(recording)
    report_page.open(path)
    rows = report_page.table("GPU time by annotation")
    largest = sorted(answer, key=lambda row: (-row["self_ns"], row["path"]))[:8]
    assert rows == [[row["path"], str(row["self_activities"]), time_text(row["self_ns"])] for row in largest]
    assert rows[0] == ["validate", "1", time_text(VALIDATE_NS)]
    boxes = icicle(report_page.turn("ops"))
    total = {row["path"]: time_text(row["total_ns"]) for row in answer}
    assert {
        f"all: {time_text(answer.totals['self_ns'])}",
        f"train: {total['train']}",
        f"validate: {total['validate']}",
    } <= {*boxes}
    further = [box.split(" further annotations: ") for box in boxes if "further" in box]
    assert sum(int(number) for number, _ in further) == len(answer) - MOST_ROWS > 0
    assert {time_text(OP_NS * int(number)) for number, _ in further} == {text for _, text in further}
    missing = len(answer) - MOST_ROWS
    text = f"Not drawn one by one: {missing:,} further annotations, {time_text(OP_NS * missing)}."
    assert text in report_page.page.inner_text("article")
    assert (
        f"The file holds 5,000 of {len(answer):,} rows: those with the largest total, and what is around them."
        in report_page.page.inner_text("article")
    )


def test_idle_time_by_annotation_is_that_of_all_devices(report_page, build, tmp_path):
    for number in range(40):
        device, start, length = number % 2, 20_000 * number + 1000, 3000 if number % 2 else 9000
        build.annotation(f"op{number:02}", start, 900, number + 1, number + 1)
        build.call("cudaLaunchKernel_v7000", start, 5, correlation_id=number + 1)
        build.kernel("gemm", start + 100, length, correlation_id=number + 1, device_id=device)
    recording = build.recording()
    answer = analysis.idle_ops(recording)
    largest = sorted(answer, key=lambda row: (-row["idle_ns"], row["path"]))[:8]
    assert [row["device_id"] for row in largest] != [row["device_id"] for row in answer][:8]
    report_page.open(written(tmp_path / "step.html", recording), "view=idle")
    rows = report_page.table("By annotation")
    assert [row[:2] for row in rows] == [[str(row["device_id"]), row["path"]] for row in largest]
    assert f"8 of {len(answer)} rows." in report_page.page.inner_text("section[aria-label='By annotation']")


def test_a_table_of_the_overview_that_is_not_about_the_window_says_so(report_page, build, tmp_path):
    for number in range(MOST_ROWS + 1):
        build.annotation(f"op{number}", 100 * number, 90, number + 1, number + 1)
        build.call("cudaLaunchKernel_v7000", 100 * number + 5, 5, correlation_id=number + 1)
        build.kernel("gemm", 100 * number + 30, 50, correlation_id=number + 1)
    path = written(tmp_path / "step.html", build.recording())
    assert page_of(path)["steps"][0]["rows"]
    report_page.open(path, "from=0&to=200000")
    report_page.page.wait_for_selector("text=These are the figures of the window")
    whole = "These are the figures of the whole step, whatever window is chosen."
    assert whole in report_page.page.inner_text("section[aria-label='GPU time by annotation']")
    assert whole not in report_page.page.inner_text("section[aria-label='Kernels that took most time']")


def test_rows_are_grouped_and_groups_are_closed(report_page, shared, tmp_path):
    path = tmp_path / "step.html"
    collector.load(shared / "data" / "gpu_traces" / OTHERS["nsys"]).save(path)
    report_page.open(path, "view=kernels&by=kernels/stream")
    before = report_page.table("Kernels")
    report_page.page.get_by_label("group by").select_option("stream_id")
    rows = report_page.table("Kernels")
    groups = [row[0] for row in rows if len(row) == 1]
    assert sorted(each.split()[1:4] for each in groups) == [["stream", "id", "15"], ["stream", "id", "7"]]
    assert sorted(row for row in rows if len(row) > 1) == sorted(before)
    report_page.page.get_by_role("button", name="stream id 7").click()
    assert len(report_page.table("Kernels")) == 2 + sum(row[2] == "15" for row in before)
    address = report_page.page.evaluate("() => location.hash.slice(1)")
    shut = report_page.table("Kernels")
    assert report_page.open(path, address).table("Kernels") == shut


def test_what_gives_the_same_elsewhere_is_copied(report_page, small, tmp_path):
    path = written(tmp_path / "step.html", small.recording())
    page = report_page.open(path, "view=kernels").page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("details.same > summary").click()
    answer = answers(path)["kernels/name"]
    for form, text in (("Python", answer["python"]), ("command", answer["cli"]), ("SQL", answer["sql"])):
        page.get_by_role("button", name=form).press("Enter")
        page.wait_for_selector(f"text={form} copied", timeout=60_000)
        assert page.evaluate("() => navigator.clipboard.readText()") == text


def test_copied_cells_are_no_formulas(report_page, build, tmp_path):
    names = ['=HYPERLINK("http://example")', "+1", "-1", "@sum", "\tx", 'a"b,c', "nul\0", "two\nlines", "<b>__x__|y"]
    for number, name in enumerate(names):
        build.kernel(name, 1000 * number, 100 * (number + 1), correlation_id=number + 1)
    path = written(tmp_path / "step.html", build.recording())
    report_page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    report_page.open(path, "view=kernels&by=kernels/whole_name")
    copied = {}
    for form in ("CSV", "Markdown", "JSON"):
        report_page.page.get_by_role("button", name=form).click()
        report_page.page.wait_for_selector(f"text={len(names)} rows copied as {form}")
        copied[form] = report_page.page.evaluate("() => navigator.clipboard.readText()")
    answer = collector.analysis.kernels(build.recording(), by="whole_name")
    lines = copied["CSV"].splitlines()
    assert lines[0].startswith("whole_name,count,total_ns")
    assert [row[:2] for row in csv.reader(lines)] == [row[:2] for row in csv.reader(answer.to_csv().splitlines())]
    assert [each["total_ns"] for each in json.loads(copied["JSON"])] == answer["total_ns"].tolist()
    told, expected = (text.splitlines() for text in (copied["Markdown"], answer.to_markdown()))
    assert [markdown_cells(line)[:2] for line in told] == [markdown_cells(line)[:2] for line in expected]


def test_a_long_name_is_shown_whole_on_demand(report_page, build, tmp_path):
    name = "gemm_" + "x" * 200
    build.kernel(name, 0, 100)
    report_page.open(written(tmp_path / "step.html", build.recording()), "view=kernels&by=kernels/whole_name")
    report_page.page.get_by_role("button", name="the whole name").click()
    box = report_page.page.locator("tbody .name").first.bounding_box()
    assert report_page.page.locator("tbody .name").first.inner_text() == name
    assert report_page.page.locator("tbody .name").first.evaluate("each => each.scrollWidth <= each.clientWidth + 1")
    assert box["height"] > 30


def test_a_key_leads_to_the_lanes_from_a_view_without_them(report_page, small, tmp_path):
    report_page.open(written(tmp_path / "step.html", small.recording()), "view=kernels")
    assert report_page.page.locator(".lanes").count() == 0
    report_page.page.keyboard.press("t")
    focused = "() => document.activeElement.closest('.lanes') !== null"
    report_page.page.wait_for_function(focused, timeout=20_000)
    assert report_page.chosen() == {"view": "timeline"}
    report_page.page.keyboard.press("ArrowDown")
    assert "kernel_0" in report_page.page.locator("p[role=status]").first.inner_text()


def test_a_walk_by_keys_alone(report_page, small, tmp_path):
    """Views, the lanes and their slices, the table's headings, its rows and its search: without a mouse."""
    path = written(tmp_path / "step.html", small.recording())
    press = report_page.page.keyboard.press
    report_page.open(path).drawn()
    press("2")
    assert report_page.chosen() == {"view": "timeline"}
    report_page.drawn()
    press("t")
    press("ArrowDown")
    status = report_page.page.locator("p[role=status]").first
    assert "kernel_0 on GPU 0 stream 7: 100 ns (100 ns), from 100 ns" in status.inner_text()
    press("n")
    assert "kernel_1 on GPU 0 stream 7: 100 ns (100 ns), from 300 ns" in status.inner_text()
    press("Enter")
    assert report_page.chosen() == {"view": "timeline", "from": "200", "to": "500"}
    press("w")
    press("4")
    assert report_page.chosen() == {"view": "kernels"}
    for _ in range(60):
        press("Tab")
        if report_page.page.evaluate("() => document.activeElement.innerText.trim()") == "count":
            break
    press("Enter")
    assert report_page.chosen()["sort"] == "count.desc"
    press("/")
    report_page.page.keyboard.type("kernel_1")
    press("Escape")
    report_page.page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    press("k")
    assert report_page.chosen() == {"view": "idle"}
    press("?")
    assert report_page.page.get_by_role("dialog", name="keys").is_visible()


def test_states_that_are_not_a_step_of_a_gpu(report_page, build, tmp_path, monkeypatch):
    """Nothing ran, records were lost, times are made up, the program ran untraced: each is said on the first view."""
    build.counters["records_dropped"] = 3
    report_page.open(written(tmp_path / "lossy.html", build.recording(), "lossy"))
    text = report_page.page.inner_text("main")
    assert "No GPU did anything in this step." in text
    assert "⚠ incomplete" in text
    assert "the times are made up" in text
    assert "CUPTI dropped 3 records" in report_page.turn("trust").page.inner_text("main")
    monkeypatch.setenv("COLLECTOR_LIBCUDA", str(tmp_path / "missing.so"))
    with pytest.warns(collector.CollectorWarning), collector.trace() as step:
        pass
    write_report(tmp_path / "untraced.html", [("untraced", step)])
    text = report_page.open(tmp_path / "untraced.html").page.inner_text("main")
    assert "✕ not traced" in text
    assert "The program ran untraced" in text
    assert "collector info" in text
    cut = (tmp_path / "lossy.html").read_text("utf-8").replace('id="data">', 'id="data">AA')
    (tmp_path / "cut.html").write_text(cut, "utf-8")
    report_page.page.goto((tmp_path / "cut.html").as_uri())
    report_page.page.wait_for_selector("text=This report cannot be read")


def test_a_printed_page_has_the_tables_without_the_controls(report_page, two_runs):
    report_page.open(two_runs, "view=kernels")
    report_page.page.emulate_media(media="print")
    assert not report_page.page.locator("nav[aria-label=views]").is_visible()
    assert not report_page.page.locator(".tools").is_visible()
    assert report_page.page.locator("section[aria-label=Kernels] table").is_visible()


def test_memory_over_time_is_walked_and_a_window_is_chosen(report_page, build, tmp_path):
    for number, (operation, address) in enumerate(((1, 1), (1, 2), (2, 1), (1, 3))):
        times = {"start_ns": START_NS + 200_000 * number, "memory_kind": 3, "num_bytes": 1000 * address}
        build.raw("memory_operations", operation=operation, address=address, **times)
    path = written(tmp_path / "step.html", build.kernel("gemm", 10, 20).recording())
    report_page.open(path, "view=memory").page.locator(".chart").focus()
    for _ in range(4):
        report_page.page.keyboard.press("ArrowRight")
    assert report_page.page.inner_text("p[role=status] >> text=bytes") == "2 kB (2,000 bytes) from 400 µs on"
    assert report_page.unlawful() == []
    at = report_page.page.locator(".chart .u-over").bounding_box()
    report_page.page.mouse.move(at["x"] + at["width"] / 4, at["y"] + 20)
    report_page.page.mouse.down()
    report_page.page.mouse.move(at["x"] + at["width"] / 2, at["y"] + 20)
    report_page.page.mouse.up()
    report_page.page.wait_for_function("() => location.hash.includes('from=')")
    chosen = report_page.chosen()
    assert int(chosen["from"]) == pytest.approx(250_000, rel=0.01)
    assert int(chosen["to"]) == pytest.approx(500_000, rel=0.01)


def test_keys_that_come_before_the_page_is_drawn_again_all_count(report_page, two_runs, build, tmp_path):
    for number in range(4):
        build.kernel(f"kernel_{number}", 200_000 * number, 100_000)
    page = report_page.open(written(tmp_path / "step.html", build.recording())).page
    views = report_page.views()
    report_page.press_at_once("j", "j", "j", "k", "j")
    assert report_page.chosen()["view"] == views[3]
    report_page.press_at_once("?", "?", "?")
    page.get_by_role("dialog", name="keys").wait_for()
    report_page.open(tmp_path / "step.html", "view=timeline").drawn().page.locator(".lanes [tabindex]").focus()
    report_page.press_at_once("ArrowDown", "n", "n", "p", "n")
    page.wait_for_selector(".under-lanes >> text=kernel_2")
    report_page.press_at_once("+", "+", "ArrowRight")
    length = build.recording().clock.window_ns
    assert (int(report_page.chosen()["from"]), int(report_page.chosen()["to"])) == pytest.approx(
        (length * 7 / 16, length * 11 / 16), rel=0.001
    )
    report_page.open(two_runs, "view=steps").page.locator(".chart").focus()
    report_page.press_at_once("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    rows = report_page.table("Steps")
    page.wait_for_selector(f"p[role=status] >> text={rows[1][0]} {rows[1][1]}")


def test_a_bar_of_the_steps_opens_it(report_page, two_runs):
    report_page.open(two_runs, "view=steps").page.locator(".chart").focus()
    report_page.page.keyboard.press("End")
    text = report_page.page.inner_text("p[role=status] >> text=busy")
    rows = report_page.table("Steps")
    assert [rows[-1][0], rows[-1][1]] == text.split()[:2]
    report_page.page.keyboard.press("Enter")
    report_page.page.wait_for_selector("nav a[aria-current=page][href^='#view=overview']")
    assert report_page.page.input_value("header select") == "1"


def test_a_report_opens_on_the_step_that_is_compared_with_those_before(report_page, two_runs):
    page = report_page.open(two_runs).page
    options = [f"0: {TORCH} (before)", f"1: {AFTER} (now)"]
    assert [each.strip() for each in page.locator("header select option").all_inner_texts()] == options
    assert page.input_value("header select") == "1"
    wanted = {each["name"]: each["verdict"] for each in page_of(two_runs)["steps"]}
    assert page.inner_text("p.verdict") == wanted[AFTER] != wanted[TORCH]
    page.keyboard.press("K")
    assert (report_page.chosen()["step"], page.inner_text("p.verdict")) == ("0", wanted[TORCH])
    page.reload()
    page.wait_for_selector("p.verdict")
    assert page.inner_text("p.verdict") == wanted[TORCH]
    page.keyboard.press("J")
    assert "step" not in report_page.chosen()


def rank(builder, number):
    """Adds the steps of one rank, whose collectives begin at other times than those of others."""
    for step in range(5):
        builder.kernel("gemm", 100_000 * step, 20_000 + 900 * number)
        builder.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 100_000 * step + 30_000 + 900 * number, 40_000)
    return builder.recording()


def test_every_view_of_the_demo_by_keys_and_by_its_address(report_page, tmp_path):
    """`j` leads through all views; each has an address that shows the same, in both themes."""
    step = run_demo(simulate=True)[0]
    write_report(tmp_path / "demo.html", [("demo.pb", step)])
    views = report_page.open(tmp_path / "demo.html").views()
    assert len(views) >= 12
    for view in views[1:]:
        report_page.page.keyboard.press("j")
        report_page.page.wait_for_selector(f"nav a[aria-current=page][href^='#view={view}']")
        shown = report_page.drawn().page.inner_text("article")
        report_page.open(tmp_path / "demo.html", f"view={view}").drawn()
        assert report_page.page.inner_text("article") == shown, view
    assert report_page.unlawful_views(views) == []
    assert report_page.unlawful_views(["overview", "kernels", "idle", "trust"], "from=100000&to=400000") == []


def test_every_view_of_eight_ranks(report_page, build, tmp_path):
    steps = [(f"rank{each}.pb", Step(RecordingSource(rank(type(build)(), each)))) for each in range(8)]
    write_report(tmp_path / "ranks.html", steps)
    views = report_page.open(tmp_path / "ranks.html").views()
    assert {"ranks", "steps"} <= set(views)
    assert report_page.unlawful_views(views, "step=7") == []
    rows = report_page.turn("ranks", "cols=-").table("Ranks")
    assert [row[0] for row in rows] == [
        str(each) for each in answers(tmp_path / "ranks.html")["ranks/rank"]["values"][0]
    ]
    assert [row[0] for row in report_page.turn("steps").table("Steps")] == [f"rank{each}.pb" for each in range(8)]


def test_every_view_of_a_step_that_lost_records(report_page, small, tmp_path):
    small.counters["records_dropped"] = 3
    path = written(tmp_path / "lossy.html", small.recording())
    assert report_page.unlawful_views(report_page.open(path).views()) == []
    assert "⚠ incomplete" in report_page.page.inner_text("header")


def test_headings_of_a_table_differ(report_page, small, tmp_path):
    """The time in calls of a function is not headed as the function is."""
    report_page.open(written(tmp_path / "step.html", small.recording()), "view=launches").drawn()
    headings = [each.strip() for each in report_page.page.locator("thead th").all_inner_texts()]
    assert {"api", "api time"} <= set(headings)
    assert len(headings) == len(set(headings))


def test_graphs_have_a_view_where_there_are_some(report_page, small, tmp_path):
    assert "graphs" not in report_page.open(written(tmp_path / "none.html", small.recording())).views()
    for number, start in enumerate((500_000, 600_000)):
        small.kernel("node", start, 100 + number, correlation_id=20 + number, graph_id=8)
    path = written(tmp_path / "graphs.html", small.recording())
    assert report_page.open(path).unlawful_views(["graphs"]) == []
    assert [row[:6] for row in report_page.table("Graphs")] == [["0", "8", "0", "2", "1", "201 ns"]]


def test_every_view_of_an_empty_step(report_page, build, tmp_path):
    path = written(tmp_path / "empty.html", build.recording())
    assert report_page.unlawful_views(report_page.open(path).views()) == []


def test_every_view_of_a_million_kernels(report_page, tmp_path):
    """The page says which slices it holds and what its tables are about; all of its views work."""
    count = 1_000_000
    capture = empty_capture()
    numbers, random = np.arange(count), np.random.default_rng(1)
    starts = START_NS + 900 * numbers + random.integers(0, 90, count)
    kernels = {"start_ns": starts, "end_ns": starts + random.integers(100, 800, count)}
    kernels |= {"stream_id": 7 + numbers % 3, "correlation_id": numbers + 1, "name_id": numbers % 50}
    for column, dtype in SCHEMA["kernels"].items():
        capture["tables"]["kernels"][column] = np.asarray(kernels.get(column, np.zeros(count)), dtype)
    capture["strings"] = [f"kernel_{number}" for number in range(50)]
    capture["clock"] |= {"cupti_start_ns": START_NS, "cupti_stop_ns": START_NS + 900 * count + 1000}
    path = written(tmp_path / "large.html", Recording.from_capture(capture))
    assert path.stat().st_size <= 2_000_000
    views = report_page.open(path).views()
    for view in views:
        report_page.turn(view).drawn()
    assert "This file holds the longest" in report_page.turn("timeline").drawn().page.inner_text("main")
    report_page.turn("kernels", "from=1000000&to=2000000")
    report_page.page.wait_for_selector("text=These are the figures of the whole step")
    assert [int(row[1].replace(",", "")) for row in report_page.table("Kernels")] == [20_000] * 50
