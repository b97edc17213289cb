"""Questions about steps, each answered by one function with an `Answer`.

>>> import collector
>>> from collector import analysis
>>> step = collector.load("step.pb")  # doctest: +SKIP
>>> print(analysis.idle(step))  # doctest: +SKIP

There is one module per question, and `collector.analysis.questions` lists them. Each question takes a recording, a
loaded step, an ended session, or a list of them.
"""

from collector.analysis.answer import Answer, Column, Window
from collector.analysis.between import between
from collector.analysis.compare import compare
from collector.analysis.questions import *  # noqa: F403
from collector.analysis.questions import QUESTIONS

__all__ = ["Answer", "Column", "Window", "between", "compare", *QUESTIONS]
