"""The served page in headless Chromium while files change, answers fail or are late, and the server does not answer."""

from __future__ import annotations

import os

import pytest

from collector.web.given_rows import MOST_ROWS

pytest.importorskip("uvicorn")

pytestmark = [pytest.mark.viewer, pytest.mark.slow]

FOCUSED = "() => document.activeElement.innerText"
FIGURES_OF_RUNS = (
    "count => [...document.querySelectorAll('section[aria-label=Runs] tbody tr')]"
    ".filter(row => row.innerText.includes('%')).length === count"
)


def refused(route):
    """Answers a request as the server answers what it cannot."""
    route.fulfill(json={"error": "not now"})


@pytest.mark.parametrize("way", ["keys", "mouse"])
def test_lanes_of_a_file_that_is_replaced_are_those_of_the_new_one(ui, serving, build, tmp_path, way):
    """Also while a slice is picked or pointed at whose lane is gone."""
    for stream in range(6):
        build.kernel(f"short_{stream}", 10_000, 80_000, stream_id=stream)
        build.kernel(f"long_{stream}", 100_000, 800_000, stream_id=stream)
    build.recording().save(tmp_path / "step.gpurec")
    page = ui.open(serving(tmp_path), "view=timeline").drawn().page
    if way == "keys":
        for _ in range(6):
            page.locator(".lanes [tabindex]").press("ArrowDown")
    else:
        box = page.locator(".lanes canvas").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 22 + 24 * 6 + 12)
    page.wait_for_selector(".under-lanes >> text=_5 on GPU 0 stream 5")
    type(build)().kernel("other", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    page.wait_for_function("() => document.querySelectorAll('.lane-names li').length === 2")
    page.wait_for_selector("text=Drag to choose a window")
    page.locator(".lanes [tabindex]").press("ArrowDown")
    page.wait_for_selector(".under-lanes >> text=other on GPU 0 stream 7")


def test_a_file_that_grows_leaves_the_reader_where_he_is(ui, serving, build, tmp_path):
    """The table of before stays until there is a new one: what had the focus keeps it."""
    build.kernel("first", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    page = ui.open(serving(tmp_path), "view=kernels").page
    page.locator("input.search").press_sequentially("s")
    page.evaluate("() => { window.section = document.querySelector('section[aria-label=Kernels]'); }")
    build.kernel("second", 700_000, 20).recording().save(tmp_path / "step.gpurec")
    page.wait_for_selector("section[aria-label=Kernels] tbody >> text=second")
    assert page.evaluate("() => document.activeElement.matches('input.search') && window.section.isConnected")


def test_a_run_that_has_the_focus_keeps_it_among_new_ones(ui, serving, build, tmp_path):
    for name in ("b", "d"):
        build.kernel(name, 1000, 500).recording().save(tmp_path / f"{name}.gpurec")
    page = ui.open(serving(tmp_path)).page
    page.get_by_role("button", name="d.gpurec").focus()
    for name in ("a", "c"):
        build.recording().save(tmp_path / f"{name}.gpurec")
        page.get_by_role("button", name=f"{name}.gpurec").wait_for()
        assert page.evaluate(FOCUSED) == "d.gpurec"


def test_the_run_that_is_walked_to_stays_among_new_ones(ui, serving, build, tmp_path):
    """Also where these are older, which stand before it."""
    for number in (3, 4, 5):
        build.kernel(f"kernel_{number}", 1000 * number, 500).recording().save(tmp_path / f"run_{number}.gpurec")
        os.utime(tmp_path / f"run_{number}.gpurec", (number, number))
    page = ui.open(serving(tmp_path)).page
    page.locator(".chart").press("Home")
    page.wait_for_selector("p[role=status] >> text=run_3.gpurec")
    build.recording().save(tmp_path / "run_1.gpurec")
    os.utime(tmp_path / "run_1.gpurec", (1, 1))
    page.wait_for_function(FIGURES_OF_RUNS, arg=4)
    page.wait_for_selector("p[role=status] >> text=run_3.gpurec")
    page.locator(".chart").press("ArrowLeft")
    page.wait_for_selector("p[role=status] >> text=run_1.gpurec")
    page.locator(".chart").press("Enter")
    page.wait_for_selector("h1 >> text=run_1.gpurec")


def test_a_choice_of_answers_is_there_while_one_is_late_or_fails(ui, serving, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    page = ui.open(serving(tmp_path), "view=kernels").page
    late = ui.hold("**/answers?key=kernels%2Fstream")
    page.route("**/answers?key=kernels%2Fshape", refused)
    page.get_by_role("button", name="stream", exact=True).press("Enter")
    page.wait_for_selector("article [role=status] >> text=Loading")
    assert page.evaluate(FOCUSED) == "stream"
    page.get_by_role("button", name="shape", exact=True).press("Enter")
    page.wait_for_selector("article [role=alert] >> text=not now")
    page.get_by_role("button", name="whole name", exact=True).press("Enter")
    page.wait_for_selector("section[aria-label=Kernels] th >> text=whole name")
    assert page.evaluate(FOCUSED) == "whole name"
    late.next().continue_()
    page.get_by_role("button", name="stream", exact=True).press("Enter")
    page.wait_for_selector("section[aria-label=Kernels] th >> text=stream id")
    page.unroute("**/answers?key=kernels%2Fshape")
    page.get_by_role("button", name="shape", exact=True).press("Enter")
    page.wait_for_selector("section[aria-label=Kernels] th >> text=grid")


def test_a_text_is_searched_for_once_it_is_typed(ui, serving, build, tmp_path):
    """In an answer of which the page has a part, in which it searches meanwhile."""
    for number in range(MOST_ROWS + 1000):
        build.kernel(f"kernel_{number}", 100 * number, 50)
    build.recording().save(tmp_path / "step.gpurec")
    ui.page.clock.install()
    page, asked = ui.open(serving(tmp_path), "view=kernels").page, []
    rows = "() => document.querySelectorAll('section[aria-label=Kernels] tbody tr').length"
    page.wait_for_selector("section[aria-label=Kernels] tbody tr")
    page.on("request", lambda request: asked.append(request.url.partition("q=")[2]) if "q=" in request.url else None)
    page.clock.pause_at(page.evaluate("() => Date.now() + 1000"))
    page.locator("input.search").press_sequentially("kernel_59..")
    assert (page.evaluate(rows), asked) == (0, [])
    page.clock.resume()
    page.wait_for_function(f"() => ({rows})() === 100")
    assert asked == ["kernel_59.."]


def test_a_late_answer_about_a_window_does_not_keep_the_one_about_the_step(ui, serving, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    late = ui.hold("**/answers?key=idle&from*")
    page = ui.open(serving(tmp_path), "view=idle&from=1&to=500000").page
    page.wait_for_selector("article [role=status] >> text=Loading")
    page.keyboard.press("w")
    page.wait_for_selector("section[aria-label=Causes] tbody tr")
    late.next().continue_()
    page.wait_for_selector("section[aria-label=Gaps] tbody tr")


@pytest.mark.parametrize("ends", [refused, lambda route: route.abort()], ids=["refused", "unanswered"])
def test_an_answer_that_failed_is_asked_for_again_when_its_view_is_opened(ui, serving, build, tmp_path, ends):
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    page = ui.open(serving(tmp_path), "view=timeline").drawn().page
    page.route("**/answers?*", ends)
    page.keyboard.press("3")
    page.wait_for_selector("article [role=alert]")
    page.unroute("**/answers?*")
    page.keyboard.press("2")
    page.wait_for_selector("h2 >> text=Timeline")
    page.keyboard.press("3")
    page.wait_for_selector("section[aria-label=Gaps] tbody tr")
    ui.unanswered()


def test_figures_of_runs_that_the_server_did_not_answer_are_asked_for_again(ui, serving, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000)
    for name in ("a", "b"):
        build.recording().save(tmp_path / f"{name}.gpurec")
    ends = lambda route: route.abort()  # noqa: E731
    ui.page.route("**/figures", ends)
    page = ui.open(serving(tmp_path)).page
    page.route("**/api/**", ends)
    page.wait_for_selector("text=The server does not answer")
    page.unroute("**/figures")
    page.unroute("**/api/**")
    page.wait_for_function(FIGURES_OF_RUNS, arg=2)
    ui.unanswered()


def test_figures_of_the_runs_in_view_are_asked_for_first(ui, serving, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000)
    for number in range(80):  # the latest is the last one
        path = tmp_path / f"run_{number:02}.gpurec"
        build.recording().save(path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    asked, held = [], []
    ui.page.route("**/figures", lambda route: held.append(route))
    ui.page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/figures") else None)
    page = ui.open(serving(tmp_path)).page
    page.wait_for_selector("section[aria-label=Runs] tbody tr")
    names = [row[0] for row in ui.table("Runs")]
    listed = page.evaluate("async () => (await (await fetch('/api/runs')).json()).runs")
    places = {run["id"]: names.index(run["name"]) for run in listed}

    def asked_after(count):
        while len(asked) < count:
            held.pop().continue_() if held else page.wait_for_timeout(5)
        return [places[url.split("/")[-2]] for url in asked]

    assert asked_after(3) == [0, 1, 2]
    page.locator("section[aria-label=Runs] tbody tr").nth(60).scroll_into_view_if_needed()
    *_, after = asked_after(5)
    assert 30 < after < 60
    assert sorted(asked_after(80)) == list(range(80))


def test_figures_of_a_run_stay_until_there_are_others(ui, serving, build, tmp_path):
    build.kernel("first", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    page = ui.page
    ui.open(serving(tmp_path), "view=runs&cols=-")
    page.wait_for_function(FIGURES_OF_RUNS, arg=1)
    late = ui.hold("**/figures")
    build.kernel("second", 700_000, 100_000).recording().save(tmp_path / "step.gpurec")
    asked = late.next()
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert "20.0%" in page.inner_text("section[aria-label=Runs] tbody")
    asked.continue_()
    page.wait_for_selector("section[aria-label=Runs] tbody >> text=30.0%")


def test_the_page_begins_once_the_server_answers(ui, serving, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    ui.page.route("**/api/session", lambda route: route.abort(), times=1)
    ui.open(serving(tmp_path))
    ui.page.wait_for_selector("p.verdict")
    ui.unanswered()


def test_the_form_of_tfprof_keeps_the_focus_and_its_answer_its_title(ui, serving, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    page = ui.open(serving(tmp_path), "view=prof").page
    page.wait_for_selector("section[aria-label='The scope view'] tbody tr")
    late = ui.hold("**/profile?view=graph*")
    page.get_by_role("button", name="graph", exact=True).press("Enter")
    page.wait_for_selector("[role=status] >> text=Loading")
    assert page.locator("section.answer").get_attribute("aria-label") == "The scope view"
    late.next().continue_()
    page.wait_for_selector("section[aria-label='The graph view'] tbody tr")
    assert page.evaluate(FOCUSED) == "graph"
    page.get_by_label("max depth").fill("5")
    page.get_by_role("button", name="reset").press("Enter")
    page.wait_for_selector("section[aria-label='The scope view'] tbody tr")
    assert (page.get_by_label("max depth").input_value(), page.evaluate(FOCUSED)) == ("10000", "reset")


def test_the_views_of_tfprof_are_asked_for_again_once_the_server_answers(ui, serving, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    page = ui.open(serving(tmp_path), "view=prof").page
    page.wait_for_selector("section[aria-label='The scope view'] tbody tr")
    page.route("**/api/**", lambda route: route.abort())
    page.wait_for_selector("text=The server does not answer")
    page.get_by_role("button", name="op", exact=True).click()
    page.wait_for_selector("article [role=alert]")
    page.unroute("**/api/**")
    page.wait_for_selector("section[aria-label='The op view']")
    assert page.locator("[role=alert]").count() == 0
    ui.unanswered()


def test_the_reason_against_a_run_is_not_stated_of_another_one(ui, serving, build, tmp_path):
    from collector.profiler.api import Profiler

    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.pb")
    profiler = Profiler()
    profiler.add_recorded_step(0, tmp_path / "step.pb")
    (tmp_path / "profile_1").write_bytes(profiler.serialize_to_string())
    (tmp_path / "empty.pb").write_bytes(b"")
    page = ui.open(serving(tmp_path)).page
    page.get_by_role("button", name="empty.pb").click()
    page.wait_for_selector("[role=alert] >> text=the file is empty")
    page.get_by_role("button", name="profile_1").click()
    page.wait_for_selector("section[aria-label='The scope view']")
    page.get_by_role("link", name="Runs").click()
    page.get_by_role("button", name="profile_1").wait_for()
    assert page.locator("[role=alert]").count() == 0


@pytest.mark.parametrize("runs", ["..%2Fsession", "x%3Fy", "%00", "ffffffffffffffff,x", "ffffffffffffffff&view=prof"])
def test_a_run_of_the_address_that_is_none_is_not_asked_for(ui, serving, build, tmp_path, runs):
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    ui.open(serving(tmp_path), f"runs={runs}")
    ui.page.wait_for_selector("[role=alert] >> text=there is no such run: it was removed, or never existed")
    ui.page.get_by_role("button", name="step.gpurec").click()
    ui.page.wait_for_selector("p.verdict")


def test_licences_that_could_not_be_loaded_are_asked_for_again(ui, serving, build, tmp_path):
    build.kernel("gemm", 400_000, 200_000).recording().save(tmp_path / "step.gpurec")
    page = ui.open(serving(tmp_path), "view=trust").page
    page.route("**/licences", lambda route: route.abort(), times=1)
    summary = page.locator("summary >> text=licences of the libraries")
    summary.click()
    page.wait_for_selector("details[open] [role=alert] >> text=The server does not answer")
    summary.click()
    page.wait_for_selector("details:not([open]) pre >> text=preact", state="attached")
    ui.unanswered()


def test_a_gap_that_is_opened_by_keys_leaves_the_focus_on_the_lanes(ui, serving, build, tmp_path):
    for number in range(30):
        build.kernel("gemm", 10_000 * number + 37 * number**2, 2_000)
    build.recording().save(tmp_path / "step.gpurec")
    page = ui.open(serving(tmp_path), "view=idle").page
    page.locator("section[aria-label=Gaps] tbody tr button.row").nth(5).press("Enter")
    page.wait_for_selector("section[aria-label=Gaps] >> text=figures of the window")
    assert page.evaluate("() => document.activeElement.matches('.lanes [tabindex]')")
    page.get_by_role("button", name="whole step").press("Enter")
    page.get_by_role("button", name="whole step").wait_for(state="detached")
    assert page.evaluate(FOCUSED).startswith("whole step")
