# SPDX-License-Identifier: MIT
"""`rnncc inspect --explain=int8`: each node of a quantised network runs on integers, or it is said why it does not."""
import numpy
import pytest

from support.model_builder import TYPES, Model


def array(value, dtype="f32"):
    return numpy.asarray(value, TYPES[dtype][0])


class Pairs(Model):
    def quantised(self, x, scale=0.25, zero=array(128, "u8")):
        """x, quantised and dequantised."""
        parameters = [self.constant(array(scale)), self.constant(zero)]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [x, *parameters]), *parameters])

    def weights(self, shape, dtype="i8", scale=0.5, **attributes):
        zero = self.constant(numpy.zeros_like(scale, TYPES[dtype][0]))
        return self.node("DequantizeLinear", [self.constant(numpy.ones(shape, TYPES[dtype][0])), self.constant(array(scale)), zero],
                         **attributes)


def rows_of(rnncc, folder, model):
    """(op, in, why) by node, and the closing line."""
    done = rnncc("inspect", model.write(folder), "--explain=int8")
    assert done.returncode == 0, done.stderr
    head, *rows, last = done.stdout.splitlines()
    ops, places, reasons = head.index("op"), head.index("in "), head.index("why")
    return [(row[ops:places].strip(), row[places:reasons].strip(), row[reasons:].strip()) for row in rows], last


def test_each_node_has_a_row(rnncc, tmp_path):
    model = Pairs()
    x = model.quantised(model.input("x", "f32", [1, 4, 6, 6]))
    y = model.quantised(model.node("Relu", [model.node("Conv", [x, model.weights((8, 4, 3, 3))])]))
    z = model.node("Softmax", [model.node("Flatten", [model.node("MaxPool", [y], kernel_shape=[2, 2])])])
    model.output(z)
    rows, last = rows_of(rnncc, tmp_path, model)
    assert [op for op, _, _ in rows] == ["QuantizeLinear", "QLinearConv", "Clip", "MaxPool", "Flatten", "DequantizeLinear", "Softmax"]
    assert [place for _, place, _ in rows if place == "int8"] and rows[0][1:] == ("f32", "from floats to integers")
    assert rows[3] == ("MaxPool", "int8", "moves, compares or adds integers")
    assert rows[6] == ("Softmax", "f32", "no kernel of integers for Softmax")
    assert last.endswith("million multiply-adds are of integers of 8 bits") and " 0.004608 " in last


OBSTACLES = {
    "its input `x` is in floats": lambda m, x: m.node("MatMul", ["x", m.weights((6, 3))]),
    "its constant `w` is in floats": lambda m, x: m.node("MatMul", [x, m.constant(numpy.ones((6, 3), numpy.float32), "w")]),
    "is quantised to u16, or by blocks": lambda m, x: m.node("MatMul", [x, m.weights((6, 3), "u16")]),
    "has scales of axis 0; a product takes those of the results' channels":
        lambda m, x: m.node("MatMul", [x, m.weights((6, 3), scale=numpy.ones(6), axis=0)]),
    "its attributes leave no common scale": lambda m, x: m.node("Gemm", [x, m.weights((6, 3))], alpha=-1.0),
    "its result is in floats or its bias leaves i32, and no kernel of bytes runs it faster than one of floats":
        lambda m, x: m.node("Conv", [m.node("Unsqueeze", [x, m.constant(numpy.array([0]))]), m.weights((5, 1, 3))], group=5),
    "element by element in registers, from integers": lambda m, x: m.node("Exp", [x]),
    "no kernel of integers for LogSoftmax": lambda m, x: m.node("LogSoftmax", [x]),
    "from integers to floats": lambda m, x: x,
}


@pytest.mark.parametrize("why", OBSTACLES)
def test_each_obstacle_is_told(rnncc, tmp_path, why):
    model = Pairs()
    x = model.quantised(model.input("x", "f32", [5, 6]))
    model.output(OBSTACLES[why](model, x))
    rows, _ = rows_of(rnncc, tmp_path, model)
    assert [row for row in rows if row[1] == "f32" and row[2].endswith(why)], rows


def test_a_network_of_floats_is_of_none(rnncc, root):
    done = rnncc("inspect", root / "models" / "digits_cnn.json", "--explain=int8")
    assert done.returncode == 0 and "int8 " not in done.stdout.partition("\n")[2], done.stdout
    assert done.stdout.splitlines()[-1].startswith("0.0% of ")


@pytest.mark.parametrize("precision, due", [("int8-dynamic", ("int8", "inputs and states by the range of each step")),
                                            ("int8-static", ("int8", "inputs and states by ranges that the model has")),
                                            ("f32", ("f32", "its precision is f32"))])
def test_a_recurrent_layer_is_what_its_precision_says(rnncc, tmp_path, precision, due):
    model = Model("net")
    W, R = (model.constant(numpy.ones((1, 4 * 8, n), numpy.float32)) for n in (6, 8))
    model.output(model.node("LSTM", [model.input("x", "f32", [5, 2, 6]), W, R], hidden_size=8, precision=precision,
                            input_range=[-1.0, 1.0], hidden_range=[-1.0, 1.0]))
    rows, last = rows_of(rnncc, tmp_path, model)
    assert rows == [("LSTM", *due)]
    assert last == f"{100.0 if due[0] == 'int8' else 0.0}% of {5 * 2 * 32 * 14 / 1e6:.4g} million multiply-adds are of integers of 8 bits"


def test_products_that_are_quantised_as_they_run_are_of_integers(rnncc, tmp_path):
    model = Model()
    numbers, scale, zero = model.node("DynamicQuantizeLinear", [model.input("x", "f32", [5, 6])], 3)
    sums = model.node("MatMulInteger", [numbers, model.constant(numpy.ones((6, 3), numpy.int8)), zero])
    model.output(model.node("Mul", [model.node("Cast", [sums], to="f32"), model.node("Mul", [scale, model.constant(array(0.5))])]))
    rows, last = rows_of(rnncc, tmp_path, model)
    assert [row for row in rows if row[:2] == ("MatMulIntegerToFloat", "int8")] and last.startswith("100.0% of "), rows
