# SPDX-License-Identifier: MIT
"""If, Loop and Scan that depend on run-time values compute what ONNX Runtime does, with any number of threads."""
import numpy
import pytest

from support.bodies import Body
from support.flow import same_at_all_threads
from support.model_builder import Model
from support.module import Module, ModuleError


def whole(rng, *shape):
    return rng.integers(-4, 5, shape).astype(numpy.float32)


def i64(*numbers):
    return numpy.array(numbers, numpy.int64)


def condition(truth):
    return numpy.array(truth)


# If


def branches(model, then, otherwise):
    """Both functions get the model, and return the outputs of their body."""
    bodies = [Body(model), Body(model)]
    for body, build in zip(bodies, (then, otherwise)):
        results = build(body)
        body.output(*([results] if isinstance(results, str) else results))
    return dict(then_branch=bodies[0], else_branch=bodies[1])


def test_if_runs_the_branch_that_the_condition_says(compile, tmp_path):
    rng = numpy.random.default_rng(1)
    model = Model()
    c, x = model.input("c", "bool", []), model.input("x", "f32", [model.dim("T", 1, 4, 9), 5])
    w = model.constant(whole(rng, 5, 3))
    both = branches(model, lambda b: [b.node("MatMul", [x, w]), b.node("Relu", [x])],
                    lambda b: [b.node("Slice", [x, b.constant(i64(0)), b.constant(i64(3)), b.constant(i64(1))]),
                               b.node("Identity", [x])])
    first, second = model.node("If", [c], 2, **both)
    model.output(first, model.node("Neg", [second]), second)
    feeds = [{"c": condition(truth), "x": whole(rng, T, 5)} for T in (1, 9, 4) for truth in (True, False)]
    same_at_all_threads(compile, model, tmp_path, feeds)


def test_a_branch_may_return_nothing_of_what_the_other_has(compile, tmp_path):
    model = Model()
    c, x = model.input("c", "bool", []), model.input("x", "f32", [4])
    nothing = model.constant(numpy.zeros(0, numpy.float32))
    both = branches(model, lambda b: b.node("Identity", [nothing]), lambda b: b.node("Relu", [x]))
    y = model.node("If", [c], **both)
    model.output(model.node("Concat", [y, x], axis=0))
    feeds = [{"c": condition(truth), "x": numpy.arange(4, dtype=numpy.float32)} for truth in (True, False, True)]
    same_at_all_threads(compile, model, tmp_path, feeds)


def test_branches_may_return_constants_and_outer_values(compile, tmp_path):
    rng = numpy.random.default_rng(2)
    model = Model()
    c, x = model.input("c", "bool", [1]), model.input("x", "f32", [6])
    k, y = model.constant(whole(rng, 6)), model.node("Abs", [x])
    both = branches(model, lambda b: [b.node("Identity", [v]) for v in (k, y, y)],
                    lambda b: [b.node("Identity", [v]) for v in (x, k, y)])
    model.output(*model.node("If", [c], 3, **both))
    same_at_all_threads(compile, model, tmp_path, [{"c": condition([t]), "x": whole(rng, 6)} for t in (True, False)])


def test_branches_of_different_lengths_give_a_data_dependent_output(compile, tmp_path):
    rng = numpy.random.default_rng(3)
    model = Model()
    c, x = model.input("c", "bool", []), model.input("x", "f32", [7, 2])
    both = branches(model, lambda b: b.node("Concat", [x, x], axis=0),
                    lambda b: b.node("Compress", [x, b.node("Greater", [b.node("ReduceSum", [x, b.constant(i64(1))],
                                                                              keepdims=0),
                                                                       b.constant(numpy.float32(0))])], axis=0))
    y = model.node("If", [c], **both)
    model.output(y, model.node("Relu", [y]), model.node("Shape", [y]))
    feeds = [{"c": condition(truth), "x": whole(rng, 7, 2)} for truth in (True, False, True, False)]
    same_at_all_threads(compile, model, tmp_path, feeds)


# Loop


def loop_body(model, carried, build):
    """build(body, number, condition, *carried) returns the outputs."""
    body = Body(model, number="i64", condition="bool", **{f"carried{k}": "f32" for k in range(carried)})
    return body.output(*build(body, *body.inputs))


def test_loop_runs_as_often_as_the_data_says(compile, tmp_path):
    rng = numpy.random.default_rng(4)
    model = Model()
    n, x = model.input("n", "i64", []), model.input("x", "f32", [9])
    body = loop_body(model, 2, lambda b, i, c, s, t: [b.node("Identity", [c]), b.node("Add", [s, t]), s])
    s, t = model.node("Loop", [n, None, x, model.node("Neg", [x])], 2, body=body)
    model.output(s, model.node("Sub", [s, t]))
    feeds = [{"n": numpy.array(n), "x": whole(rng, 9)} for n in (0, 1, 2, 7, -3)]
    same_at_all_threads(compile, model, tmp_path, feeds)


def test_loop_ends_when_its_condition_fails(compile, tmp_path):
    rng = numpy.random.default_rng(5)
    model = Model()
    c, x = model.input("c", "bool", []), model.input("x", "f32", [3, 4])

    def build(b, i, c, s):
        doubled = b.node("Add", [s, s])
        largest = b.node("ReduceMax", [doubled], keepdims=0)
        return [b.node("Less", [largest, b.constant(numpy.float32(100))]), doubled, largest, b.node("Mul", [x, s])]

    outputs = model.node("Loop", [model.constant(i64(6)), c, x], 3, body=loop_body(model, 1, build))
    model.output(*outputs, model.node("ReduceSum", [outputs[2]], keepdims=0))
    feeds = [{"c": condition(truth), "x": numpy.abs(whole(rng, 3, 4)) * scale + 1}
             for scale in (1, 3, 9, 0) for truth in (True, False)]
    same_at_all_threads(compile, model, tmp_path, feeds)


def test_while_has_no_limit(compile, tmp_path):
    model = Model()
    x = model.input("x", "f32", [5])

    def build(b, i, c, s):
        halved = b.node("Mul", [s, b.constant(numpy.float32(0.5))])
        return [b.node("Greater", [b.node("ReduceMax", [halved], keepdims=0), b.constant(numpy.float32(1))]), halved]

    model.output(model.node("Loop", [None, model.constant(condition(True)), x], body=loop_body(model, 1, build)))
    same_at_all_threads(compile, model, tmp_path, [{"x": numpy.arange(5, dtype=numpy.float32) * scale}
                                                   for scale in (0, 1, 1000)])


def halves(rng, *shape):
    return whole(rng, *shape).astype(numpy.float16)


def test_bodies_of_halves_have_constants_and_lengths_of_their_own(compile, tmp_path):
    """The nodes of a body compute in f32, one by one; what comes in and goes out of it stays f16."""
    rng, model = numpy.random.default_rng(23), Model()
    c, n, x = model.input("c", "bool", []), model.input("n", "i64", []), model.input("x", "f16", [6])
    half, y = model.constant(numpy.float16(0.5)), model.node("Add", [x, x])
    ends = [model.constant(i64(number)) for number in (0, 2)]
    for value in (x, y):
        model.output(model.node("If", [c], **branches(model, lambda b: b.node("Mul", [value, half]),
                                                      lambda b: b.node("Identity", [model.constant(halves(rng, 6))]))))
    shorter = model.node("If", [c], **branches(model, lambda b: b.node("Slice", [y, *ends]), lambda b: b.node("Identity", [y])))
    body = Body(model, number="i64", condition="bool", s="f16", t="f16")
    _, go_on, s, t = body.inputs
    body.output(go_on, body.node("Mul", [s, half]), body.node("Concat", [t, body.node("Slice", [s, *ends])], axis=0), s)
    scan = Body(model, s="f16", row="f16")
    following = scan.node("Tanh", [scan.node("Add", [scan.node("Mul", [scan.inputs[1], half]), scan.inputs[0]])])
    scan.output(following, scan.node("Neg", [following]))
    rows = model.node("Reshape", [y, model.constant(i64(3, 2))])
    model.output(model.node("Neg", [shorter]), *model.node("Loop", [model.node("Min", [n, model.constant(numpy.array(4))]), None, x, y],
                                                           3, body=body),
                 *model.node("Scan", [model.constant(halves(rng, 2)), rows], 2, body=scan, num_scan_inputs=1))
    feeds = [{"c": condition(truth), "n": numpy.array(n), "x": halves(rng, 6)} for truth in (True, False) for n in (0, 3)]
    same_at_all_threads(compile, model, tmp_path, feeds, tolerance=2.0**-10)


def test_a_table_may_be_shorter_than_a_loop_that_a_condition_ends(compile, tmp_path):
    """An index beyond the table is found in the run, where it is reached."""
    model = Model()
    most, limit = model.input("most", "i64", []), model.input("limit", "f32", [])
    table = model.constant(numpy.arange(24, dtype=numpy.float32).reshape(8, 3))

    def build(b, i, c, s):
        following = b.node("Add", [s, b.node("Gather", [table, i])])
        return [b.node("Less", [b.node("ReduceMax", [following], keepdims=0), limit]), following]

    start = model.constant(numpy.zeros(3, numpy.float32))
    for trip in (most, model.constant(numpy.array(100))):
        model.output(model.node("Loop", [trip, None, start], body=loop_body(model, 1, build)))
    feeds = [{"most": numpy.array(turns), "limit": numpy.array(limit, numpy.float32)} for turns, limit in ((3, 50), (100, 70), (8, 100))]
    same_at_all_threads(compile, model, tmp_path, feeds)
    with Module(compile(model.write(tmp_path))) as module, module.context(1) as context, pytest.raises(ModuleError, match="out of range"):
        context.run({"most": numpy.array(9), "limit": numpy.array(1000, numpy.float32)})


@pytest.mark.parametrize("first", [0, 2])
def test_a_loop_that_counts_may_have_a_trip_count_too(compile, tmp_path, first):
    """A negative one is none; and a limit or a trip count may be a list of one number."""
    model = Model()
    most, listed, x = model.input("most", "i64", []), model.input("listed", "i64", [1]), model.input("x", "f32", [2])
    limits = [model.constant(numpy.array(20)), listed]
    for trip in (most, listed, model.constant(numpy.array(-3)), None):
        for limit in limits:
            body = Body(model, number="i64", condition="bool", i="i64", s="f32")
            following = body.node("Add", [body.inputs[2], body.constant(numpy.array(1))])
            body.output(body.node("Less", [following, limit]), following, body.node("Add", [body.inputs[3], x]))
            model.output(*model.node("Loop", [trip, None, model.constant(numpy.array(first)), x], 2, body=body))
    feeds = [{"most": numpy.array(a), "listed": i64(b), "x": numpy.array([1, 2], numpy.float32)} for a, b in ((5, 3), (-1, -7), (0, 5), (30, 0))]
    same_at_all_threads(compile, model, tmp_path, feeds)


def counting_loop(model, limit, first, always, greater):
    """`i = first; while (i < limit) { s += i; collect i; i = i + 1; }`; always: `do { ... } while`."""
    body = Body(model, number="i64", condition="bool", i="i64", s="f32")
    i, s = body.inputs[2:]
    following = body.node("Add", [i, body.node("CastLike", [body.constant(numpy.array(1, numpy.int32)), i])])
    again = body.node("Greater", [limit, following]) if greater else body.node("Less", [following, limit])
    as_float = body.node("Cast", [i], to="f32")
    body.output(body.node("Cast", [again], to="bool"), following, body.node("Add", [s, as_float]), as_float)
    begin, zero = model.constant(numpy.array(first)), model.constant(numpy.float32(0))
    begins = None if always else model.node("Less", [begin, limit])
    return model.node("Loop", [None, begins, begin, zero], 3, body=body)


@pytest.mark.parametrize("first, always, greater", [(0, False, False), (0, False, True), (3, False, False), (3, True, True),
                                                    (-2, True, False)])
def test_loops_that_count_are_as_long_as_their_limit(rnncc, compile, tmp_path, first, always, greater):
    """What they collect is as long as an input, so that nothing is left for a run to check."""
    model = Model()
    x = model.input("x", "f32", [model.dim("N", 1, 4, 9)])
    last, total, places = counting_loop(model, model.node("Size", [x]), first, always, greater)
    model.output(last, total, places)
    if first == 0:
        model.output(model.node("Add", [places, x]))
    same_at_all_threads(compile, model, tmp_path, [{"x": numpy.arange(N, dtype=numpy.float32)} for N in range(1, 10)])
    assert "each run checks" not in rnncc(model.write(tmp_path), "-o", tmp_path / "m.so").stderr


def test_an_element_that_counts_is_in_its_place(rnncc, tmp_path):
    """x[i:i + 1] has one element in each iteration: a condition may be made of it."""
    model = Model()
    x = model.input("x", "f32", [model.dim("N", 1, 4, 9)])
    body = Body(model, number="i64", condition="bool", i="i64")
    i, one = body.inputs[2], body.constant(numpy.array(1))
    following = body.node("Add", [i, one])
    bounds = [body.node("Unsqueeze", [value, body.constant(numpy.array([0]))]) for value in (i, following)]
    element = body.node("Slice", [x, *bounds])
    body.output(body.node("Less", [following, model.node("Size", [x])]), following, element)
    _, elements = model.node("Loop", [None, None, model.constant(numpy.array(0))], 2, body=body)
    model.output(elements)
    told = rnncc("inspect", model.write(tmp_path))
    assert told.returncode == 0 and "f32[N, 1]" in told.stdout, told.stdout + told.stderr


def test_loop_over_an_axis_reads_slices_and_collects(compile, tmp_path):
    rng = numpy.random.default_rng(6)
    model = Model()
    x = model.input("x", "f32", [model.dim("T", 0, 4, 12), 3])
    T = model.node("Squeeze", [model.node("Shape", [x], start=0, end=1)])

    def build(b, i, c, s):
        step = b.node("Gather", [x, i])
        total = b.node("Add", [s, step])
        number = b.node("Cast", [i], to="f32")
        return [c, total, b.node("Mul", [total, number]), b.node("Add", [i, i])]

    outputs = model.node("Loop", [T, None, model.constant(numpy.zeros(3, numpy.float32))], 3,
                         body=loop_body(model, 1, build))
    model.output(*outputs)
    same_at_all_threads(compile, model, tmp_path, [{"x": whole(rng, T, 3)} for T in (1, 5, 12, 2, 0)])


def test_carried_values_may_grow(compile, tmp_path):
    rng = numpy.random.default_rng(7)
    model = Model()
    n, x = model.input("n", "i64", []), model.input("x", "f32", [model.dim("T", 1, 2, 4), 2])
    steps = model.node("Shape", [x], start=0, end=1)

    def build(b, i, c, s):
        last = b.node("Slice", [s, b.constant(i64(-1)), b.constant(i64(2**40)), b.constant(i64(0))])
        longer = b.node("Concat", [s, b.node("Neg", [last]), last], axis=0)
        return [b.node("Less", [i, n]), longer]

    y = model.node("Loop", [model.node("Squeeze", [steps]), None, x], body=loop_body(model, 1, build))
    model.output(y, model.node("ReduceSum", [y, model.constant(i64(0))], keepdims=0))
    feeds = [{"n": numpy.array(n), "x": whole(rng, T, 2)} for T in (1, 2, 4) for n in (0, 1, 9)]
    same_at_all_threads(compile, model, tmp_path, feeds)


def test_control_flow_nests(compile, tmp_path):
    """A loop in a loop with a branch in it, each reading values from all outer graphs."""
    rng = numpy.random.default_rng(8)
    model = Model()
    n, x, w = model.input("n", "i64", []), model.input("x", "f32", [4, 4]), model.constant(whole(rng, 4, 4))
    shared = model.node("Relu", [x])
    two, three, most = (model.constant(numpy.array(number)) for number in (2, 3, 20))
    low, high = model.constant(numpy.float32(-9)), model.constant(numpy.float32(9))

    def outer(b, i, c, s):
        bent = b.node("Clip", [b.node("MatMul", [s, w]), low, high])

        def inner(d, j, c, t):
            even = d.node("Equal", [d.node("Mod", [d.node("Add", [i, j]), two]), d.constant(numpy.array(0))])
            both = branches(model, lambda e: e.node("Add", [t, shared]), lambda e: e.node("Sub", [t, bent]))
            return [d.node("Less", [j, three]), d.node("If", [even], **both)]

        total = b.node("Loop", [most, b.node("Less", [i, two]), s], body=loop_body(model, 1, inner))
        return [b.node("Less", [i, n]), b.node("Add", [total, bent]), b.node("ReduceMax", [total], keepdims=0)]

    model.output(*model.node("Loop", [most, model.node("Greater", [n, model.constant(numpy.array(0))]), x], 2,
                             body=loop_body(model, 1, outer)))
    same_at_all_threads(compile, model, tmp_path, [{"n": numpy.array(n), "x": whole(rng, 4, 4)} for n in (0, 1, 2, 4)])


# Scan


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("backwards", [0, 1])
def test_scan_reads_and_writes_slices_in_their_place(compile, tmp_path, axis, backwards):
    rng = numpy.random.default_rng([axis + 1, backwards])
    model = Model()
    T = model.dim("T", 1, 4, 11)
    shape = [2, 3, 5]
    shape[axis] = T
    slice_shape = [extent for extent in shape if extent != T]
    x, y = model.input("x", "f32", shape), model.input("y", "f32", [T])
    w = model.constant(whole(rng, slice_shape[1], slice_shape[1]))
    body = Body(model, s="f32", x="f32", y="f32")
    s, a, b = body.inputs
    total = body.node("Clip", [body.node("Add", [body.node("Mul", [s, b]), body.node("MatMul", [a, w])]),
                               body.constant(numpy.float32(-30)), body.constant(numpy.float32(30))])
    body.output(total, body.node("Identity", [total]), body.node("ReduceSum", [total], keepdims=0))
    outputs = model.node("Scan", [model.constant(whole(rng, *slice_shape)), x, y], 3, body=body, num_scan_inputs=2,
                         scan_input_axes=[axis, 0], scan_input_directions=[backwards, 0],
                         scan_output_axes=[axis, 0], scan_output_directions=[0, backwards])
    model.output(*outputs)

    def feed(steps):
        return {"x": whole(rng, *[steps if extent == T else extent for extent in shape]), "y": whole(rng, steps)}

    same_at_all_threads(compile, model, tmp_path, [feed(steps) for steps in (1, 4, 11)])


@pytest.mark.parametrize("steps", [1, 2])
def test_scan_of_few_steps_returns_its_last_state(compile, tmp_path, steps):
    rng = numpy.random.default_rng(steps)
    model = Model()
    x, s = model.input("x", "f32", [steps, 3]), model.input("s", "f32", [3])
    body = Body(model, s="f32", x="f32")
    total = body.node("Add", body.inputs)
    body.output(total, body.node("Neg", [total]))
    model.output(*model.node("Scan", [s, x], 2, body=body, num_scan_inputs=1))
    same_at_all_threads(compile, model, tmp_path, [{"x": whole(rng, steps, 3), "s": whole(rng, 3)}])


def test_scan_of_a_cell_is_a_recurrent_network(compile, tmp_path):
    rng = numpy.random.default_rng(9)
    model = Model()
    x = model.input("x", "f32", [model.dim("T", 1, 8, 30), 2, 12])
    w, r = (model.constant(rng.uniform(-0.3, 0.3, shape).astype(numpy.float32)) for shape in ((12, 17), (17, 17)))
    body = Body(model, h="f32", x="f32")
    h = body.node("Tanh", [body.node("Add", [body.node("MatMul", [body.inputs[1], w]),
                                             body.node("MatMul", [body.inputs[0], r])])])
    body.output(h, body.node("Identity", [h]))
    model.output(*model.node("Scan", [model.constant(numpy.zeros((2, 17), numpy.float32)), x], 2, body=body,
                             num_scan_inputs=1))
    feeds = [{"x": rng.uniform(-1, 1, (T, 2, 12)).astype(numpy.float32)} for T in (1, 30, 7)]
    same_at_all_threads(compile, model, tmp_path, feeds, tolerance=2.0**-18)  # 30 steps of tanh, each with an error of 2^-22


# The promises of a run


def accumulating():
    """A state that advances n steps in each run; a step reads x at `at`."""
    model = Model()
    n, at, x = model.input("n", "i64", []), model.input("at", "i64", []), model.input("x", "f32", [4])
    model.state("h0", "hN", "f32", [4])
    three = model.constant(numpy.array(3))

    def build(b, i, c, h):
        late = b.node("Equal", [i, three])
        both = branches(model, lambda e: e.node("Add", [h, e.node("Gather", [x, at])]), lambda e: e.node("Add", [h, x]))
        return [c, b.node("If", [late], **both)]

    h = model.node("Loop", [n, None, "h0"], body=loop_body(model, 1, build))
    model.node("Identity", [h], ["hN"])
    model.output(model.node("Neg", [h]))
    return model


@pytest.mark.parametrize("threads", [1, 3])
def test_states_pass_from_run_to_run_and_faults_change_nothing(compile, tmp_path, threads):
    model = accumulating()
    x = numpy.arange(4, dtype=numpy.float32)
    with Module(compile(model.write(tmp_path))) as module, module.context(threads) as context:
        expected = numpy.zeros(4, numpy.float32)
        for n, at, good in [(2, 99, True), (4, 1, True), (4, 4, False), (0, 9, True), (5, -9, False), (5, -1, True)]:
            feeds = {"n": numpy.array(n), "at": numpy.array(at), "x": x}
            if not good:
                before = context.state_get("h0")
                with pytest.raises(ModuleError, match="out of range"):
                    context.run(feeds)
                numpy.testing.assert_array_equal(context.state_get("h0"), before)
                continue
            expected = expected + sum(x[at] if i == 3 else x for i in range(n))
            numpy.testing.assert_array_equal(context.run(feeds)[model.outputs[0]], -expected)


def test_known_conditions_and_counts_leave_no_control_flow(compile, rnncc, tmp_path):
    model = Model()
    x = model.input("x", "f32", [5])
    both = branches(model, lambda b: b.node("Relu", [x]), lambda b: b.node("Neg", [x]))
    y = model.node("If", [model.constant(condition(False))], **both)
    body = loop_body(model, 1, lambda b, i, c, s: [c, b.node("Add", [s, b.node("Gather", [x, i])]), s])
    model.output(*model.node("Loop", [model.constant(i64(4)), None, y], 2, body=body))
    rng = numpy.random.default_rng(10)
    same_at_all_threads(compile, model, tmp_path, [{"x": whole(rng, 5)}], threads=(1, 2))
    dump = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so", "--dump-after=infer_shapes").stderr
    assert "Loop" not in dump and "If(" not in dump


UNKNOWN_COUNT = "(input 0, `n`) must be known at compile time: a constant (--freeze"
UNSUPPORTED = {
    "a shape that alternates": (lambda b, i, c, s: [c, b.node("Transpose", [s])], "goes in as"),
    "a count that nothing bounds": (lambda b, i, c, s: [c, s, s], UNKNOWN_COUNT),
    "longer and longer slices": (lambda b, i, c, s: [c, s, b.node("Slice", [
        s, b.constant(i64(0)), b.node("Unsqueeze", [i, b.constant(i64(0))])])], UNKNOWN_COUNT),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unbounded_memory_is_refused(rnncc, tmp_path, name):
    build, words = UNSUPPORTED[name]
    model = Model()
    n, x = model.input("n", "i64", []), model.input("x", "f32", [2, 3])
    body = loop_body(model, 1, build)
    outputs = model.node("Loop", [n, None, x], len(body.outputs) - 1, body=body)
    model.output(*([outputs] if isinstance(outputs, str) else outputs))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == 3 and words in done.stderr, done.stderr


def test_control_flow_is_the_same_from_a_saved_model(rnncc, tmp_path):
    path = accumulating().write(tmp_path)
    saved = tmp_path / "saved.json"
    assert rnncc(path, "--emit=graph", "-o", saved).returncode == 0
    dumps = [rnncc(model, "-o", tmp_path / "m.so", "--dump-after=alias_views").stderr for model in (path, saved)]
    assert dumps[0] == dumps[1] and "n0.body {" in dumps[0]
