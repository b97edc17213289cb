"""Reports in headless Chromium under their content security policy: figures, controls, keys, no requests."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hostile_names import EVIL
from markdown_cells import markdown_cells
from report_pages import page_of

import collector
from collector.analysis.questions import QUESTIONS
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.text.terminal import printable
from collector.web.report_file import write_report

pytestmark = [pytest.mark.viewer, pytest.mark.slow]

LAST_LABEL = """() => {
  const last = [...document.querySelectorAll(".axis span")].pop();
  return [last.textContent, getComputedStyle(last).color];
}"""
NOTE_PAPER = f"""() => {{
  window.onPaper = [];
  addEventListener("beforeprint", () => Promise.resolve().then(() => window.onPaper.push(({LAST_LABEL})())));
}}"""
"""Keeps the last label of the axis on paper, which is drawn for the window again afterwards."""
RECORDED = ["torch_tutorial/h100_transformer_before.json.gz", "nsys_ai/mfu_2gpu_before.sqlite.gz"]
PLACES = Path(__file__).resolve().parents[2] / "web" / "src" / "places.js"
SCRIPT = """
const { viewOf } = await import(process.argv[1]);
console.log(JSON.stringify(Object.fromEntries(process.argv.slice(2).map((key) => [key, viewOf(key)]))));
"""
NOT_AS_ROWS = {"devices", "idle", "idle_ops", "ops", "ledger", "tracing_cost", "code_loading"}
"""Answers that views show in another form: some columns, the largest rows, turned, or as a tree."""


@pytest.fixture(scope="module")
def reports(shared, tmp_path_factory):
    """Writes reports of recorded traces, each once: step and file."""
    known = {}

    def report(name):
        if name not in known:
            step = collector.load(shared / "data" / "gpu_traces" / name)
            path = tmp_path_factory.mktemp("report") / "step.html"
            step.save(path)
            known[name] = step, path
        return known[name]

    return report


def views_of(keys):
    """Key of an answer -> the view that shows it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("THE TABLES OF THE PAGE ARE NOT TESTED: they need node")
    command = [node, "--input-type=module", "--eval", SCRIPT, PLACES.as_uri(), *keys]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def shown(answer, rows=200):
    """The cells of an answer as the terminal and Markdown have them."""
    lines = answer.to_markdown().splitlines()[2 : 2 + rows]
    return [markdown_cells(line) for line in lines]


@pytest.mark.parametrize("name", RECORDED)
def test_tables_have_the_figures_of_the_terminal(report_page, reports, name):
    step, path = reports(name)
    found = page_of(path)["steps"][0]["answers"]
    report_page.open(path)
    for key, view in views_of(found).items():
        question, _, by = key.partition("/")
        if question in NOT_AS_ROWS:
            continue
        answer = QUESTIONS[question].answer(step, by)
        report_page.turn(view, f"by={key}&cols=-").drawn()
        label = {"idle_gaps": "Gaps"}.get(question, question.replace("_", " ").capitalize())
        assert shown(answer) == report_page.table(label), key


def test_a_table_is_sorted_searched_and_narrowed_and_the_address_holds_it(report_page, reports):
    step, path = reports(RECORDED[0])
    answer = QUESTIONS["kernels"].ask(step, by="name")
    report_page.open(path, "view=kernels")
    report_page.page.get_by_role("button", name="count").click()
    assert report_page.chosen()["sort"] == "count.desc"
    order = sorted(range(len(answer)), key=lambda row: -answer["count"][row])
    assert [row[0] for row in report_page.table("Kernels")] == [printable(answer["name"][row]) for row in order[:200]]
    report_page.page.keyboard.press("/")
    report_page.page.keyboard.type("gemm|^void")
    report_page.page.wait_for_function("() => location.hash.includes('q=')")
    kept = [row[0] for row in report_page.table("Kernels")]
    assert kept == [
        each
        for row in order[:]
        if "gemm" in (each := printable(answer["name"][row])).lower() or each.startswith("void")
    ]
    address = report_page.page.evaluate("() => location.hash.slice(1)")
    report_page.open(path, address)
    assert [row[0] for row in report_page.table("Kernels")] == kept


def test_a_gap_is_shown_where_it_is(report_page, reports):
    step, path = reports(RECORDED[0])
    gaps = QUESTIONS["idle_gaps"].ask(step)
    report_page.open(path, "view=idle")
    report_page.page.locator("section[aria-label=Gaps] tbody tr button").first.click()
    start = int(gaps["start_ns"][0])
    length = int(gaps["idle_ns"][0])
    chosen = report_page.chosen()
    assert int(chosen["from"]) == max(0, start - length)
    assert int(chosen["to"]) == min(start + 2 * length, step.recording.clock.window_ns)
    inside = [
        row
        for row in range(len(gaps))
        if int(gaps["start_ns"][row]) < int(chosen["to"]) and int(gaps["end_ns"][row]) > int(chosen["from"])
    ]
    assert len(report_page.table("Gaps")) == min(len(inside), 200)
    report_page.page.keyboard.press("w")
    assert "from" not in report_page.chosen()


def test_views_and_help_are_reached_by_keys(report_page, reports):
    _, path = reports(RECORDED[0])
    report_page.open(path)
    report_page.page.keyboard.press("j")
    assert report_page.chosen()["view"] == "timeline"
    report_page.page.keyboard.press("k")
    assert "view" not in report_page.chosen()
    report_page.page.keyboard.press("?")
    assert report_page.page.get_by_role("dialog", name="keys").is_visible()
    report_page.page.keyboard.press("Escape")
    assert not report_page.page.get_by_role("dialog", name="keys").is_visible()


def test_a_view_is_opened_at_its_top_and_a_gap_where_it_is_seen(report_page, reports):
    page = report_page.open(reports(RECORDED[1])[1], "view=idle").drawn().page
    end = "() => { scrollTo(0, document.documentElement.scrollHeight); return scrollY > 500; }"
    page.wait_for_function(end)  # once the table is there
    page.locator("section[aria-label=Gaps] tbody tr button").nth(150).click()
    lanes = page.locator(".lanes").bounding_box()
    assert -1 < lanes["y"] <= page.viewport_size["height"] - 100
    page.keyboard.press("w")
    for act in (
        lambda: page.keyboard.press("j"),
        lambda: page.evaluate("() => document.querySelector('nav a[href^=\"#view=idle\"]').click()"),
    ):
        page.wait_for_function(end)
        act()
        page.wait_for_function("() => scrollY === 0", timeout=60_000)


def test_a_slice_that_is_picked_on_the_lanes_is_described_with_its_lane(report_page, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000).kernel("long " * 2000, 700_000, 100_000, stream_id=9)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    report_page.open(path, "view=timeline").drawn()
    lanes, told = (report_page.page.locator(each) for each in (".lanes [tabindex]", ".under-lanes"))
    lanes.press("ArrowDown")
    assert told.inner_text() == "gemm on GPU 0 stream 7: 200 µs (200,000 ns), from 400 µs (400,000 ns) on"
    lanes.press("ArrowDown")
    assert told.inner_text().endswith("long on GPU 0 stream 9: 100 µs (100,000 ns), from 700 µs (700,000 ns) on")
    assert told.bounding_box()["height"] < 100


def test_the_timeline_moves_by_keys_and_by_dragging(report_page, reports):
    step, path = reports(RECORDED[0])
    report_page.open(path, "view=timeline")
    canvas = report_page.page.locator(".lanes [tabindex]")
    canvas.focus()
    report_page.page.keyboard.press("+")
    length = step.recording.clock.window_ns
    chosen = report_page.chosen()
    assert abs(int(chosen["to"]) - int(chosen["from"]) - length / 2) < 3
    report_page.page.keyboard.press("ArrowRight")
    assert int(report_page.chosen()["from"]) > int(chosen["from"])
    report_page.page.keyboard.press("Home")
    assert "from" not in report_page.chosen()
    box = canvas.bounding_box()
    report_page.page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    report_page.page.mouse.down()
    report_page.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
    report_page.page.mouse.up()
    chosen = report_page.chosen()
    assert abs(int(chosen["from"]) - length * 0.25) < length / 100
    assert abs(int(chosen["to"]) - length * 0.5) < length / 100


def test_a_window_is_that_which_was_marked_though_the_page_becomes_narrower_meanwhile(report_page, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, "view=timeline").drawn().page
    page.set_viewport_size({"width": 1500, "height": 800})
    canvas, settled = page.locator(".lanes canvas"), "() => new Promise(done => setTimeout(done, 100))"
    page.evaluate(settled)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 40)
    page.set_viewport_size({"width": 1300, "height": 800})
    page.evaluate(settled)
    left = canvas.bounding_box()["x"]
    page.mouse.move(left + box["width"] * 0.5, box["y"] + 40)
    page.mouse.up()
    chosen = report_page.chosen()
    assert abs(int(chosen["from"]) - 250_000) < 3000
    assert abs(int(chosen["to"]) - 500_000) < 3000
    page.wait_for_function("width => document.querySelector('.lanes canvas').clientWidth < width", arg=box["width"])


def test_the_list_of_columns_closes(report_page, reports):
    page = report_page.open(reports(RECORDED[0])[1], "view=kernels").page
    box = page.get_by_role("checkbox", name="median")
    for shut in (lambda: page.keyboard.press("Escape"), lambda: page.locator("h1").click()):
        page.locator("details.menu > summary").click()
        box.uncheck() if box.is_checked() else box.check()
        assert box.is_visible()
        shut()
        assert not box.is_visible()
    page.locator("details.menu > summary").press("Enter")
    hidden = report_page.chosen().get("cols", "").split(",")
    page.evaluate("() => document.querySelectorAll('.menu input:checked').forEach(each => each.click())")
    assert len(report_page.chosen()["cols"].split(",")) > len(hidden) + 2  # also those that are clicked at once
    box.focus()
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.activeElement.innerText") == "columns"


def test_the_rest_of_the_rows_is_shown_to_the_keyboard_as_well(report_page, build, tmp_path):
    for number in range(300):
        build.kernel(f"kernel_{number}", 100 * number, 50)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, "view=kernels").page
    page.get_by_role("button", name="show all 300 rows").press("Enter")
    page.wait_for_function("() => document.querySelectorAll('section[aria-label=Kernels] tbody tr').length === 300")
    assert page.evaluate("() => document.activeElement.ariaLabel") == "Kernels: table"


@pytest.mark.parametrize(
    ("part", "chosen", "said"),
    [
        ("rows-0", "view=kernels&from=1&to=2000", "Answers about the window cannot be made: {}"),
        ("slices-0", "view=timeline", "The lanes cannot be shown: {}"),
        ("licences", "view=trust", "{}"),
        ("data", "", "This report cannot be read: {}"),
    ],
)
def test_a_damaged_part_of_a_file_is_named_with_the_remedy(report_page, build, tmp_path, part, chosen, said):
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.kernel("gemm", 100, 200).recording())))])
    whole, begin = path.read_text("utf-8"), f'id="{part}">'
    assert begin in whole
    path.write_text(whole.replace(begin, f"{begin}AAAA"), "utf-8")
    page = report_page.page
    page.goto(f"{path.as_uri()}#{chosen}")
    if part == "licences":
        page.locator("summary >> text=licences").click()
    why = f"the part {part} of the file is damaged: it was cut or changed. Write the report again, or get another copy."
    page.wait_for_selector(f"text={said.format(why)}")


def drawn_texts(page, act):
    """The texts that are drawn on canvases from an action on until the page rests."""
    page.evaluate(
        """() => {
          const isWatched = Boolean(window.drawnTexts);
          window.drawnTexts = [];
          if (isWatched) return;
          const draw = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
            window.drawnTexts.push(text);
            return draw.call(this, text, ...at);
          };
        }"""
    )
    act()
    page.wait_for_timeout(300)
    return page.evaluate("() => window.drawnTexts.filter(Boolean)")


def labels(page):
    """The labels of the time axis, once they fit between its ends."""
    page.wait_for_timeout(300)
    return page.locator(".axis").first.locator("span").all_inner_texts()


LINES_OF_GRID = """shares => {
  const canvas = document.querySelector(".lanes canvas"), y = (22 + 24 + 12) * devicePixelRatio;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const drawn = copy.getImageData(0, y, canvas.width, 1).data;
  const alphas = share => [-1, 0, 1].map(by => drawn[4 * (Math.round(canvas.width * share) + by) + 3]);
  return shares.map(share => Math.max(...alphas(share)));
}"""
"""The largest alpha near these shares of the width, on the lane of a stream."""


def test_the_axis_has_labels_at_any_width(report_page, build, tmp_path):
    """They are those of the present width, also after the window has changed or the chart is made again."""
    build.kernel("gemm", 400_000, 200_000)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, "view=timeline").drawn().page
    telephone, narrow, wide = ({"width": width, "height": 800} for width in (360, 700, 1600))
    for act, expected in (
        (lambda: page.set_viewport_size(narrow), [f"0.{place} ms" for place in (0, 2, 4, 6, 8)]),
        (lambda: page.set_viewport_size(wide), [f"0.{place} ms" for place in range(10)]),
        (lambda: page.emulate_media(color_scheme="dark"), [f"0.{place} ms" for place in range(10)]),
        (lambda: page.set_viewport_size(telephone), ["0.0 ms", "0.5 ms"]),
        (lambda: page.emulate_media(color_scheme="light"), ["0.0 ms", "0.5 ms"]),
    ):
        act()
        assert labels(page) == expected
        at_line, at_none = page.evaluate(LINES_OF_GRID, [0.5, 0.1] if page.viewport_size == telephone else [0.2, 0.13])
        assert at_line > 0 == at_none
        axis, last = page.locator(".axis").bounding_box(), page.locator(".axis span").last.bounding_box()
        assert last["x"] + last["width"] <= axis["x"] + axis["width"]


def test_labels_differ_however_close_the_times_are(report_page, build, tmp_path):
    """So do the ends of the window in the first line, which has its length."""
    second = 10**9
    build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + 2 * second
    build.kernel("gemm", second + 234_567_000, 30_000)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    report_page.open(path, "view=timeline&from=1234567000&to=1234600000").drawn()
    assert labels(report_page.page) == [f"1.2345{digits} s" for digits in (70, 75, 80, 85, 90, 95)]
    assert report_page.page.locator(".window > span").inner_text() == "window 1.234567 s to 1.234600 s"
    assert "(33 µs) of 2 s" in report_page.page.locator(".window").inner_text()
    name = report_page.page.locator(".lanes [tabindex]").get_attribute("aria-label")
    assert "from 1.234567 s to 1.234600 s." in name


def test_a_row_that_is_opened_by_keys_leaves_the_focus_on_the_lanes(report_page, reports):
    _, path = reports(RECORDED[0])
    page = report_page.open(path, "view=kernels").page
    page.locator("section[aria-label=Kernels] tbody tr button.row").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("nav a[aria-current=page][href^='#view=timeline']")
    page.wait_for_function("() => document.activeElement.matches('.lanes [tabindex]')")
    assert page.evaluate("() => scrollY") == 0
    before = report_page.chosen()
    page.keyboard.press("ArrowRight")
    assert report_page.chosen() != before


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ("from=-500&to=400", {"from": "0", "to": "400"}),
        ("from=400&to=99000000", {"from": "400", "to": "1000000"}),
        ("from=7000000&to=8000000", {}),
        ("from=-20&to=-10", {}),
        ("from=0.5&to=400.2", {"from": "0", "to": "401"}),
        ("from=-1e300&to=1e300", {"from": "0", "to": "1000000"}),
        ("from=1e30&to=2e30", {}),
        ("from=7&to=word", {}),
    ],
)
def test_a_window_of_the_address_is_cut_to_the_step(report_page, build, tmp_path, asked, chosen):
    build.kernel("gemm", 100, 200)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, f"view=idle&{asked}").page
    page.wait_for_function(f"() => !location.hash.includes('{asked}')")
    assert report_page.chosen() == {"view": "idle", **chosen}
    assert page.inner_text("header .window").startswith("window" if chosen else "whole step")


def test_what_changes_nothing_is_no_page_of_the_history(report_page, build, tmp_path):
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.kernel("gemm", 100, 200).recording())))])
    page = report_page.open(path).drawn().page
    page.keyboard.press("2")
    for key in ("w", "2", "w", "2"):
        page.keyboard.press(key)
    page.keyboard.press("3")
    page.go_back()
    page.wait_for_function("() => location.hash === '#view=timeline'")
    page.go_back()
    page.wait_for_selector("nav a[aria-current=page][href='#view=overview']")


LIKE_BROWSERS = """() => {
  for (const name of ["pushState", "replaceState"]) {
    const change = history[name];
    const times = [];
    history[name] = function (...given) {
      const now = performance.now();
      if (times.push(now) > 100 && now - times.shift() < 10_000) throw new Error(`too many ${name}`);
      change.apply(this, given);
    };
  }
}"""
"""Lets the address be changed 100 times in 10 s and no more, as Safari does; the tests' Chromium has no limit."""


def test_the_address_is_right_after_any_number_of_changes(report_page, build, tmp_path):
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.kernel("gemm", 100, 200).recording())))])
    page = report_page.open(path, "view=timeline&from=0&to=400000").drawn().page
    page.evaluate(LIKE_BROWSERS)
    page.locator(".lanes [tabindex]").focus()
    report_page.press_at_once(*("ArrowRight", "ArrowLeft") * 150, "ArrowRight")
    page.wait_for_function("() => location.hash === '#view=timeline&from=100000&to=500000'")
    report_page.press_at_once(*("j", "k") * 150)
    page.wait_for_selector("nav a[aria-current=page][href^='#view=timeline']")


def test_lanes_that_are_left_out_are_counted_with_the_place_where_they_are(report_page, build, tmp_path):
    for stream in range(200):
        build.kernel("k", 1000 * stream, 500, stream_id=stream)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, "view=timeline").drawn().page
    assert "105 of 201 lanes are left out, those with the fewest slices: Streams has" in page.inner_text("main")
    page.locator("p.note").get_by_role("link", name="Streams").click()
    page.wait_for_selector("nav a[aria-current=page][href^='#view=streams']")


def test_the_axis_stays_above_many_lanes(report_page, build, tmp_path):
    for stream in range(60):
        build.kernel("k", 1000 * stream, 500, stream_id=stream)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, "view=timeline").drawn().page
    page.locator(".lane-names li", has_text="stream 59").scroll_into_view_if_needed()
    assert page.locator("nav[aria-label=views]").bounding_box()["y"] < 0
    assert page.locator(".axis").bounding_box()["y"] == 0


def test_a_device_shows_its_work_itself_where_bins_are_wide(report_page, build, tmp_path):
    """Each bin is 2,048th of the step; between two kernels within one of them the device did nothing."""
    second = 10**9
    build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + 4 * second
    build.kernel("a", second + 10_000, 10_000, stream_id=7).kernel("b", second + 30_000, 10_000, stream_id=8)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, f"view=timeline&from={second}&to={second + 50_000}").drawn().page
    page.wait_for_timeout(300)
    shades = page.evaluate(
        """() => {
          const { width, height } = document.querySelector(".lanes canvas");
          const shown = document.querySelector(".lanes canvas").getContext("2d").getImageData(0, 0, width, height);
          const alpha = (row, share) =>
            shown.data[4 * (Math.round(width * share) + width * (22 + 24 * row + 12) * devicePixelRatio) + 3];
          const between = [0.13, 0.33, 0.53, 0.73, 0.93]; // and not on a line of the grid
          return [0, 1, 2].map(row => between.map(share => alpha(row, share) > 0));
        }"""
    )
    no, yes = False, True
    assert shades == [[no, yes, no, yes, no], [no, yes, no, no, no], [no, no, no, yes, no]]


def test_the_whole_of_the_lanes_is_printed_in_the_colours_of_paper(report_page, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, "view=timeline").drawn().page
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(300)  # the chart is made again, then listens again
    page.evaluate(NOTE_PAPER)
    page.pdf(format="A4")
    assert page.evaluate("() => window.onPaper") == [["0.8 ms", "rgb(55, 60, 68)"]]
    assert page.evaluate(LAST_LABEL) == ["0.9 ms", "rgb(194, 199, 208)"]
    assert page.locator("canvas").bounding_box()["width"] > 1000


def test_a_finger_marks_a_window_on_the_lanes(report_page, reports):
    step, path = reports(RECORDED[0])
    report_page.open(path, "view=timeline").drawn()
    box = report_page.page.locator(".lanes [tabindex]").bounding_box()
    finger = report_page.page.context.new_cdp_session(report_page.page)

    def touch(kind, *shares):
        points = [{"x": box["x"] + box["width"] * share, "y": box["y"] + 40} for share in shares]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.25)
    for share in (0.3, 0.4, 0.5):
        touch("touchMove", share)
    touch("touchEnd")
    report_page.page.wait_for_function("() => location.hash.includes('from=')")
    chosen, length = report_page.chosen(), step.recording.clock.window_ns
    assert abs(int(chosen["from"]) - length * 0.25) < length / 100
    assert abs(int(chosen["to"]) - length * 0.5) < length / 100


def test_the_mouse_on_the_lanes(report_page, build, tmp_path):
    """Pointing at a slice names it with its times, a click shows it, the wheel zooms, a double click shows the step."""
    build.kernel("gemm", 400_000, 200_000).kernel("tail", 900_000, 100_000)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    report_page.open(path, "view=timeline").drawn()
    box = report_page.page.locator(".lanes canvas").bounding_box()
    mouse = report_page.page.mouse
    mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 22 + 36)
    assert report_page.page.locator(".hovered").inner_text() == "gemm\n200 µs (200,000 ns)\nfrom 400 µs (400,000 ns)"
    mouse.down()
    mouse.up()
    assert report_page.chosen() == {"view": "timeline", "from": "200000", "to": "800000"}
    report_page.page.keyboard.down("Control")
    mouse.wheel(0, -200)
    report_page.page.keyboard.up("Control")
    report_page.page.wait_for_function("() => !location.hash.includes('from=200000&')")
    chosen = report_page.chosen()
    assert 200_000 < int(chosen["from"]) < int(chosen["to"]) < 800_000
    mouse.dblclick(box["x"] + box["width"] * 0.5, box["y"] + 10)
    mouse.dblclick(box["x"] + box["width"] * 0.99, box["y"] + 36)
    assert report_page.chosen() == {"view": "timeline"}
    mouse.move(box["x"] + box["width"] * 0.5, box["y"] - 50)
    assert report_page.page.locator(".hovered").count() == 0


def test_a_hand_that_is_not_quite_still_clicks(report_page, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, "view=timeline").drawn().page
    box = page.locator(".lanes canvas").bounding_box()
    x, y = box["x"] + box["width"] * 0.5, box["y"] + 22 + 36
    page.mouse.move(x, y - 24)
    page.mouse.down()
    page.mouse.move(x + 2, y - 24)
    page.mouse.up()
    page.mouse.move(x, y)
    page.wait_for_selector(".hovered >> text=gemm")
    page.keyboard.press("w")
    page.mouse.down()
    page.mouse.move(x + 2, y + 1)
    page.mouse.up()
    page.wait_for_function("() => location.hash.includes('from=')")
    assert report_page.chosen() == {"view": "timeline", "from": "200000", "to": "800000"}


def test_a_long_slice_is_drawn_and_described_whatever_began_after_it(report_page, build, tmp_path):
    build.kernel("persistent", 1000, 900_000).kernel("nested", 1500, 700_000)
    for number in range(2500):
        build.kernel("short", 2000 + 200 * number, 100)
    build.kernel("tail", 950_000, 20_000, stream_id=9)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, "view=timeline").drawn().page
    drawn_texts(page, lambda: None)
    for window, names in (
        ("from=605000&to=690000", ["persistent", "nested"]),
        ("from=750000&to=800000", ["persistent"]),
        ("from=905000&to=990000", ["tail"]),
    ):
        page.evaluate("hash => { window.drawnTexts = []; location.hash = hash; }", f"view=timeline&{window}")
        page.wait_for_function("name => window.drawnTexts.includes(name)", arg=names[-1])
        texts = page.evaluate("() => window.drawnTexts")
        assert [each for each in dict.fromkeys(texts) if each in ("persistent", "nested", "short", "tail")] == names
        box = page.locator(".lanes canvas").bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 22 + 36)
        assert page.locator(".hovered strong").all_inner_texts() == [each for each in names[-1:] if each != "tail"]
        page.mouse.move(box["x"], box["y"] - 50)


def test_a_row_leads_to_the_longest_that_it_counts(report_page, build, tmp_path):
    for number, (stream, grid, start, length) in enumerate(((7, 64, 10_000, 90_000), (9, 1, 500_000, 1000))):
        build.call("cudaLaunchKernel_v7000", 100 + 50 * number, 20, correlation_id=number + 1)
        build.annotation(f"op_{stream}", 50 + 50 * number, 80, 70 + number, number + 1)
        build.kernel("gemm", start, length, stream_id=stream, grid_x=grid, correlation_id=number + 1)
    build.memcpy(200_000, 50_000, src_kind=2).memcpy(700_000, 1000, src_kind=1)
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.recording())))])
    for by, times in (
        *((f"kernels/{by}", (499_000, 502_000)) for by in ("stream", "shape", "op")),
        ("copies", (699_000, 702_000)),
        ("kernels/stream&from=450000&to=600000", (499_000, 502_000)),
    ):
        page = report_page.open(path, f"view={'copies' if by == 'copies' else 'kernels'}&by={by}").page
        row = page.locator("section.answer tbody tr").last
        row.locator("button.row").click()
        page.wait_for_selector("nav a[aria-current=page][href^='#view=timeline']")
        assert (int(report_page.chosen()["from"]), int(report_page.chosen()["to"])) == times, by


def test_names_have_the_room_that_there_is_and_a_button_where_it_is_not_enough(report_page, build, tmp_path):
    names = ["gemm", "elementwise_kernel_" + "<float, 4>" * 5, "very_long_" * 1000]
    for number, name in enumerate(names):
        build.kernel(name, 100 * number, 50 - number, correlation_id=number + 1)
    path = tmp_path / "names.html"
    write_report(path, [("names", Step(RecordingSource(build.recording())))])
    for view, label in (("kernels", "Kernels"), ("overview", "Kernels that took most time")):
        page = report_page.open(path, f"view={view}").page
        cells = page.locator(f"section[aria-label='{label}'] tbody td:first-child")
        assert cells.all_inner_texts() == names
        assert [cell.get_by_role("button", name="the whole name").count() for cell in cells.all()] == [0, 0, 1]
        name = cells.nth(2).locator(".name")
        assert name.get_attribute("title") == names[2]
        assert name.bounding_box()["height"] < 60
        cells.nth(2).get_by_role("button", name="the whole name").press("Enter")
        assert page.evaluate("cell => cell.scrollHeight <= cell.clientHeight + 1", name.element_handle())
        cells.nth(2).get_by_role("button", name="shorten the name").click()
        assert name.bounding_box()["height"] < 60
        page.set_viewport_size({"width": 320, "height": 800})
        page.wait_for_function("() => document.querySelectorAll('.named.cut').length === 2")
        page.set_viewport_size({"width": 1500, "height": 800})
        page.wait_for_function("() => document.querySelectorAll('.named.cut').length === 1")


def test_short_names_stay_on_one_line_where_the_table_is_scrolled(report_page, build, tmp_path):
    build.kernel("void WMMA_kernel_MW<64>", 0).kernel("long_" * 100, 5000)
    path = tmp_path / "names.html"
    write_report(path, [("names", Step(RecordingSource(build.recording())))])
    page = report_page.open(path, "view=kernels&by=kernels/shape&cols=-").page
    page.set_viewport_size({"width": 700, "height": 800})
    heights = [each.bounding_box()["height"] for each in page.locator("tbody tr td:first-child .name").all()]
    assert sorted(round(each / min(heights)) for each in heights) == [1, 2]


def test_names_of_strangers_do_nothing(report_page, build, tmp_path):
    names = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a\0b", EVIL, "javascript:alert(1)"]
    for number, name in enumerate(names):
        build.call("cudaLaunchKernel_v7000", 100 * number, 20, correlation_id=number + 1)
        build.annotation(name, 100 * number, 50, number + 100, number + 1)
        build.kernel(name, 100 * number + 30, 50, correlation_id=number + 1)
    path = tmp_path / "hostile.html"
    write_report(path, [(names[1], Step(RecordingSource(build.recording())))], title=names[0])
    for view in report_page.open(path).views():
        report_page.open(path, f"view={view}")
        report_page.page.wait_for_timeout(200)
    report_page.open(path, "view=kernels&by=kernels/whole_name")
    [found] = page_of(path)["steps"]
    wanted = {printable(each) for each in found["answers"]["kernels/whole_name"]["values"][0]}
    assert {row[0] for row in report_page.table("Kernels")} == wanted
