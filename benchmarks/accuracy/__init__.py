"""Accuracy on real tables, against the models that people use today: ``python -m benchmarks.accuracy``."""
