# SPDX-License-Identifier: MIT
"""Several networks in one module: a transducer decodes as three sessions of ONNX Runtime do; two threads run different
networks of one pool; equal weights are there once; what makes no sense is told, and leaves nothing behind."""
import re
import subprocess
import sys
import threading

import numpy
import onnxruntime
import pytest
from onnx import helper

from conftest import ROOT
from support import machine
from support.module import Module
from support.noted import noted
from support.onnx_files import F32, I64, model_of, write

FEATURES, UNITS, STATE, JOINT, TOKENS, BLANK = 12, 24, 16, 32, 20, 0
FRAMES, MOST_IN_A_FRAME = 40, 3
NAMES = ["encoder", "step", "joiner"]
SETTINGS = ["--dim", f"encoder:T=1..10..{FRAMES}", "--state", "step:h=hN"]
TOLERANCE = 1e-4


def weights(rng, *shape):
    return (rng.uniform(-1, 1, shape) * 1.2 / numpy.sqrt(shape[-1])).astype(numpy.float32)


def gru(rng, inputs, size, width):
    """(its node, its constants): of the step decoder and the encoder."""
    node = helper.make_node("GRU", inputs, ["y", "hN"], hidden_size=size, linear_before_reset=1)
    return node, {"w": weights(rng, 1, 3 * size, width), "r": weights(rng, 1, 3 * size, size), "b": weights(rng, 1, 6 * size)}


def encoder(rng):
    node, constants = gru(rng, ["x", "w", "r", "b"], UNITS, FEATURES)
    return model_of([node, helper.make_node("Squeeze", ["y", "one"], ["steps"])], {"x": (F32, ["T", 1, FEATURES])},
                    {"steps": (F32, ["T", 1, UNITS])}, {**constants, "one": numpy.array([1])})


def decoder(rng):
    node, constants = gru(rng, ["e", "w", "r", "b", "", "h"], STATE, STATE)
    return model_of([helper.make_node("Gather", ["table", "token"], ["e"]), node,
                     helper.make_node("Reshape", ["y", "shape"], ["out"])],
                    {"token": (I64, [1, 1]), "h": (F32, [1, 1, STATE])}, {"out": (F32, [1, STATE]), "hN": (F32, [1, 1, STATE])},
                    {**constants, "table": weights(rng, TOKENS, STATE), "shape": numpy.array([1, STATE])})


def joiner(rng):
    return model_of([helper.make_node("Gemm", ["enc", "we", "be"], ["a"]), helper.make_node("MatMul", ["dec", "wd"], ["c"]),
                     helper.make_node("Add", ["a", "c"], ["sum"]), helper.make_node("Tanh", ["sum"], ["joint"]),
                     helper.make_node("Gemm", ["joint", "wo", "bo"], ["logits"])],
                    {"enc": (F32, [1, UNITS]), "dec": (F32, [1, STATE])}, {"logits": (F32, [1, TOKENS])},
                    {"we": weights(rng, UNITS, JOINT), "be": weights(rng, JOINT), "wd": weights(rng, STATE, JOINT),
                     "wo": weights(rng, JOINT, TOKENS), "bo": weights(rng, TOKENS)})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder of encoder.onnx, decoder.onnx and joiner.onnx."""
    folder, rng = tmp_path_factory.mktemp("transducer"), numpy.random.default_rng(7)
    for name, make in (("encoder", encoder), ("decoder", decoder), ("joiner", joiner)):
        write(folder, make(rng), f"{name}.onnx")
    return folder


def bundle(rnncc, files, output, *options):
    done = rnncc("bundle", "encoder.onnx", "step=decoder.onnx", "joiner.onnx", "-o", output, *SETTINGS, *options, cwd=files)
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def asr(rnncc, files, tmp_path_factory):
    return bundle(rnncc, files, tmp_path_factory.mktemp("asr") / "asr.so")


@pytest.fixture(scope="module")
def sound():
    return numpy.random.default_rng(3).uniform(-2, 2, (FRAMES, 1, FEATURES)).astype(numpy.float32)


# ---- greedy decoding ----

class Sessions:
    """The transducer as three sessions of ONNX Runtime."""

    def __init__(self, files):
        self.encoder, self.decoder, self.joiner = (
            onnxruntime.InferenceSession(files / f"{name}.onnx", providers=["CPUExecutionProvider"])
            for name in ("encoder", "decoder", "joiner"))
        self.h = numpy.zeros((1, 1, STATE), numpy.float32)

    def encode(self, x):
        return self.encoder.run(["steps"], {"x": x})[0]

    def step(self, token):
        out, self.h = self.decoder.run(["out", "hN"], {"token": token, "h": self.h})
        return out

    def join(self, enc, dec):
        return self.joiner.run(["logits"], {"enc": enc, "dec": dec})[0]


class Bundled:
    """The same as three networks of a module, whose decoder carries its state; they share workers."""

    def __init__(self, path, threads):
        self.networks = [Module(path, name) for name in NAMES]
        first = self.networks[0].context(threads)
        self.contexts = [first, *(network.context(pool_of=first) for network in self.networks[1:])]

    def encode(self, x):
        return self.contexts[0].run({"x": x})["steps"]

    def step(self, token):
        return self.contexts[1].run({"token": token})["out"]

    def join(self, enc, dec):
        return self.contexts[2].run({"enc": enc, "dec": dec})["logits"]

    def close(self):
        for it in (*self.contexts, *self.networks):
            it.close()


def decoded(networks, x):
    """(tokens, the logits of each call of the joiner)"""
    tokens, logits = [], []
    dec = networks.step(numpy.array([[BLANK]]))
    for enc in networks.encode(x):
        for _ in range(MOST_IN_A_FRAME):
            logits.append(networks.join(enc, dec))
            token = int(logits[-1].argmax())
            if token == BLANK:
                break
            tokens.append(token)
            dec = networks.step(numpy.array([[token]]))
    return tokens, numpy.concatenate(logits)


def check_decoding(path, files, sound, threads):
    networks = Bundled(path, threads)
    tokens, logits = decoded(networks, sound)
    networks.close()
    expected, expected_logits = decoded(Sessions(files), sound)
    assert tokens == expected
    numpy.testing.assert_allclose(logits, expected_logits, rtol=0, atol=TOLERANCE)


def test_the_sound_has_tokens_and_blanks(files, sound):
    tokens, logits = decoded(Sessions(files), sound)
    assert len(set(tokens)) > 5 and BLANK in logits.argmax(1)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_transducer_decodes_as_onnx_runtime_does(asr, files, sound, threads):
    check_decoding(asr, files, sound, threads)


def test_each_network_computes_what_it_does_alone(asr, compile, files, sound):
    alone = compile(files / "encoder.onnx", f"--dim=T=1..10..{FRAMES}")
    outputs = []
    for path, name in ((asr, "encoder"), (alone, None)):
        with Module(path, name) as module, module.context(2) as context:
            outputs.append(context.run({"x": sound})["steps"].tobytes())
    assert outputs[0] == outputs[1]


# ---- at once ----

def test_two_threads_run_different_networks_of_one_pool(asr, sound):
    networks = Bundled(asr, 2)
    enc, dec = networks.encode(sound), networks.step(numpy.array([[BLANK]]))
    expected = networks.join(enc[0], dec)
    failures = []

    def repeat(call, want):
        for _ in range(300):
            if call().tobytes() != want.tobytes():
                failures.append(call)

    threads = [threading.Thread(target=repeat, args=arguments)
               for arguments in ((lambda: networks.encode(sound), enc), (lambda: networks.join(enc[0], dec), expected))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    networks.close()
    assert failures == []


# ---- weights ----

def test_equal_weights_of_two_networks_are_there_once(rnncc, files, tmp_path):
    """One file as two networks: the module has another schedule and table, and no weight more."""
    sizes = {}
    for names in (["one"], ["one", "two"]):
        folder = tmp_path / "_".join(names)
        done = rnncc("bundle", *(f"{name}=encoder.onnx" for name in names), "--dim=T=1..40", "--emit=c", "-o", folder, cwd=files)
        assert done.returncode == 0, done.stderr
        sizes[len(names)] = (folder / "weights.bin").stat().st_size
        assert len(list(folder.glob("network_*.c"))) == len(names)
    assert sizes[1] == sizes[2] > 0


def test_a_stream_and_the_whole_share_what_they_read_alike(rnncc, files, tmp_path):
    """A network for whole utterances, and one for a frame at a time, for a target whose panels fit both: others fill some up."""
    done = rnncc("bundle", "whole=encoder.onnx", "frame=encoder.onnx", "other=decoder.onnx", "--dim=whole:T=1..40", "--dim=frame:T=1",
                 "--target=x86-64", "-o", tmp_path / "m.so", cwd=files)
    assert done.returncode == 0, done.stderr
    with Module(tmp_path / "m.so", "whole") as whole, Module(tmp_path / "m.so", "frame") as frame:
        assert whole.dims == {"T": (1, 40, 40)} and frame.dims == {"T": (1, 1, 1)}
        assert whole.info.weights_bytes == frame.info.weights_bytes > 0


# ---- several targets, C, static libraries ----

@pytest.mark.parametrize("isa", ["avx2", "plain"])
def test_of_several_targets_all_networks_are_the_chosen_ones(rnncc, files, sound, monkeypatch, tmp_path, isa):
    machine.need_isa(isa)
    path = bundle(rnncc, files, tmp_path / "asr.so", "--target=x86-64-v3,x86-64")
    monkeypatch.setenv("RNNCC_ISA", isa)
    for name in NAMES:
        with Module(path, name) as network:
            assert network.info.isa.decode() == isa
    check_decoding(path, files, sound, 2)


PROGRAM = """
#include <stdio.h>
#include "asr.h"

static _Alignas(64) unsigned char memory[asr_NETWORKS][asr_encoder_CONTEXT_BYTES + asr_step_CONTEXT_BYTES];

static int create(const rnncc_api *api, void *place, size_t bytes, rnncc_context **context) {
  rnncc_model *model;
  if (api->model_create(NULL, &model, NULL) || api->context_create(model, place, bytes, context, NULL)) return 1;
  printf("%s\\n", api->info->name);
  return 0;
}

int main(void) {
  const rnncc_api *const *networks = asr_module_query(RNNCC_ABI, NULL)->networks;
  const rnncc_api *encoder = networks[asr_NETWORK_encoder], *step = networks[asr_NETWORK_step];
  rnncc_context *encoding, *stepping;
  if (create(encoder, memory[0], asr_encoder_CONTEXT_BYTES, &encoding)) return 1;
  if (create(step, memory[1], asr_step_CONTEXT_BYTES, &stepping)) return 1;
  static float x[2 * FEATURES], steps[asr_encoder_OUTPUT_steps_MAX_BYTES / 4];
  for (int i = 0; i < 2 * FEATURES; i++) x[i] = (float)i / 8;
  rnncc_tensor in = {.struct_size = sizeof(rnncc_tensor), .data = x, .bytes = sizeof x, .dtype = RNNCC_F32, .rank = 3, .shape = {2, 1, FEATURES}};
  rnncc_tensor out = {.struct_size = sizeof(rnncc_tensor), .data = steps, .bytes = sizeof steps, .dtype = RNNCC_F32};
  if (encoder->run(encoding, &in, asr_encoder_INPUTS, &out, asr_encoder_OUTPUTS)) return 1;
  int64_t zero = 0;
  static float result[asr_step_OUTPUT_out_MAX_BYTES / 4];
  rnncc_tensor token = {.struct_size = sizeof(rnncc_tensor), .data = &zero, .bytes = sizeof zero, .dtype = RNNCC_I64, .rank = 2, .shape = {1, 1}};
  rnncc_tensor first = {.struct_size = sizeof(rnncc_tensor), .data = result, .bytes = sizeof result, .dtype = RNNCC_F32};
  if (step->run(stepping, &token, asr_step_INPUTS, &first, asr_step_OUTPUTS)) return 1;
  printf("%a %a\\n", (double)steps[UNITS], (double)result[0]);
  return 0;
}
"""


def said_by_onnx_runtime(files):
    x = (numpy.arange(2 * FEATURES, dtype=numpy.float32) / 8).reshape(2, 1, FEATURES)
    sessions = Sessions(files)
    return sessions.encode(x)[1, 0, 0], sessions.step(numpy.array([[0]]))[0, 0]


def check_program(folder, files, library, header, compiler):
    source = PROGRAM.replace("FEATURES", str(FEATURES)).replace("UNITS", str(UNITS))
    (folder / "program.c").write_text(source)
    subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/runtime", f"-I{header}", "program.c", library,
                    "-pthread", "-o", "program"], cwd=folder, check=True)
    *names, values = subprocess.run([folder / "program"], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    assert names == ["encoder", "step"]
    numpy.testing.assert_allclose([float.fromhex(value) for value in values.split()], said_by_onnx_runtime(files), atol=TOLERANCE)


@pytest.mark.unsanitized
@pytest.mark.parametrize("profile", ["full", "edge"])
def test_a_static_library_has_all_networks_and_its_header_their_places(rnncc, files, tmp_path, profile):
    bundle(rnncc, files, tmp_path / "libasr.a", "--static", f"--profile={profile}", "--target=x86-64")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asr.h", "libasr.a"]
    names = subprocess.run(["nm", "-g", "--defined-only", tmp_path / "libasr.a"], capture_output=True, text=True, check=True).stdout
    assert {word.split("_")[0] for word in re.findall(r" [A-Z] (\w+)$", names, re.MULTILINE)} == {"asr"}
    check_program(tmp_path, files, tmp_path / "libasr.a", tmp_path, "clang-19")


@pytest.mark.long
@pytest.mark.unsanitized
def test_emitted_c_builds_by_gcc(rnncc, files, sound, tmp_path):
    folder = bundle(rnncc, files, tmp_path / "asr", "--emit=c", "--target=x86-64")
    bundle(rnncc, files, tmp_path / "asr.h", "--emit=h", "--target=x86-64")
    done = subprocess.run(["make", "-s", "-j2", "CC=gcc -Wall -Wextra -Werror", "module.so", "libasr.a"], cwd=folder,
                          capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    check_decoding(folder / "module.so", files, sound, 2)
    check_program(tmp_path, files, folder / "libasr.a", tmp_path, "gcc")


# ---- the two rates of a VAD ----

def test_two_rates_of_one_model_are_two_networks(rnncc, compile, tmp_path):
    sys.path.insert(0, str(ROOT / "models"))
    from pretrained import silero
    common = ["--dim=input_0=1", "--dim=state_1=1", "--state=state=stateN"]
    samples = {rate: silero.CHUNK[rate] + silero.CONTEXT[rate] for rate in silero.CHUNK}
    done = rnncc("bundle", *(f"rate{rate}={silero.model()}" for rate in samples), *common, "-o", tmp_path / "vad.so",
                 *(f"--freeze=rate{rate}:sr={rate}" for rate in samples),
                 *(f"--dim=rate{rate}:input_1={count}" for rate, count in samples.items()))
    assert done.returncode == 0, done.stderr
    for rate, count in samples.items():
        alone = compile(silero.model(), f"--freeze=sr={rate}", f"--dim=input_1={count}", *common)
        window = numpy.random.default_rng(rate).uniform(-.1, .1, (1, count)).astype(numpy.float32)
        heard = []
        for path, name in ((tmp_path / "vad.so", f"rate{rate}"), (alone, None)):
            with Module(path, name) as module, module.context() as context:
                heard.append([context.run({"input": window})["output"].tobytes() for _ in range(3)])
        assert heard[0] == heard[1] and len(set(heard[0])) == 3, "the state goes from run to run"


# ---- rnnrun ----

def test_rnnrun_names_a_network_and_inspect_lists_all(asr, rnnrun, tmp_path):
    done = rnnrun("inspect", asr)
    assert re.findall(r"^model +(.*)$", done.stdout, re.MULTILINE) == NAMES and done.stdout.count("\nfile ") == 1
    one = rnnrun("inspect", asr, "--network=step")
    assert re.findall(r"^(?:model|state) +(.*)$", one.stdout, re.MULTILINE) == ["step", f"h f32 [1, 1, {STATE}], 1 slot"]
    image = bytearray(asr.read_bytes())
    image[18:20] = b"\x16\0"  # the machine's number: s390
    (tmp_path / "foreign.so").write_bytes(image)
    for options, known in (([], done), (["--network=step"], one)):
        foreign = rnnrun("inspect", tmp_path / "foreign.so", *options)
        assert foreign.stdout.splitlines()[1:] == noted(known)
    told = rnnrun("inspect", tmp_path / "foreign.so", "--network=decoder")
    assert told.returncode == 2 and "the module has no network decoder; it has encoder, step, joiner\n" in told.stderr
    told = rnnrun("run", asr, "--network=step", "--input", "token=zeros", "--steps=2")
    assert told.returncode == 0 and re.fullmatch(rf"out f32 1x{STATE}:.*\n", told.stdout), told.stderr
    told = rnnrun("bench", asr, "--network=joiner", "--runs=3", "--json")
    assert told.returncode == 0 and '"runs": 3' in told.stdout


@pytest.mark.parametrize("words, message", [
    (["run"], "expected --network=NAME, found none; it has encoder, step, joiner"),
    (["bench", "--network=decoder"], "the module has no network decoder; it has encoder, step, joiner"),
    (["inspect", "--network=decoder"], "the module has no network decoder; it has encoder, step, joiner")], ids=str)
def test_rnnrun_lists_the_networks_there_are(asr, rnnrun, words, message):
    done = rnnrun(words[0], asr, *words[1:])
    assert done.returncode == 2 and message in done.stderr, done.stderr


def test_a_module_of_one_network_answers_to_its_own_name(compile, rnnrun):
    path = compile(ROOT / "models" / "digits_rnn.json")
    with Module(path, "digits_rnn") as module:
        assert module.api.n_networks == 1
    assert rnnrun("inspect", path, "--network=digits_rnn").stdout == rnnrun("inspect", path).stdout
    assert rnnrun("run", path, "--network=other", "--input", "x=zeros").returncode == 2


def test_json_models_go_with_onnx_and_an_older_application_gets_the_first(rnncc, files, tmp_path):
    """One that knows no list of networks uses the table that the query returns."""
    done = rnncc("bundle", ROOT / "models" / "digits_rnn.json", files / "joiner.onnx", "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
    with Module(tmp_path / "m.so") as module, module.context() as context:
        assert module.info.name == b"digits_rnn" and module.api.n_networks == 2
        assert context.run({"x": numpy.zeros((1, 8, 8), numpy.float32)})["probabilities"].shape == (1, 10)


# ---- what makes no sense ----

BROKEN = ('{"format": "rnncc", "version": 1, "name": "broken", "inputs": [{"name": "x", "dtype": "f32", "shape": [2]}], '
          '"outputs": ["y"], "nodes": [{"op": "Relu", "inputs": ["z"], "outputs": ["y"]}]}')


@pytest.mark.parametrize("words, message", [
    ([], "bundle: expected networks, found none"),
    (["encoder.onnx", "encoder.onnx"], 'expected networks of different names, found encoder twice: "encoder.onnx" and "encoder.onnx"; '
                                       "give one another name: NAME=encoder.onnx"),
    (["joiner=encoder.onnx", "joiner.onnx"], "found joiner twice"),
    (["1st=encoder.onnx"], 'expected a file, or NAME=FILE with an identifier of C as the name, found "1st=encoder.onnx"'),
    (["encoder="], 'found "encoder="'),
    (["encoder.onnx", "absent.onnx", "--dim=T=5"], 'cannot read "absent.onnx": No such file or directory'),
    (["encoder.onnx", "joiner.onnx", "--dim=T=5", "--dim=joiner:U=5"], 'joiner.onnx: error: --dim: the model has no named dim "U"'),
    (["encoder.onnx", "joiner.onnx", "--dim=T=5", "--dim=U=5"], '--dim: expected a named dim, found "U"; encoder has "T"; joiner has none'),
    (["encoder.onnx", "--dim=T=5", "--state=x=none"], '--state: expected an input and an output of one network, found "x" and "none"; of inputs encoder has "x"; of outputs encoder has "steps"'),
    (["encoder.onnx", "--dim=T=5", "--freeze=decoder:h=1"], '--freeze: expected an input, found "decoder:h"; encoder has "x"'),
    (["encoder.onnx", "--emit=dot"], '--emit: expected so, c, h or wheel, found "dot"'),
    (["encoder.onnx", "--dim=T=5", "--name=a"], "--name goes with --static, --emit=h, --emit=c and --emit=wheel")], ids=lambda words: " ".join(words))
def test_what_makes_no_sense_is_told(rnncc, files, tmp_path, words, message):
    done = rnncc("bundle", *words, "-o", tmp_path / "m.so", cwd=files)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_must_be_named(rnncc, files):
    for words, message in ((["encoder.onnx"], "expected -o PATH, found none"),
                           (["encoder.onnx", "-o", "-", "--emit=h"], "expected --name=NAME with -o -, found none")):
        done = rnncc("bundle", *words, cwd=files)
        assert done.returncode == 2 and message in done.stderr, done.stderr


@pytest.mark.parametrize("kind", ["--emit=so", "--emit=c", "--emit=h", "--static"])
def test_one_of_three_that_does_not_compile_leaves_nothing(rnncc, files, tmp_path, kind):
    (tmp_path / "broken.json").write_text(BROKEN)
    done = rnncc("bundle", files / "encoder.onnx", tmp_path / "broken.json", files / "joiner.onnx", "--dim=T=5", kind,
                 "-o", tmp_path / "out")
    assert done.returncode == 2 and 'nothing produces the tensor "z"' in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["broken.json"]


def test_steps_name_the_network(rnncc, files):
    done = rnncc("bundle", "encoder.onnx", "joiner.onnx", "--dim=T=5", "--emit=h", "--name=a", "-o", "-", "--time-passes",
                 "--target=x86-64-v3,x86-64", "--dump-after=lower", cwd=files)
    assert done.returncode == 0, done.stderr
    for network in ("encoder", "joiner"):
        for target in ("x86-64-v3", "x86-64"):
            assert f" ms  lower of {network} for {target}\n" in done.stderr
            assert f"network {network}\ntarget {target}\n" in done.stderr
    assert "a_NETWORKS = 2," in done.stdout
