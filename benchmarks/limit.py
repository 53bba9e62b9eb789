"""The machine's limit: a large float32 matrix product on all cores."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp

from castlereg.training.devices import prepare_jax


def product_rate(n: int = 2048, repeats: int = 8) -> float:
    """Return the floating-point operations per second of an n x n float32 product, the best of some."""
    prepare_jax()
    a = jnp.ones((n, n), jnp.float32)
    product = jax.jit(lambda x: x @ x)
    product(a).block_until_ready()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        product(a).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return 2 * n**3 / min(seconds)
