# SPDX-License-Identifier: MIT
"""PyTorch's tensors and modules with the package rnncc: in and out without a copy, and compiled in one call."""

import json

import numpy
import pytest
import torch

from pytorch.apart import apart
from support.module import rnncc


@pytest.fixture(autouse=True)
def by_this_rnncc(rnncc, monkeypatch):
    monkeypatch.setenv("RNNCC", str(rnncc.path))


TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64, "bool": torch.bool,
         "u8": torch.uint8, "f8e5m2": torch.float8_e5m2}


def transposed(folder):
    """Each type's own output is its input, of [2, 3], transposed."""
    inputs = [{"name": name, "dtype": name, "shape": [2, 3]} for name in TYPES]
    nodes = [{"op": "Transpose", "name": f"n_{name}", "inputs": [name], "outputs": [f"y_{name}"], "attributes": {"perm": [1, 0]}}
             for name in TYPES]
    path = folder / "transposed.json"
    path.write_text(json.dumps({"format": "rnncc", "version": 1, "name": "transposed", "inputs": inputs, "nodes": nodes,
                                "outputs": [f"y_{name}" for name in TYPES]}))
    return path


def same(found, tensor):
    return found.dtype == tensor.dtype and torch.equal(found.contiguous().view(torch.uint8), tensor.contiguous().view(torch.uint8))


def test_tensors_of_every_type_go_in_and_come_out(compile, tmp_path):
    feeds = {name: torch.arange(6).reshape(2, 3).to(kind) for name, kind in TYPES.items()}
    with rnncc.load(compile(transposed(tmp_path)), threads=1) as module:
        for _ in range(2):
            for found, tensor in zip(module(**feeds), feeds.values()):
                assert isinstance(found, torch.Tensor) and same(found, tensor.T)
        out = [torch.zeros(3, 2, dtype=kind) for kind in TYPES.values()]
        found = module(*feeds.values(), out=out)
        assert all(one is given and same(one, tensor.T) for one, given, tensor in zip(found, out, feeds.values()))


def test_tensors_that_are_not_aligned_are_copied(compile, root):
    """Also in a run like the one before, whose tensor was aligned."""
    x = torch.rand(4, 8, 8, generator=torch.Generator().manual_seed(1))
    behind = torch.frombuffer(bytearray(b"-" + x.numpy().tobytes()), dtype=torch.float32, offset=1).reshape(x.shape)
    assert behind.data_ptr() % 4 == 1
    with rnncc.load(compile(root / "models" / "digits_rnn.json"), threads=1) as module:
        expected = module(x.numpy())
        for given in (behind, x, x, behind):
            assert numpy.array_equal(module(given), expected)


def test_runs_like_the_last_one_return_what_the_first_did(compile, root):
    """Tensors and arrays in turns, new and given results: each call differs from the one before in one thing."""
    x = torch.rand(4, 8, 8, generator=torch.Generator().manual_seed(1))
    room, array = torch.zeros(4, 10), numpy.zeros((4, 10), numpy.float32)
    with rnncc.load(compile(root / "models" / "digits_rnn.json"), threads=1) as module:
        expected = torch.from_numpy(module(x.numpy()))
        for _ in range(2):
            for given in (x, x, x.permute(2, 1, 0).contiguous().permute(2, 1, 0), x, x.numpy(), x.numpy(), x):
                found = module(given)
                assert type(found) is type(given) and numpy.array_equal(found, expected)
            for out in (room, room, array, room):
                out[:] = 0
                assert module(x, out=out) is out and numpy.array_equal(out, expected)
            assert module.run({"x": x}, out={"probabilities": room})["probabilities"] is room
        with pytest.raises(rnncc.ArgumentError, match="grad"):
            module(x.clone().requires_grad_())
        with pytest.raises(rnncc.DTypeError):
            module(x, out=room.double())
        assert len(module(x[:2])) == 2


def test_tensors_by_columns_are_copied_and_mixed_inputs_taken(compile, tmp_path):
    feeds = {name: torch.arange(6).reshape(3, 2).to(kind).T for name, kind in TYPES.items()}
    feeds["f32"] = feeds["f32"].contiguous().numpy()
    with rnncc.load(compile(transposed(tmp_path)), threads=1) as module:
        for found, kind in zip(module(**feeds), TYPES.values()):
            assert same(found, torch.arange(6).reshape(3, 2).to(kind))


def test_a_tensor_that_is_only_marked_as_negative_has_its_values(compile, root):
    """PyTorch's imaginary part of a conjugate, which shares the memory of the number's."""
    rows = torch.rand(1, 8, 8, generator=torch.Generator().manual_seed(1))
    marked = torch._neg_view(rows)
    assert marked.is_neg() and marked.is_contiguous() and marked.data_ptr() == rows.data_ptr()
    with rnncc.load(compile(root / "models" / "digits_rnn.json"), threads=1) as module:
        assert torch.equal(module(marked), module(-rows)) and not torch.equal(module(marked), module(rows))
        conjugate = torch.complex(rows, rows).conj().imag  # not row-major either
        assert conjugate.is_neg() and torch.equal(module(conjugate), module(-rows))
        with pytest.raises(rnncc.ArgumentError, match="found the negative of another's"):
            module(rows, out=[torch._neg_view(torch.zeros(1, 10))])


@pytest.mark.parametrize("tensor, words", [
    (torch.zeros(4, 8, 8, requires_grad=True), "grad"), (torch.zeros(4, 8, 8).to_sparse(), "parse|layout"),
    (torch.zeros(4, 8, 8, device="meta"), "meta|CPU's memory"),
    (torch.zeros(4, 8, 8, dtype=torch.float64), "input x: expected f32, found torch.float64"),
    (torch.zeros(4, 8, 8, dtype=torch.complex64), "input x: expected f32, found torch.complex64"),
    (torch.zeros(4, 8, 7), "input 'x': axis 2 is 7, the model's is 8")], ids=["grad", "sparse", "meta", "f64", "complex", "shape"])
def test_tensors_that_are_no_input_are_refused(compile, root, tensor, words):
    with rnncc.load(compile(root / "models" / "digits_rnn.json"), threads=1) as module:
        with pytest.raises(rnncc.Error, match=words):
            module(tensor)
        with pytest.raises(rnncc.ArgumentError, match="output probabilities: expected a row-major array"):
            module(torch.zeros(4, 8, 8), out=torch.zeros(10, 4).T)
        assert module(torch.zeros(4, 8, 8)).shape == (4, 10)


def compiled_in_one_call():
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh())
    x = torch.randn(7, 3)
    module = rnncc.from_torch(network, torch.randn(4, 3), axes=[{0: "T"}], outputs=["y"], dims={"T": (1, 5, 9)}, threads=1)
    assert [it.name for it in module.outputs] == ["y"] and module.dims["T"].max == 9
    with torch.no_grad():
        torch.testing.assert_close(module(x), network(x))
    with pytest.raises(rnncc.ArgumentError, match="axes: expected one entry for each of 2 inputs, found 1"):
        rnncc.from_torch(network, (x, x), axes=[{0: "T"}])


def test_a_module_is_compiled_in_one_call(from_torch):
    apart(compiled_in_one_call)
