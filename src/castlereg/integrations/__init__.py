"""castlereg in other packages: models for AutoGluon and TabArena, estimators with pytabkit's interface.

Nothing is imported here, because each module needs its own package:

- :mod:`castlereg.integrations.autogluon`: ``CastleModel``, for AutoGluon and for TabArena's shared protocol;
- :mod:`castlereg.integrations.tabarena`: ``CastleSystem``, a search with its own validation, and what TabArena runs;
- :mod:`castlereg.integrations.pytabkit`: ``Castle_Regressor`` and ``Castle_Classifier``, with pytabkit's ``fit``;
- :mod:`castlereg.integrations.pytabkit_benchmark`: ``CastleInterfaceWrapper``, for pytabkit's benchmark.
"""
