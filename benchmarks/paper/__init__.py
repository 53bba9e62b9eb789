"""The paper's experiments for docs/results.md: their results as files, and the pages written from them."""
