"""The group of commands; its modules add theirs."""

from __future__ import annotations

import difflib
from typing import Any

import typer
from typer.core import TyperCommand


class TakesNegative(TyperCommand):
    """A command that takes values such as ``-6.1``, and still refuses options that it does not have."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a mistyped option, which would otherwise be taken for a value."""
        known = [name for one in self.get_params(ctx) for name in (*one.opts, *one.secondary_opts)]
        for word in args:
            name = word.partition("=")[0]
            if word == "--":
                break
            if name[:2] == "--" and name[2:3].isalpha() and " " not in name and name not in known:
                close = difflib.get_close_matches(name, [one for one in known if one[:2] == "--"], n=1)
                ctx.fail(f"No such option: {name}" + (f". Did you mean {close[0]}?" if close else ""))
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="campaign",
    help="A search that lasts for weeks, with a laboratory as its objective; everything is kept in one file.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
