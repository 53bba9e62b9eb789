"""castlereg inside other packages: models of AutoGluon and TabArena, estimators in pytabkit's form.

Nothing is imported here, because each module needs the package that it is for:

- :mod:`castlereg.integrations.autogluon`: ``CastleModel``, for AutoGluon and for TabArena's shared protocol;
- :mod:`castlereg.integrations.tabarena`: ``CastleSystem``, a search with its own validation, and what TabArena runs;
- :mod:`castlereg.integrations.pytabkit`: ``Castle_Regressor`` and ``Castle_Classifier``, with pytabkit's ``fit``;
- :mod:`castlereg.integrations.pytabkit_benchmark`: ``CastleInterfaceWrapper``, for pytabkit's benchmark.
"""
