# SPDX-License-Identifier: MIT
"""Weights of --weights=mutable are set while runs go on, by any thread and in forks; memory stays."""
import ctypes
import os
import resource
import signal
import subprocess
import threading

import numpy
import pytest

from conftest import ROOT
from support.model_builder import Model
from support.module import rnncc as package
from support.watched import made
from rnncc import abi

MUTABLE = "--weights=mutable"


def product(tmp_path, depth=64, columns=96):
    """y = x W + b."""
    model = Model()
    x = model.input("x", "f32", [4, depth])
    ones = numpy.ones((depth, columns), numpy.float32)
    model.output(model.node("Add", [model.node("MatMul", [x, model.constant(ones, "W")]), model.constant(ones[0], "b")]))
    return model.write(tmp_path)


@pytest.mark.unsanitized
@pytest.mark.parametrize("sanitizer", ["thread", "address"])
def test_runs_and_setters_at_once(rnncc, tmp_path, sanitizer):
    """Every run has one set of weights, whole; the module's own C is built with the sanitizer, too."""
    done = rnncc(product(tmp_path), MUTABLE, "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    flags = f"-fsanitize={sanitizer} -shared-libsan"
    module = made(tmp_path / "c", f"clang-19 {flags}")
    subprocess.run(["clang++-19", "-std=c++17", "-O1", "-g", *flags.split(), f"-I{ROOT}/runtime",
                    f"-I{ROOT}/runtime/bindings/cpp", "-pthread", ROOT / "tests" / "bindings" / "weights.cc", "-ldl",
                    "-o", tmp_path / "weights"], check=True)
    name = f"libclang_rt.{sanitizer[0]}san-x86_64.so"
    library = subprocess.run(["clang-19", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    done = subprocess.run([tmp_path / "weights", module, "300"], capture_output=True, text=True,
                          check=False, env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(library), "ASAN_OPTIONS": "detect_leaks=0"})
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_memory_stays_over_ten_thousand_sets(compile, tmp_path):
    ones = numpy.ones((64, 96), numpy.float32)
    with package.load(compile(product(tmp_path), MUTABLE), threads=1) as ours:
        context, x = ours.context(), numpy.ones((4, 64), numpy.float32)
        for n in range(10_000):
            if n == 100:
                before = resident()
            ours.weights["W"] = ones
            if n % 100 == 0:
                context.run({"x": x})
        assert resident() - before < 10 * ones.nbytes


@pytest.mark.unsanitized
def test_a_call_begins_with_the_memory_that_runs_have_left(compile, tmp_path):
    """A run keeps its weights while new ones are set. The next call, after the run, has the old ones' memory."""
    body_type, during = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int), []
    new = numpy.ones((1024, 1024), numpy.float32)
    with package.load(compile(product(tmp_path, 1024, 1024), MUTABLE), threads=1) as ours:
        api, model, context = ours._open().api, ctypes.c_void_p(), ctypes.c_void_p()
        weight = abi.Weight(struct_size=ctypes.sizeof(abi.Weight), dtype=1, name=b"W", data=new.ctypes.data, bytes=new.nbytes)
        set_new = lambda: api.weights_set(model, ctypes.byref(weight), 1, None, 0)

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        def in_turn(_, n, body, arg):
            if context and not during:
                during.append(set_new())
            for index in range(n):
                body_type(body)(arg, index)

        options = abi.Options(struct_size=ctypes.sizeof(abi.Options), threads=2, by_steps=1, share_all=1,
                              parallel_for=ctypes.cast(in_turn, ctypes.c_void_p).value)
        assert api.model_create(ctypes.byref(options), ctypes.byref(model), None) == 0
        assert api.context_create(model, None, 0, ctypes.byref(context), None) == 0
        x, y = numpy.ones((4, 1024), numpy.float32), numpy.zeros((4, 1024), numpy.float32)
        tensors = [abi.Tensor(struct_size=ctypes.sizeof(abi.Tensor), dtype=1, data=it.ctypes.data, bytes=it.nbytes, rank=2,
                              shape=(ctypes.c_int64 * abi.MAX_RANK)(4, 1024)) for it in (x, y)]
        assert api.run(context, ctypes.byref(tensors[0]), 1, ctypes.byref(tensors[1]), 1) == 0 and during == [0]
        before, size = resource.getrlimit(resource.RLIMIT_AS), int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (size * os.sysconf("SC_PAGESIZE") + new.nbytes // 2, before[1]))
        status = set_new()
        resource.setrlimit(resource.RLIMIT_AS, before)
        assert status == 0
        api.context_destroy(context)
        api.model_destroy(model)


def test_a_fork_sets_its_own(compile, tmp_path):
    with package.load(compile(product(tmp_path), MUTABLE), threads=2) as ours:
        child = os.fork()
        if not child:
            ours.weights["b"] = numpy.full(96, 5, numpy.float32)
            y = ours(numpy.ones((4, 64), numpy.float32))
            os._exit(0 if (y == 69).all() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert (ours(numpy.ones((4, 64), numpy.float32)) == 65).all()


def set_and_run(loaded, failed):
    """Weights of one number, and contexts of its own. The weights are large, so that most of the time is that of packing."""
    x = numpy.ones((4, 512), numpy.float32)
    for n in range(20):
        loaded.weights.update({"W": numpy.full((512, 512), n, numpy.float32), "b": numpy.full(512, n, numpy.float32)})
        y = loaded.context()(x)
        if y[0, 0] % 513 or (y != y[0, 0]).any():
            failed.append(y)


def in_threads(count, function, *arguments):
    threads = [threading.Thread(target=function, args=arguments) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_threads_of_a_fork_that_came_while_weights_were_set(compile, tmp_path):
    with package.load(compile(product(tmp_path, 512, 512), MUTABLE), threads=1) as ours:
        setting, failed, new = True, [], numpy.ones((512, 512), numpy.float32)

        def set_all():
            while setting:
                ours.weights["W"] = new

        setter, = in_threads(1, set_all)
        ends = []
        for _ in range(10):
            child = os.fork()
            if not child:
                signal.alarm(60)
                for thread in in_threads(3, set_and_run, ours, failed):
                    thread.join()
                os._exit(len(failed) > 0)
            ends.append(os.waitpid(child, 0)[1])
        setting = False
        setter.join()
        assert ends == [0] * 10


def test_a_context_is_made_again_in_the_same_memory(compile, tmp_path):
    """The list of contexts stays one, so that setting ends, and has them all."""
    with package.load(compile(product(tmp_path), MUTABLE), threads=1) as ours:
        model, x = ours._open(), numpy.ones((4, 64), numpy.float32)
        size, context = model.api.context_size(model.handle), ctypes.c_void_p()
        memory = ctypes.create_string_buffer(size + 64)
        at = ctypes.addressof(memory) + 63 & ~63
        for n in range(3):
            assert model.api.context_create(model.handle, ctypes.c_void_p(at), size, ctypes.byref(context), None) == 0
            ours.context()(x)
            other = ours.context()
            ours.weights["b"] = numpy.full(96, n, numpy.float32)
            assert (other(x) == 64 + n).all()
        model.api.context_destroy(context)


def test_a_run_that_waits_keeps_nobody_from_setting(compile, tmp_path):
    """From another thread, while this one runs again and again."""
    with package.load(compile(product(tmp_path), MUTABLE), threads=1) as ours:
        def set_all():
            for n in range(200):
                ours.weights.update({"W": numpy.full((64, 96), n, numpy.float32), "b": numpy.full(96, n, numpy.float32)})

        setter, seen, x = threading.Thread(target=set_all), set(), numpy.ones((4, 64), numpy.float32)
        setter.start()
        while setter.is_alive():
            seen |= set((ours(x) / 65).ravel().tolist())
        setter.join()
        assert seen <= set(map(float, range(200)))
        assert (ours(x) == 199 * 65).all()
