"""Predict a folder of Parquet files with a saved model, in parallel: one output file per input file.

The model is exported to ONNX once. Files are read and written in pieces, and an output appears when it is complete. The
next call scores the files without an output, and those that have changed since. On a Dask cluster, all machines must
have access to the folders::

    python examples/score_parquet.py rent.castle flats predicted --jobs 2
    python examples/score_parquet.py rent.castle flats predicted --dask tcp://10.0.0.1:8786

Outputs have the rows of their input in the same order: ``prediction``, and for classes ``probabilities_0``,
``probabilities_1``, ... in the order of ``classes_``. Needs ``castlereg[arrow,dask,onnx]`` and onnxruntime.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from joblib import Parallel, delayed, parallel_config

import castlereg

ROWS = 100_000  # per batch


def score(model_file: Path, onnx_file: Path, path: Path, output: Path) -> int:
    """Predict the rows of one file; return their number."""
    import onnxruntime
    import pyarrow as pa
    import pyarrow.parquet as pq

    from castlereg.atomic_write import atomic_write

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx_file, options)
    kinds = {"double": pa.float64(), "int64": pa.int64(), "string": pa.string(), "bool": pa.bool_()}
    fields = []
    for value in session.get_outputs():
        names = [f"{value.name}_{k}" for k in range(value.shape[1])] if len(value.shape) == 2 else [value.name]
        fields += [(name, kinds[value.type.removeprefix("tensor(").removesuffix(")")]) for name in names]
    schema, model, n_rows = pa.schema(fields), castlereg.load(model_file), 0
    columns = list(model.feature_names_in_)
    with (
        pq.ParquetFile(path) as source,
        atomic_write(output) as file,
        pq.ParquetWriter(file, schema) as writer,
    ):
        for batch in source.iter_batches(ROWS, columns=columns):
            predicted = session.run(None, castlereg.onnx_inputs(model, batch.to_pandas()[columns]))
            arrays = [column for values in predicted for column in (values.T if values.ndim == 2 else [values])]
            writer.write_table(pa.table(arrays, schema=schema))
            n_rows += batch.num_rows
    return n_rows


def main(arguments: list[str]) -> None:
    """Predict the files without an up-to-date prediction."""
    parser = argparse.ArgumentParser(description="Predict a folder of Parquet files.")
    parser.add_argument("model", type=Path, help="Model file, written by castlereg.save.")
    parser.add_argument("inputs", type=Path, help="Folder of Parquet files.")
    parser.add_argument("outputs", type=Path, help="Folder for the predictions.")
    parser.add_argument("--jobs", type=int, default=1, help="Number of processes on this machine.")
    parser.add_argument("--dask", metavar="ADDRESS", help="Address of a Dask scheduler.")
    given = parser.parse_args(arguments)
    model, inputs, outputs = (path.resolve() for path in (given.model, given.inputs, given.outputs))
    outputs.mkdir(parents=True, exist_ok=True)
    onnx = outputs / f"{model.stem}.onnx"
    if not onnx.exists() or onnx.stat().st_mtime < model.stat().st_mtime:
        castlereg.to_onnx(castlereg.load(model), onnx)
    waiting = [path for path in sorted(inputs.glob("*.parquet")) if not _is_scored(outputs / path.name, path, onnx)]
    with ExitStack() as stack:
        if given.dask is not None:
            from distributed import Client

            client = stack.enter_context(Client(given.dask))
            stack.enter_context(parallel_config("dask", client=client))
        calls = (delayed(score)(model, onnx, path, outputs / path.name) for path in waiting)
        rows = Parallel(None if given.dask else given.jobs)(calls)
    print(f"{len(rows)} files, {sum(rows)} rows: {given.outputs}")


def _is_scored(output: Path, *sources: Path) -> bool:
    """Return whether an output is newer than the files that it depends on."""
    return output.exists() and all(output.stat().st_mtime >= source.stat().st_mtime for source in sources)


if __name__ == "__main__":
    main(sys.argv[1:])
