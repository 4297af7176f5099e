.DEFAULT_GOAL := help
.PHONY: help up worker web test check format messages bench clean env test-env

VENV := $(or $(UV_PROJECT_ENVIRONMENT),.venv)
PYTHON_IN_VENV := $(VENV)/bin/python
HOST := $(or $(DOCMIND_HOST),127.0.0.1)
PORT := $(or $(DOCMIND_PORT),8000)

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: env ## Start everything on this machine: vector server, worker, web server
	@exec $(PYTHON_IN_VENV) -m docmind.supervisor --end-with-parent

worker: env ## Start only a worker (production)
	@exec $(PYTHON_IN_VENV) manage.py worker

web: env ## Start only a web server (production)
	@exec $(PYTHON_IN_VENV) -m uvicorn docmind.asgi:application --host $(HOST) --port $(PORT) --lifespan on \
		--no-access-log --timeout-graceful-shutdown 5

test: test-env ## Run the tests; ARGS="tests/kb -k chunker" chooses some
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT INT TERM && \
		DOCMIND_DATA_DIR="$$folder" $(PYTHON_IN_VENV) -m pytest $(ARGS)

check: test-env ## Lint, format, types, templates, import contract, migrations, lock file
	@PATH="$(abspath $(VENV))/bin:$$PATH" sh scripts/check.sh

format: test-env ## Format Python and templates
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/djlint --reformat --quiet templates

messages: test-env ## Collect and compile the interface's texts
	$(PYTHON_IN_VENV) manage.py makemessages --all --no-obsolete --ignore '.venv/*' --ignore '.uv/*' --ignore 'data/*'
	$(PYTHON_IN_VENV) manage.py compilemessages --ignore .venv

bench: test-env ## Measure start-up, memory and time to first token
	@exec $(PYTHON_IN_VENV) -m benchmarks.startup $(ARGS)

clean: ## Remove the environment and all caches; the data folder stays
	rm -rf .venv .uv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis test-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

env:
	@sh scripts/environment.sh run

test-env:
	@sh scripts/environment.sh test
