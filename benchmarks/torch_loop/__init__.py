"""The training loop of ``examples/torch_loop.py`` against ``CastleRegressor`` on the diabetes table."""
