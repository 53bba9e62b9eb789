"""The theme loads one script from another host, for search on pages opened from a folder; ours takes its place."""

from __future__ import annotations

from typing import Any

from mkdocs.utils import get_relative_url

_FOREIGN = "https://unpkg.com/iframe-worker/shim"
_OURS = "javascripts/file_worker.js"


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Put our script in its place on a page."""
    return output.replace(_FOREIGN, get_relative_url(_OURS, page.url))


def on_post_template(output_content: str, **_: Any) -> str:
    """Put our script in its place on the page of errors."""
    return output_content.replace(_FOREIGN, _OURS)
