"""What the pages have in common: templates, the script, and data inside HTML."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from seqopt.report.formats import printable

SCRIPTS = ("structures.js", "page.js", "sdf.js", "table.js")
"""What the script of the pages consists of, in this order."""


@lru_cache(maxsize=1)
def script() -> str:
    """The script of the pages.

    A browser normalises line ends before it computes the checksum that the page's policy names.
    """
    folder = files("seqopt").joinpath("report", "templates")
    parts = [folder.joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n") for name in SCRIPTS]
    return f'(function () {{\n"use strict";\n{"".join(parts)}}})();\n'


def script_hash() -> str:
    """The script's checksum, as a Content-Security-Policy wants it: no other script runs in the page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script().encode("utf-8")).digest()).decode("ascii")


def embedded_json(value: Any) -> Markup:
    r"""JSON that can stand in a ``script`` element, whatever strings it holds.

    Example:
        >>> print(embedded_json({"name": "</script><img src=x onerror=alert(1)>"}))
        {"name":"\u003c/script\u003e\u003cimg src=x onerror=alert(1)\u003e"}
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)


def environment() -> jinja2.Environment:
    """Templates that escape all that is put into them."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("seqopt", "report/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every text that a page shows passes here, before it is escaped.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    # The script is ours, and holds nothing that ends its element.
    found.globals["script"] = Markup(script())
    return found
