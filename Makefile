# `make run` and `make test` do everything on a fresh machine; docs/TESTING.md and README.md say more.

PYTHON ?=
SEEDS ?= 1000
SECONDS ?= 60
MINUTES ?= 60
FIRST ?= 0
RECORDS ?= 50000000
MEMBERS ?= 60
CLOSES ?= 200
BUSY ?= 0
STREAM_SECONDS ?= 300
SHOTS ?= .cache/screenshots
VENV := .venv
STAMP := $(VENV)/.installed

# Containers often forbid compiled modules to be kept. A server has some 1,000 of them, and tests
# start thousands of servers and commands, each of which would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.PHONY: help setup run test test-long lint bench bench-growth pipeline-bench spark-submit stream stream-law sim chaos soak differential interop \
	bench-upstream connect tools upstream upstream-sim migration latency attack fuzz takeover container recording jars docs screenshots python go clean

help:
	@echo "make run     install what is needed into $(VENV), then show the demo"
	@echo "make test    install, then lint and run all tests (TEST_GROUPS='log protocol' for some)"
	@echo "make test-long   the tests that take too long for every change: before a release"
	@echo "make lint    ruff, mypy, the import contracts and dead code alone"
	@echo "make sim     the cluster simulation alone, SEEDS=$(SEEDS) seeds of each kind of world"
	@echo "make chaos   the SDK over networks that delay, hold back and cut: SEEDS=20 SECONDS=$(SECONDS) each"
	@echo "make soak    what grows in a server under clients that come and go for MINUTES=30"
	@echo "make differential   the same requests to Muster and to a Kafka, for MINUTES=$(MINUTES)"
	@echo "make interop   every client, in both protocols, with every strategy and mechanism that it has"
	@echo "make connect   two workers of Kafka Connect, one of which is killed"
	@echo "make tools   what other tools show of Muster: KAFKA_EXPORTER=, KMINION=, KCL=, KAFKACTL= are programs"
	@echo "make upstream   in front of Kafka 4.3, 3.9 and 2.8: groups of every client move while they work"
	@echo "make upstream-sim   takeovers and releases in simulated worlds with faults, SEEDS=2000 of them"
	@echo "make migration   MEMBERS=$(MEMBERS) classic members replaced one by one by new ones, and back"
	@echo "make latency   every client closes CLOSES=$(CLOSES) times over each of six ways of 0 to 800 ms"
	@echo "make attack  floods, bombs, slow readers and the like: how long another client waits at most,"
	@echo "                and what the server gives back (NAMES='bombs evil' for some)"
	@echo "make fuzz    requests of all APIs and RPCs for MINUTES=$(MINUTES), from SEED= (the clock's if none)"
	@echo "make takeover   a store of the last format with TAKEOVER_RECORDS=5000000 is taken over"
	@echo "make bench   measure Muster beside a Kafka 4.3.0, and print what changed since an earlier run"
	@echo "                (two of the history: $(VENV)/bin/python -m bench.history BEFORE AFTER)"
	@echo "make bench-upstream   measure Muster in front of a Kafka with classic groups, beside that cluster"
	@echo "make bench-growth   how costs grow from 10 to 100,000 members, groups, partitions and topics"
	@echo "make pipeline-bench   measure the pipeline beside Kafka's DumpLogSegments, and a simulated"
	@echo "                cluster of $(RECORDS) records through tables, audit and report"
	@echo "make spark-submit   a job of the pipeline as a background job of a terminal"
	@echo "make stream  tables that follow a live store for STREAM_SECONDS=$(STREAM_SECONDS), and are killed twice"
	@echo "make stream-law   streams beside batches over SEEDS=$(SEEDS) logs that are compacted and cut meanwhile"
	@echo "make container   run the steps of packaging/Containerfile in a chroot, and the server as it would be"
	@echo "make jars    copy Kafka's jars into .cache, so that tests need no repository later"
	@echo "make recording   record half a minute of a real session for the top of the README"
	@echo "make docs    write docs/settings.md anew from the table of settings"
	@echo "make screenshots   pictures of all pages of the console in SHOTS=$(SHOTS), and those of docs/"
	@echo "make setup   install alone; the command is then $(VENV)/bin/muster"
	@echo "make clean   remove $(VENV) and .cache"

setup: $(STAMP)

run: setup
	@$(VENV)/bin/muster demo

test: setup
	@$(VENV)/bin/python -m tests.run $(TEST_GROUPS)

test-long: jars go
	@MUSTER_REQUIRE_PEERS=1 $(VENV)/bin/python -m pytest -q -n 0 -m long tests

lint: setup
	@$(VENV)/bin/python -m tests.run lint

screenshots: setup
	@$(VENV)/bin/python -m tests.console.screenshots $(SHOTS)

stream: setup
	@$(VENV)/bin/python -m tests.pipeline.live_stream --seconds $(STREAM_SECONDS)

stream-law: setup
	@STREAM_SEEDS=$(SEEDS) $(VENV)/bin/python -m pytest -q -n 2 --timeout 0 \
		tests/unit/pipeline/source/test_stream_law.py tests/pipeline/tables/test_tables_stream.py

sim: setup
	@$(VENV)/bin/python -m tests.sim --seeds $(SEEDS)

chaos: SEEDS := $(if $(filter-out file,$(origin SEEDS)),$(SEEDS),20)
chaos: setup
	@$(VENV)/bin/python -m tests.chaos --seeds $(SEEDS) --seconds $(SECONDS)

soak: MINUTES := $(if $(filter-out file,$(origin MINUTES)),$(MINUTES),30)
soak: setup
	@$(VENV)/bin/python -m tests.soak --minutes $(MINUTES)

differential: jars
	@$(VENV)/bin/python -m tests.differential --minutes $(MINUTES) --first $(FIRST)

interop: jars go
	@INTEROP=all MUSTER_REQUIRE_PEERS=1 $(VENV)/bin/python -m pytest -q -n 2 \
		tests/interop/test_clients.py tests/security/test_clients_with_mechanisms.py

connect: setup
	@MUSTER_REQUIRE_PEERS=1 $(VENV)/bin/python -m pytest -q -s -p no:xdist \
		tests/interop/connect_workers.py

upstream-sim: setup
	@$(VENV)/bin/python -m tests.sim.upstream $(FIRST) $(if $(filter-out file,$(origin SEEDS)),$(SEEDS),2000)

tools: setup
	@KAFKA_EXPORTER=$(KAFKA_EXPORTER) KMINION=$(KMINION) KCL=$(KCL) KAFKACTL=$(KAFKACTL) \
		$(VENV)/bin/python -m pytest -q -n 0 tests/tools

upstream: jars go
	@UPSTREAM=all MUSTER_REQUIRE_PEERS=1 $(VENV)/bin/python -m pytest -q -p no:xdist tests/upstream

migration: jars
	@$(VENV)/bin/python -m tests.migration --members $(MEMBERS)

latency: jars go
	@$(VENV)/bin/python -m tests.latency --closes $(CLOSES) --busy $(BUSY)

attack: setup
	@$(VENV)/bin/python -m tests.attack $(NAMES)

fuzz: setup
	@$(VENV)/bin/python -m tests.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

takeover: TAKEOVER_RECORDS := $(if $(TAKEOVER_RECORDS),$(TAKEOVER_RECORDS),5000000)
takeover: setup
	@TAKEOVER_RECORDS=$(TAKEOVER_RECORDS) $(VENV)/bin/python -m pytest -q -o timeout=3600 \
		tests/durability/test_format_2.py

bench: jars go
	@$(VENV)/bin/python -m bench

bench-upstream: jars go
	@$(VENV)/bin/python -m bench.upstream

bench-growth: setup
	@$(VENV)/bin/python -m bench.growth

pipeline-bench: jars
	@PIPELINE_BENCH=1 MUSTER_REQUIRE_PEERS=1 $(VENV)/bin/python -m pytest -q \
		tests/pipeline/test_small_cluster.py
	@$(VENV)/bin/python -m bench.pipeline
	@$(VENV)/bin/python -m bench.pipeline.cluster --records $(RECORDS)

spark-submit: setup
	@SPARK_SUBMIT=1 MUSTER_REQUIRE_PEERS=1 $(VENV)/bin/python -m pytest -q \
		tests/pipeline/test_spark_submit.py

container: setup
	@$(VENV)/bin/python -m tests.packaging $(CONTAINER_FOLDER)

# Says by itself what is missing: Java 17, Maven, or a repository for it.
jars: setup
	@$(VENV)/bin/python -m tests.kafka.jars

recording: setup
	@$(VENV)/bin/python -m tools.recording docs/recording.svg

docs: setup
	@$(VENV)/bin/python -m cli.settings.reference > docs/settings.md

clean:
	rm -rf $(VENV) .cache

# A virtual environment that another Python made, or that was copied, is made anew, with the
# quickest Python 3.11 or newer that there is, or with the one of make PYTHON=...
$(STAMP): pyproject.toml sdk/pyproject.toml constraints.txt | python
	@$(VENV)/bin/python -c 'import pip' 2>/dev/null \
		|| $(or $(PYTHON),$$(python3 tools/find_python.py)) -m venv --clear $(VENV)
	@echo "installing into $(VENV)"
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e ./sdk -e '.[dev,kafka,speed,spark,traces]' \
		|| { echo "make: pip could not install: see above; it needs a package index" >&2; exit 1; }
	@touch $@

# Prerequisites: each says in one line what to install.
python:
	@command -v $(or $(PYTHON),python3) >/dev/null \
		|| { echo "make: needs Python 3.11 or newer: install python3 and python3-venv" >&2; exit 1; }
	@$(or $(PYTHON),python3) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "make: needs Python 3.11 or newer, $(or $(PYTHON),python3) is older:" \
			"install python3.11 and python3.11-venv, then say make PYTHON=python3.11" >&2; exit 1; }
	@$(or $(PYTHON),python3) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "make: needs Python's venv module: install python3-venv" >&2; exit 1; }

go:
	@command -v go >/dev/null || { echo "make: needs Go: install golang-go" >&2; exit 1; }
