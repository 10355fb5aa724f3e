# SPDX-License-Identifier: MIT
"""rnncc inspect --explain: what runs how, what holds it and what to try, in a few lines, by a machine that the test gives."""
import json
import re

import numpy
import pytest

from support.model_builder import Model

SPEEDS = {"ghz": 1, "gflops": 100, "int8_gflops": 400, "l1_gbps": 400, "l2_gbps": 100, "l3_gbps": 50, "dram_gbps": 10,
          "barrier_ns": 100}


@pytest.fixture
def verdict(rnncc, tmp_path):
    """{word: what it says} of a model, on one thread of a machine of these speeds."""

    def told(model, *options, **speeds):
        machine = {"format": "rnncc-machine", "version": 1, "cpu": "of the test", "cores": 2, "l1": 1 << 15, "l2": 1 << 20,
                   "l3": 1 << 24, "targets": {target: SPEEDS | speeds for target in ("x86-64-v4", "x86-64-v3", "aarch64-linux-gnu")}}
        (tmp_path / "machine.json").write_text(json.dumps(machine))
        done = rnncc("inspect", model.write(tmp_path), "--explain", "--target=x86-64-v3", "--threads=1",
                     f"--machine={tmp_path / 'machine.json'}", *options)
        assert done.returncode == 0, done.stderr
        lines, words = done.stdout.splitlines(), {}
        for line in lines:
            word = line[:9].strip() or word
            words.setdefault(word, []).append(line[9:])
        assert list(words)[:3] == ["model", "on", "runs"] and len(lines) <= 10
        return words

    return told


def product(m, k, n):
    model = Model()
    weights = numpy.ones((k, n), numpy.float32)
    model.output(model.node("MatMul", [model.input("x", "f32", [m, k]), model.constant(weights)]))
    return model


def parts(words):
    """Microseconds, and the percentages of arithmetic, reading and waiting."""
    time, unit, *shares = re.match(r"about (\S+) (us|ms): (\d+)% .*? (\d+)% .*? (\d+)% waiting", words["takes"][0]).groups()
    return float(time) * (1000 if unit == "ms" else 1), [int(share) for share in shares]


def test_a_large_product_is_held_by_arithmetic(verdict):
    """2 * 512^3 operations at 100 GFLOP/s."""
    words = verdict(product(512, 512, 512))
    assert words["runs"] == ["1 MatMul"] and words["on"] == ["x86-64-v3, 1 thread"]
    assert parts(words) == (pytest.approx(2 * 512**3 / 100e3, rel=0.01), [100, 0, 0])
    assert words["most in"] == ["n0 100% (arithmetic)"]
    assert not any("--precision" in line for line in words["try"])


def test_one_row_is_held_by_reading_its_weights(verdict):
    """4 MB of weights, which L3 keeps, at 50 GB/s."""
    words = verdict(product(1, 1024, 1024))
    time, shares = parts(words)
    assert shares == [0, 100, 0] and time == pytest.approx(4 * 1024 * 1026 / 50e3, rel=0.05)
    assert "reading from the L3 cache" in words["takes"][0] and words["most in"] == ["n0 100% (reading)"]
    assert words["try"][0].startswith("--precision=bf16 or int8")


def test_weights_of_fewer_bits_are_not_to_be_tried_again(verdict):
    words = verdict(product(1, 1024, 1024), "--precision=bf16")
    assert not any("--precision" in line for line in words["try"])


@pytest.mark.parametrize("target, times", [("aarch64-linux-gnu+bf16", 4), ("x86-64-v4+bf16", 2), ("x86-64-v4+bf16+amx", 1024 / 100)])
def test_products_of_bf16_take_a_part_of_the_arithmetic(target, times, verdict):
    model, target = product(2048, 2048, 2048), f"--target={target}"
    wide, narrow = (parts(verdict(model, target, f"--precision={how}")) for how in ("f16", "bf16-dynamic"))
    assert wide[1] == narrow[1] == [100, 0, 0] and narrow[0] == pytest.approx(wide[0] / times, rel=0.02)


def test_a_float_that_is_three_numbers_of_bf16_takes_thrice_their_time(verdict):
    model, target = product(2048, 2048, 2048), "--target=x86-64-v4+bf16+amx"
    exact, rounded = (parts(verdict(model, target, f"--precision={how}")) for how in ("bf16", "bf16-dynamic"))
    assert exact[1] == rounded[1] == [100, 0, 0] and exact[0] == pytest.approx(3 * rounded[0], rel=0.02)


def test_int8_is_to_be_tried_where_the_machine_gains_by_it(verdict):
    model = product(512, 512, 512)
    quick = verdict(model, "--target=x86-64-v3+vnni")
    assert any("rnncc quantize" in line for line in quick["try"])
    assert not any("rnncc quantize" in line for line in verdict(model)["try"])  # without dot products


def test_convolutions_say_how_many_are_blocked_and_can_be_tuned(verdict):
    model = Model()
    x = model.input("x", "f32", [1, 16, 32, 32])
    model.output(model.node("Conv", [x, model.constant(numpy.ones((16, 16, 3, 3), numpy.float32))], pads=[1, 1, 1, 1]))
    words = verdict(model, "--layout-search=greedy")
    assert "1 Conv (1 on blocked channels)" in words["runs"][0]
    assert any("rnncc tune" in line for line in words["try"])


def test_a_kind_that_is_none_is_refused(rnncc, tmp_path):
    done = rnncc("inspect", product(1, 2, 3).write(tmp_path), "--explain=all")
    assert done.returncode == 2 and 'expected rnn, conv, layout or int8, found "all"' in done.stderr
