# SPDX-License-Identifier: MIT
"""Every variant of a recurrent layer gives the right values, and the same bits on any number of threads. The kernels of
every variant are tested alone, optimised, by kernels/test_recurrent_kernels.py."""
import numpy as np
import pytest

from support.amount import long_tests
from support.recurrent import MAX_T, model_of, random_configuration
from support.recurrent_groups import GROUP, check_values, group_outputs, groups_of

# What --rnn forces -> numbers of samples, in turns. They are fixed at compile time, so that kernels have one or two
# heights of blocks; hide needs one sample.
VARIANTS = {
    "workers=1": (1, 6, 3),
    "workers=2": (1, 5, 2),
    "workers=2,hide=1": (1,),
    "workers=3,batch_parts=2": (6, 3, 4),
    "workers=1024,batch_parts=3": (3, 5, 6),
    "workers=4,depth_block=16": (2, 6, 4),
    "batch_parts=2,depth_block=7": (6, 2, 5),
    "chunk=3": (1, 4, 2),
    "chunk=6,workers=2,hide=1": (1,),
    "chunk=1,workers=3,batch_parts=2": (6, 3),
    "input=step": (1, 4, 6),
    "input=step,workers=2,hide=1": (1,),
    "input=step,workers=4,batch_parts=2,depth_block=32": (6, 3, 2),
}
LAYERS_EACH = {"native": 3 * GROUP, "x86-64-v3": 2 * GROUP} if long_tests() else {"native": 2, "x86-64-v3": 2}
OPTIMISED = "workers=2,hide=1"
assert OPTIMISED in VARIANTS
FIRST_SEED = 10000
THREADS = (1, 2, 3, 5)


def cases():
    seed = FIRST_SEED
    for target, layers in LAYERS_EACH.items():
        for place, (variant, batches) in enumerate(VARIANTS.items()):
            configurations = [random_configuration(seed + i) for i in range(layers)]
            seed += layers
            if target != "native" and place % 4 and not long_tests():
                continue
            for index, group in enumerate(groups_of(configurations)):
                for configuration in group:
                    yield pytest.param(target, variant, batches[index % len(batches)], configuration, group,
                                       id=f"{target}-{variant}-{configuration.seed}-{configuration.name}")


@pytest.mark.every_case
@pytest.mark.parametrize("target, variant, B, configuration, group", list(cases()))
def test_variants_compute_the_same(target, variant, B, configuration, group, compile, tmp_path):
    path = compile(model_of(group, B=B).write(tmp_path), f"--target={target}", f"--rnn={variant}",
                   optimised=variant == OPTIMISED and target == "native")
    shapes = [(1, B), (MAX_T, B)]
    check_values(configuration, shapes, lambda T, B: configuration.own(group_outputs(path, group, T, B, 2)))
    one, *others = [configuration.own(group_outputs(path, group, *shapes[-1], threads)) for threads in THREADS]
    for name in one:
        for other in others:
            assert np.array_equal(one[name].view(np.uint32), other[name].view(np.uint32)), name
