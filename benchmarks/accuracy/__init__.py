"""Accuracy on real tables, compared with widely used models: ``python -m benchmarks.accuracy``."""
