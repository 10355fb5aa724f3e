# SPDX-License-Identifier: MIT
"""The networks run blocked from end to end: `rnncc inspect` shows which data is moved rather than computed. And the search
for layouts: the results of each way to search, and that all compute the same."""
import json
import re

import numpy
import pytest
from support.amount import some
from support.convolutional import RandomNetwork, signs, whole
from support.emitted import assert_same, run_module
from support.model_builder import Model
from support.some_networks import NETWORKS, SOME_NETWORKS

# Transforms of each network. SqueezeNet's pooled vector needs one: 1000 channels are not a multiple of a vector.
TRANSFORMS = {"resnet50": 1, "densenet121": 1, "inception_v3": 1, "mobilenet_v2": 1, "squeezenet": 2}


def passed(rnncc, path, *options):
    """The nodes after transforms were inserted, and the list of kernels."""
    done = rnncc("inspect", path, "--target=x86-64-v4", "--dump-after=insert_layout_transforms", *options)
    assert done.returncode == 0, done.stderr
    nodes = [line.split(" = ")[1] for line in done.stderr.splitlines() if line.startswith("n") and " = " in line]
    return nodes, done.stdout


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_network_is_transformed_at_its_ends_and_concatenates_without_copies(rnncc, tmp_path, name):
    path = NETWORKS[name](size=139 if name == "inception_v3" else 64).write(tmp_path)
    nodes, kernels = passed(rnncc, path)
    transforms = [position for position, node in enumerate(nodes) if node.startswith("LayoutTransform(")]
    assert len(transforms) == TRANSFORMS[name] and transforms[0] == 0
    assert not [line for line in kernels.splitlines() if " Concat " in line]


def test_predictions_of_a_detector_are_transposed_from_their_blocks(rnncc, tmp_path):
    """The image is transformed. Reading the heads' results channel by channel needs no other transform, because every
    convolution runs blocked."""
    nodes, _ = passed(rnncc, NETWORKS["ssd_resnet50"](size=64).write(tmp_path), "--layout-search=greedy")
    assert len([node for node in nodes if node.startswith("LayoutTransform(")]) == 1
    assert len([node for node in nodes if node.startswith("Transpose(")]) == 13


# ---- the search ----

SEARCHES = ["none", "greedy", "dp", "pbqp", "auto"]
SMALL = {**dict.fromkeys(NETWORKS, {"size": 64, "width": 0.25}), "inception_v3": {"size": 107, "width": 0.25}}


def totals(rnncc, path, *options):
    """{search: (total, is it exact)} from --explain=layout; a search that gave up is left out."""
    done = rnncc("inspect", path, "--explain=layout", *options)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(greedy|dp|pbqp) +([\d.]+) +[\d.]+  (.*)$", done.stdout, re.MULTILINE)
    return {name: (float(total), remark.startswith("exact")) for name, total, remark in rows}


def check_totals(found):
    """With the printed precision, a tenth of a microsecond."""
    assert found["dp"][1] and found["dp"][0] <= found["greedy"][0] + 0.05
    assert found["dp"][0] - 0.05 <= found["pbqp"][0] <= 1.02 * found["dp"][0] + 0.05


@pytest.mark.parametrize("name", SOME_NETWORKS)
def test_the_exact_search_is_never_above_the_greedy_one_nor_far_below_the_heuristic(name, rnncc, tmp_path):
    path = NETWORKS[name](**SMALL[name]).write(tmp_path)
    for target in ("x86-64-v4", "x86-64-v3", "aarch64-linux-gnu"):
        check_totals(totals(rnncc, path, f"--target={target}"))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("seed", some(range(4), 2))
def test_random_networks_compute_the_same_by_every_search(reference, compile, tmp_path, search, seed):
    network = RandomNetwork(numpy.random.default_rng([seed, 20])).grow(8)
    model, feeds = network.finish(), network.feeds(2)
    path = model.write(tmp_path)
    module = compile(path, f"--layout-search={search}", "--no-winograd", optimised=seed == 0 and search == SEARCHES[-1])
    assert_same(run_module(module, feeds, (1, 2)), reference.run(model, path, feeds))


@pytest.mark.parametrize("seed", some(range(40), 10))
def test_searches_of_random_networks_are_never_above_the_greedy_one(rnncc, tmp_path, seed):
    network = RandomNetwork(numpy.random.default_rng([seed, 21])).grow(12)
    check_totals(totals(rnncc, network.finish().write(tmp_path)))


def filters(channels=2, size=256):
    """A filter of few channels between ops that need row-major tensors: blocked, most lanes would be idle."""
    rng, model = numpy.random.default_rng(3), Model()
    x = model.input("x", "f32", [1, channels, size, size])
    before = model.node("Transpose", [x], perm=[0, 1, 3, 2])
    filtered = model.node("Conv", [before, model.constant(signs(rng, channels, channels, 3, 3))], pads=[1] * 4)
    model.output(model.node("Transpose", [filtered], perm=[0, 1, 3, 2]))
    return model, {"x": whole(rng, 1, channels, size, size)}


def transforms(rnncc, path, *options):
    done = rnncc("inspect", path, *options, "--dump-after=insert_layout_transforms")
    return done.stderr.count("= LayoutTransform(")


def test_a_filter_of_few_channels_stays_plain_where_layouts_are_searched(rnncc, reference, compile, tmp_path):
    model, feeds = filters()
    path = model.write(tmp_path)
    assert transforms(rnncc, path, "--layout-search=greedy") == 2 and transforms(rnncc, path) == 0
    assert_same(run_module(compile(path), feeds), reference.run(model, path, feeds))


def test_without_a_search_every_convolution_transforms_what_it_reads_and_writes(rnncc, tmp_path):
    rng, model = numpy.random.default_rng(4), Model()
    x = model.input("x", "f32", [1, 16, 8, 8])
    for _ in range(3):
        x = model.node("Relu", [model.node("Conv", [x, model.constant(signs(rng, 16, 16, 3, 3))], pads=[1] * 4)])
    model.output(x)
    path = model.write(tmp_path)
    assert transforms(rnncc, path, "--layout-search=none") == 6
    assert transforms(rnncc, path, "--layout-search=greedy") == 2


@pytest.mark.parametrize("given", ["", "best", "dp,pbqp"])
def test_an_unknown_search_is_refused(rnncc, tmp_path, given):
    done = rnncc("inspect", filters()[0].write(tmp_path), f"--layout-search={given}")
    assert done.returncode == 2 and "greedy" in done.stderr


def test_a_recorded_time_counts_and_scales_what_is_not_recorded(rnncc, tmp_path):
    """It is the cost of its own layout; estimates of other layouts keep their ratios to it."""
    rng, model = numpy.random.default_rng(5), Model()
    x = model.input("x", "f32", [1, 16, 24, 24])
    model.output(model.node("Conv", [x, model.constant(signs(rng, 16, 16, 3, 3))], pads=[1] * 4))
    path, records = model.write(tmp_path), tmp_path / "records.jsonl"
    done = rnncc("tune", path, "-o", records, "--trials=1", "--budget=99999", "--layout-search=greedy")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    best = [line for line in lines if line.get("status", "best") == "best"]
    launch = 0.5

    def costs(given):
        shown = rnncc("inspect", path, "--explain=layout", f"--schedules={given}").stdout
        row = next(line for line in shown.splitlines() if " Conv " in line).split()
        return float(row[3]) - launch, float(row[5]) - launch

    plain, blocked = costs(records)
    estimated_plain, estimated_blocked = costs("none")
    assert blocked == pytest.approx(best[-1]["median_us"], abs=0.06)
    assert plain / blocked == pytest.approx(estimated_plain / estimated_blocked, rel=0.1)
