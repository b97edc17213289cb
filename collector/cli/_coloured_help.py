"""The look of help on a terminal."""

from __future__ import annotations

from typing import ClassVar

from rich_argparse import RawDescriptionRichHelpFormatter


class ColouredHelp(RawDescriptionRichHelpFormatter):
    """The texts and line breaks of plain help. Brackets in texts are brackets, and not Rich's markup."""

    styles: ClassVar = {**RawDescriptionRichHelpFormatter.styles, "argparse.groups": "bold"}
    group_name_formatter = str
    text_markup = False
    help_markup = False
    usage_markup = False
