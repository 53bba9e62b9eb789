"""A robustness campaign: odd tables, damaged files, killed commands, limits and threads, each case a seed.

``python -m fuzz`` runs it and goes on where it was; ``docs/robustness.md`` shows what it counted and found.
"""
