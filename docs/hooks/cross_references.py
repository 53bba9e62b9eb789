"""Docstrings name things as Sphinx does; this turns the names into links of the built pages."""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):<code>([^<]+)</code>")


def on_page_content(html: str, **_: Any) -> str:
    """Turn ``:func:`castlereg.save``` into a link where its page is known, and into code where not."""
    return _ROLE.sub(_linked, html)


def _linked(match: re.Match[str]) -> str:
    name = match[1].lstrip("~.")
    return f'<autoref identifier="{name}" optional><code>{name.rsplit(".", 1)[-1]}</code></autoref>'
