from typing import Any

def train(arrays: dict[str, Any], dtype: str, n_threads: int) -> None:
    """Train the members of a stack for some epochs; their state is updated in place."""

def instruction_set() -> str:
    """Name the instructions that are used: AVX-512, AVX2, NEON, SSE2 or portable."""
