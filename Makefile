# The front door. Needs Python 3.9 or newer, make, git and a package registry; brings everything else itself.

env ?= dev
port ?=

# Our own environment and programs first: the CDK app runs as `python -m infra.app`. Containers often tell Python to
# keep no bytecode: each process would then compile aws_cdk anew, which takes longer than using it.
run := PATH="$(CURDIR)/.venv/bin:$(CURDIR)/.build/bin:$$PATH" PYTHONDONTWRITEBYTECODE=
cdk := $(run) CDK_DISABLE_CLI_TELEMETRY=true CDK_DISABLE_VERSION_CHECK=1 node node_modules/aws-cdk/bin/cdk

.PHONY: help prepare demo up test check lint-fix bench synth deploy clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

prepare: ## install the tools that are missing or out of date (every other target does this first)
	@python3 -I local/bootstrap.py

demo: prepare ## from an upload to a grounded answer, on this machine, in about a minute
	@$(run) python -m local.demo

up: prepare ## the same, and the stack stays until Ctrl-C [port=4566]
	@$(run) python -m local.demo --stay $(if $(port),--port $(port))

test: prepare ## every test, as CI runs them
	@$(run) pytest --numprocesses auto

check: prepare ## ruff and mypy
	@$(run) ruff check
	@$(run) ruff format --check
	@$(run) mypy

lint-fix: prepare ## let ruff mend what it can
	@$(run) ruff check --fix
	@$(run) ruff format

bench: prepare ## measure, each beside its reference; some minutes
	@$(run) python -m bench.bundles
	@$(run) python -m bench.shards
	@$(run) python -m bench.reindexing

synth: prepare ## the CloudFormation template of one environment [env=dev]
	@$(cdk) synth -c environment=$(env) --no-notices

deploy: prepare ## deploy to AWS with the credentials in force, after showing what changes [env=dev]
	@$(cdk) deploy -c environment=$(env) --no-notices

clean: ## remove everything that was installed or built
	@rm -rf .build .venv node_modules cdk.out dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
