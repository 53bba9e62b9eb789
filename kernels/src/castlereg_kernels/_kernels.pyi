from typing import Any

def train(arrays: dict[str, Any], dtype: str, n_threads: int) -> None:
    """Train the members of a stack for a number of epochs; update their states in place."""

def instruction_set() -> str:
    """Return the name of the instruction set in use: AVX-512, AVX2, NEON, SSE2 or portable."""
