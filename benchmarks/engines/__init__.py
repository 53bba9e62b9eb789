"""The native engine against JAX, scikit-learn and the machine's limit, in one run."""
