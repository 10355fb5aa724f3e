# SPDX-License-Identifier: MIT
"""Modules in Python's threads and processes: each use is right or an exception, whoever closes, forks or ends first."""
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import weakref
from types import SimpleNamespace

import numpy
import pytest

from conftest import ROOT, build_directory
from support.module import PACKAGE, rnncc
from support.trained_lines import line_to_learn

FAKE = build_directory() / "tests" / "modules" / "fake_module.so"
DIGITS = ROOT / "models" / "digits_rnn.json"
X = numpy.random.default_rng(3).random((4, 8, 8), numpy.float32)


@pytest.fixture(scope="module")
def digits(compile):
    return compile(DIGITS)


@pytest.fixture
def two(digits):
    """With a worker that shares each run."""
    with rnncc.load(digits, threads=2, share_all=True) as module:
        yield module


def expected(module):
    return module.context()(X)


# ---- threads ----

HANGS = """
import os, sys, threading, time
os.environ["FAKE_MODULE_RUN"] = "hang"
sys.path.insert(0, %r)
import numpy, rnncc
module = rnncc.load(%r)
feeds = numpy.zeros((1, 3), numpy.float32), numpy.array([1, 2])
module.default
thread = threading.Thread(target=lambda: module(*feeds), daemon=True)
thread.start()
while not module.default._lock.locked():
    time.sleep(0.001)

def told(use):
    try:
        print(use())
    except rnncc.Error as error:
        print(type(error).__name__, error)

%s
"""


def while_it_hangs(script):
    """What a script prints while another thread is inside a run that never ends, and how it ends."""
    done = subprocess.run([sys.executable, "-c", HANGS % (str(PACKAGE), str(FAKE), script)], capture_output=True, text=True,
                          timeout=60)
    return done.stdout.splitlines(), done.returncode, done.stderr


def test_a_context_in_use_is_neither_run_nor_closed_and_the_interpreter_ends():
    """That anything is printed shows that the run has let the GIL go."""
    said, status, errors = while_it_hangs("""
told(lambda: module(*feeds))
told(lambda: module.default.state("s"))
told(lambda: module.default.close())
told(lambda: module.close())
""")
    assert (status, errors) == (0, "") and len(said) == 4
    assert all("BusyError the context is in use by another thread" in line for line in said[:3])
    assert said[3].startswith("BusyError") and said[3].endswith("the module runs in another thread")


def test_a_fork_while_another_thread_runs_has_contexts_of_its_own():
    said, status, errors = while_it_hangs("""
del os.environ["FAKE_MODULE_RUN"]
if os.fork() == 0:
    told(lambda: module(*feeds))
    told(lambda: module.context()(*feeds)[1])
    sys.exit()
print(os.waitpid(-1, 0)[1])
""")
    assert (status, errors, said[-1]) == (0, "", "0")
    assert "or was when this process was forked" in said[0] and said[1] == "[2 3]"


def test_threads_with_a_context_each_run_at_once(two):
    due, wrong = expected(two), []

    def work():
        with two.context() as context:
            wrong.extend(run for run in range(200) if not numpy.array_equal(context(X), due))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_that_share_a_context_get_the_right_result_or_are_told(two):
    due, results = expected(two), []

    def work():
        for _ in range(200):
            try:
                results.append(numpy.array_equal(two(X), due))
            except rnncc.BusyError:
                results.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 800 and all(results)


def test_inputs_that_a_way_back_reads_are_not_released(compile, tmp_path):
    with rnncc.load(compile(line_to_learn().write(tmp_path), "--train"), threads=1) as module, module.trainer() as trainer:
        x = numpy.ones(8, numpy.float32)
        trainer(x, x.copy())
        table, there, seen = trainer._training, weakref.ref(x), []
        del x

        def release():
            with pytest.raises(rnncc.BusyError):
                trainer.release_inputs()
            seen.append(there())

        def backward(handle):
            thread = threading.Thread(target=release)
            thread.start()
            thread.join()
            return table.backward(handle)

        trainer._training = SimpleNamespace(backward=backward)
        trainer.backward()
        assert seen and seen.pop() is not None
        trainer.release_inputs()
        assert there() is None


# ---- closing ----

@pytest.mark.parametrize("use", [lambda it: it(X), lambda it: it.context(), lambda it: it.run({"x": X}),
                                 lambda it: it.threads, lambda it: it.network("digits_rnn")],
                         ids=["call", "context", "run", "threads", "network"])
@pytest.mark.parametrize("used", [True, False])
def test_what_is_closed_says_so(digits, use, used):
    module = rnncc.load(digits, threads=1)
    if used:
        module(X)
    module.close()
    module.close()
    with pytest.raises(rnncc.ClosedError, match="closed"):
        use(module)
    assert module.name == "digits_rnn" and "closed" in repr(module)


def test_a_closed_context_says_so(two):
    context = two.context()
    context.close()
    context.close()
    for use in (lambda: context(X), context.reset, context.warmup, lambda: context.state("h")):
        with pytest.raises(rnncc.ClosedError):
            use()


def test_a_trainer_that_is_closed_holds_no_inputs(compile, tmp_path):
    with rnncc.load(compile(line_to_learn().write(tmp_path), "--train"), threads=1) as module:
        trainer, x = module.trainer(), numpy.ones(8, numpy.float32)
        trainer(x, numpy.ones(8, numpy.float32))
        trainer.close()
        gone = weakref.ref(x)
        del x
        assert gone() is None
        with pytest.raises(rnncc.ClosedError):
            trainer.release_inputs()


def test_contexts_outlive_the_module_object(digits):
    module = rnncc.load(digits, threads=2, share_all=True)
    context, due = module.context(), expected(module)
    module.close()
    del module
    gc.collect()
    assert numpy.array_equal(context(X), due)


@pytest.mark.parametrize("used", [True, False])
def test_what_nobody_uses_is_given_back_even_in_a_circle(digits, tmp_path, used):
    """Python ends the objects of a circle in any order: a model must not outlive its file."""
    path = tmp_path / "copy.so"
    path.write_bytes(digits.read_bytes())
    mapped = lambda: str(path) in open("/proc/self/maps").read()
    module = rnncc.load(path, threads=2)
    result = module(X) if used else None
    module.circle = [module, module.context()] if used else [module]
    gone = weakref.ref(module)
    assert mapped()
    del module
    gc.collect()
    assert gone() is None and not mapped() and (result is None or result.shape == (4, 10))


# ---- processes ----

def test_a_forked_child_runs_what_its_parent_loaded(two):
    due = two(X)
    child = os.fork()
    if child == 0:
        os._exit(0 if numpy.array_equal(two(X), due) and numpy.array_equal(two.context()(X), due) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert numpy.array_equal(two(X), due)


def run_in_child(module, x):
    return module(x)


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_modules_go_to_processes_of_multiprocessing(two, how):
    with multiprocessing.get_context(how).Pool(2) as pool:
        for found in pool.starmap(run_in_child, [(two, X)] * 4):
            assert numpy.array_equal(found, two(X))


def test_threads_and_forks_at_once_end_well(two):
    """Children are forked while other threads run: each child has contexts of its own, and ends."""
    due, stop, wrong = expected(two), threading.Event(), []

    def work():
        with two.context() as context:
            while not stop.is_set():
                wrong.extend([] if numpy.array_equal(context(X), due) else [1])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    statuses = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            os._exit(0 if numpy.array_equal(two.context()(X), due) else 1)
        statuses.append(os.waitpid(child, 0)[1])
    stop.set()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 8 and wrong == []


def test_what_is_pickled_is_the_same_network_with_the_same_options(digits):
    with rnncc.load(digits, "digits_rnn", threads=1) as module:
        again = pickle.loads(pickle.dumps(module))
        assert again.path == module.path and again.threads == 1 and numpy.array_equal(again(X), module(X))
        with pytest.raises(TypeError, match="a context cannot be pickled"):
            pickle.dumps(module.default)


def test_the_interpreter_ends_with_models_alive(digits):
    script = f"""
import sys
sys.path.insert(0, {str(PACKAGE)!r})
import numpy, rnncc
module = rnncc.load({str(digits)!r}, threads=2, share_all=True)
context = module.context()
context(numpy.zeros((1, 8, 8), numpy.float32))
class Last:
    def __del__(self):
        module(numpy.zeros((1, 8, 8), numpy.float32))
        print("ran")
sys.last = last = Last()
last.itself = last
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
