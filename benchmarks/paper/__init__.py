"""The paper's experiments, run for docs/results.md: their results as files, and the pages made of them."""
