"""Code that each Python program of ``collector run --python`` runs at its start, before its own sitecustomize.

The folder of this file is the first one in PYTHONPATH. Python imports this module once, and it leaves no trace: its
folder is removed from ``sys.path``, and ``sys.modules`` has the program's own sitecustomize, if there is one. Nothing
else is imported here, because every helper that a program starts runs this, too; names are taken once the program has
imported a framework. Any Python from 2.7 on can run it.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # noqa: F401 - types are in comments here

OLDEST = (3, 10)
"""The oldest Python that can import the collector."""
FRAMEWORKS = ("torch", "triton")


class _AfterImport(object):
    """Has the collector name the work of frameworks once the program has imported them."""

    def __init__(self):
        # type: () -> None
        self._waiting = list(FRAMEWORKS)

    def find_spec(self, name, path=None, target=None):
        # type: (str, Any, Any) -> Any
        """See `importlib.abc.MetaPathFinder`: the result of the other finders; its loader reports the import."""
        if name not in self._waiting:
            return None
        from importlib.util import find_spec

        self._waiting.remove(name)  # so that the following asks the other finders
        try:
            spec = find_spec(name)  # type: Any
        finally:
            self._waiting.append(name)
        load = getattr(spec and spec.loader, "exec_module", None)
        if load is None:
            return spec

        def exec_module(module):
            # type: (Any) -> None
            del spec.loader.exec_module
            if name in self._waiting:
                self._waiting.remove(name)
            load(module)
            _name_work_of(name)

        try:
            spec.loader.exec_module = exec_module
        except AttributeError:  # a loader of a kind that cannot tell
            _state("the import of %s is not seen" % name)
        return spec


def _name_work_of(framework):
    # type: (str) -> None
    try:
        from collector.adapters.recorded_frameworks import name_work_of

        name_work_of(framework)
    except Exception as error:
        _state("%s has no names: %s: %s" % (framework, type(error).__name__, " ".join(str(error).split())))


def _state(trouble):
    # type: (str) -> None
    """Leave a line for ``collector run`` beside the journal of this process; an empty one: all is well so far."""
    try:
        name = "%s-%d.python" % (os.uname()[1].replace("/", "-"), os.getpid())
        line = trouble + "\n"
        with open(os.path.join(os.environ["COLLECTOR_RUN_FOLDER"], name), "ab") as file:
            file.write(line if isinstance(line, bytes) else line.encode("utf-8", "backslashreplace"))
    except (KeyError, EnvironmentError):  # the command has ended, or the disk is full
        return


def _begin():
    # type: () -> None
    if not os.environ.get("COLLECTOR_RUN_PYTHON"):
        return
    version = ".".join(map(str, sys.version_info[:2]))
    if sys.version_info < OLDEST:
        _state(
            "%s is Python %s, and the collector needs %d.%d or newer" % (sys.executable, version, OLDEST[0], OLDEST[1])
        )
        return
    from importlib.util import find_spec

    if find_spec("collector") is None:
        _state("%s (Python %s) cannot import collector: install cupti-collector there" % (sys.executable, version))
        return
    _state("")
    sys.meta_path.insert(0, _AfterImport())


_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _here]
sys.path_importer_cache.pop(_here, None)
_this = sys.modules.pop(__name__, None)  # kept by its own dictionary: Python 2 would empty that
try:
    _begin()
except Exception as trouble:
    _state("%s: %s" % (type(trouble).__name__, " ".join(str(trouble).split())))
__import__("sitecustomize")  # the program's own; without one the error is the one that Python expects
