"""Formatting of tables as Markdown."""

from __future__ import annotations

import pandas as pd


def markdown_table(frame: pd.DataFrame, *, digits: int = 3) -> str:
    r"""Write a frame as a Markdown table, without its index; missing values become empty cells.

    >>> print(markdown_table(pd.DataFrame({"a|b": [1, 2], "score": [0.12345, None]})))
    | a\|b | score |
    | --- | --- |
    | 1 | 0.123 |
    | 2 |  |
    """
    rows = [[str(column) for column in frame.columns], ["---"] * frame.shape[1]]
    rows += [[_cell(value, digits) for value in row] for row in frame.itertuples(index=False, name=None)]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)


def _cell(value: object, digits: int) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)
