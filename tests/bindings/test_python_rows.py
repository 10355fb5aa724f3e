# SPDX-License-Identifier: MIT
"""Rows of a table through a module: whatever their extents and order, each has the result that it has alone, and what is
wrong with one is said of that one."""
import numpy
import pytest

from support.model_builder import Model
from support.module import rnncc

from rnncc import ray, spark
from rnncc.rows import array_of

FEATURES, UNITS, MOST = 3, 4, 6
WHOLE = numpy.arange(12, dtype=numpy.float32).reshape(4, 3)


def gru(name, lengths, state=False):
    """y[T, 1, B, 4] of x[T, B, 3], with h0[1, B, 4] carried or not, and with each row's length or without."""
    rng, model = numpy.random.default_rng(1), Model(name)
    model.dim("T", 2, 5, 40), model.dim("B", 1, 2, MOST)
    x = model.input("x", "f32", ["T", "B", FEATURES])
    seq = model.input("seq", "i32", ["B"]) if lengths else None
    h = model.state("h0", "hN", "f32", [1, "B", UNITS], batch_axis=1) if state else None
    w, r = (model.constant(rng.standard_normal((1, 3 * UNITS, n)).astype("f4")) for n in (FEATURES, UNITS))
    model.output(*model.node("GRU", [x, w, r, None, seq, h], ["y", "hN"], hidden_size=UNITS))
    return model


@pytest.fixture(scope="module")
def tagger(compile, tmp_path_factory):
    with rnncc.load(compile(gru("tagger", False, True).write(tmp_path_factory.mktemp("tagger"))), threads=1) as module:
        yield module


@pytest.fixture(scope="module")
def padded(compile, tmp_path_factory):
    with rnncc.load(compile(gru("padded", True).write(tmp_path_factory.mktemp("padded"))), threads=1) as module:
        yield module


def rows_of(count, least=2, seed=5):
    rng = numpy.random.default_rng(seed)
    return [rng.standard_normal((rng.integers(least, 12), FEATURES)).astype("f4") for _ in range(count)]


def alone(module, x):
    """y and hN of one row."""
    feeds = {"x": x[:, None]} | ({"seq": numpy.array([len(x)], "i4")} if "seq" in [it.name for it in module.inputs] else {})
    with module.context() as context:
        found = context.run(feeds)
    return found["y"][:, :, 0], found["hN"][:, 0]


def is_alone(module, x, found):
    y, h = alone(module, x)
    return (found["y"].shape == y.shape and numpy.allclose(found["y"], y, atol=1e-6) and
            numpy.allclose(found["hN"], h, atol=1e-6))


def runs_of(rows, values):
    """The extents of the rows of each run."""
    return [[row.extents["T"] for row in run] for run in rows.runs([rows.row(0, {"x": it}) for it in values])]


@pytest.mark.parametrize("count", [0, 1, 5, 40])
def test_each_row_has_the_result_that_it_has_alone(tagger, count):
    """A state is zero where a row begins."""
    values = rows_of(count)
    found = rnncc.Rows(tagger).score([{"x": it} for it in values])
    assert len(found) == count and all(is_alone(tagger, x, it) for x, it in zip(values, found))


@pytest.mark.parametrize("least", [1, 2])
def test_rows_of_other_lengths_are_padded_where_the_model_takes_lengths(padded, least):
    """Also up to the least that the dim was compiled for."""
    values = rows_of(40, least)
    rows = rnncc.Rows(padded, pad={"T": "seq"})
    for x, found in zip(values, rows.score([{"x": it} for it in values])):
        assert found["y"].shape == (len(x), 1, UNITS)
        if len(x) > 1:
            assert is_alone(padded, x, found)
        else:
            two = numpy.concatenate([x, x * 0])[:, None]
            assert numpy.allclose(found["hN"], padded(two, numpy.array([1], "i4"))[1][:, 0], atol=1e-6)
    lengths = [extent for run in runs_of(rows, values) for extent in run]
    assert lengths == sorted(lengths) and len(runs_of(rows, values)) == 7  # of 6 rows and less


def test_a_run_has_rows_of_one_length_and_no_more_than_the_module_takes(tagger):
    values = [WHOLE[:2]] * 8 + [WHOLE] * 3
    assert runs_of(rnncc.Rows(tagger), values) == [[2] * 6, [2] * 2, [4] * 3]
    assert runs_of(rnncc.Rows(tagger, most=4), values) == [[2] * 4, [2] * 4, [4] * 3]


def test_a_batch_is_filled_where_the_module_takes_so_many_or_none(compile, tmp_path):
    model = Model()
    model.dim("B", 4, 4, 8, multiple=4), model.output(model.node("Relu", [model.input("x", "f32", ["B", 3])]))
    with rnncc.load(compile(model.write(tmp_path)), threads=1) as module:
        found = rnncc.Rows(module).score([{"x": it - 10} for it in numpy.repeat(WHOLE, 3, 0)])
        assert numpy.array_equal([list(it.values())[0] for it in found], numpy.maximum(numpy.repeat(WHOLE, 3, 0) - 10, 0))


def test_without_a_batch_a_row_is_a_run(compile, tmp_path):
    model = Model()
    model.dim("N", 1, 4, 9), model.output(model.node("Relu", [model.input("x", "f32", ["N", 3])], ["y"]))
    with rnncc.load(compile(model.write(tmp_path)), threads=1) as module:
        for x, found in zip((WHOLE, WHOLE[:2]), rnncc.Rows(module).score([{"x": WHOLE}, {"x": WHOLE[:2]}])):
            assert numpy.array_equal(found["y"], x)
        with pytest.raises(rnncc.ArgumentError, match="the network has no batch B"):
            rnncc.Rows(module, pad={"N": "x"})


def deep(count):
    """A list within lists."""
    value = []
    for _ in range(count):
        value = [value]
    return value


@pytest.mark.parametrize("value, words", [
    (WHOLE.astype("f8"), "input x: expected f32, found float64"),
    (WHOLE.reshape(2, 6), "input x: expected a row of shape (T, 3), found (2, 6)"),
    (WHOLE[None], "input x: expected a row of shape (T, 3), found (1, 4, 3)"),
    (WHOLE[:1], "T is 1, but was compiled for 2 to 40"),
    (numpy.zeros((41, 3), "f4"), "T is 41, but was compiled for 2 to 40"),
    (WHOLE.tobytes()[:-4], "input x: 11 elements have no shape (T, 3)"),
    (WHOLE.tobytes()[:-1], "input x: 47 bytes are no whole elements of f32"),
    ([[1, 2, 3], [1, 2]], "input x: expected parts of one shape, found (2,), (3,)"),
    ([[1, 2, "a"]], "input x: expected an array of f32, found [1, 2, 'a']"),
    (None, "input x: expected an array of f32, found None"),
    ("text", "input x: expected an array of f32, found 'text'"),
    ([[[[1]]]], "input x: expected a number, found a list with more axes than a row has"),
    (deep(700), "input x: expected a number, found a list with more axes than a row has"),
    (numpy.array({}, object), "input x: expected an array of f32, found array({}, dtype=object)"),
    (memoryview(WHOLE)[::2], "expected a row, found dict: memoryview: casts are restricted to C-contiguous views"),
], ids=lambda it: it[:40] if isinstance(it, str) else type(it).__name__)
def test_a_row_that_is_wrong_leaves_the_others_as_they_are(tagger, value, words):
    found = rnncc.Rows(tagger).score([{"x": WHOLE}, {"x": value}, {"x": WHOLE}])
    assert str(found[1]) == words and isinstance(found[1], rnncc.Error)
    assert is_alone(tagger, WHOLE, found[0]) and is_alone(tagger, WHOLE, found[2])


@pytest.mark.parametrize("row", [None, 7, [["x"]]], ids=str)
def test_what_is_no_row_leaves_the_others_as_they_are(tagger, row):
    found = rnncc.Rows(tagger).score([{"x": WHOLE}, row, {"x": WHOLE}])
    assert str(found[1]).startswith("expected ") and isinstance(found[1], rnncc.ArgumentError)
    assert is_alone(tagger, WHOLE, found[0]) and is_alone(tagger, WHOLE, found[2])


@pytest.fixture(scope="module")
def words(compile, tmp_path_factory):
    """y[B, 2]: rows of a table of 5, by k[B]."""
    model = Model("words")
    model.dim("B", 1, 2, 8)
    table = model.constant(numpy.arange(10, dtype="f4").reshape(5, 2))
    model.output(model.node("Gather", [table, model.input("k", "i64", ["B"])], ["y"]))
    with rnncc.load(compile(model.write(tmp_path_factory.mktemp("words"))), threads=1) as module:
        yield module


def test_of_a_run_that_fails_each_row_is_run_alone(words):
    found = rnncc.Rows(words).score([{"k": k} for k in (3, 99, 4)])
    assert isinstance(found[1], rnncc.DataError) and "99" in str(found[1])
    assert found[0]["y"].tolist() == [6, 7] and found[2]["y"].tolist() == [8, 9]


@pytest.mark.parametrize("value, due", [
    (3, 3), (numpy.int64(3), 3), (numpy.array(3), 3), (True, 1), ((3).to_bytes(8, "little"), 3), (3.0, None), (2 ** 70, None),
    (numpy.int32(3), None), ("3", None)], ids=repr)
def test_no_number_is_changed(words, value, due):
    if due is None:
        with pytest.raises(rnncc.DTypeError, match="input k: expected"):
            array_of(words.inputs[0], value, [])
    else:
        found = array_of(words.inputs[0], value, [])
        assert found.dtype == "i8" and found.shape == () and found == due


@pytest.mark.parametrize("options, message", [
    ({"pad": {"S": "seq"}}, r"pad: expected a dim \(T, B\) and an input \(x, seq\), found 'S': 'seq'"),
    ({"pad": {"T": "lens"}}, "found 'T': 'lens'"), ({"most": 0}, "most: expected a number of rows from 1 on, found 0")])
def test_options_of_no_sense_are_refused(padded, options, message):
    with pytest.raises(rnncc.ArgumentError, match=message):
        rnncc.Rows(padded, **options)


# ---- tables of Ray Data and PySpark, without these: tests/cluster has them ----

def ragged(values):
    column = numpy.empty(len(values), object)
    column[:] = values
    return column


def test_ray_data_gets_columns_of_arrays(padded):
    values = rows_of(20)
    scorer = ray.Scorer(padded.path, threads=1, inputs={"x": "frames"}, outputs={"hN": "last"}, pad={"T": "seq"})
    found = scorer({"name": numpy.arange(20), "frames": ragged(values)})
    assert list(found) == ["name", "y", "last"] and found["last"].shape == (20, 1, UNITS) and found["y"].dtype == object
    for k, x in enumerate(values):
        assert found["name"][k] == k and is_alone(padded, x, {"y": found["y"][k], "hN": found["last"][k]})
    same = scorer({"frames": numpy.stack([WHOLE, WHOLE])})
    assert same["y"].dtype == object and same["y"][1].shape == (4, 1, UNITS)
    none = scorer({"frames": ragged([])})
    assert none["last"].shape == (0, 1, UNITS) and len(none["y"]) == 0


def test_ray_data_gets_a_column_of_errors_or_an_exception(padded):
    table = {"x": ragged([WHOLE, WHOLE[:, :2], WHOLE])}
    found = ray.Scorer(padded.path, threads=1, pad={"T": "seq"}, errors="error")(table)
    assert found["error"].tolist() == ["", "input x: expected a row of shape (T, 3), found (4, 2)", ""]
    assert numpy.isnan(found["hN"][1]).all() and found["y"][1].shape == (0, 1, UNITS) and is_alone(
        padded, WHOLE, {"y": found["y"][2], "hN": found["hN"][2]})
    with pytest.raises(rnncc.ShapeError, match=r"^row 1 of 3: input x: expected a row of shape"):
        ray.Scorer(padded.path, threads=1, pad={"T": "seq"})(table)


@pytest.mark.parametrize("given, message", [
    ({"inputs": {"z": "x"}}, "inputs: expected names of x, found z"),
    ({"outputs": {"z": "x"}}, "outputs: expected names of y, hN, found z"),
    ({"inputs": {"x": "sound"}}, "expected the column sound, found x, name")])
def test_columns_that_are_not_there_are_said(padded, given, message):
    with pytest.raises(rnncc.ArgumentError, match=message):
        ray.Scorer(padded.path, threads=1, pad={"T": "seq"}, **given)({"x": ragged([WHOLE]), "name": ragged(["a"])})


class Frame(dict):
    """What spark.py uses of a DataFrame."""

    @property
    def columns(self):
        return list(self)

    def drop(self, columns):
        return Frame({name: column for name, column in self.items() if name not in columns})


def test_pyspark_gets_lists_and_nulls(padded):
    """Arrow's arrays of arrays are NumPy's arrays of objects."""
    nested = ragged([ragged(list(WHOLE)), ragged([1, 2]), ragged(list(WHOLE[:2]))])
    scorer = spark.Scorer(padded.path, threads=1, pad={"T": "seq"}, outputs={"hN": "last"}, errors="why")
    first, second = scorer(iter([Frame(name=["a", "b", "c"], x=nested), Frame(name=["d"], x=[WHOLE])]))
    assert list(first) == ["name", "y", "last", "why"] and first["why"][0] is None and "input x" in first["why"][1]
    assert first["y"][1] is None and first["last"][1] is None
    for found, k, x in ((first, 0, WHOLE), (first, 2, WHOLE[:2]), (second, 0, WHOLE)):
        assert is_alone(padded, x, {"y": numpy.array(found["y"][k], "f4"), "hN": numpy.array(found["last"][k], "f4")})
        assert isinstance(found["y"][k], list) and found["last"][k][0].dtype == "f4"


def test_workers_of_pyspark_load_a_module_once(padded, monkeypatch):
    loaded = []
    monkeypatch.setattr(spark, "load", lambda *words, **options: loaded.append(options) or rnncc.load(*words, **options))
    spark._module.cache_clear()
    for _ in range(3):
        list(spark.Scorer(padded.path, threads=1, pad={"T": "seq"})(iter([Frame(x=[WHOLE])])))
    assert loaded == [{"threads": 1}]
