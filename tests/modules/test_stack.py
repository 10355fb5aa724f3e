# SPDX-License-Identifier: MIT
"""What a module says of the stack that its calls take is enough, and not much more than they do take. It is below the 64 KiB
that rnncc.h gives for any: kernels keep their data in the arena."""
import re
import signal
import subprocess

import numpy
import pytest

from conftest import ROOT, SHIPPED
from support import targets
from support.hard_networks import control, convolutional, recurrent
from support.model_builder import Model

pytestmark = pytest.mark.optimised  # frames of what clang does not optimise are many times as large
MOST = 64 << 10
# Beyond twice of what is measured: libc's functions and those that wake workers, which these runs do not come to; what
# workers count from is above the function that paints their stack.
SLACK = 8 << 10
CLANG = ["clang-19", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{ROOT / 'runtime'}",
         ROOT / "tests" / "modules" / "stack_need.c"]


@pytest.fixture(scope="module")
def stack_need(tmp_path_factory):
    program = tmp_path_factory.mktemp("stack") / "stack_need"
    subprocess.run([*CLANG, "-ldl", "-o", program], check=True)
    return [program]


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


def needs(program, *modules, room=0):
    """network -> [(bytes that were taken, bytes that the module says)] of a run, of all calls, of a worker."""
    done = subprocess.run([*program, str(room), *modules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [line.split() for line in done.stdout.splitlines()]
    return {name: list(zip(map(int, numbers[::2]), map(int, numbers[1::2]))) for *numbers, name in told}


def hold(told, network):
    for (taken, said), what in zip(told, ("run", "calls", "worker")):
        assert 0 < taken <= said <= 2 * taken + SLACK and said < MOST, (network, what, taken, said)


def models(target, folder):
    """Recurrent layers, convolutions, If and Loop; on this CPU what is shipped, hyphenate among them."""
    for make in small, lambda: recurrent()[0], lambda: convolutional()[0], lambda: control()[0]:
        yield make().write(folder)
    yield from SHIPPED if target == "native" else []


@pytest.mark.parametrize("target", ["native", pytest.param("x86-64", marks=pytest.mark.long)])
@pytest.mark.unsanitized
def test_calls_need_what_the_module_says_of_their_stacks(target, stack_need, compile, tmp_path):
    """And run on stacks that have no more."""
    for model in models(target, tmp_path):
        for network, told in needs(stack_need, compile(model, f"--target={target}")).items():
            hold(told, (network, target))


@pytest.mark.every_case
@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "aarch64-linux-gnu+sve512", "riscv64-linux-gnu", "i686-linux-gnu"])
def test_of_other_architectures(target, compile, tmp_path):
    """Those whose vectors are of a size that only the CPU knows have a part of the stack that clang does not count."""
    triple, emulator = targets.need_foreign(target)
    program = tmp_path / "stack_need"
    before, after = targets.program_flags(triple)
    subprocess.run([*CLANG, *before, "-ldl", *after, "-o", program], check=True)
    (told,) = needs([*emulator, program], compile(small().write(tmp_path), f"--target={target}")).values()
    hold(told, target)


def test_where_clang_hides_a_part_of_frames_it_is_not_known(compile, tmp_path):
    """RISC-V's vectors: it is 0, and calls run on stacks of what rnncc.h gives for any."""
    target = "riscv64-linux-gnu+rvv256"
    triple, emulator = targets.need_foreign(target)
    program = tmp_path / "stack_need"
    before, after = targets.program_flags(triple)
    subprocess.run([*CLANG, *before, "-ldl", *after, "-o", program], check=True)
    module = compile(small().write(tmp_path), f"--target={target}")
    (told,) = needs([*emulator, program], module, room=MOST).values()
    assert [said for _, said in told] == [0, 0, 0] and all(0 < taken < MOST for taken, _ in told), told


@pytest.mark.unsanitized
def test_a_module_that_trains_and_one_whose_weights_change(stack_need, compile, tmp_path):
    """Gradients, steps and derived weights are computed by functions of other units and tables, which are called."""
    for option in "--train", "--weights=mutable":
        model = small()
        if option == "--train":
            model.outputs.clear()
            model.output(model.node("ReduceMean", [model.nodes[-1]["outputs"][0]], keepdims=0))
        module = compile(model.write(tmp_path), option)
        for network, told in needs(stack_need, module).items():
            assert all(0 < taken <= said < MOST for taken, said in told), (network, option, told)


@pytest.mark.unsanitized
def test_a_smaller_stack_ends_at_its_guard(stack_need, compile, tmp_path):
    """So the tests above would see it."""
    module = compile(small().write(tmp_path))
    ((taken, _), *_), = needs(stack_need, module).values()
    done = subprocess.run([*stack_need, str(taken // 2), module], capture_output=True, check=False)
    assert done.returncode == -signal.SIGSEGV


STATIC = """#include <stdio.h>
#include "rnncc.h"
const rnncc_api *small_module_query(uint32_t abi, const char **why);
int main(void) { return !printf("%zu", small_module_query(RNNCC_ABI, NULL)->info->run_stack_bytes); }
"""


@pytest.mark.unsanitized
def test_a_static_library_says_it_too(rnncc, tmp_path):
    assert rnncc(small().write(tmp_path), "--static", "-o", tmp_path / "libsmall.a").returncode == 0
    (tmp_path / "main.c").write_text(STATIC)
    subprocess.run([*CLANG[:-1], tmp_path / "main.c", tmp_path / "libsmall.a", "-o", tmp_path / "main"], check=True)
    said = subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout
    assert 0 < int(said) < MOST


def test_sources_do_not_know(rnncc, tmp_path):
    """Another compiler makes other frames."""
    assert rnncc(small().write(tmp_path), "--emit=c", "-o", tmp_path / "c").returncode == 0
    assert "stack_bytes" not in (tmp_path / "c" / "network.c").read_text()
    assert "stack-size" not in (tmp_path / "c" / "Makefile").read_text()


def test_calls_through_pointers_stand_in_functions_of_their_own():
    """compiler/link/stack_need.c finds them by these functions' names."""
    others = sorted(set((ROOT / "runtime").rglob("*.[ch]")) - {ROOT / "runtime" / "indirect.h"})
    for source in others:
        if "bindings" in source.parts or source.name in ("rnncc.h", "rnncc_loader.h"):
            continue
        text = re.sub(r"/\*.*?\*/|\"[^\"\n]*\"", "", source.read_text(), flags=re.DOTALL)
        text = re.sub(r"#define.*", "", text)
        assert not re.findall(r"(?:->|[\w\])]\.)\w+\(|\)\)?\(\w+,", text), source
        declared = re.findall(r"\b(?:PoolBody|rnncc_pool_body) \*(\w+)|\brnncc_parallel_for (\w+)|\(\*(\w+)\)\(", text)
        pointers = {name for names in declared for name in names if name}
        assert not pointers & set(re.findall(r"\b(\w+)\(", text)), source
