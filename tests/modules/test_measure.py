# SPDX-License-Identifier: MIT
"""`rnnrun measure`: times and outputs of a module that comes in by stdin. Whatever the module does, the answer reports
it; anything but a request is refused. The module is fake_module.c: y = 2 x, z = k + 1 in the first run, 100 ns each."""
import json
import os
import random
import signal

import numpy as np
import pytest

from conftest import build_directory

X = np.arange(12, dtype=np.float32).reshape(4, 3)  # T at its optimum
K = np.array([5, -7], dtype=np.int64)
END = b"rnncc-measurement-end\n"


@pytest.fixture(scope="module")
def module():
    return (build_directory() / "tests" / "modules" / "fake_module.so").read_bytes()


def request(module, inputs=(), **keys):
    lines = ["rnncc-measure 1", f"module {len(module)}"]
    lines += [f"{key} {value}" for key, value in keys.items()] + [f"input {len(data)}" for data in inputs] + ["end", ""]
    return b"".join(["\n".join(lines).encode(), module, *inputs, b"rnncc-measure-end\n"])


def ask(rnnrun, sent, **environment):
    return rnnrun("measure", input=sent, text=False, env={**os.environ, **environment})


def answer(done):
    """(the line of JSON, the outputs' bytes); checks the lengths and the end."""
    assert (done.returncode, done.stderr) == (0, b"")
    line, rest = done.stdout.split(b"\n", 1)
    said, outputs = json.loads(line), []
    for length in said["outputs"]:
        outputs.append(rest[:length])
        rest = rest[length:]
    assert rest == END and (said["format"], said["version"]) == ("rnncc-measurement", 1)
    return said, outputs


def test_times_and_the_first_runs_outputs_come_back(rnnrun, module):
    said, outputs = answer(ask(rnnrun, request(module, [X.tobytes(), K.tobytes()], runs=7, outputs=1, evict=1 << 20)))
    assert said["status"] == "ok" and said["runs"] == 7
    assert [said[key] for key in ("least_us", "lower_us", "median_us", "upper_us")] == [0.1] * 4
    assert np.array_equal(np.frombuffer(outputs[0], np.float32), 2 * X.ravel())
    assert np.array_equal(np.frombuffer(outputs[1], np.int64), K + 1)
    assert said["isa"] == "plain" and said["cores"] >= 1 and said["cpu"]


def test_all_runs_are_shared_by_the_workers_that_are_asked_for(rnnrun, module, tmp_path):
    """A schedule for two workers would else be timed as one worker runs it. `profile` runs as applications do."""
    said, _ = answer(ask(rnnrun, request(module, threads=2), FAKE_MODULE_RUN="small"))
    assert (said["threads"], said["median_us"]) == (2, 0.1)
    (tmp_path / "fake.so").write_bytes(module)
    done = rnnrun("profile", tmp_path / "fake.so", "--threads=2", "--runs=1", env={**os.environ, "FAKE_MODULE_RUN": "small"})
    assert done.stdout.splitlines()[1].split()[0] == "1.00", done.stdout


def test_inputs_are_generated_by_seed_as_run_does(rnnrun, module, tmp_path):
    path = tmp_path / "fake.so"
    path.write_bytes(module)
    rnnrun("run", path, *("--input", "x=random:7", "--input", "k=random:7"), "--output", f"y=@{tmp_path}/y.npy")
    _, outputs = answer(ask(rnnrun, request(module, seed=7, outputs=1)))
    assert np.frombuffer(outputs[0], np.float32).tobytes() == np.load(tmp_path / "y.npy").tobytes()


def test_outputs_are_sent_only_on_request(rnnrun, module):
    assert answer(ask(rnnrun, request(module, runs=1)))[0]["outputs"] == [0, 0]


def test_measuring_ends_when_the_median_is_known_or_too_slow(rnnrun, module):
    assert answer(ask(rnnrun, request(module, least_runs=11, precision=0.01)))[0]["runs"] == 11  # all 100 ns
    said, _ = answer(ask(rnnrun, request(module, runs=500, give_up_us=0.05)))
    assert said["gave_up"] and said["runs"] == 3
    said, _ = answer(ask(rnnrun, request(module, runs=500, seconds=10, give_up_us=0.15)))
    assert not said["gave_up"] and said["runs"] == 500


def test_one_nodes_kernels_are_timed(rnnrun, module):
    assert answer(ask(rnnrun, request(module, node="y")))[0]["median_us"] == 0.1
    said, _ = answer(ask(rnnrun, request(module, node="q")))
    assert said["status"] == "failed" and "`q`" in said["message"]


@pytest.mark.parametrize("how, status", [("crash", "crashed"), ("exit", "crashed"), ("hang", "hung")])
def test_a_module_that_does_not_come_back_is_an_answer(rnnrun, module, how, status):
    said, outputs = answer(ask(rnnrun, request(module, limit=0.3), FAKE_MODULE_RUN=how))
    assert said["status"] == status and said["message"] and outputs == []


def test_a_module_hangs_also_where_alarms_are_blocked(rnnrun, module):
    done = rnnrun("measure", input=request(module, limit=0.3), text=False, env={**os.environ, "FAKE_MODULE_RUN": "hang"}, timeout=60,
                  preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM}))
    assert answer(done)[0]["status"] == "hung"


@pytest.mark.parametrize("sent, said", [
    (lambda module: request(b"\x7fELF no module"), "cannot load module"),
    (lambda module: request(module, [X.tobytes()]), "takes 2 inputs"),
    (lambda module: request(module, [X.tobytes(), K.tobytes()[:8]]), "takes 16 bytes"),
    (lambda module: request(module, [X.tobytes(), np.array([99, 0]).tobytes()]), "99 at [0] is out of range"),
])
def test_a_refusal_of_the_module_is_an_answer(rnnrun, module, sent, said):
    told, _ = answer(ask(rnnrun, sent(module)))
    assert told["status"] == "failed" and said in told["message"]


def test_a_module_for_another_cpu_is_an_answer(rnnrun, module):
    told, _ = answer(ask(rnnrun, request(module), FAKE_MODULE_REFUSES="1"))
    assert told["status"] == "failed" and "lacks avx512f" in told["message"]


def test_it_says_how_many_cpus_it_may_use(rnnrun, module):
    mine = os.sched_getaffinity(0)
    done = rnnrun("measure", input=request(module), text=False, preexec_fn=lambda: os.sched_setaffinity(0, {min(mine)}))
    assert answer(done)[0]["cores"] == 1 and answer(ask(rnnrun, request(module)))[0]["cores"] == len(mine)


def test_it_runs_on_another_cpu(aarch64_rnnrun, compile, root):
    module = compile(root / "models" / "digits_cnn.json", "--target=aarch64-linux-gnu").read_bytes()
    said, outputs = answer(ask(aarch64_rnnrun, request(module, runs=3, outputs=1, evict=1 << 20, threads=2)))
    assert (said["status"], said["isa"], said["runs"]) == ("ok", "neon", 3) and said["median_us"] > 0
    assert [len(output) for output in outputs] == [10 * 4]
    assert np.isfinite(np.frombuffer(outputs[0], np.float32)).all()


def refused(done, *words):
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout, len(lines)) == (2, b"", 1), done.stderr
    for word in words:
        assert word in lines[0], lines[0]


@pytest.mark.parametrize("sent, said", [
    (b"", "ends within its lines"),
    (b"\x7fELF\n", "expected `rnncc-measure 1`"),
    (b"rnncc-measure 2\nend\n", "expected `rnncc-measure 1`"),
    (b"rnncc-measure 1\nend\n", "no module"),
    (b"rnncc-measure 1\nmodule 5\nmodule 5\nend\n", "given twice"),
    (b"rnncc-measure 1\nmodule 9000000000\nend\n", "module 9000000000"),
    (b"rnncc-measure 1\nmodule -1\nend\n", "module -1"),
    (b"rnncc-measure 1\nmodule 5\nseconds nan\nend\n", "seconds nan"),
    (b"rnncc-measure 1\nmodule 5\nfoo 1\nend\n", "`foo`"),
    (b"rnncc-measure 1\nmodule 5\nruns\nend\n", "`runs`"),
    (b"rnncc-measure 1\nnode " + 600 * b"x" + b"\n", "too long"),
    (b"rnncc-measure 1\nnode a\0b\n", "no text"),
    (b"rnncc-measure 1\nmodule 5\n" + 65 * b"input 0\n" + b"end\n", "64 inputs"),
    (b"rnncc-measure 1\nmodule 1073741824\nend\nshort", "ends within the module"),
    (b"rnncc-measure 1\nmodule 5\ninput 1073741824\nend\n12345678", "ends within the inputs"),
    (b"rnncc-measure 1\nmodule 5\nend\n123456rnncc-measure-end\n", "last line"),
])
def test_bytes_that_are_not_a_request_are_refused(rnnrun, sent, said):
    refused(ask(rnnrun, sent), said)


def test_a_request_cut_anywhere_is_refused(rnnrun, module):
    whole, rng = request(module, [X.tobytes(), K.tobytes()]), random.Random(1)
    lines = whole.index(b"end\n") + 4
    for length in [*range(0, lines, 7), *(rng.randrange(lines, len(whole)) for _ in range(10)), len(whole) - 1]:
        refused(ask(rnnrun, whole[:length]))


def test_measure_takes_no_words(rnnrun):
    refused(rnnrun("measure", "x.so", text=False), 'measure: expected no MODULE.so, found "x.so"')
