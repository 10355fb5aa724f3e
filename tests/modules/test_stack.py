# SPDX-License-Identifier: MIT
"""What rnncc.h says of the caller's stack: 64 KiB above a call is room for any run; kernels keep their data in the arena."""
import signal
import subprocess

import numpy
import pytest

from conftest import ROOT
from support.hard_networks import control, convolutional, recurrent
from support.model_builder import Model

SAID = 64 << 10
SHIPPED = sorted(path for path in (ROOT / "models").glob("*.json") if path.name != "schema.json")


@pytest.fixture(scope="module")
def stack_need(tmp_path_factory):
    program = tmp_path_factory.mktemp("stack") / "stack_need"
    subprocess.run(["clang-19", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread",
                    f"-I{ROOT / 'runtime'}", ROOT / "tests" / "modules" / "stack_need.c", "-ldl", "-o", program], check=True)
    return program


def small():
    """A convolution before a GRU that runs both ways."""
    model, draw = Model("small"), numpy.random.default_rng(1).standard_normal
    kernel, w, r, b = (model.constant(draw(shape).astype(numpy.float32) / 8)
                                for shape in ((32, 24, 3), (2, 96, 32), (2, 96, 32), (2, 192)))
    y = model.node("Conv", [model.input("x", "f32", [2, 24, 30]), kernel], pads=[1, 1])
    y = model.node("GRU", [model.node("Transpose", [y], perm=[2, 0, 1]), w, r, b], hidden_size=32,
                   direction="bidirectional")
    model.output(y)
    return model


def needs(program, *modules, room=SAID):
    done = subprocess.run([program, str(room), *modules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.split()[1]: int(line.split()[0]) for line in done.stdout.splitlines()}


def models(target, folder):
    """Recurrent layers, convolutions, If and Loop; on this CPU what is shipped, hyphenate among them."""
    for make in small, lambda: recurrent()[0], lambda: convolutional()[0], lambda: control()[0]:
        yield make().write(folder)
    yield from SHIPPED if target == "native" else []


@pytest.mark.parametrize("target", ["native", "x86-64"])
@pytest.mark.unsanitized
def test_a_run_needs_less_of_its_callers_stack_than_is_said(target, stack_need, compile, tmp_path):
    """And runs on a stack that has no more."""
    for model in models(target, tmp_path):
        for network, bytes_used in needs(stack_need, compile(model, f"--target={target}", optimised=True)).items():
            assert 0 < bytes_used < SAID / 2, (network, target, bytes_used)


@pytest.mark.unsanitized
def test_a_smaller_stack_ends_at_its_guard(stack_need, compile, tmp_path):
    """So the test above would see it."""
    module = compile(small().write(tmp_path), optimised=True)
    (need,) = needs(stack_need, module).values()
    done = subprocess.run([stack_need, str(need // 2), module], capture_output=True, check=False)
    assert done.returncode == -signal.SIGSEGV
