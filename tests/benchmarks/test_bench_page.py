"""`make bench`: every script within its time limit, and a page of results that is written after each script."""

import sys

import pytest

from collector.bench.gpu import Host


@pytest.fixture
def bench_report(load_script, tmp_path, monkeypatch):
    module = load_script("bench_report")
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(module, "BENCHMARKS", tmp_path / "benchmarks")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "CHOICES", {"second": (("--word=given",), 30), "first": ((), 30), "gone": ((), 30)})
    return module


@pytest.fixture
def make_bench(bench_report, tmp_path, monkeypatch, capsys):
    """Runs it over scripts of these texts; returns the exit status, the page, and what was printed."""

    def make(*chosen, **texts):
        for name, text in texts.items():
            (tmp_path / "benchmarks" / f"{name}.py").write_text(text)
        monkeypatch.setattr(sys, "argv", ["bench_report.py", *chosen, "--results", str(tmp_path / "results")])
        status = bench_report.main()
        pages = list((tmp_path / "results").glob("*.md"))
        assert len(pages) == 1
        return status, pages[0].read_text(), capsys.readouterr().out

    return make


def test_every_script_has_a_section_in_the_order_of_the_list(make_bench):
    status, page, printed = make_bench(
        first="print('one')", second="import sys; print(sys.argv[1:])", another="print('more')", _helper="1 / 0"
    )
    assert status == 0
    assert page.index("## second") < page.index("## first") < page.index("## another")
    assert "['--word=given']" in page
    assert "_helper" not in page
    for part in ("| processor | ", "| packages | numpy", "| commit | ", "```text\none\n```"):
        assert part in page
    assert "== 1 of 3: second (at most 30 s)" in printed
    assert "\none\n" in printed


@pytest.mark.medium
def test_a_script_that_fails_or_takes_too_long_keeps_what_it_printed(make_bench, bench_report, monkeypatch):
    monkeypatch.setitem(bench_report.CHOICES, "first", ((), 1))
    endless = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(1)"
    status, page, printed = make_bench(first=endless, second="print('half'); raise SystemExit('no scipy here')")
    assert status == 1
    assert "exit status 1: no scipy here\n\n```text\nhalf\n```" in page
    assert "ended after 1 s\n\n```text\nbegun\n```" in page
    assert "no scipy here" in printed


def test_what_there_is_no_time_for_is_reported(make_bench, bench_report, monkeypatch):
    monkeypatch.setattr(bench_report, "SECONDS", 0)
    status, page, _ = make_bench(first="print('one')")
    assert status == 1
    assert "not run: no time left" in page


def test_some_can_be_chosen_and_others_do_not_exist(make_bench, tmp_path):
    _, page, _ = make_bench("first", first="print('one')", second="print('two')")
    assert "## first" in page
    assert "## second" not in page
    with pytest.raises(SystemExit, match="no benchmark third; there are second, first"):
        make_bench("third")


def test_the_page_is_named_after_the_card_or_the_processor(bench_report):
    title, rows = bench_report.machine()
    assert title == (Host().name if rows["card"] == "none" else rows["card"].split(", ")[0])
    assert rows["processor"].startswith(Host().name)


def test_every_script_that_is_listed_exists_and_takes_its_options(load_script, root):
    module = load_script("bench_report")
    for name, (options, seconds) in module.CHOICES.items():
        text = (root / "benchmarks" / f"{name}.py").read_text() + (root / "benchmarks" / "_program.py").read_text()
        assert all(f'"{option.partition("=")[0]}"' in text for option in options), name
        assert 0 < seconds <= 120
