"""Work items: independent calls of one function, on any backend of joblib, each result kept in a shared folder.

``results`` is the folder, ``claims`` says which process works on which item, ``one_item`` is what a worker does,
``workers`` runs items through joblib, ``clusters`` through Dask and Ray, and ``run`` puts them together.
"""

from castlereg.work.one_item import use_one_core
from castlereg.work.results import Done, ResultFolder, item_key
from castlereg.work.run import ItemsFailed, finished_items, run_items

__all__ = ["Done", "ItemsFailed", "ResultFolder", "finished_items", "item_key", "run_items", "use_one_core"]
