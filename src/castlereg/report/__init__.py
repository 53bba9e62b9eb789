"""One self-contained HTML page on a fitted model."""

from castlereg.report.content import ReportContent, report_content
from castlereg.report.page import render, write_report

__all__ = ["ReportContent", "render", "report_content", "write_report"]
