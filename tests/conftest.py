# SPDX-License-Identifier: MIT
"""What the Python tests share: the programs under test, and a cache of compiled modules.

The build directory is $RNNCC_BUILD, else build/. Modules are compiled once a session and model, by whichever worker
asks first.
"""
import collections
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = sorted(path for path in (ROOT / "models").glob("*.json") if path.name != "schema.json")
QUICK_SHARE = 8
OPTIMISED_SHARE = 8
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "runtime" / "bindings" / "python")]
from support import about_operator, amount, guarded, machine, sweeps  # noqa: E402
from support.clang import BUILD, WITHOUT_PASSES, cached_clang, prune  # noqa: E402
from support.forks import run_rnncc  # noqa: E402
from support.targets import FOREIGN, need_foreign, program_flags  # noqa: E402


def build_directory():
    return BUILD


def sanitized():
    """Whether the programs under test are built with sanitizers."""
    return "asan" in build_directory().name


def program(*prefix):
    """A function that runs the program with arguments and returns its CompletedProcess, never raising for its status."""

    def run(*arguments, timeout=120, text=True, **options):
        command = [str(part) for part in (*prefix, *arguments)]
        timeout *= 5 if "RNNCC_PROFILES" in os.environ else 1  # programs with counters, not optimised
        return subprocess.run(command, capture_output=True, text=text, timeout=timeout, **options)

    run.path = prefix[-1]
    run.prefix = prefix
    return run


def pytest_configure(config):
    """Workers inherit this."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell leaves what it starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "optimised: clang optimises what the test compiles")
    config.addinivalue_line("markers", "optimised_here: clang optimises the test's first case, in place of the first of its file")
    config.addinivalue_line("markers", "unsanitized: left out of builds with sanitizers, which would see nothing more")
    config.addinivalue_line("markers", "long: of long tests; by default other cases show nearly the same")
    config.addinivalue_line("markers", "every_case: of a table, whose cases are a property each; see support/sweeps.py")
    if config.getoption("--long"):
        os.environ["RNNCC_LONG_TESTS"] = "1"
    if config.getoption("--quick"):
        os.environ["RNNCC_QUICK_TESTS"] = "1"
    for name, value in cached_clang().items():
        os.environ.setdefault(name, value)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        prune(Path(os.environ["RNNCC_CLANG_CACHE"]))
    guarded.allocate_noise()
    os.environ["XDG_CACHE_HOME"] = "/dev/null"  # plans must not depend on what was measured on this machine
    if machine.WITHOUT and "RNNCC_DATA" not in os.environ:
        os.environ.update(machine.PEERS[machine.WITHOUT])
        config.lesser_data = machine.lesser_data(Path(tempfile.mkdtemp(prefix="rnncc-data-")), machine.WITHOUT)
        os.environ["RNNCC_DATA"] = str(config.lesser_data)


@pytest.fixture(autouse=True)
def optimise_case(request, monkeypatch):
    """What clang makes of the C takes most of the time of a test, and few are about it. So clang optimises the first case
    of each file that takes `compile`, or of its test that is marked `optimised_here`, whose modules are small; what is
    marked `optimised`; in long tests every eighth case of a file, too, and of quick tests only what is marked. How clang
    does without: support/clang.py. What fixtures of a wider scope compile is optimised."""
    marked = request.node.get_closest_marker("optimised")
    if not (marked or request.node.nodeid in request.session.config.optimised_cases):
        monkeypatch.setenv("RNNCC_CLANG_WITHOUT_PASSES", WITHOUT_PASSES)


def pytest_unconfigure(config):
    shutil.rmtree(getattr(config, "lesser_data", "/nonexistent"), ignore_errors=True)


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="all cases of every sweep, and all networks in their own "
                     "size: an hour")
    parser.addoption("--op", metavar="NAME", help="cases about one operator, see support/about_operator.py")
    parser.addoption("--quick", action="store_true", help="of each file every eighth case, of style all")


def left_out(item, place):
    """Whether the case, the place-th of its file, does not run. What is marked `long` runs in long tests alone. --quick: the first of a file and every eighth after it do,
    and all about style. $RNNCC_SANITIZED_TOO says that bad input is tested by two builds: half of the cases, by their names, by the
    one with sanitizers, the others by the one without, as what sanitizers see nothing more of. By their places, one of two
    models or options would be with one build alone."""
    if item.get_closest_marker("long") and not amount.long_tests():
        return True
    unsanitized = item.get_closest_marker("unsanitized")
    if sanitized() and unsanitized:
        return True
    if amount.quick_tests():
        return item.path.parent.name != "style" and place % QUICK_SHARE
    twice = item.path.parent.name == "robustness" and item.path.name != "test_setup.py" and not unsanitized
    return os.environ.get("RNNCC_SANITIZED_TOO") and twice and zlib.crc32(item.nodeid.encode()) % 2 == sanitized()


def to_optimise(items):
    """A case of each file that takes `compile`: the first, or the first that is marked `optimised_here`."""
    chosen = {}
    for item in items:
        here = bool(item.get_closest_marker("optimised_here"))
        if "compile" in item.fixturenames and here > chosen.get(item.path, (None, -1))[1]:
            chosen[item.path] = (item.nodeid, here)
    return {nodeid for nodeid, _ in chosen.values()}


def pytest_collection_modifyitems(config, items):
    """Leaves cases out, and finds those that optimise_case() optimises."""
    files, kept, left = collections.Counter(), [], []
    if op := config.getoption("--op"):
        wanted = set(about_operator.about([(item.path, item.nodeid) for item in items], op))
        left = [item for item in items if (item.path, item.nodeid) not in wanted]
        items[:] = [item for item in items if (item.path, item.nodeid) in wanted]
    else:
        unswept = sweeps.left_out(items, config.args)
        left = [item for item in items if item.nodeid in unswept]
        items[:] = [item for item in items if item.nodeid not in unswept]
    config.optimised_cases = set()
    for item in items:
        if amount.long_tests() and files[item.path] % OPTIMISED_SHARE == 0:
            config.optimised_cases.add(item.nodeid)
        (left if left_out(item, files[item.path]) else kept).append(item)
        files[item.path] += 1
    if not amount.quick_tests():
        config.optimised_cases |= to_optimise(kept)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


@pytest.fixture(autouse=True)
def clang_itself(request, monkeypatch):
    """How rnncc and its tools fail is tested with the tools as they are."""
    if request.path.name in ("test_faults.py", "test_setup.py", "test_toolchain.py"):
        monkeypatch.delenv("RNNCC_CLANG", raising=False)


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def rnncc():
    """It checks the graph's invariants after every pass, where there is a graph."""
    path = build_directory() / "compiler" / "rnncc"
    checked, plain = program(path, "--verify-each"), program(path)

    def run(*arguments, **options):
        return (plain if arguments[:1] in (("schedules",), ("targets",)) else checked)(*arguments, **options)

    run.path, run.prefix = path, checked.prefix
    return run


@pytest.fixture(scope="session")
def rnnrun():
    return program(build_directory() / "tools" / "rnnrun")


@pytest.fixture(scope="session")
def module_cache(tmp_path_factory):
    """A directory that all workers of this session share."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    cache = base / "modules"
    cache.mkdir(exist_ok=True)
    return cache


@pytest.fixture(scope="session")
def compile(rnncc, module_cache):
    """compile(model, *options) -> path of the .so. A model file names its weights' sha256, so its content is the key.
    A module is made to be run: the test is skipped where this CPU cannot run the target that the options ask for.
    optimised: whether clang optimises the C, for a sweep that says which of its cases are; in long tests it does of every
    eighth model, too, in quick tests only for RVV, where qemu ends at code that is not. None: as optimise_case() says."""

    def compiled(model, *options, optimised=None):
        for option in options:
            machine.need_target(option)
        if optimised is None:
            optimised = "RNNCC_CLANG_WITHOUT_PASSES" not in os.environ
        elif amount.quick_tests() and not any("+rvv" in str(option) for option in options):
            optimised = False
        elif amount.long_tests():
            optimised = optimised or amount.one_of(OPTIMISED_SHARE, Path(model).read_bytes())
        environment = {**os.environ, "RNNCC_CLANG_WITHOUT_PASSES": "" if optimised else WITHOUT_PASSES}
        key = hashlib.sha256(Path(model).read_bytes() + repr((options, optimised)).encode()).hexdigest()[:24]
        output = module_cache / f"{key}.so"
        with open(module_cache / f"{key}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not output.exists():
                done = run_rnncc(build_directory(), [*rnncc.prefix, model, "-o", output, *options], environment)
                assert done.returncode == 0, f"rnncc {model} {options}: exit {done.returncode}\n{done.stderr}"
        return output

    return compiled


@pytest.fixture(scope="session")
def rnnrun_of(module_cache):
    """rnnrun_of(target, cpu of qemu's): rnnrun built for another architecture, under qemu-user, or another libc."""

    def built(triple):
        path = module_cache / f"rnnrun-{triple}"
        with open(module_cache / f"rnnrun-{triple}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                tools = ROOT / "tools"
                sources = sorted(path for room in ("command", "rnnrun", "speed") for path in (tools / room).glob("*.c"))
                before, after = program_flags(triple)
                subprocess.run(["clang-19", "-std=gnu11", "-O1", "-D_GNU_SOURCE", f"-I{ROOT}/runtime", f"-I{tools}/command",
                                f"-I{tools}/speed", f"-I{build_directory()}/tools/report", "-o", path, *before, *sources, ROOT / "runtime" / "cpu.c", *after], check=True)
        return path

    def emulated(target, cpu=None):
        triple, command = need_foreign(target, cpu)
        return program(*command, built(triple))

    return emulated


@pytest.fixture(scope="session")
def aarch64_rnnrun(rnnrun_of):
    return rnnrun_of("aarch64-linux-gnu")


@pytest.fixture(scope="session")
def reference():
    """The reference interpreter."""
    from support.reference import Reference  # not every venv has what it needs
    return Reference(build_directory() / "tests" / "support" / "reference_run")


@pytest.fixture
def run_for(request, compile, tmp_path):
    """run_for(target, model file, feeds, names of outputs, options) -> name -> array: of the module for that target, here or
    under qemu."""
    from support.emitted import run_module, run_by

    def run(target, model, feeds, outputs, *options):
        # qemu-riscv64 ends with an assertion of its own in large kernels that are not optimised.
        module = compile(model, f"--target={target}", *options, optimised=True if "+rvv" in target else None)
        if target in FOREIGN:
            return run_by(request.getfixturevalue("rnnrun_of")(target), module, feeds, outputs, tmp_path)
        return run_module(module, feeds)

    return run


@pytest.fixture(params=["x86-64-v4", "x86-64-v3", "x86-64", "aarch64-linux-gnu"])
def run_on_target(request, run_for):
    """run_on_target(model file, feeds, names of outputs) -> name -> array: of the module for each target in turn."""
    return lambda model, feeds, outputs: run_for(request.param, model, feeds, outputs)
