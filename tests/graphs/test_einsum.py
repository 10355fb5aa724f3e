# SPDX-License-Identifier: MIT
"""Einsum, which becomes transpositions and matrix products, equals numpy's on integers. (ONNX Runtime's crashes on
some of these equations.)"""
import numpy
import pytest

from conftest import build_directory
from graphs.op_models import one_op, some_shape, whole
from support.emitted import assert_same, run_module
from support.merge import merged
from support.model_builder import Model
from support.reference import Reference

EQUATIONS = ["ij,jk->ik", "bij,bjk", "bhqd,bhkd->bhqk", "...ij,...jk->...ik", "ii->i", "ii", "ibi->bi", "ij->ji", "ij->",
             "i,j->ij", "i,i", "ij,ij->", "bijc,djc->bid", "abc,cd,be->ade", "a...,a...->...", "ij,k->k", "iij,jk->ik",
             "bij, bj -> b", "ab...,...cd->bd...", "aab,bbc->ca", "ijk,ijk,ik->j", "bnd,bmd->bnm", "B...a,aC", "iii->i"]


def operands(rng, equation):
    """Operands with random extents; those of the ellipsis broadcast."""
    extents = {letter: int(rng.integers(1, 6)) for letter in "abcdehijkmnqBC"}
    dots, arrays = some_shape(rng, int(rng.integers(0, 3)), 4), []
    for term in equation.replace(" ", "").split("->")[0].split(","):
        head, _, tail = term.partition("...")
        own = tuple(1 if rng.random() < 0.3 else extent for extent in dots)[int(rng.integers(0, len(dots) + 1)):]
        shape = [extents[letter] for letter in head]
        arrays.append(whole(rng, (*shape, *(own if "..." in term else ()), *(extents[letter] for letter in tail))))
    return arrays


@pytest.mark.parametrize("seed", range(3))
def test_einsum_equals_numpy_s(compile, tmp_path, seed):
    rng, parts, expected = numpy.random.default_rng(seed), [], {}
    for k, equation in enumerate(EQUATIONS):
        arrays = operands(rng, equation)
        parts.append(one_op("Einsum", arrays, equation=equation))
        expected[f"p{k}_{parts[-1][0].outputs[0]}"] = numpy.asarray(numpy.einsum(equation, *arrays))
    model, feeds = merged(parts)
    path = model.write(tmp_path)
    assert_same(run_module(compile(path, optimised=seed == 0), feeds, threads=(1, 3)), expected)
    assert_same(Reference(build_directory() / "tests" / "support" / "reference_run").run(model, path, feeds), expected)


@pytest.mark.optimised_here
def test_attention_of_a_length_known_at_run_time(compile, tmp_path):
    model = Model()
    for name, largest in (("B", 4), ("Q", 9), ("K", 11)):
        model.dim(name, 1, 2, largest)
    q, k = model.input("q", "f32", ["B", "Q", 3, 8]), model.input("k", "f32", ["B", "K", 3, 8])
    model.output(model.node("Einsum", [q, k], equation="bqhd,bkhd->bhqk"))
    rng = numpy.random.default_rng(1)
    feeds = {"q": whole(rng, (2, 5, 3, 8)), "k": whole(rng, (2, 7, 3, 8))}
    expected = {model.outputs[0]: numpy.einsum("bqhd,bkhd->bhqk", feeds["q"], feeds["k"])}
    assert_same(run_module(compile(model.write(tmp_path)), feeds), expected)


EXTENTS = {"b": ("B", 4), "t": ("T", 9), "u": ("U", 5), "v": ("V", 6), "i": 3, "j": 7}


@pytest.mark.parametrize("equation", ["bti,ij->btj", "ij,tbj->itb", "bti,uvi->btuv", "ti,uvi->vut", "i,tui->tu", "biut,ijv->btjuv",
                                      "btui,biv->uvbt"])
def test_axes_that_were_merged_may_be_known_at_run_time(compile, tmp_path, equation):
    model, rng, feeds = Model(), numpy.random.default_rng(2), {}
    for name, most in (EXTENTS[letter] for letter in "btuv"):
        model.dim(name, 1, 2, most)
    for k, term in enumerate(equation.split("->")[0].split(",")):
        shape = [extent[0] if isinstance(extent, tuple) else extent for extent in (EXTENTS[letter] for letter in term)]
        model.input(f"x{k}", "f32", shape)
        feeds[f"x{k}"] = whole(rng, [{"B": 2, "T": 5, "U": 4, "V": 3}.get(extent, extent) for extent in shape])
    model.output(model.node("Einsum", [*feeds], equation=equation))
    expected = {model.outputs[0]: numpy.einsum(equation, *feeds.values())}
    assert_same(run_module(compile(model.write(tmp_path)), feeds, threads=(1, 2)), expected)


@pytest.mark.every_case
@pytest.mark.parametrize("equation", ["bti,uvi->btuv", "ti,uvi->tuv", "bi,uvi->buv", "biu,bijv->bujv", "vi,ij->vj", "uvi,ti->uvt"])
def test_an_operand_may_have_no_elements(compile, tmp_path, equation):
    """v is 0 long; b and t are known at run time."""
    model, feeds = Model(), {}
    for name, most in (EXTENTS[letter] for letter in "bt"):
        model.dim(name, 1, 2, most)
    for k, term in enumerate(equation.split("->")[0].split(",")):
        extents = {**EXTENTS, "u": 3, "v": 0}
        model.input(f"x{k}", "f32", [extent[0] if isinstance(extent, tuple) else extent for extent in (extents[letter] for letter in term)])
        feeds[f"x{k}"] = numpy.zeros([{"b": 2, "t": 5}.get(letter, extents[letter]) for letter in term], numpy.float32)
    model.output(model.node("Einsum", [*feeds], equation=equation))
    expected = {model.outputs[0]: numpy.einsum(equation, *feeds.values())}
    assert_same(run_module(compile(model.write(tmp_path)), feeds), expected)


@pytest.mark.parametrize("equation,code", [("ij,jk->ikz", 2), ("ij->ik", 2), ("i,jk->ik", 2), ("ij,jk,kl->il", 2), ("i1,jk", 2),
                                           ("ij,jk->", 0), ("ij,jk->ii", 2), ("..ij,jk->ik", 2), ("ij...,jk->ik", 0),
                                           ("", 2), ("->", 2), (",", 2), ("ij,jk-", 2), ("......ij,jk", 2)])
def test_invalid_equations_are_refused(rnncc, tmp_path, equation, code):
    model = Model()
    names = [model.input(name, "f32", shape) for name, shape in (("x", [3, 4]), ("y", [4, 5]))]
    model.output(model.node("Einsum", names, equation=equation))
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == code and (code == 0 or "Einsum" in done.stderr)
