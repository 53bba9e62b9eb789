"""A thousand small fits on this machine, on Dask and on Ray."""
