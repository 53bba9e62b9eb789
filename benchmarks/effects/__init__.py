"""Effects on known worlds, against DoWhy and simpler estimates: ``python -m benchmarks.effects``."""
