# make demo: the main job. make test: every test. make fast: the tests that take less than five seconds each.
PYTHON ?= python3
BIN := .venv/bin
# A file of tests stays in one process, so that what its tests share is made once.
TESTS := -m pytest -q -n auto --maxprocesses 8 --dist loadfile
LOCKS := requirements.lock requirements-nodeps.lock pyproject.toml

.PHONY: demo test fast setup clean

demo: setup
	$(BIN)/seal run

test: setup
	$(BIN)/python $(TESTS)

fast: setup
	$(BIN)/python $(TESTS) -m "not slow"

# Installs only when a lock has changed since the last time: the stamp holds the checksum of what is installed.
setup:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "python >= 3.11 is needed, $(PYTHON) is older: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@sum=$$(cat $(LOCKS) | cksum); \
	if [ "$$sum" != "$$(cat .venv/stamp 2>/dev/null)" ]; then \
	  set -e; \
	  $(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv; \
	  echo "installing the locked packages into .venv (a few minutes, once)"; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-nodeps.lock; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	  echo "$$sum" > .venv/stamp; \
	fi

clean:
	rm -rf .venv build *.egg-info
