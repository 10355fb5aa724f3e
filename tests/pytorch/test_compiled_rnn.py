# SPDX-License-Identifier: MIT
"""rnncc.torch.compile_rnn(): layers that compute, train and are saved as PyTorch's own are."""
import copy
import gc
import io
import os
import subprocess
import sys

import numpy
import onnx
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence

from pytorch.apart import apart
from support import pages
from support.module import PACKAGE, rnncc as package
import rnncc.torch
from rnncc.torch import runs

I, H = 5, 7
pytestmark = pytest.mark.usefixtures("by_this_rnncc")
ERROR = 2.0**-18  # of the largest element: f32's roundings in some 60 steps of sums


def compiled(layer, **options):
    return rnncc.torch.compile_rnn(layer, threads=2, **options)


def padded(length=6, rows=4, batch_first=False):
    return torch.randn((rows, length, I) if batch_first else (length, rows, I))


def packed(enforce_sorted):
    lengths = [6, 4, 4, 1] if enforce_sorted else [4, 6, 1, 4]
    return pack_sequence([torch.randn(length, I) for length in lengths], enforce_sorted=enforce_sorted)


def states(layer, rows=4):
    shape = layer.num_layers * (2 if layer.bidirectional else 1), rows, layer.hidden_size
    made = [torch.randn(shape) for _ in range(2 if layer.mode == "LSTM" else 1)]
    return tuple(made) if layer.mode == "LSTM" else made[0]


CASES = {  # name: (layer, input, are states given)
    "lstm": (lambda: nn.LSTM(I, H), padded, False),
    "lstm_both_ways_stacked": (lambda: nn.LSTM(I, H, 2, bidirectional=True, batch_first=True),
                               lambda: padded(batch_first=True), True),
    "lstm_packed": (lambda: nn.LSTM(I, H, 2, bidirectional=True), lambda: packed(False), True),
    "gru": (lambda: nn.GRU(I, H, 3), padded, True),
    "gru_packed": (lambda: nn.GRU(I, H, bias=False, bidirectional=True), lambda: packed(True), False),
    "rnn": (lambda: nn.RNN(I, H, bidirectional=True, bias=False), padded, True),
    "rnn_relu_packed": (lambda: nn.RNN(I, H, 2, nonlinearity="relu"), lambda: packed(False), True),
}


def in_type(value, kind):
    """The same, leaves of the graph of gradients."""
    if isinstance(value, PackedSequence):
        return PackedSequence(in_type(value.data, kind), *value[1:])
    if isinstance(value, tuple):
        return tuple(in_type(it, kind) for it in value)
    return None if value is None else value.detach().to(kind, copy=True).requires_grad_()


def tensors(value):
    if isinstance(value, PackedSequence):
        return [value.data]
    return [] if value is None else [it for one in value for it in tensors(one)] if isinstance(value, tuple) else [value]


def outcome(layer, x, hx, seed=9):
    """Results, and gradients of a weighted sum of all of them for inputs, states and weights."""
    results = tensors(layer(x, hx))
    rng = numpy.random.default_rng(seed)
    loss = sum((it * torch.from_numpy(rng.standard_normal(it.shape)).to(it.dtype)).sum() for it in results)
    named = {**{f"input {k}": it for k, it in enumerate(tensors(x) + tensors(hx))}, **dict(layer.named_parameters())}
    gradients = torch.autograd.grad(loss, list(named.values()))
    return {**{f"result {k}": it.detach() for k, it in enumerate(results)}, **dict(zip(named, gradients))}


def assert_close(found, due):
    assert found.keys() == due.keys()
    for name, exact in due.items():
        assert found[name].shape == exact.shape, name
        assert (found[name] - exact).abs().max() <= ERROR * max(float(exact.abs().max()), 2.0**-4), name


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_pytorchs(name):
    """Of its layer in double precision."""
    make, given, has_states = CASES[name]
    layer, x = make(), given()
    hx = states(layer) if has_states else None
    due = outcome(copy.deepcopy(layer).double(), in_type(x, torch.float64), in_type(hx, torch.float64))
    fast = compiled(layer)
    assert_close(outcome(fast, in_type(x, torch.float32), in_type(hx, torch.float32)), due)
    with torch.no_grad():
        results = tensors(fast(x, hx))
    assert_close({f"result {k}": it for k, it in enumerate(results)}, {k: v for k, v in due.items() if "result" in k})


def test_packed_results_are_in_the_callers_order():
    layer = nn.GRU(I, H, bias=False, bidirectional=True)
    fast, rows = compiled(layer), [torch.randn(length, I) for length in (2, 6, 3)]
    given = pack_sequence(rows, enforce_sorted=False)
    for found, due in zip(fast(given), layer(given)):
        if isinstance(due, PackedSequence):
            assert all(torch.equal(a, b) for a, b in zip(found[1:], due[1:]))
            found, due = found.data, due.data
        assert (found - due).abs().max() < 1e-6


def test_one_sequence_needs_no_batch():
    layer = nn.GRU(I, H, 3)
    fast, x, hx = compiled(layer), torch.randn(6, I), torch.randn(3, H)
    for found, due in zip(fast(x, hx), layer(x, hx)):
        assert found.shape == due.shape and (found - due).abs().max() < 1e-6
    (found, (h, c)), (due, _) = compiled(nn.LSTM(I, H))(x), nn.LSTM(I, H)(x)
    assert found.shape == due.shape and h.shape == c.shape == (1, H)


@pytest.mark.parametrize("given", [padded, lambda: packed(False)], ids=["padded", "packed"])
def test_dropout_draws_what_pytorch_draws(given):
    layer, x = nn.GRU(I, H, 2, dropout=0.5), given()
    fast = compiled(layer)
    results = []
    for one in (layer, fast):
        torch.manual_seed(11)
        results.append(tensors(one(x)))
    assert all((a - b).abs().max() < 1e-6 for a, b in zip(*results))
    fast.eval(), layer.eval()
    assert all((a - b).abs().max() < 1e-6 for a, b in zip(tensors(fast(x)), tensors(layer(x))))


# ---- training ----

class Tagger(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.words, self.layer, self.scores = nn.Embedding(30, I), layer, nn.Linear(2 * H, 3)

    def forward(self, words, lengths):
        x = pack_padded_sequence(self.words(words), lengths, enforce_sorted=False)
        return self.scores(self.layer(x)[0].data)


def losses(network, steps=50):
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02, weight_decay=1e-3)
    generator, found = torch.Generator().manual_seed(5), []
    for step in range(steps):
        lengths = torch.randint(1, 9, (6,), generator=generator)
        words = torch.randint(0, 30, (int(lengths.max()), 6), generator=generator)
        tags = pack_padded_sequence(words % 3, lengths, enforce_sorted=False).data
        optimiser.zero_grad(set_to_none=step % 2 == 0)
        loss = nn.functional.cross_entropy(network(words, lengths), tags)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.5)
        optimiser.step()
        found.append(loss.item())
    return found


def test_a_network_is_trained_as_with_pytorchs_layer():
    first = Tagger(nn.LSTM(I, H, bidirectional=True))
    second = copy.deepcopy(first)
    second.layer = compiled(second.layer)
    due, found = losses(first), losses(second)
    assert due[-1] < due[0] / 2
    assert max(abs(a - b) for a, b in zip(found, due)) < 1e-4


def test_a_training_that_goes_on_has_the_same_bits():
    """From PyTorch's own state: parameters, Adam's, and the numbers that dropout between the layers draws."""

    def made():
        torch.manual_seed(3)
        layer = compiled(nn.LSTM(I, H, 2, dropout=0.4))
        return layer, torch.optim.Adam(layer.parameters(), lr=0.01)

    def trained(layer, optimiser, steps):
        losses = []
        for step in steps:
            x = torch.from_numpy(numpy.random.default_rng(step).standard_normal((6, 4, I)).astype(numpy.float32))
            loss = layer(x)[0].square().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    layer, optimiser = made()
    first, file = trained(layer, optimiser, range(3)), io.BytesIO()
    torch.save([layer.state_dict(), optimiser.state_dict(), torch.get_rng_state()], file)
    rest = trained(layer, optimiser, range(3, 6))
    resumed, its_optimiser = made()
    file.seek(0)
    of_layer, of_optimiser, random = torch.load(file)
    resumed.load_state_dict(of_layer)
    its_optimiser.load_state_dict(of_optimiser)
    torch.set_rng_state(random)
    assert trained(resumed, its_optimiser, range(3, 6)) == rest and len({*first, *rest}) == 6


def test_the_parameters_are_the_layers_own():
    layer = nn.LSTM(I, H)
    fast = compiled(layer)
    assert isinstance(fast, nn.LSTM) and repr(fast) == repr(layer)
    assert list(fast.state_dict()) == list(layer.state_dict()) == [name for name, _ in fast.named_parameters()]
    assert all(a is b for a, b in zip(fast.parameters(), layer.parameters()))
    other = nn.LSTM(I, H)
    x = padded()
    fast.load_state_dict(other.state_dict())
    assert (fast(x)[0] - other(x)[0]).abs().max() < 1e-6
    file = io.BytesIO()
    torch.save(fast, file)
    file.seek(0)
    for again in (copy.deepcopy(fast), torch.load(file, weights_only=False)):
        assert type(again) is type(fast) and torch.equal(again(x)[0], fast(x)[0])
        again.weight_hh_l0.data.zero_()
        assert fast.weight_hh_l0.abs().max() > 0


def test_weights_are_set_where_they_have_changed(monkeypatch):
    calls = []
    real = package.Trainer.set_weights

    def counted(trainer, weights):
        calls.append(sorted(weights))
        real(trainer, weights)

    monkeypatch.setattr(package.Trainer, "set_weights", counted)
    fast, x = compiled(nn.LSTM(I, H)), padded()
    names = sorted(name for name, _ in fast.named_parameters())
    fast(x), fast(x)
    assert calls == [names]
    with torch.no_grad():
        fast.bias_hh_l0.add_(1)
    fast(x)
    assert calls[1:] == [["bias_hh_l0"]]
    fast.weight_hh_l0.data = torch.zeros(4 * H, H)
    fast(x)
    fast.bias_ih_l0.detach().numpy()[:] = 1  # no version tells this
    fast.bias_ih_l0.data = fast.bias_ih_l0.data.clone()
    fast(x)
    assert calls[2:] == [["weight_hh_l0"], ["bias_ih_l0"]]
    reference = nn.LSTM(I, H)
    reference.load_state_dict(fast.state_dict())
    assert (fast(x)[0] - reference(x)[0]).abs().max() < 1e-6


def test_calls_may_wait_for_their_backward_pass_and_reuse_its_memory(monkeypatch):
    made = []
    real = package.Module.trainer
    monkeypatch.setattr(package.Module, "trainer", lambda module: made.append(module) or real(module))
    layer = nn.LSTM(I, H)
    fast, xs = compiled(layer), [padded(length) for length in (3, 6, 5)]

    def gradients(one):
        loss = sum(one(x)[0].square().sum() for x in xs)
        return torch.autograd.grad(loss, list(one.parameters()))

    for _ in range(3):
        assert all((a - b).abs().max() <= ERROR * b.abs().max() for a, b in zip(gradients(fast), gradients(layer)))
    assert len(made) == 3
    runner, = (it for _, runners in fast._runs() for it in runners._found.values())
    assert [trainer._held for trainer in runner._free] == [None] * 3  # what a call was given is its caller's again
    for _ in range(4):  # no backward pass: nothing holds the call any more
        fast(xs[0])
        gc.collect()
    assert len(made) == 3


class Scaled(nn.Module):
    """A parametrization: each call makes another tensor."""

    scale = 1

    def forward(self, weight):
        return weight * self.scale


def test_a_weight_that_is_computed_anew_has_changed_where_its_elements_have():
    """Two calls wait for their backward pass: on equal weights they may, on others the first is refused."""
    layer = nn.LSTM(I, H)
    fast, x = compiled(copy.deepcopy(layer)), padded()
    for one in (layer, fast):
        parametrize.register_parametrization(one, "weight_hh_l0", Scaled())

    def gradients(one, second):
        results = []
        for one.parametrizations.weight_hh_l0[0].scale in (1, second):
            results.append(one(x)[0].square().sum())
        return torch.autograd.grad(sum(results), list(one.parameters()))

    for found, due in zip(gradients(fast, 1), gradients(layer, 1)):
        assert (found - due).abs().max() <= ERROR * due.abs().max()
    with pytest.raises(package.ArgumentError, match="the model's weights have changed since the run"):
        gradients(fast, 4)


def test_the_same_memory_read_another_way_is_another_weight():
    layer, x = nn.RNN(H, H), torch.randn(6, 4, H)
    fast, weight = compiled(layer), torch.randn(H, H)
    for given in (weight, weight.t()):
        found, due = (torch.func.functional_call(it, {"weight_hh_l0": given}, (x,))[0] for it in (fast, layer))
        assert (found - due).abs().max() < 1e-5


def test_layers_of_inference_mode_run():
    with torch.inference_mode():
        layer = nn.LSTM(I, H)
        fast, x = compiled(layer), padded()
        for _ in range(2):
            assert (fast(x)[0] - layer(x)[0]).abs().max() < 1e-6
            fast.weight_hh_l0.mul_(2)


class Severed(torch.autograd.Function):
    """Hands no gradient on."""

    @staticmethod
    def forward(_, x):
        return x * 2

    @staticmethod
    def backward(_, gradient):
        return None


def test_where_no_gradient_arrives_none_is_handed_on():
    fast, x = compiled(nn.LSTM(I, H)), padded().requires_grad_()
    Severed.apply(fast(x)[0]).sum().backward()
    assert x.grad is None and all(parameter.grad is None for parameter in fast.parameters())


def test_a_call_that_gets_no_memory_says_no_more_than_that(monkeypatch):
    fast, x, told = compiled(nn.LSTM(I, H)), padded(), []

    def none(_):
        raise MemoryError("no memory")

    monkeypatch.setattr(package.Module, "trainer", none)
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with pytest.raises(MemoryError, match="no memory"):
        fast(x)
    gc.collect()
    assert not told


@pytest.mark.parametrize("dynamo", [False, True], ids=["traced", "exported"])
def test_it_is_exported_as_pytorchs_layer(dynamo, tmp_path):
    fast, file = compiled(nn.LSTM(I, H, 2)).eval(), tmp_path / "layer.onnx"
    apart(lambda: torch.onnx.export(fast, (padded(),), str(file), dynamo=dynamo, verbose=False))
    assert [node.op_type for node in onnx.load(file).graph.node].count("LSTM") == 2


def test_longer_calls_compile_again_for_more():
    layer = nn.GRU(I, H, bias=False, bidirectional=True)
    fast = compiled(layer, steps=4, batch=2)
    for length, rows in ((3, 2), (9, 2), (3, 5)):
        x = padded(length, rows)
        assert (fast(x)[0] - layer(x)[0]).abs().max() < 1e-6


def test_a_frozen_layer_hands_gradients_on():
    layer = nn.LSTM(I, H)
    for parameter in layer.parameters():
        parameter.requires_grad_(False)
    fast, x = compiled(layer), padded().requires_grad_()
    due = torch.autograd.grad(layer(x)[0].sum(), x)[0]
    y, _ = fast(x)
    assert (torch.autograd.grad(y.sum(), x)[0] - due).abs().max() <= ERROR
    assert not fast(x.detach())[0].requires_grad
    y, _ = fast(x)
    y.sum().backward()
    assert all(parameter.grad is None for parameter in fast.parameters())


# ---- autocast ----

def test_autocast_narrows_nothing_inside_a_layer():
    """What layers before it have narrowed is widened, and a gradient goes back to them."""
    for layer in (nn.LSTM(I, H, bidirectional=True), nn.GRU(I, H)):
        before, hx, x = nn.Linear(I, I), states(layer), padded()
        fast = compiled(layer)
        with torch.autocast("cpu", torch.bfloat16):
            narrow = before(x)
            given = [it.bfloat16() for it in hx] if isinstance(hx, tuple) else hx.bfloat16()
            y, _ = fast(narrow, given)
            pack = pack_sequence(list(narrow.unbind(1)))
            of_pack, _ = fast(pack, given)
        assert narrow.dtype == torch.bfloat16 and y.dtype == torch.float32
        due, _ = layer(narrow.float(), in_type(in_type(hx, torch.bfloat16), torch.float32))
        assert (y - due).abs().max() < 1e-6 and (of_pack.data - due.flatten(0, 1)).abs().max() < 1e-6
        found, expected = (torch.autograd.grad(it.square().sum(), narrow)[0] for it in (y, due))
        assert found.dtype == torch.bfloat16
        assert (found - expected).abs().max() <= 2.0**-8 * expected.abs().max()  # rounded to bf16


def test_numbers_of_bf16_are_refused_without_autocast():
    with pytest.raises(package.DTypeError, match="input: expected float32, found bfloat16"):
        compiled(nn.LSTM(I, H))(padded().bfloat16())
    with pytest.raises(package.DTypeError, match="h0: expected float32, found bfloat16"):
        compiled(nn.GRU(I, H))(padded(), torch.zeros(1, 4, H).bfloat16())


# ---- what is refused ----

def test_what_a_layer_cannot_do_is_told():
    with pytest.raises(package.UnsupportedError, match="proj_size=3: a compiled LSTM has no projection"):
        compiled(nn.LSTM(I, H, proj_size=3))
    with pytest.raises(package.ArgumentError, match="expected a torch.nn.RNN, GRU or LSTM, found Linear"):
        compiled(nn.Linear(I, H))
    with pytest.raises(package.DTypeError, match="weight_ih_l0: expected float32, found float64"):
        compiled(nn.LSTM(I, H).double())
    with pytest.raises(package.ArgumentError, match="weight_ih_l0: expected a tensor on the CPU, found one on meta"):
        compiled(nn.LSTM(I, H, device="meta"))


@pytest.mark.parametrize("given, hx, error, words", [
    (torch.zeros(6, 4, I, dtype=torch.float64), None, package.DTypeError, "input: expected float32, found float64"),
    (torch.zeros(6, 4, I, device="meta"), None, package.ArgumentError, "input: expected a tensor on the CPU, found one on meta"),
    (torch.zeros(6, 4, I + 1), None, package.ShapeError, r"expected 5 features \(input_size\), found 6"),
    (torch.zeros(2, 6, 4, I), None, package.ShapeError, r"expected \[T, B, I\] or \[T, I\], found the shape \[2, 6, 4, 5\]"),
    (torch.zeros(0, 4, I), None, package.ShapeError, "at least one step and one row, found 0 and 4"),
    (torch.zeros(6, 4, I), torch.zeros(1, 4, H), package.ArgumentError, r"hx: expected \(h0, c0\), found Tensor"),
    (torch.zeros(6, 4, I), (torch.zeros(1, 4, H), torch.zeros(1, 3, H)), package.ShapeError,
     r"c0: expected the shape \[1, 4, 7\].*found \[1, 3, 7\]"),
    (numpy.zeros((6, 4, I), numpy.float32), None, package.ArgumentError, "input: expected a tensor, found ndarray"),
])
def test_inputs_that_do_not_fit_are_told(given, hx, error, words):
    with pytest.raises(error, match=words):
        compiled(nn.LSTM(I, H))(given, hx)


def test_backward_passes_that_would_be_wrong_are_refused():
    fast = compiled(nn.LSTM(I, H))
    x = padded().requires_grad_()
    for results in (lambda y: y, lambda y: y.square()):  # whose gradients do not depend on y, or do
        (gradient,) = torch.autograd.grad(results(fast(x)[0]).sum(), x, create_graph=True)
        penalised = fast(x)[0].sum() + gradient.square().sum()
        with pytest.raises(package.UnsupportedError, match="has no second derivative"):
            penalised.backward()
    loss = fast(x)[0].sum()
    loss.backward(retain_graph=True)
    with pytest.raises(package.ArgumentError, match="goes back through each of its calls once"):
        loss.backward()
    loss = fast(x)[0].sum()
    with torch.no_grad():
        fast.weight_ih_l0.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# ---- threads and imports ----

def test_modules_have_the_threads_that_they_share():
    first, second = compiled(nn.LSTM(I, H)), compiled(nn.GRU(I, H, 3))
    first(padded()), second(padded(), states(second))
    assert len(runs._pools) == 1 and runs._pools[2].threads == 2


def test_the_package_itself_does_not_import_torch():
    script = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import rnncc; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


# ---- what is written about it ----

def test_the_page_prints_what_it_says(tmp_path):
    blocks = pages.blocks((pages.ROOT / "tools" / "docs" / "pytorch.md").read_text())
    code, text = ("".join(it.code for it in blocks if it.language == language) for language in ("python", "text"))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"})
    assert done.stdout == text, done.stderr


def example(*words):
    path = pages.ROOT / "tools" / "examples" / "training" / "hyphenate.py"
    return subprocess.run([sys.executable, path, *words], capture_output=True, text=True, timeout=300)


@pytest.mark.long
def test_the_example_has_equal_losses():
    done = example("--steps=6", "--threads=1")
    assert "for the first 6 of 6 steps" in done.stdout, done.stdout + done.stderr
    assert "ratio of medians" in done.stdout


def test_the_example_refuses_no_steps():
    done = example("--steps=0")
    assert done.returncode == 2 and "argument --steps: expected a whole number from 1 on, found 0" in done.stderr, done.stderr
