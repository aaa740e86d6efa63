# The commands of this project. `make` lists them. A command first sets up the tools and jars that it needs.
#
#   pyproject.toml ──► .venv ──┬─► tailgate/jars/spark ──────────────────────┐
#   jars/*/pom.xml ────────────┴─► tailgate/jars/kafka, …────────────────────┼─┬─► setup ──► demo, test, lint, bench
#   tailgate/engine/java ──► tailgate/jars/tailgate.jar (uses .venv) ────────┘ └─► wheel
#
# A step runs again when one of its inputs has changed. Overrides: PYTHON=python3.12, MVN=mvn, MAVEN_ARGUMENTS="-o".

PYTHON ?= python3
MVN ?= mvn
MAVEN_ARGUMENTS ?=
ARGS ?=
# Optional dependencies that are installed, too; none in the image.
EXTRAS ?= [dev]

# Containers often set it. Then each of the hundreds of processes that the tests start compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
FAST := "not long and not clients"
# Processes that share the tests, more than cores: a test waits for servers and JVMs a third of its time (tests/distribution.py).
JOBS ?= 3
# Seconds for the law, and for each test of random statements, in `make test-long`.
TIMEOUT := 14400
# How long `make test-soak` injects faults.
SECONDS ?= 3600
MAVEN := $(MVN) -B -q -Dstyle.color=never $(MAVEN_ARGUMENTS)
COPY := dependency:copy-dependencies -DincludeScope=runtime
# Known only once .venv is there, so it is asked for inside the recipes.
PYSPARK_JARS = $$($(BIN)/python -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent / "jars")')

# All jars that the product needs besides pyspark's: the same place in a clone and in the wheel.
JARS := tailgate/jars
PRODUCT_JARS := $(patsubst %,$(JARS)/%/.resolved,spark kafka connect avro-converter)
MAVEN_JAR := tailgate/engine/java/target/tailgate.jar
ENGINE_JAR := $(JARS)/tailgate.jar
# The output of the Java library's tests; `make test` shows it if one fails, because the tests in Python print at the same time.
JAVA_TESTS := tailgate/engine/java/target/tests.log
# The archive of the classes that the JVM has loaded and verified.
CLASSES := $(JARS)/classes.jsa
KAFKA_CLASSES := $(JARS)/kafka.jsa
ENGINE_SOURCES := $(shell find tailgate/engine/java -path tailgate/engine/java/target -prune -o -type f -print 2>/dev/null)
# Findings of tools/prose.py that lint allows. The number only falls; the goal is zero.
PROSE_MAX = 165

# Without sockets or Spark, so their examples run as they stand.
PURE = $(addprefix tailgate/,lake formats values sql gateway/protocol engine/plan embedded/subjects.py embedded/kinds.py)

.DEFAULT_GOAL := help
.PHONY: help setup wheel demo test test-long test-clients test-cdc test-soak java lint format bench bench-peers docs prose clean

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

setup: .venv/.installed $(PRODUCT_JARS) .jars/postgres/.resolved .jars/plugins/.resolved $(CLASSES) $(KAFKA_CLASSES) ## virtual environment, jars, the Java library

.PHONY: jars
jars: $(PRODUCT_JARS)

# Without the archive of classes, which fits one JVM only. setuptools leaves files of an earlier build in build/.
wheel: .venv/.installed $(PRODUCT_JARS) $(ENGINE_JAR) ## dist/tailgate-*.whl with all jars inside: where it is installed it needs Python and Java 17 only
	@rm -rf build dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@rm -rf build
	@ls dist/*.whl

demo: setup ## Kafka, registry, engine, gateway, sinks and the shop, live: ARGS="--for 60 --rate 1000 --check"
	@exec $(BIN)/tailgate demo $(ARGS)

test: setup ## all tests that need no client programs and are not marked long: ARGS="-k registry"
	@$(MAKE) --no-print-directory -j3 java docs python

.PHONY: python
python: setup
	@echo "test: Python"
	@$(BIN)/python -m pytest -m $(FAST) -n $(JOBS) $(ARGS) || \
	  { echo "test: running the tests that failed again, alone; one that passes now has a race, which is a defect, too"; \
	    $(BIN)/python -m pytest -m $(FAST) -n 1 --last-failed --last-failed-no-failures none $(ARGS); }

test-long: setup ## 10,000 random views, 100,000 random statements (hours), random tests with 20 seeds, then the tests that are marked long: ARGS="-k kill"
	@echo "test: the law"
	@TAILGATE_CASES=$${TAILGATE_CASES:-10000} $(BIN)/python -m pytest --timeout $(TIMEOUT) tests/engine/plan/test_law.py
	@echo "test: random statements"
	@TAILGATE_STATEMENTS=$${TAILGATE_STATEMENTS:-100000} TAILGATE_MAINTAINED=$${TAILGATE_MAINTAINED:-500} \
	  TAILGATE_VIEWS=$${TAILGATE_VIEWS:-2400} $(BIN)/python -m pytest --timeout $(TIMEOUT) tests/generator tests/engine/plan/test_generated.py
	@echo "test: random choices with other seeds"
	@TAILGATE_SEEDS=$${TAILGATE_SEEDS:-20} $(BIN)/python -m pytest -m "random and not spark and not kafka and not long and not clients"
	@echo "test: the tests that are marked long"
	@$(BIN)/python -m pytest -m "long and not clients" $(ARGS)

test-clients: setup ## real clients against a live Tailgate and PostgreSQL 15, one line each; installs them in .clients: ARGS="psql pgx"
	@$(BIN)/python tests/clients/run.py $(ARGS)

test-cdc: setup ## MariaDB and PostgreSQL through Debezium, while all processes are killed at random, in six minutes: ARGS="--for 60"; see docs/cdc.md
	@$(BIN)/python -m tests.cdc.support_calls
	@$(BIN)/python -m tests.cdc.run $(ARGS)

test-soak: setup ## a whole system under load, faults and DDL for an hour: SECONDS=300, ARGS="--seed 1"; see docs/reliability.md
	@$(BIN)/python -m tests.soak.run --for $(SECONDS) $(ARGS)

# Setup has compiled them: tests in Python, which run at the same time, load these classes.
java: setup ## the Java library's own tests
	@echo "test: the Java library"
	@$(MAVEN) -f tailgate/engine/java/pom.xml surefire:test -Dpyspark.jars="$(PYSPARK_JARS)" > $(JAVA_TESTS) 2>&1 || \
	  { cat $(JAVA_TESTS); exit 1; }

lint: .venv/.installed ## no conflict markers, ruff, mypy, import contracts, prose
	@! git grep -nE '^(<<<<<<<|>>>>>>>) ' || { echo "lint: these files have conflict markers" >&2; exit 1; }
	@$(MAKE) --no-print-directory -j2 mypy style

.PHONY: mypy style
mypy: .venv/.installed
	@echo "lint: mypy"
	@$(BIN)/mypy tailgate

style: .venv/.installed
	@echo "lint: ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "lint: import contracts"
	@$(BIN)/lint-imports
	@echo "lint: prose"
	@$(BIN)/python tools/prose.py --max $(PROSE_MAX)

format: .venv/.installed ## let ruff format and sort
	@$(BIN)/ruff check --fix --silent . || true
	@$(BIN)/ruff format .

bench: setup ## the measurements of bench/, one after the other
	@set -e; for script in bench/[!_]*.py; do echo "bench: $$script"; $(BIN)/python $$script; done

bench-peers: setup .peers/streams/.built .peers/flink/.built .peers/pathway/.installed ## Tailgate, Kafka Streams, Flink SQL, Pathway and PostgreSQL on one workload, in turns; docs/benchmarks.md: ARGS="--for 15"
	@$(BIN)/python -m bench.peers.run $(ARGS)

docs: .venv/.installed ## run the examples in docstrings
	@echo "docs: examples in docstrings"
	@$(BIN)/python -m pytest -q --doctest-modules $(PURE)

prose: .venv/.installed ## count prose that is probably hard to understand, by folder: ARGS="docs --show phrase"
	@$(BIN)/python tools/prose.py $(ARGS)

clean: ## remove all files that setup has created
	rm -rf .venv .jars .peers $(JARS) tailgate/engine/java/target build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# The steps of setup.

.venv/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
	  { echo "setup: Python 3.10 or newer is needed and $(PYTHON) is not; name another one: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "setup: $(PYTHON) lacks its venv module; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "setup: installing Python packages into .venv (about 450 MB to download, a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.$(EXTRAS)'
	@test ! -d tailgate || $(BIN)/python -m compileall -q -j 2 -x '/test_' tailgate testing tests
	@touch $@

.PHONY: jdk
jdk:
	@javac -version 2>&1 | grep -Eq '^javac (1[7-9]|[2-9][0-9])' || \
	  { echo "setup: a JDK of version 17 or newer is needed (java and javac on PATH); on Debian and Ubuntu: apt-get install openjdk-17-jdk-headless" >&2; exit 1; }
	@command -v $(MVN) > /dev/null || \
	  { echo "setup: Maven is needed ($(MVN) is not on PATH); on Debian and Ubuntu: apt-get install maven" >&2; exit 1; }

# A second version of a jar on Spark's class path breaks it in odd ways, so jars that pyspark has are removed by artifact name.
$(JARS)/spark/.resolved: jars/spark/pom.xml | .venv/.installed
	@$(MAKE) --no-print-directory jdk
	@echo "setup: fetching the Delta and Kafka connectors of Spark into $(JARS)/spark"
	@rm -rf $(JARS)/spark
	@$(MAVEN) -f $< $(COPY) -DoutputDirectory="$(CURDIR)/$(JARS)/spark"
	@theirs=$$(ls "$(PYSPARK_JARS)"); for jar in $(JARS)/spark/*.jar; do \
	  artifact=$$(basename "$$jar" | sed -E 's/-[0-9][^_]*\.jar$$//'); \
	  if echo "$$theirs" | grep -Eq "^$$artifact-[0-9]"; then rm "$$jar"; fi; done
	@touch $@

$(JARS)/kafka/.resolved: jars/kafka/pom.xml
	@$(MAKE) --no-print-directory jdk
	@echo "setup: fetching Kafka into $(JARS)/kafka (50 MB)"
	@rm -rf $(JARS)/kafka
	@$(MAVEN) -f $< $(COPY) -DoutputDirectory="$(CURDIR)/$(JARS)/kafka"
	@touch $@

# The worker's class path is these jars and those of Kafka.
$(JARS)/connect/.resolved: jars/connect/pom.xml $(JARS)/kafka/.resolved
	@echo "setup: fetching Kafka Connect into $(JARS)/connect (35 MB)"
	@rm -rf $(JARS)/connect
	@$(MAVEN) -f $< $(COPY) -DoutputDirectory="$(CURDIR)/$(JARS)/connect"
	@for jar in $(JARS)/kafka/*.jar; do rm -f "$(JARS)/connect/$$(basename "$$jar")"; done
	@touch $@

# A plugin must not contain jars that the worker has. The converter lacks the file by which a worker finds its plugins.
WORKERS_OWN := org.apache.kafka,org.slf4j,org.lz4,org.xerial.snappy,com.github.luben
$(JARS)/avro-converter/.resolved: jars/avro-converter/pom.xml | .venv/.installed
	@$(MAKE) --no-print-directory jdk
	@echo "setup: fetching Kafka Connect's converter for Avro into $(JARS)/avro-converter (8 MB)"
	@rm -rf $(JARS)/avro-converter
	@$(MAVEN) -f $< $(COPY) -DexcludeGroupIds=$(WORKERS_OWN) -DoutputDirectory="$(CURDIR)/$(JARS)/avro-converter"
	@$(BIN)/python -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1], "w").writestr(*sys.argv[2:])' $(JARS)/avro-converter/services.jar \
	  META-INF/services/org.apache.kafka.connect.storage.Converter io.apicurio.registry.utils.converter.AvroConverter
	@touch $@

.jars/plugins/.resolved: jars/connect-file/pom.xml
	@$(MAKE) --no-print-directory jdk
	@rm -rf .jars/plugins
	@$(MAVEN) -f $< $(COPY) -DexcludeTransitive -DoutputDirectory="$(CURDIR)/.jars/plugins/file"
	@touch $@

.jars/postgres/.resolved: jars/postgres/pom.xml
	@$(MAKE) --no-print-directory jdk
	@echo "setup: fetching a PostgreSQL 15 for the tests into .jars/postgres (15 MB)"
	@rm -rf .jars/postgres
	@$(MAVEN) -f $< $(COPY) -DexcludeTransitive -DoutputDirectory="$(CURDIR)/.jars/postgres"
	@touch $@

$(MAVEN_JAR): $(ENGINE_SOURCES) | .venv/.installed
	@$(MAKE) --no-print-directory jdk
	@echo "setup: building the engine's Java library"
	@$(MAVEN) -f tailgate/engine/java/pom.xml package -DskipTests -Dpyspark.jars="$(PYSPARK_JARS)"
	@touch $@

$(ENGINE_JAR): $(MAVEN_JAR)
	@mkdir -p $(JARS)
	@cp $< $@

$(CLASSES): $(ENGINE_JAR) $(JARS)/spark/.resolved
	@echo "setup: keeping the classes that the engine loads, so that it starts faster (140 MB, half a minute)"
	@$(BIN)/python -m tailgate.engine.runtime.classes

$(KAFKA_CLASSES): $(JARS)/kafka/.resolved | .venv/.installed
	@echo "setup: keeping the classes that Kafka loads, so that it starts faster (50 MB, some seconds)"
	@$(BIN)/python -m tailgate.embedded.kafka_classes

# The peers of `make bench-peers`: their jars and their programs' classes, or an environment of their own.

.peers/%/.built: bench/peers/%/pom.xml bench/peers/%/*.java
	@$(MAKE) --no-print-directory jdk
	@echo "bench-peers: fetching $* into .peers/$*, and building its program"
	@rm -rf $(@D)
	@$(MAVEN) -f $< $(COPY) -DoutputDirectory="$(CURDIR)/$(@D)"
	@javac -cp "$(@D)/*" -d $(@D)/classes bench/peers/$*/*.java
	@touch $@

.peers/pathway/.installed: bench/peers/pathway/requirements.txt
	@echo "bench-peers: installing Pathway into .peers/pathway (1.1 GB)"
	@rm -rf $(@D)
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@
