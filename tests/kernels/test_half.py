# SPDX-License-Identifier: MIT
"""Conversions of f16 are IEEE 754's on every instruction set: for all f16 numbers, for all ties between them and the
numbers next to those, and for random f32 and f64 numbers of every magnitude, in loops that the compiler vectorises."""
import numpy
import pytest

from support.kernel_builder import ISAS, build, run

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "half.h"

#define CONVERT(name, From, To, function)                                  \\
  static void name(const From *restrict x, To *restrict y, long n) {       \\
    for (long i = 0; i < n; i++) y[i] = function(x[i]);                    \\
  }
CONVERT(widen, uint16_t, float, f16_to_f32)
CONVERT(narrow, float, uint16_t, f32_to_f16)
CONVERT(narrow_twice, double, uint16_t, f64_to_f16)

int main(int argc, char **argv) {
  char kind = argc > 1 ? argv[1][0] : 0;
  size_t in = kind == 'h' ? 2 : kind == 'f' ? 4 : 8, out = kind == 'h' ? 4 : 2;
  FILE *from = fopen(argv[2], "rb"), *to = fopen(argv[3], "wb");
  fseek(from, 0, SEEK_END);
  size_t n = (size_t)ftell(from) / in;
  rewind(from);
  void *x = malloc(n * in), *y = malloc(n * out);
  if (fread(x, in, n, from) != n) return 1;
  if (kind == 'h') widen(x, y, (long)n);
  if (kind == 'f') narrow(x, y, (long)n);
  if (kind == 'd') narrow_twice(x, y, (long)n);
  return fwrite(y, out, n, to) != n || fclose(to);
}
"""


@pytest.fixture(scope="module", params=ISAS)
def convert(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    program = build(folder, request.param, {"half.c": PROGRAM}, optimised=True)

    def converted(kind, array, dtype):
        array.tofile(folder / "in")
        done = run(program, request.param, kind, folder / "in", folder / "out")
        assert done.returncode == 0, done.stderr
        return numpy.fromfile(folder / "out", dtype)

    return converted


def assert_same_numbers(got, want):
    same = (got == want) & (numpy.signbit(got) == numpy.signbit(want)) | numpy.isnan(got) & numpy.isnan(want)
    assert same.all(), f"{got[~same][:5]} for {want[~same][:5]}"


def test_every_f16_number_widens_exactly(convert):
    halves = numpy.arange(65536, dtype=numpy.uint16)
    assert_same_numbers(convert("h", halves, numpy.float32), halves.view(numpy.float16).astype(numpy.float32))


def ties(dtype):
    """The middles between neighbours, of which infinity is one, and the numbers on both sides of each."""
    positive = numpy.arange(0x7c00, dtype=numpy.uint16).view(numpy.float16).astype(numpy.float64)
    middle = numpy.append((positive[1:] + positive[:-1]) / 2, 65520.0).astype(dtype)
    around = [middle, numpy.nextafter(middle, dtype(0)), numpy.nextafter(middle, dtype(numpy.inf))]
    return numpy.concatenate(around + [-part for part in around])


@pytest.mark.parametrize("kind, dtype, bits", [("f", numpy.float32, numpy.uint32), ("d", numpy.float64, numpy.uint64)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_are_rounded_once_halves_to_even(convert, kind, dtype, bits):
    rng = numpy.random.default_rng(3)
    anything = rng.integers(0, numpy.iinfo(bits).max, 100000, bits, endpoint=True).view(dtype)
    near = (rng.uniform(-1, 1, 100000) * 2.0 ** rng.integers(-30, 18, 100000)).astype(dtype)
    special = numpy.array([0, -0.0, numpy.inf, -numpy.inf, numpy.nan], dtype)
    x = numpy.concatenate([ties(dtype), anything, near, special])
    assert_same_numbers(convert(kind, x, numpy.float16), x.astype(numpy.float16))
