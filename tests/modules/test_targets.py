# SPDX-License-Identifier: MIT
"""Small networks of every target that `rnncc targets` lists, and of some that it does not, equal the reference, on this CPU or under qemu-user."""
import os

import numpy
import pytest

from support.amount import some
from support.emitted import run_module, run_by
from support.machine import OF_TARGET, WITHOUT, cpu_flags
from support.model_builder import Model
from support.small_networks import networks
from support.targets import FOREIGN

WITH_FEATURES = ["aarch64-linux-gnu+dotprod+fp16+bf16+i8mm", "x86-64-v4+vnni", "x86-64-v4+vnni+bf16+amx", "x86-64-v3+vnni"]
WITH_MUSL = ["x86_64-linux-musl", "aarch64-linux-musl"]  # the others have the same C: test_musl.py
PORTABLE = some(["arm-linux-gnueabihf", "powerpc64le-linux-gnu", "i686-linux-gnu"], 2)  # no rows: plain C
PRODUCTS = 45  # that are summed up at most, each of numbers below 1


def test_each_target_is_tested(rnncc):
    rows = [line.split() for line in rnncc("targets").stdout.split("\n\n")[0].splitlines()[1:]]
    assert {target: isa for target, isa, *_ in rows} == OF_TARGET
    assert {name for name in FOREIGN if "musl" in name} == {musl for _, _, _, _, musl, *_ in rows if musl != "-"}


@pytest.mark.every_case
@pytest.mark.optimised
@pytest.mark.parametrize("target", [*OF_TARGET, *WITH_FEATURES, *WITH_MUSL, *PORTABLE])
def test_a_cnn_an_lstm_and_a_gru_equal_the_reference(target, request, compile, reference, tmp_path):
    model, feeds = networks()
    path = model.write(tmp_path)
    module = compile(path, f"--target={target}")
    if target in FOREIGN:
        got = run_by(request.getfixturevalue("rnnrun_of")(target), module, feeds, model.outputs, tmp_path)
    else:
        got = run_module(module, feeds)
    for name, want in reference.run(model, path, feeds).items():
        numpy.testing.assert_allclose(got[name], want, rtol=0, atol=PRODUCTS * 2.0**-23, err_msg=name)


def small(tmp_path):
    model = Model("small")
    model.output(model.node("Relu", [model.input("x", "f32", [1])]))
    return model.write(tmp_path)


@pytest.mark.every_case
@pytest.mark.parametrize("target, cpu, lacks", [
    ("aarch64-linux-gnu+dotprod", "cortex-a53", "dot products (dotprod)"),
    ("aarch64-linux-gnu+fp16", "cortex-a53", "arithmetic in f16 (fp16)"),
    ("aarch64-linux-gnu+dotprod+fp16", "cortex-a76", None),
    ("aarch64-linux-gnu+dotprod+bf16", "cortex-a76", "bf16 (bf16)"),
    ("aarch64-linux-gnu+i8mm", "cortex-a76", "matrix products of i8 (i8mm)"),
    ("aarch64-linux-gnu+i8mm+bf16", "max", None),
    ("aarch64-linux-gnu+sve256", "cortex-a76", "SVE of 256 bits (sve)"),
    ("aarch64-linux-gnu+sve256", "max,sve-max-vq=1", "SVE of 256 bits (sve)"),
    ("aarch64-linux-gnu+sve256", "max,sve-max-vq=4", "SVE of 256 bits (sve)"),
    ("aarch64-linux-gnu+sve512", "max,sve-max-vq=2", "SVE of 512 bits (sve)"),
    ("aarch64-linux-gnu+sve256+bf16", "max,sve-max-vq=2", None),
    ("riscv64-linux-gnu+rvv128", "rv64", "RVV 1.0 of 128 bits (v)"),
    ("riscv64-linux-gnu+rvv128", "rv64,v=true,vext_spec=v1.0,vlen=256", "RVV 1.0 of 128 bits (v)"),
    ("riscv64-linux-gnu+rvv256", "rv64,v=true,vext_spec=v1.0,vlen=128", "RVV 1.0 of 256 bits (v)"),
])
def test_a_cpu_that_lacks_a_feature_is_told(target, cpu, lacks, compile, rnnrun_of, tmp_path):
    rnnrun = rnnrun_of(target.partition("+")[0], cpu)
    done = rnnrun("run", compile(small(tmp_path), f"--target={target}"), "--input", "x=random")
    if lacks:
        why = f"this module needs {lacks}, which this CPU or its operating system lacks"
        assert done.returncode == 5 and why in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_features_are_recorded_in_one_order(compile, rnnrun_of, tmp_path):
    module = compile(small(tmp_path), "--target=aarch64-linux-gnu+i8mm+dotprod+i8mm")
    said = rnnrun_of("aarch64-linux-gnu", "max")("inspect", module).stdout
    assert "aarch64-linux-gnu+dotprod+i8mm" in said and "aarch64-linux-gnu+i8mm" not in said


@pytest.mark.parametrize("target", ["aarch64-linux-gnu+", "aarch64-linux-gnu+dotprod+", "aarch64-linux-gnu+avx2",
                                    "x86_64-linux-musl+", "x86_64-linux-musl+dotprod", "x86-64-v4+dotprod", "x86-64-v2+vnni", "x86-64+vnni", "x86-64-v4+vnni+",
                                    "riscv64-linux-gnu+rvv128+fp16", "+dotprod", "native+dotprod", "aarch64-linux-gnu++dotprod"])
def test_a_feature_that_a_target_does_not_take_is_an_error(target, rnncc, tmp_path):
    done = rnncc(small(tmp_path), f"--target={target}", "-o", tmp_path / "m.so")
    assert done.returncode == 2 and " features" in done.stderr and f'found "{target}"' in done.stderr, done.stderr


def test_features_go_with_musl(compile, rnnrun_of, tmp_path):
    module = compile(small(tmp_path), "--target=aarch64-linux-musl+i8mm+dotprod")
    said = rnnrun_of("aarch64-linux-musl", "max")("inspect", module).stdout
    assert "aarch64-linux-musl+dotprod+i8mm" in said, said


@pytest.mark.parametrize("target, argument", [("x86-64-v4+vnni", "-mavx512vnni"), ("x86-64-v4+bf16", "-mavx512bf16"),
                                              ("x86-64-v4+amx", "-mamx-tile -mamx-int8 -mamx-bf16"), ("x86-64-v3+vnni", "-mavxvnni"), ("x86-64-v3-linux-musl+vnni", "-mavxvnni")])
def test_features_of_x86_reach_clang(target, argument, rnncc, tmp_path):
    done = rnncc(small(tmp_path), f"--target={target}", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    flags = (tmp_path / "c" / "Makefile").read_text()
    assert flags.count(argument) == 1, "kernels only, not the runtime"


@pytest.mark.parametrize("without", ["", "avx512", "avx2"])
def test_native_has_the_features_of_the_cpu(without, rnncc):
    """A CPU that counts as a lesser one has none."""
    rows = rnncc("targets", env={**os.environ, "RNNCC_CPU_WITHOUT": without}).stdout.split("\n\n")[0].splitlines()[1:]
    native = next(row.split() for row in rows if "native" in row.split() or "native:" in row.split())
    flags = {"avx512": {"+vnni": "avx512_vnni", "+bf16": "avx512_bf16", "+amx": "amx_int8"},
             "avx2": {"+vnni": "avx_vnni"}}.get(native[1], {})
    without = without or WITHOUT
    found = "" if without else "".join(feature for feature, flag in flags.items() if flag in cpu_flags())
    assert native[1] != without and native[-1] == (found or "native"), native


def test_features_reach_clang(rnncc, tmp_path):
    done = rnncc(small(tmp_path), "--target=aarch64-linux-gnu+fp16+dotprod", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    flags = (tmp_path / "c" / "Makefile").read_text()
    assert " -march=armv8.2-a+dotprod+fp16 " in flags and flags.count("dotprod") == 1, "kernels only, not the runtime"
