# Two commands do everything: make demo, make test. All set up a virtual environment in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Modules are compiled once, when they are first imported (--no-compile): most modules of packages never are.
unexport PYTHONDONTWRITEBYTECODE

KERNELS := $(wildcard kernels/cpp/* kernels/src/castlereg_kernels/*) kernels/CMakeLists.txt kernels/pyproject.toml

.PHONY: demo test lint docs benchmark experiments setup clean

setup: $(VENV)/.installed $(VENV)/.kernels

$(VENV)/.installed: pyproject.toml paper/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "castlereg needs Python 3.11 or later; run: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e ".[test]" -e ./paper
	@touch $@

# The native engine is built where there is a compiler; without it everything trains on JAX.
$(VENV)/.kernels: $(VENV)/.installed $(KERNELS)
	@if command -v c++ >/dev/null; then \
		PIP_CONSTRAINT="$(CURDIR)/constraints.txt" $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile ./kernels \
			|| echo "castlereg-kernels could not be built: networks train on JAX"; \
	else \
		echo "no C++ compiler: castlereg-kernels is not built, and networks train on JAX"; \
	fi
	@touch $@

demo: setup
	$(BIN)/python examples/diabetes.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/words.py

test: lint
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

docs: $(VENV)/.docs
	$(BIN)/python examples/gallery.py
	$(BIN)/python examples/page_outputs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/.docs: $(VENV)/.kernels
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e ".[docs]"
	@touch $@

benchmark: setup
	$(BIN)/python -m benchmarks

experiments: setup
	$(BIN)/python -m paper.reproduce run --jobs 2
	$(BIN)/python -m paper.reproduce page

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache
