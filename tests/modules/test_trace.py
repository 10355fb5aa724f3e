# SPDX-License-Identifier: MIT
"""rnnrun profile --trace: the rules of the Trace Event Format, and what each worker did in a run."""
import json

import numpy
import pytest

from support.bodies import Body
from support.model_builder import Model

PHASES = {"M": {"ph", "pid", "tid", "name", "args"}, "X": {"ph", "pid", "tid", "name", "cat", "ts", "dur"}}
METADATA = {"process_name": {"name"}, "thread_name": {"name"}, "thread_sort_index": {"sort_index"}}
HOSTILE = 'a "quoted" </script>\\ \x1b[1m node\nof two lines, ünd'


def layers(tmp_path):
    """A loop around a product, and an LSTM of two directions, whose workers are two crews."""
    model = Model()
    x, trip = model.input("x", "f32", [20, 8, 48]), model.input("trip", "i64", [])
    body = Body(model, i="i64", go="bool", h="f32")
    weights = model.constant(numpy.zeros((48, 48), numpy.float32))
    body.output(body.inputs[1], body.node("MatMul", [body.inputs[2], weights]))
    h = model.node("Loop", [trip, None, x], body=body)
    w, r = (model.constant(numpy.zeros((2, 4 * 64, k), numpy.float32)) for k in (48, 64))
    model.output(model.node("LSTM", [h, w, r], hidden_size=64, direction="bidirectional"))
    model.nodes[-1]["name"] = HOSTILE
    return model.write(tmp_path)


@pytest.fixture(scope="module")
def module(compile, tmp_path_factory):
    return compile(layers(tmp_path_factory.mktemp("trace")), "--threads=3")


@pytest.fixture(params=[1, 2, 3])
def trace(rnnrun, module, tmp_path, request):
    """Its events, of that many threads."""
    numpy.save(tmp_path / "trip.npy", numpy.array(5))
    done = rnnrun("profile", module, "--runs", 5, "--threads", request.param, "--input", f"trip=@{tmp_path}/trip.npy",
                  "--trace", tmp_path / "trace.json")
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "trace.json").read_text())
    assert document["displayTimeUnit"] in ("ms", "ns")
    return document["traceEvents"], request.param


def workers_of(events):
    """Those that took part. Where other programs keep a worker from running, the caller runs alone."""
    return {event["tid"] for event in events if event["ph"] == "X"}


def ns(microseconds):
    return round(1000 * microseconds)


def test_every_event_has_its_phases_fields(trace):
    for event in trace[0]:
        assert PHASES[event["ph"]] <= set(event) <= PHASES[event["ph"]] | {"args"}, event
        assert isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert set(event["args"]) == METADATA[event["name"]]
        else:
            assert event["ts"] >= 0 and event["dur"] >= 0 and isinstance(event["cat"], str)
            assert set(event.get("args", {})) in (set(), {"GFLOP/s", "GB/s", "node"})


def test_each_worker_is_a_thread_with_a_name(trace):
    events, threads = trace
    named = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert named == {0: "worker 0 (the caller)"} | {i: f"worker {i}" for i in range(1, threads)}
    assert 0 in workers_of(events) and workers_of(events) <= set(range(threads))
    assert len([event for event in events if event["name"] == "process_name"]) == 1


def test_events_of_a_thread_are_in_order_and_nest(trace):
    """Kernels lie in their node's event, which they fill; no two others overlap."""
    events, threads = trace
    for worker in range(threads):
        end_of_node = end = -1
        for event in (e for e in events if e["ph"] == "X" and e["tid"] == worker):
            begin, until = ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])
            if event["cat"] == "kernel":
                assert end <= begin and until <= end_of_node
                assert event["args"]["node"] == node
                end = until
                continue
            assert begin >= end_of_node and (end_of_node < 0 or end == end_of_node)
            end_of_node, node = until, event["name"]
            end = until if event["cat"] == "barrier" else begin


def test_a_first_run_of_one_worker_cuts_no_other_short(rnnrun, module, tmp_path):
    """A worker that is not there in time leaves the caller alone, in one program of fifteen; its run has no barriers."""
    numpy.save(tmp_path / "trip.npy", numpy.array(5))
    for _ in range(25):
        done = rnnrun("profile", module, "--runs", 2, "--threads", 2, "--input", f"trip=@{tmp_path}/trip.npy", "--trace",
                      tmp_path / "trace.json")
        assert done.returncode == 0, done.stderr
        names = {event["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
        assert any("recurrent_steps" in name for name in names), names


def test_all_kernels_of_the_run_are_there(trace):
    """The product ran five times, each layer's direction once, on each worker."""
    events, _ = trace
    workers = workers_of(events)
    for worker in workers:
        kernels = [e for e in events if e["ph"] == "X" and e["tid"] == worker and e["cat"] == "kernel"]
        products = [e for e in kernels if "gemm" in e["name"] and e["args"]["node"] != HOSTILE]
        assert len(products) == 5, [e["args"]["node"] for e in kernels]
        assert len([e for e in kernels if "recurrent_steps" in e["name"] and e["args"]["node"] == HOSTILE]) == 2
    waits = [e for e in events if e.get("cat") == "barrier"]
    assert bool(waits) == (len(workers) > 1)


def test_a_trace_that_cannot_be_written_is_an_error(rnnrun, module, tmp_path):
    done = rnnrun("profile", module, "--runs", 1, "--trace", tmp_path / "no" / "trace.json")
    assert done.returncode == 5 and "no/trace.json" in done.stderr
