# SPDX-License-Identifier: MIT
"""A module for several targets: the best that the CPU can run is taken, or what $RNNCC_ISA says; each computes what a
module of that target alone does; weights that targets read in the same layout are there once."""
import os
import re
import subprocess
import sys

import numpy
import pytest
from onnx import helper

from conftest import ROOT
from support import machine
from support.emitted import run_module
from support.model_builder import Model
from support.module import Module, ModuleError
from support.onnx_files import F32, model_of, write
from support.small_networks import networks

TARGETS = ["x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"]
ISAS = [machine.OF_TARGET[target] for target in TARGETS]
ALL = "--target=" + ",".join(TARGETS)
DIGITS = ROOT / "models" / "digits_rnn.json"
PRODUCTS = 45  # of test_targets.py


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """(model, its file, feeds): a CNN, an LSTM and a GRU."""
    model, feeds = networks()
    return model, model.write(tmp_path_factory.mktemp("small")), feeds


def asked(monkeypatch, isa):
    if isa:
        monkeypatch.setenv("RNNCC_ISA", isa)
    else:
        monkeypatch.delenv("RNNCC_ISA", raising=False)


def isa_of(path):
    with Module(path) as module:
        return module.info.isa.decode()


def pieces(folder, unit):
    """The constants of a unit, as its table finds them in the file."""
    text, data = (folder / unit).read_text(), (folder / "weights.bin").read_bytes()

    def table(name):
        found = re.search(rf"{name}\[\] = {{([^}}]*)}}", text)
        return [int(word) for word in found[1].split(",")[:-1]] if found else None

    ends = table("weight_ends")
    return [data[begin:end] for begin, end in zip(table("weight_begins") or [0, *ends], ends)]


def emitted(rnncc, model, folder, *options):
    done = rnncc(model, "--emit=c", "-o", folder, *options)
    assert done.returncode == 0, done.stderr
    return folder


# ---- what is computed ----

@pytest.mark.every_case
@pytest.mark.parametrize("target", TARGETS)
def test_each_computes_what_it_does_alone(small, compile, reference, monkeypatch, target):
    model, path, feeds = small
    alone, together = compile(path, f"--target={target}", optimised=False), compile(path, ALL, optimised=False)
    asked(monkeypatch, machine.OF_TARGET[target])
    got = run_module(together, feeds)
    for name, want in run_module(alone, feeds).items():
        assert got[name].tobytes() == want.tobytes(), name
    for name, want in reference.run(model, path, feeds).items():
        numpy.testing.assert_allclose(got[name], want, rtol=0, atol=PRODUCTS * 2.0**-23, err_msg=name)


def probabilities(module, image, threads):
    context = module.context(threads)
    try:
        return context.run(image)["probabilities"]
    finally:
        context.close()


def test_streams_of_two_targets_run_side_by_side(compile, monkeypatch):
    """A table that was handed out stays what it is, whatever the next query gets."""
    path = compile(DIGITS, ALL, optimised=False)
    image = {"x": numpy.random.default_rng(3).random((2, 8, 8), dtype=numpy.float32)}
    asked(monkeypatch, "plain")
    with Module(path) as plain:
        before = probabilities(plain, image, 1)
        asked(monkeypatch, None)
        with Module(path) as best:
            assert best.info.isa.decode() == next(filter(machine.has_isa, ISAS)) and plain.info.isa == b"plain"
            numpy.testing.assert_allclose(probabilities(best, image, 2), before, atol=1e-5)
            assert probabilities(plain, image, 2).tobytes() == before.tobytes()


# ---- which is taken ----

@pytest.mark.every_case
@pytest.mark.parametrize("isa", [None, "", *ISAS, *TARGETS])
def test_the_best_or_what_is_asked_for(compile, monkeypatch, isa):
    path = compile(DIGITS, ALL, optimised=False)
    wanted = machine.OF_TARGET.get(isa, isa) or next(filter(machine.has_isa, ISAS))
    asked(monkeypatch, isa)
    if machine.has_isa(wanted):
        assert isa_of(path) == wanted
    else:
        with pytest.raises(ModuleError, match=f"this module needs {machine.ISAS[wanted][0]} "):
            isa_of(path)


def test_an_isa_that_the_module_has_not_is_an_error(compile, monkeypatch):
    path, alone = compile(DIGITS, "--target=x86-64-v3,x86-64", optimised=False), compile(DIGITS, "--target=x86-64", optimised=False)
    asked(monkeypatch, "neon")
    with pytest.raises(ModuleError, match="RNNCC_ISA: expected one of those that this module has: avx2 or x86-64-v3, plain or x86-64$"):
        isa_of(path)
    assert isa_of(alone) == "plain", "where there is no choice, none is made"


def cpu_bits():
    """(isa, word, bit) of each bit that an instruction set of cpu.def needs."""
    text = (ROOT / "runtime" / "cpu.def").read_text()
    return bits_of(re.findall(r'^X86_FEATURE\((\w+), "[^"]*", "[^"]*", \d+,\s*([^)]*)\)', text, re.MULTILINE))


def option_bits():
    """The same of what a target takes beside its instruction set."""
    text = (ROOT / "runtime" / "cpu.def").read_text()
    return bits_of(re.findall(r'^X86_OPTION\((\w+), "[^"]*", "[^"]*", "\w+", \w+,\s*([^)]*)\)', text, re.MULTILINE))


def product(folder):
    """Of bytes, of sizes that matrices in registers are for."""
    model = Model("product")
    weights = model.constant(numpy.arange(256 * 256).astype(numpy.int8).reshape(256, 256))
    model.output(model.node("MatMulInteger", [model.input("x", "u8", [32, 256]), weights]))
    return model.write(folder)


def bits_of(rows):
    found = []
    for name, numbers in rows:
        for word, number in zip(("BASIC", "EXTENDED", "SAVED", "MORE", "LAST", "OTHER"), numbers.split(",")):
            bits = [int(bit) for bit in re.findall(r"1u << (\d+)", number)]
            value = sum(1 << bit for bit in bits) if bits else int(number.strip(), 0)
            found += [(name.lower(), word, bit) for bit in range(32) if value >> bit & 1]
    return found


BITS = cpu_bits()
INJECTED = """basic &= ~lacks("BASIC");
  extended &= ~lacks("EXTENDED");
  more &= ~lacks("MORE");
  last &= ~lacks("LAST");
  other &= ~lacks("OTHER");
  uint32_t saved = saved_registers(basic) & ~lacks("SAVED"), features = 0;"""
LACKS = """#include <stdlib.h>
static uint32_t lacks(const char *word) {
  const char *bits = getenv(word);
  return bits ? (uint32_t)strtoul(bits, NULL, 0) : 0;
}

uint32_t cpu_features(void) {
  uint32_t eax"""


@pytest.fixture(scope="module")
def masked(rnncc, tmp_path_factory):
    """masked(target...) -> a module whose CPU lacks the bits of cpuid and XCR0 that are in $BASIC, $EXTENDED and $SAVED."""
    folder = tmp_path_factory.mktemp("masked")
    model = product(folder)
    (folder / "data").mkdir()
    data = machine.changed_data(folder / "data", "uint32_t saved = saved_registers(basic), features = 0;", INJECTED)
    cpu = data / "runtime" / "cpu.c"
    cpu.write_text(cpu.read_text().replace("uint32_t cpu_features(void) {\n  uint32_t eax", LACKS, 1))

    def module(*targets):
        path = folder / f"{'-'.join(targets)}.so"
        if not path.exists():
            done = rnncc(model, f"--target={','.join(targets)}", "-o", path, env={**os.environ, "RNNCC_DATA": str(data)})
            assert done.returncode == 0, done.stderr
        return path

    return module


def test_each_instruction_set_needs_some_bits():
    assert {isa for isa, *_ in BITS} == {"sse42", "avx2", "avx512"} and len(BITS) >= 25
    assert {bit for isa, word, bit in BITS if (isa, word) == ("avx512", "SAVED")} == {1, 2, 5, 6, 7}


@pytest.mark.parametrize("word, bit", sorted({(word, bit) for _, word, bit in BITS}), ids=str)
def test_without_any_bit_the_next_is_taken(masked, monkeypatch, word, bit):
    monkeypatch.setenv(word, hex(1 << bit))
    lost = max(ISAS.index(isa) for isa, *at in BITS if at == [word, bit])  # with it those that need it
    assert isa_of(masked(*TARGETS)) == next(isa for isa in ISAS[lost + 1:] if machine.ISAS[isa][1] <= machine.cpu_flags())
    if ISAS[lost] != "avx512":
        name = machine.ISAS[ISAS[lost]][0]
        with pytest.raises(ModuleError, match=rf"this module needs {name} \(.*\), which this CPU or its operating system lacks"):
            isa_of(masked("x86-64-v4", "x86-64-v3"))


# option: (its name and flags, the target that takes it, that has it, cpuinfo's flag)
WITH_OPTION = {"avx512vnni": ("AVX512-VNNI (avx512vnni)", "x86-64-v4", "x86-64-v4+vnni", "avx512_vnni"),
               "avx512bf16": ("AVX512-BF16 (avx512bf16)", "x86-64-v4", "x86-64-v4+bf16", "avx512_bf16"),
               "avxvnni": ("AVX-VNNI (avxvnni)", "x86-64-v3", "x86-64-v3+vnni", "avx_vnni"),
               "amx": ("AMX (amx-tile, amx-int8, amx-bf16)", "x86-64-v4", "x86-64-v4+amx", "amx_int8")}
OF_ITS_OWN = {("MORE", 11), ("LAST", 4), ("LAST", 5), ("SAVED", 17), ("SAVED", 18), ("OTHER", 22), ("OTHER", 24), ("OTHER", 25)}
OPTION_BITS = option_bits()


def test_each_option_needs_some_bits():
    assert {isa for isa, *_ in OPTION_BITS} == set(WITH_OPTION)
    assert ("avx512vnni", "MORE", 11) in OPTION_BITS and ("avxvnni", "LAST", 4) in OPTION_BITS
    assert OF_ITS_OWN <= {(word, bit) for _, word, bit in OPTION_BITS}


def target_of(path):
    with Module(path) as module:
        return module.info.target.decode()


@pytest.mark.parametrize("option, word, bit", [row for row in OPTION_BITS if row[1:] in OF_ITS_OWN], ids=str)
def test_without_its_bit_an_option_is_refused_and_the_row_taken(masked, monkeypatch, option, word, bit):
    name, row, target, flag = WITH_OPTION[option]
    machine.need_isa(machine.OF_TARGET[row])
    if flag not in machine.cpu_flags():
        pytest.skip(f"this CPU has no {name}")
    both, alone = masked(target, row), masked(target)
    assert target_of(both) == target_of(alone) == target
    asked(monkeypatch, row)
    assert target_of(both) == row
    asked(monkeypatch, machine.OF_TARGET[row])
    assert target_of(both) == target, "the best of that instruction set"
    monkeypatch.setenv(word, hex(1 << bit))
    assert target_of(both) == row
    why = re.escape(f"this module needs {name}, which this CPU or its operating system lacks")
    with pytest.raises(ModuleError, match=why):
        target_of(alone)
    asked(monkeypatch, target)
    with pytest.raises(ModuleError, match=why):
        target_of(both)


# ---- registers that the system gives on request ----

SMALL_SIGNAL_STACK = """
import ctypes, mmap, sys

class Stack(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

memory = mmap.mmap(-1, 4096 * 4)
stack = Stack(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 0, int(sys.argv[2]))
assert ctypes.CDLL(None, use_errno=True).sigaltstack(ctypes.byref(stack), None) == 0
from support.module import Module
with Module(sys.argv[1]) as module:
    print(module.info.target.decode())
    if len(sys.argv) > 3:
        import numpy
        with module.context() as context:
            context.run({"x": numpy.ones((32, 256), numpy.uint8)})
"""


def in_new_process(path, stack_bytes, *run):
    """What loads there: this one may have asked for AMX's registers, as ONNX Runtime does."""
    return subprocess.run([sys.executable, "-c", SMALL_SIGNAL_STACK, path, str(stack_bytes), *run], capture_output=True, text=True,
                          timeout=60, cwd=ROOT / "tests")


@pytest.fixture(scope="module")
def with_amx(compile, tmp_path_factory):
    """with_amx(target, ...) -> a module of a product."""
    machine.need_isa("amx")
    model = product(tmp_path_factory.mktemp("product"))
    return lambda *targets: compile(model, "--target=" + ",".join(targets), optimised=False)


def test_a_module_asks_the_system_for_the_registers_of_amx(with_amx):
    done = in_new_process(with_amx("x86-64-v4+amx"), 16384, "run")
    assert (done.returncode, done.stdout) == (0, "x86-64-v4+amx\n"), done.stderr


def test_where_the_system_refuses_them_the_next_target_is_taken(with_amx):
    """Linux does where a thread's alternate signal stack has no room for them."""
    done = in_new_process(with_amx("x86-64-v4+amx", "x86-64-v4"), 6144, "run")
    assert (done.returncode, done.stdout) == (0, "x86-64-v4\n"), done.stderr
    done = in_new_process(with_amx("x86-64-v4+amx"), 6144)
    assert "this module needs AMX (amx-tile, amx-int8, amx-bf16), which this CPU or its operating system lacks" in done.stderr


def test_a_module_without_such_kernels_does_not_ask(compile):
    machine.need_isa("amx")
    done = in_new_process(compile(DIGITS, "--target=x86-64-v4+amx", optimised=False), 6144)
    assert (done.returncode, done.stdout) == (0, "x86-64-v4+amx\n"), done.stderr


# ---- weights ----

def test_weights_of_one_layout_are_there_once(small, rnncc, tmp_path):
    alone = emitted(rnncc, small[1], tmp_path / "alone", "--target=x86-64-v2")
    together = emitted(rnncc, small[1], tmp_path / "together", "--target=x86-64-v2,x86-64")
    assert (together / "weights.bin").read_bytes() == (alone / "weights.bin").read_bytes()


def test_each_target_finds_its_constants(small, rnncc, tmp_path):
    together, sizes = emitted(rnncc, small[1], tmp_path / "c", ALL), []
    for target in TARGETS:
        alone = emitted(rnncc, small[1], tmp_path / target, f"--target={target}")
        assert pieces(together, f"network_{target.replace('-', '_')}.c") == pieces(alone, "network.c") != []
        sizes.append((alone / "weights.bin").stat().st_size)
    assert max(sizes) <= (together / "weights.bin").stat().st_size < sum(sizes[:3])


@pytest.mark.every_case
@pytest.mark.parametrize("target", TARGETS)
def test_info_tells_of_the_chosen_target(small, compile, monkeypatch, target):
    """Not of the whole file, which has those of others, too."""
    machine.need_isa(machine.OF_TARGET[target])
    asked(monkeypatch, target)
    with Module(compile(small[1], ALL, optimised=False)) as one, Module(compile(small[1], f"--target={target}", optimised=False)) as alone:
        assert one.info.weights_bytes == alone.info.weights_bytes > 0


LARGE = (2048, 2048)  # 16 MB: the memory of a small network is 10


def large_model(folder, kind):
    table = numpy.random.default_rng(1).uniform(-1, 1, LARGE).astype(numpy.float32)
    if kind == "onnx":
        return write(folder, model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (F32, [1, LARGE[0]])},
                                      {"y": (F32, [1, LARGE[1]])}, {"w": table}))
    model = Model()
    model.output(model.node("MatMul", [model.input("x", "f32", [1, LARGE[0]]), model.constant(table)]))
    return model.write(folder)


# Between us and the compiler: a process counts what its parent had in memory when it was made.
MEASURE = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)")


@pytest.mark.unsanitized
@pytest.mark.parametrize("kind", ["onnx", "json"])
def test_a_target_more_costs_the_compiler_its_packed_weights_only(rnncc, tmp_path, kind):
    """Not another copy of the model's, nor one of the file's."""
    path, most = large_model(tmp_path, kind), []
    for targets in ("x86-64-v3", "x86-64-v3,x86-64"):
        command = [rnncc.path, path, f"--target={targets}", "--emit=h", "-o", tmp_path / "m.h"]
        done = subprocess.run([sys.executable, "-S", "-c", MEASURE, *map(str, command)], capture_output=True, text=True, check=True)
        most.append(int(done.stdout))
    assert most[1] - most[0] < 1.5 * 4 * LARGE[0] * LARGE[1], most


# ---- as files ----

def test_the_order_of_the_list_does_not_matter(rnncc, tmp_path):
    modules = set()
    for i, order in enumerate((["x86-64-v3", "x86-64-v2", "x86-64"], ["x86-64", "x86-64-v3", "x86-64-v2"])):
        done = rnncc(DIGITS, f"--target={','.join(order)}", "-o", tmp_path / f"{i}.so")
        assert done.returncode == 0, done.stderr
        modules.add((tmp_path / f"{i}.so").read_bytes())
    assert len(modules) == 1


def said(done, word):
    return [line.split()[1] for line in done.stdout.splitlines() if line.startswith(word)]


def test_inspect_lists_all_and_the_chosen_one_first(compile, rnnrun, monkeypatch, tmp_path):
    path = compile(DIGITS, ALL, optimised=False)
    asked(monkeypatch, "x86-64-v2")
    loaded = rnnrun("inspect", path)
    assert loaded.returncode == 0, loaded.stderr
    assert said(loaded, "target") == ["x86-64-v2", "x86-64-v4", "x86-64-v3", "x86-64"]
    assert said(loaded, "isa") == ["sse42", "avx512", "avx2", "plain"]
    assert len(said(loaded, "memory")) == 1 and len(said(loaded, "build")) == 4
    assert len(said(loaded, "model")) == len(said(loaded, "weights")) == 1
    image = bytearray(path.read_bytes())
    image[18:20] = b"\x16\0"  # the machine's number: s390
    (tmp_path / "foreign.so").write_bytes(image)
    read = rnnrun("inspect", tmp_path / "foreign.so")
    assert read.stdout.startswith("machine  s390") and said(read, "target") == TARGETS and len(said(read, "model")) == 1


def test_inspect_lists_what_differs_among_targets(compile, rnnrun, tmp_path):
    """Five channels take a block of 16 floats, or of 8: the memory of a context is told of each."""
    model = Model()
    x, w = model.input("x", "f32", [1, 5, 9, 9]), model.constant(numpy.ones((5, 5, 3, 3), numpy.float32))
    model.output(model.node("Conv", [model.node("Conv", [x, w], pads=[1, 1, 1, 1]), w], pads=[1, 1, 1, 1]))
    memory = said(rnnrun("inspect", compile(model.write(tmp_path), ALL, optimised=False)), "memory")
    assert len(memory) >= 2 and len(set(memory)) == 2, memory


def test_the_compiler_inspects_each_in_turn(rnncc):
    for options, line in ((["--memory"], "arena "), (["--explain=rnn"], "layer")):
        done = rnncc("inspect", DIGITS, ALL, *options)
        assert done.returncode == 0, done.stderr
        titles = [text.strip("= ") for text in done.stdout.splitlines() if text.startswith("==== ")]
        assert titles == TARGETS and len(re.findall(line, done.stdout)) >= len(TARGETS), done.stdout
    done = rnncc(DIGITS, ALL, "--emit=h", "-o", "-", "--dump-after=plan_memory", "--time-passes", "-v")
    assert re.findall(r"^target (\S+)$", done.stderr, re.MULTILINE) == TARGETS
    for target in TARGETS:
        assert f"rnncc: lower for {target}\n" in done.stderr and f" ms  lower for {target}\n" in done.stderr
    assert done.stderr.count("join_weights") == 2


def test_the_header_has_room_for_each(rnncc):
    def context_bytes(targets):
        done = rnncc(DIGITS, f"--target={targets}", "--emit=h", "-o", "-")
        return int(re.search(r"CONTEXT_BYTES = (\d+)", done.stdout)[1])

    assert context_bytes(",".join(TARGETS)) == max(context_bytes(target) for target in TARGETS)


@pytest.mark.unsanitized
@pytest.mark.parametrize("tool, compiler", [pytest.param("make", "gcc", marks=pytest.mark.long), ("cmake", "clang-19")])
def test_emitted_c_builds_to_all(rnncc, compile, monkeypatch, tmp_path, tool, compiler):
    rng, model, targets = numpy.random.default_rng(5), Model(), "--target=x86-64-v3,x86-64"
    product = model.node("MatMul", [model.input("x", "f32", [3, 40]), model.constant(rng.random((40, 21), numpy.float32))])
    model.output(model.node("Tanh", [product]))
    path, feeds = model.write(tmp_path), {"x": rng.random((3, 40), numpy.float32) / 20}
    folder = emitted(rnncc, path, tmp_path / "c", targets, "--name=both")
    commands = {"make": [["make", "-s", "-j2", f"CC={compiler} -Wall -Wextra -Werror", "module.so", "libboth.a"]],
                "cmake": [["cmake", "-B", ".", f"-DCMAKE_C_COMPILER={compiler}"], ["cmake", "--build", ".", "--parallel", "2"]]}
    for command in commands[tool]:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    names = subprocess.run(["nm", "-g", "--defined-only", folder / "libboth.a"], capture_output=True, text=True, check=True).stdout
    assert {word.split("_")[0] for word in re.findall(r" [A-Z] (\w+)$", names, re.MULTILINE)} == {"both"}
    for isa in filter(machine.has_isa, ("avx2", "plain")):
        asked(monkeypatch, isa)
        expected, got = run_module(compile(path, targets, optimised=True), feeds), run_module(folder / "module.so", feeds)
        for name, array in expected.items():
            numpy.testing.assert_allclose(got[name], array, rtol=0, atol=2**-23 if compiler == "gcc" else 0, err_msg=name)


# ---- other machines ----

@pytest.mark.every_case
@pytest.mark.parametrize("cpu, target", [("Haswell", "x86-64-v3"), ("Haswell,-fma", "x86-64-v2"), ("Nehalem", "x86-64-v2"),
                                         ("Nehalem,-popcnt", "x86-64"), ("core2duo", "x86-64")])
def test_an_emulated_cpu_takes_what_it_has(compile, rnnrun, monkeypatch, tmp_path, cpu, target):
    """No instruction is run that it lacks, and the result is that of this target here."""
    machine.need_program("qemu-x86_64")
    machine.need_isa(machine.OF_TARGET[target])
    path = compile(DIGITS, ALL, optimised=False)
    outputs = []
    for prefix, isa in ((["qemu-x86_64", "-cpu", cpu], None), ([], target)):
        asked(monkeypatch, isa)
        for verb in (["inspect", path], ["run", path, "--input", "x=random"]):
            done = subprocess.run([*prefix, rnnrun.path, *verb], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            outputs.append(done.stdout)
    assert outputs[:2] == outputs[2:] and f"target   {target}\n" in outputs[0].split("\n\n")[0]


@pytest.mark.parametrize("cpu, target", [("cortex-a53", "aarch64-linux-gnu"), ("cortex-a76", "aarch64-linux-gnu+dotprod")])
def test_features_of_aarch64_are_targets(compile, rnnrun_of, cpu, target):
    path = compile(DIGITS, "--target=aarch64-linux-gnu,aarch64-linux-gnu+dotprod", optimised=False)
    done = rnnrun_of("aarch64-linux-gnu", cpu)("inspect", path)
    assert done.returncode == 0 and said(done, "target")[0] == target, done.stderr
    assert sorted(said(done, "target")) == ["aarch64-linux-gnu", "aarch64-linux-gnu+dotprod"]


# ---- what goes together ----

@pytest.mark.parametrize("words, message", [
    (["--target=x86-64,x86-64-v3,x86-64"], "--target: expected each target once, found x86-64 twice"),
    (["--target=x86-64,aarch64-linux-gnu"],
     "--target: expected targets of one architecture and libc, found x86-64 (x86_64-linux-gnu) and aarch64-linux-gnu (aarch64-linux-gnu)"),
    (["--target=x86-64,"], 'with commas between, found "x86-64,"'),
    (["--target=x86-64-v3,avx2"], 'with commas between, found "x86-64-v3,avx2"'),
    (["--target=x86-64,x86-64-v3", "--static", "--profile=edge"], "--profile=edge: expected one target, found 2"),
    (["--target=x86-64,x86-64-v3", "--emit=dot"], "--emit=dot: expected one target, found 2"),
    (["inspect", "--target=x86-64,x86-64-v3", "--memory=plan.svg"], "--memory=FILE: expected one target, found 2"),
    (["tune", "--target=x86-64,x86-64-v3"], "tune: expected one target, found 2")], ids=lambda words: words[-1])
def test_what_makes_no_sense_is_told(rnncc, tmp_path, words, message):
    done = rnncc(*words[:-1], words[-1], DIGITS, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_native_may_be_one_of_them(rnncc, tmp_path):
    least = next(target for target in reversed(TARGETS) if target != machine.WIDEST)
    done = rnncc(DIGITS, f"--target={least},native", "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
    assert isa_of(tmp_path / "m.so") == machine.OF_TARGET[machine.WIDEST]
