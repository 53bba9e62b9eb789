"""Engines that train a stack: programs compiled by JAX, or the native kernels of castlereg-kernels."""
