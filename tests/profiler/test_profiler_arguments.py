"""Arguments of the profiler with impossible values: the errors name the argument and valid values."""

from __future__ import annotations

import logging
import math

import pytest

from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.profiler import (
    OptionError,
    Options,
    ProfileContext,
    ProfileOptionBuilder,
    Profiler,
    ProfilerHook,
    profile,
)
from collector.profiler.commands import parse_options

NO_OUTPUT = ProfileOptionBuilder().with_empty_output().build()


@pytest.fixture
def profiler(example):
    made = Profiler()
    made.add_recorded_step(0, Step(RecordingSource(example)))
    return made


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("max_depth", "x", "max_depth takes a number, not 'x'"),
        ("min_micros", math.nan, "min_micros takes a number, not nan"),
        ("step", None, "step takes a number, not None"),
        ("select", 3, "select takes a list of texts, not 3"),
        ("select", "micros", "select takes a list of texts, not one. Write ['micros']"),
        ("show_name_regexes", "a", "show_name_regexes takes a list of texts, not one. Write ['a']"),
        ("show_name_regexes", [3], "show_name_regexes takes a list of texts, not [3]"),
        ("output", 3, "output takes text, not 3. Valid types: file,none,pprof,stdout,timeline"),
    ],
)
def test_an_option_of_a_wrong_type_is_logged_and_answered_with_nothing(profiler, caplog, option, value, says):
    with caplog.at_level(logging.ERROR):
        assert not profiler.profile_name_scope({**NO_OUTPUT, option: value}).children
    assert [record.getMessage() for record in caplog.records] == [says]


def test_an_invalid_expression_of_the_command_line_is_reported_once(caplog):
    with pytest.raises(OptionError, match=r"not a regular expression: '\('"):
        parse_options(["-show_name_regexes", "("], Options())
    assert not caplog.records


def test_options_are_a_dict(profiler):
    for ask in (profiler.profile_name_scope, profiler.advise, ProfileOptionBuilder, lambda each: profile(options=each)):
        for value in (3, "x", [1]):
            with pytest.raises(TypeError, match="options takes a dict of options, not "):
                ask(value)


def test_a_builder_takes_lists_of_texts():
    builder = ProfileOptionBuilder()
    for set_option in (
        builder.select,
        builder.with_accounted_types,
        lambda value: builder.with_node_names(show_name_regexes=value),
    ):
        with pytest.raises(TypeError, match=r"takes a list of texts, not 'micros': write \['micros'\]"):
            set_option("micros")
        with pytest.raises(TypeError, match="takes a list of texts, not 3"):
            set_option(3)


def test_a_step_has_a_whole_number(example):
    step = Step(RecordingSource(example))
    for number in ("x", None, 2.5):
        with pytest.raises(TypeError, match="step takes a whole number, not "):
            Profiler().add_recorded_step(number, step)
        with pytest.raises(TypeError, match="step takes a whole number, not "):
            Profiler().add_step(number, step.run_metadata)


def test_a_context_checks_its_steps_and_functions(tmp_path):
    for name in ("trace_steps", "dump_steps"):
        for value, says in ((3, "takes several whole numbers, not 3"), ("x", "takes several"), (["a"], "not 'a'")):
            with pytest.raises(TypeError, match=f"{name} takes .*{says.removeprefix('takes ')}"):
                ProfileContext(tmp_path, **{name: value})
        with pytest.raises(ValueError, match=f"{name} is -1: at least 0 is needed"):
            ProfileContext(tmp_path, **{name: [-1]})
    for name in ("schedule", "open_trace"):
        with pytest.raises(TypeError, match=f"{name} takes a function, not 3"):
            ProfileContext(tmp_path, **{name: 3})
    with pytest.raises(TypeError, match="profile_steps takes several whole numbers, not 3"):
        ProfileContext(tmp_path).add_auto_profiling("scope", {}, 3)


def test_a_hook_checks_its_intervals(tmp_path):
    for options, kind, says in (
        ({"save_steps": 0}, ValueError, "save_steps is 0: at least 1 is needed"),
        ({"save_steps": "x"}, TypeError, "save_steps takes a whole number, not 'x'"),
        ({"save_secs": "x"}, TypeError, "save_secs takes a number, not 'x'"),
        ({"save_secs": -1}, ValueError, "save_secs is -1: a number of seconds from 0 on is needed"),
        ({"save_secs": math.nan}, ValueError, "save_secs is nan"),
        ({"schedule": 3}, TypeError, "schedule takes a function, not 3"),
        ({"save_steps": 1, "open_trace": 3}, TypeError, "open_trace takes a function, not 3"),
    ):
        with pytest.raises(kind, match=says):
            ProfilerHook(output_dir=tmp_path, **options)
