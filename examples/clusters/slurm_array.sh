#!/usr/bin/env bash
# The grid of grid.py on SLURM. Each element of the array takes items that no other has claimed, and ends when all are
# done; items of an element that was killed are taken over. Submit it in the folder of the checkout:
#   sbatch examples/clusters/slurm_array.sh /shared/results
#SBATCH --job-name=castlereg-grid
#SBATCH --array=0-9
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=2G
#SBATCH --time=02:00:00
set -euo pipefail
export OMP_NUM_THREADS=1
# Programs that were compiled for the processor of one node may not run on another.
export JAX_COMPILATION_CACHE_DIR="${JAX_COMPILATION_CACHE_DIR-${TMPDIR:-/tmp}/castlereg-jax-$(id -u)}"
echo "element ${SLURM_ARRAY_TASK_ID:-0} of ${SLURM_ARRAY_TASK_COUNT:-1} on $(hostname)"
exec "${PYTHON:-python}" examples/clusters/grid.py "$@"
