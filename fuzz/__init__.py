"""A robustness campaign: odd tables, damaged files, killed commands, limits and threads, one seed per case.

``python -m fuzz`` runs the campaign and continues a stopped one; ``docs/robustness.md`` shows its counts and findings.
"""
