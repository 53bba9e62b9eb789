"""Predict a folder of Parquet files with a saved model, on Dask: one output file per input file.

The model is exported to ONNX once. Each file is a work item, read and written in pieces; its output appears when it is
complete. A stopped call can be continued; the next call scores files that are new, have changed or lost their output.
All machines must have access to the folders::

    python examples/clusters/score_parquet.py rent.castle flats predicted --workers 2
    python examples/clusters/score_parquet.py rent.castle flats predicted --scheduler tcp://10.0.0.1:8786

Outputs have the rows of their input in the same order: ``prediction``, and for classes ``probabilities_0``,
``probabilities_1``, ... in the order of ``classes_``. Needs ``castlereg[arrow,dask,onnx]`` and onnxruntime.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from joblib import parallel_config

import castlereg
from castlereg.work import item_key, run_items

ROWS = 100_000  # per batch


def score(item: dict[str, Any]) -> int:
    """Predict the rows of one file; return their number."""
    import onnxruntime
    import pyarrow as pa
    import pyarrow.parquet as pq

    from castlereg.atomic_write import atomic_write

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(item["onnx"], options)
    kinds = {"double": pa.float64(), "int64": pa.int64(), "string": pa.string(), "bool": pa.bool_()}
    fields = []
    for output in session.get_outputs():
        names = [f"{output.name}_{k}" for k in range(output.shape[1])] if len(output.shape) == 2 else [output.name]
        fields += [(name, kinds[output.type.removeprefix("tensor(").removesuffix(")")]) for name in names]
    schema, model, n_rows = pa.schema(fields), castlereg.load(item["model"]), 0
    columns = list(model.feature_names_in_)
    with (
        pq.ParquetFile(item["input"]) as source,
        atomic_write(Path(item["output"])) as file,
        pq.ParquetWriter(file, schema) as writer,
    ):
        for batch in source.iter_batches(ROWS, columns=columns):
            predicted = session.run(None, castlereg.onnx_inputs(model, batch.to_pandas()[columns]))
            arrays = [of_one for values in predicted for of_one in (values.T if values.ndim == 2 else [values])]
            writer.write_table(pa.table(arrays, schema=schema))
            n_rows += batch.num_rows
    return n_rows


def items(model: Path, inputs: Path, outputs: Path) -> list[dict[str, Any]]:
    """Export the model, and return everything that each output depends on."""
    outputs.mkdir(parents=True, exist_ok=True)
    onnx = outputs / f"{model.stem}.onnx"
    castlereg.to_onnx(castlereg.load(model), onnx)
    shared = {"model": str(model), "onnx": str(onnx), "sha256": hashlib.sha256(onnx.read_bytes()).hexdigest()}
    return [
        {
            **shared,
            "input": str(path),
            "output": str(outputs / path.name),
            "bytes": path.stat().st_size,
            "modified": path.stat().st_mtime_ns,
        }
        for path in sorted(inputs.glob("*.parquet"))
    ]


def main(arguments: list[str]) -> None:
    """Predict the files without a prediction."""
    parser = argparse.ArgumentParser(description="Predict a folder of Parquet files.")
    parser.add_argument("model", type=Path, help="Model file, written by castlereg.save.")
    parser.add_argument("inputs", type=Path, help="Folder of Parquet files.")
    parser.add_argument("outputs", type=Path, help="Folder for the predictions.")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="Address of a Dask scheduler (default: start one).")
    parser.add_argument("--workers", type=int, default=2, help="Number of processes of a new cluster on this machine.")
    given = parser.parse_args(arguments)
    from distributed import Client, LocalCluster

    listed = items(*(path.resolve() for path in (given.model, given.inputs, given.outputs)))
    folder = given.outputs / "items"
    for item in listed:
        if not Path(item["output"]).exists():  # the output was deleted
            (folder / f"{item_key(item)}.json").unlink(missing_ok=True)
    options = {"n_workers": given.workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        nullcontext(given.scheduler) if given.scheduler else LocalCluster(host="127.0.0.1", **options) as cluster,
        Client(cluster),
        parallel_config("dask"),
    ):
        rows = run_items(score, listed, folder)
    print(f"{len(rows)} files, {sum(rows)} rows: {given.outputs}")


if __name__ == "__main__":
    main(sys.argv[1:])
