# Two commands from a fresh clone with Python 3.11 or newer: `make demo` and `make test`.
# Everything is installed into .venv and written into out/. uv is used to install where it is on PATH (`make UV=` to
# do without); the same versions result. A C compiler adds the C backend and is never required.

PYTHON ?= python3
CXX ?= c++
JOBS ?= 2
# Containers set it, for layers that stay small. Here some thousand processes would compile mortice anew, each half a second.
unexport PYTHONDONTWRITEBYTECODE
UV ?= $(shell command -v uv 2>/dev/null)
VENV := .venv
PY := $(VENV)/bin/python

ifeq ($(strip $(UV)),)
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check
else
INSTALL := $(UV) pip install --quiet --compile-bytecode --python $(PY)
endif

PROJECTS := $(wildcard core/pyproject.toml core/accelerator/* plugins/cpu_numpy/pyproject.toml conformance/pyproject.toml)
CEXT := plugins/cpu_cext
CEXT_SOURCES := $(wildcard $(CEXT)/pyproject.toml $(CEXT)/meson.* $(CEXT)/src/*pp $(CEXT)/src/*/*pp $(CEXT)/mortice_cpu_cext/*.py)
# Tests differ a thousandfold in time: a process that has nothing left takes from what another has still to do.
TOGETHER := -n $(JOBS) --dist worksteal
KIT := $(PY) -m pytest $(TOGETHER) --pyargs mortice_conformance
EXAMPLE := examples/write_a_backend
FOREIGN := $(patsubst %/pyproject.toml,./%,$(wildcard examples/backends/*/pyproject.toml))
# Libraries that take tensors as they are, which the tests hand to them
NEIGHBOURS := array-api-extra einops opt_einsum pandas safetensors scikit-learn tensorboard xarray

.PHONY: help demo test newer foreign lint bench size cuda cudnn gpu conformance scorecards sanitize clean
.DELETE_ON_ERROR:

help:
	@echo "make demo                       install, train the digit classifier, print its accuracy, save a picture"
	@echo "make test                       the whole test suite, then the conformance kit on each backend here"
	@echo "make newer PYTHON=PYTHON VENV=DIR   tests that ask most of Python itself, in another Python, installed into DIR"
	@echo "make foreign                    the examples that make backends of PyTorch (where it is installed), JAX and dask"
	@echo "make lint                       ruff, mypy (strict on the engine), the layers"
	@echo "make bench [ARGS=...]           side by side with torch where it is installed; --help lists the options"
	@echo "make size                       how many bytes core and the C extension take, installed, without compiled Python"
	@echo "make cuda                       compile the CUDA sources for the GPUs served, and ask CuPy itself; takes no GPU"
	@echo "make cudnn                      the real cuDNN plans for GPUs that are only described; fetches 1 GB, takes no GPU"
	@echo "make gpu [WHEELS=DIR]           on a machine with a GPU, without a network: kit, programs, comparison with PyTorch CUDA"
	@echo "make conformance BACKEND=NAME   the kit on one backend, with its scorecard"
	@echo "make scorecards                 docs/scorecards anew: every backend that is installed, and the examples'"
	@echo "make sanitize KIND=address      tests of the C code built with a sanitizer: address (with undefined) or thread"
	@echo "make clean                      remove .venv, out/ and everything built"

demo: $(VENV)/.run
	$(PY) examples/digits.py

# Kernels get one thread each: the tests already run in $(JOBS) processes.
test conformance: export OMP_NUM_THREADS = 1
test conformance: export OPENBLAS_NUM_THREADS = 1

test: $(VENV)/.test
	$(PY) -m pytest $(TOGETHER) $(ARGS)
	$(KIT) --mortice-backend strict --mortice-backend cpu_numpy \
	    $$($(PY) -c 'import mortice_cpu_cext' 2>/dev/null && echo --mortice-backend cpu_cext)
	@if [ ! -f $(EXAMPLE)/pyproject.toml ]; then \
	    echo "SKIPPED $(EXAMPLE): not in this tree"; \
	else \
	    name=$$($(PY) -c 'import tomllib; print(*tomllib.load(open("$(EXAMPLE)/pyproject.toml", "rb"))["project"]["entry-points"]["mortice"])') && \
	    echo "The third-party example, installed as a stranger would: backend '$$name'" && \
	    rm -rf out/third_party $(EXAMPLE)/build && \
	    $(INSTALL) -c constraints.txt --no-deps --target out/third_party array-api-strict ./$(EXAMPLE) && \
	    PYTHONPATH=out/third_party $(PY) -m pytest $(EXAMPLE)/tests && \
	    PYTHONPATH=out/third_party $(KIT) --mortice-backend $$name; \
	fi

# What of the core's tests asks most of Python itself: memory, processes, pickles, signatures, the words of its errors.
OF_PYTHON := autograd_function autograd_memory autograd_tools data errors_teach fast fast_draws fast_memory func_vmap func_vmap_memory interop lazy misuse \
    multiprocessing overrides parts plugins printing robust serialize serialize_objects storage
# Its C extension is for one instruction set, so that its size says nothing.
newer: CEXT_OPTIONS := -C setup-args=-Dsets=native
newer: export OMP_NUM_THREADS = 1
newer: export OPENBLAS_NUM_THREADS = 1
newer: $(VENV)/.run
	$(INSTALL) -c constraints.txt -e conformance pytest pytest-xdist
	$(PY) -m pytest $(TOGETHER) $(patsubst %,core/tests/test_%.py,$(OF_PYTHON)) \
	    --deselect core/tests/test_parts.py::test_core_with_the_c_extension_is_small $(ARGS)

# Backends made of other people's libraries: some minutes, since JAX compiles each kernel for each shape.
foreign: export OMP_NUM_THREADS = 1
foreign: $(VENV)/.test
	$(INSTALL) -c constraints.txt jax 'dask[array]'
	rm -rf out/foreign $(FOREIGN:=/build)
	$(INSTALL) --no-deps --target out/foreign $(FOREIGN)
	PYTHONPATH=out/foreign $(PY) -m pytest examples/backends $(ARGS)

lint: $(VENV)/.lint
	$(PY) -m ruff check .
	$(PY) -m mypy
	PYTHONPATH=$(CEXT):plugins/cuda_cupy $(VENV)/bin/lint-imports

bench: $(VENV)/.run
	$(PY) -m benchmarks $(ARGS)

# As users get it, so a part is not in it. A test counts the files, in less time.
size: $(VENV)/.created
	rm -rf core/build out/size
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target out/size ./core ./$(CEXT)
	@cd out/size && find . -type f -printf '%P %s\n' | awk '{sub("/.*", "", $$1); n[$$1] += $$NF; all += $$NF} END {for (k in n) print n[k], k; print all, "in all"}' | sort -n

# NVRTC, CUDA's compiler, asks for no GPU and no CUDA. Not into .venv: with CuPy beside them other tests would not be those
# of a machine that has none.
cuda: export OMP_NUM_THREADS = 1
cuda: $(VENV)/.test
	$(INSTALL) -c constraints.txt --no-deps --target out/cuda cupy-cuda13x cuda-pathfinder nvidia-cuda-nvrtc nvidia-cudnn-frontend
	PYTHONPATH=out/cuda $(PY) -m pytest $(TOGETHER) $(addprefix plugins/cuda_cupy/tests/test_,cupy.py cupy_signatures.py cudnn_signatures.py presence.py driver.py kernels_compile.py) $(ARGS)

# The real cuDNN plans the plugin's graphs for GPUs that are only described. Not in CI: with cuBLAS, which it wants, it is
# 1 GB to fetch and 2 to keep, for what changes with mortice_cuda_cupy/cudnn alone.
cudnn: $(VENV)/.test
	$(INSTALL) -c constraints.txt --no-deps --target out/cudnn cupy-cuda13x nvidia-cuda-nvrtc nvidia-cublas nvidia-cudnn-cu13 nvidia-cudnn-frontend
	PYTHONPATH=out/cudnn $(PY) -m pytest plugins/cuda_cupy/tests/test_cudnn_plans.py plugins/cuda_cupy/tests/test_cublaslt.py $(ARGS)

# In the machine's own Python, which has CuPy, PyTorch, NumPy and pytest; WHEELS is a folder of wheels of what it lacks.
gpu:
	$(PYTHON) -m benchmarks.gpu $(if $(WHEELS),--wheels $(WHEELS)) $(ARGS)

conformance: $(VENV)/.test
	@if [ -z "$(BACKEND)" ]; then echo "make conformance: name a backend, for example BACKEND=cpu_numpy"; exit 2; fi
	$(VENV)/bin/mortice-conformance run $(BACKEND) $(ARGS)

# The plugins among the examples are installed as a stranger would; one whose library is not here is named and left out.
scorecards: export OMP_NUM_THREADS = 1
scorecards: export OPENBLAS_NUM_THREADS = 1
scorecards: $(VENV)/.test
	rm -rf out/plugins && $(INSTALL) -c constraints.txt --no-deps --target out/plugins array-api-strict ./$(EXAMPLE) $(FOREIGN)
	PYTHONPATH=out/plugins $(VENV)/bin/mortice-conformance scorecards docs/scorecards $(BACKEND) \
	    --expect cpu_numpy --expect cpu_cext --expect cuda_cupy --expect strict

# With GCC; SETS=native builds one instruction set instead of all. The sanitizer's runtime must be there before Python is, and the C++ library for it to find. A report ends the
# process that it is about; it is written to a file, since pytest holds what tests print.
KIND ?= address
SETS ?= all
comma := ,
SANITIZED := out/sanitize/$(KIND)
ifeq ($(KIND),thread)
SANITIZE := -Db_sanitize=thread -Dcpp_args=-g1
SANITIZE_ENGINE := -fsanitize=thread
RUNTIMES := libtsan.so libstdc++.so.6
else
SANITIZE := -Db_sanitize=address$(comma)undefined -Dcpp_args='-g1 -fsanitize=float-cast-overflow -fno-sanitize=null,object-size -fno-sanitize-recover=all'
SANITIZE_ENGINE := -fsanitize=address,undefined -fno-sanitize=null,object-size -fno-sanitize-recover=all
RUNTIMES := libasan.so libstdc++.so.6
endif
REPORT := log_path=$(CURDIR)/$(SANITIZED)/report
sanitize: export ASAN_OPTIONS := detect_leaks=0:allocator_may_return_null=1:$(REPORT)
sanitize: export UBSAN_OPTIONS := print_stacktrace=1:$(REPORT)
sanitize: export TSAN_OPTIONS := halt_on_error=1:die_after_fork=0:suppressions=$(CURDIR)/$(CEXT)/tests/thread_sanitizer.txt:$(REPORT)

sanitize: $(VENV)/.test
	@case "$(KIND)" in address|thread) ;; *) echo "make sanitize: KIND is address or thread; got $(KIND)"; exit 2;; esac
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED)
	$(INSTALL) -c constraints.txt meson ninja
	PATH=$(CURDIR)/$(VENV)/bin:$$PATH CXX="$(CXX)" $(PY) -m mesonbuild.mesonmain setup $(SANITIZED)/build $(CEXT) -Dsets=$(SETS) \
	    -Dbuildtype=debugoptimized -Doptimization=1 -Dstrip=false -Db_lundef=false $(SANITIZE)
	$(PY) -m ninja -C $(SANITIZED)/build -j $(JOBS) --quiet
	cp -r $(CEXT)/mortice_cpu_cext core/mortice $(SANITIZED)/ && cp $(SANITIZED)/build/_cext*.so $(SANITIZED)/mortice_cpu_cext/
	rm -f $(SANITIZED)/mortice/_engine*.so
	$(CC) -O1 -g1 -fPIC -shared $(SANITIZE_ENGINE) -I$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("include"))') \
	    core/accelerator/engine.c -o $(SANITIZED)/mortice/_engine.so
	LD_PRELOAD="$(foreach name,$(RUNTIMES),$(shell $(CXX) -print-file-name=$(name)))" PYTHONPATH=$(CURDIR)/$(SANITIZED) \
	PYTHONMALLOC=malloc MORTICE_NUM_THREADS=$(if $(filter thread,$(KIND)),3,2) OMP_NUM_THREADS=1 \
	    $(PY) -m pytest $(TOGETHER) -p no:cacheprovider $(CEXT)/tests $(wildcard core/tests/test_fast*.py) --pyargs mortice_conformance \
	    --mortice-backend cpu_cext $(ARGS); \
	status=$$?; \
	if grep -lE 'runtime error|SUMMARY|ERROR: ' $(SANITIZED)/report.* 2>/dev/null; then cat $(SANITIZED)/report.*; exit 1; fi; \
	exit $$status

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf core/build parts/*/build plugins/*/build conformance/build $(EXAMPLE)/build $(FOREIGN:=/build)
	find core parts plugins conformance examples benchmarks -name '*.egg-info' -prune -exec rm -rf {} +
	find core plugins conformance examples benchmarks -name __pycache__ -prune -exec rm -rf {} +
	find core plugins -name '*.so' -type f -exec rm -f {} +

# Each stamp depends on what decides its content, so a changed pyproject.toml or pin installs anew.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit("mortice needs Python 3.11 or newer; got " + sys.version.split()[0] + ". Say which: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.created $(PROJECTS) constraints.txt
	$(INSTALL) -c constraints.txt -e core -e plugins/cpu_numpy pillow tqdm matplotlib
	@$(PY) -c 'from mortice import fast; fast.serves() or print("SKIPPED core/accelerator: not built; Python serves alone")'
	@touch $@

# The C extension is installed as users get it, so a change of its sources builds it anew.
$(VENV)/.run: $(VENV)/.core $(CEXT_SOURCES)
	@include=$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("include"))'); \
	if echo '#include <Python.h>' | $(CXX) -std=c++20 -xc++ -I"$$include" -E - >/dev/null 2>&1; then \
	    echo '$(INSTALL) -c constraints.txt $(CEXT_OPTIONS) ./$(CEXT)'; \
	    $(INSTALL) -c constraints.txt $(CEXT_OPTIONS) ./$(CEXT) || \
	        echo "SKIPPED $(CEXT): it does not build here, as told above; every other backend works without"; \
	else \
	    echo "SKIPPED $(CEXT): no C++20 compiler ($(CXX)) or no Python headers; every other backend works without"; \
	fi
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(INSTALL) -c constraints.txt -e conformance pytest pytest-xdist mpmath $(NEIGHBOURS)
	@$(INSTALL) -c constraints.txt setuptools && $(INSTALL) -c constraints.txt --no-build-isolation visdom || \
	    echo "SKIPPED visdom: it does not install here; its tests say so"
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	$(INSTALL) -c constraints.txt ruff mypy import-linter
	@touch $@
