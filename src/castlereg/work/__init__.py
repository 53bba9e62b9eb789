"""Work items: independent calls of one function, on any backend of joblib, each result kept in a shared folder.

``results`` is the folder, ``claims`` records which process works on which item, ``one_item`` runs an item in a worker,
``workers`` runs items with joblib, ``clusters`` with Dask and Ray, and ``run`` combines them.
"""

from castlereg.work.one_item import use_one_core
from castlereg.work.results import Done, ResultFolder, item_key
from castlereg.work.run import ItemsFailed, finished_items, run_items

__all__ = ["Done", "ItemsFailed", "ResultFolder", "finished_items", "item_key", "run_items", "use_one_core"]
