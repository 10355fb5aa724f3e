# SPDX-License-Identifier: MIT
"""Whatever --conv forces, convolutions of whole numbers equal the reference to the bit, at any number of threads."""
import subprocess
from ctypes import POINTER, byref, c_size_t

import numpy
import pytest

from conftest import build_directory
from support.convolutional import random_convolution
from support.emitted import assert_same, run_module
from support.merge import merged
from support.module import Module, ProfileEntry
from support.reference import Reference

FORMS = ["plain", "direct", "direct,oc=1,px=28", "direct,oc=3,px=2,unroll=1", "direct,oc=4,px=5,pass=1,tiles=3",
         "direct,oc=2,px=1,pass=2,groups=1,tiles=2,unroll=16", "direct,oc=9999,px=9999,unroll=9999,pass=9999",
         "depthwise,px=3", "depthwise,px=9999", "plain,k=3,w=2", "plain,k=0,w=9999"]


@pytest.mark.parametrize("form", FORMS)
def test_forced_convolutions_equal_the_reference(compile, tmp_path, form):
    rng = numpy.random.default_rng(FORMS.index(form))
    model, feeds = merged([random_convolution(rng) for _ in range(12)])
    path = model.write(tmp_path)
    expected = Reference(build_directory() / "tests" / "support" / "reference_run").run(model, path, feeds)
    assert_same(run_module(compile(path, f"--conv={form}", "--no-winograd"), feeds), expected)


def test_plain_leaves_no_tensor_blocked(compile, tmp_path):
    model, feeds = merged([random_convolution(numpy.random.default_rng(1)) for _ in range(12)])
    path = model.write(tmp_path)
    with Module(compile(path, "--conv=plain")) as module, module.context() as context:
        entries, count = POINTER(ProfileEntry)(), c_size_t()
        context.check(context.api.profile(context.handle, 1, byref(entries), byref(count)))
        kernels = " ".join(entry.kernel.decode() for entry in entries[:count.value])
    assert "conv_plain" in kernels and "_blocked" not in kernels
    assert not any(f"conv_{name}" in kernels for name in ("direct", "winograd", "depthwise"))


@pytest.mark.parametrize("form", ["", "straight", "direct,", "direct,oc", "direct,oc=", "direct,oc=two", "direct,ox=2",
                                  "direct,oc=2,,px=3", "direct oc=2", "direct,oc=123456789", "direct,oc=2,oc=2",
                                  "winograd,px=2", "depthwise,oc=1", "plain,tiles=1"])
def test_a_form_that_says_nothing_known_is_refused(form):
    done = subprocess.run([build_directory() / "compiler" / "rnncc", "m.json", f"--conv={form}"], capture_output=True,
                          text=True)
    assert done.returncode == 2 and "--conv" in done.stderr
