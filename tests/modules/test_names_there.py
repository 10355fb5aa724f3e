# SPDX-License-Identifier: MIT
"""An option that names what is not there is told what there is, the nearest first."""
import pytest

from support.model_builder import Model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    model = Model("names")
    x = model.input("sound", "f32", [model.dim("T", 1, 2, 9), model.dim("Batch", 1, 2, 9)])
    model.input("lengths", "f32", ["T", "Batch"])
    model.output(model.node("Add", [x, "lengths"], ["loud"]), model.node("Sub", [x, "lengths"], ["soft"]))
    return model.write(tmp_path_factory.mktemp("names"))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    model = Model("many")
    for i in range(40):
        model.output(model.node("Relu", [model.input(f"past.{i}", "f32", [2])], [f"present.{i}"]))
    return model.write(tmp_path_factory.mktemp("many"))


KNOBS = "KEY=N of input, workers, batch_parts, hide, depth_block or chunk, with commas between"


@pytest.mark.parametrize("option, message", [
    ("--dim=batch=3", '--dim: the model has no named dim "batch"; it has "Batch", "T"'),
    ("--dim=t=3", '--dim: the model has no named dim "t"; it has "T", "Batch"'),
    ("--state=lenghts=soft", '--state: the model has no input "lenghts"; it has "lengths", "sound"'),
    ("--state=sound=sof", '--state: the model has no output "sof"; it has "soft", "loud"'),
    ("--freeze=lenght=1", '--freeze: the model has no input "lenght"; it has "lengths", "sound"'),
    ("--target=x86-64-v5", '--target: expected "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", '),
    ("--target=x86-64,native+avx9", "--target: expected native without features: it takes none, found "),
    ("--target=aarch64-linux-gnu+dotprot", "--target: expected aarch64-linux-gnu with features of +dotprod "),
    ("--dump-after=infershapes", '--dump-after: expected a step: "infer_shapes", '),
    ("--rnn=worker=2", f'--rnn: expected {KNOBS}, found "worker=2"'),
    ("--conv=winograt", '--conv: expected depthwise, direct, depthwise_int8, direct_int8, tiles_int8, panel_int8, matrices_int8, matrices_bf16, plain, winograd_int8 or winograd, then its KEY=N after commas, found "winograt"'),
    ("--conv=winograd,til=4", "--conv: expected KEY=N of winograd: tile, oc, by_groups or parts, with commas between"),
    ("--layout-search=exact", "--layout-search: expected greedy, none, wide, dp, pbqp or auto")])
def test_rnncc_lists_them(rnncc, model, option, message):
    done = rnncc("inspect", model, option)
    assert (done.returncode, done.stdout) == (2, "") and f"error: {message}" in done.stderr, done.stderr


@pytest.mark.parametrize("options, told", [
    ("--dim=T=3 --dim=T=4", '--dim: expected "T"'), ("--state=sound=soft --state=sound=loud", '--state: expected "sound"'),
    ("--state=sound=soft --state=lengths=soft", '--state: expected "soft"'), ("--freeze=sound=1 --freeze=sound=1", '--freeze: expected "sound"')])
def test_what_is_set_twice_is_told_so(rnncc, model, options, told):
    """Of one network of a bundle, too."""
    done = rnncc("inspect", model, *options.split())
    assert done.returncode == 2 and f"error: {told} once, found it twice" in done.stderr, done.stderr
    first, second = options.replace("=", "=a:", 1).split()
    kind, setting = second[2:].split("=", 1)
    done = rnncc("inspect", f"a={model}", f"b={model}", first, f"--{kind}=a:{setting}")
    assert done.returncode == 2 and f"error: {told} once, found it twice" in done.stderr, done.stderr
    done = rnncc("inspect", f"a={model}", f"b={model}", first, f"--{kind}=b:{setting}")
    assert "twice" not in done.stderr


@pytest.mark.parametrize("kind, own, general", [("dim", "T=3", "T=4"), ("freeze", "sound=[[1]]", "sound=[[2]]"), ("state", "sound=soft", "sound=loud")])
def test_what_is_set_for_all_may_be_set_otherwise_for_one(rnncc, model, kind, own, general):
    """In any order."""
    bundle = ["inspect", f"a={model}", f"b={model}", *([] if kind == "dim" else ["--dim=T=1", "--dim=Batch=1"]), f"--{kind}=a:{own}"]
    each, after = rnncc(*bundle, f"--{kind}=b:{general}"), rnncc(*bundle, f"--{kind}={general}")
    before = rnncc(*bundle[:-1], f"--{kind}={general}", bundle[-1])
    assert (each.returncode, each.stderr) == (0, "")
    assert (after.stdout, after.stderr) == (before.stdout, before.stderr) == (each.stdout, "")


def test_states_for_all_are_each_of_the_network_that_it_fits(rnncc, tmp_path):
    networks = []
    for name, output in (("enc", "hEnc"), ("dec", "hDec")):
        network = Model(name)
        h = network.input("h", "f32", [2])
        network.output(network.node("Relu", [h], [output]), network.node("Tanh", [h], ["y"]))
        networks.append(f"{name}={network.write(tmp_path)}")
    done = rnncc("inspect", *networks, "--state=h=hEnc", "--state=h=hDec")
    assert (done.returncode, done.stderr) == (0, "") and "hEnc" in done.stdout and "hDec" in done.stdout


@pytest.mark.parametrize("option, start, more", [
    ("--freeze=past.17.x=1", ['"past.17"', '"past.1"'], " and 24 more\n"),
    ("--state=past.3=presnt.35", ['"present.35"', '"present.3"'], " and 24 more\n"),
    ("--dim=T=4", ["none\n"], "")])
def test_of_many_names_the_nearest_are_listed(rnncc, many, option, start, more):
    done = rnncc("inspect", many, option)
    (line,) = [line for line in done.stderr.splitlines(True) if "error: " in line]
    listed = line.split("; it has ")[1]
    assert listed.startswith(", ".join(start)) and listed.endswith(more) and listed.count('"') == (32 if more else 0), line


def test_what_states_and_constants_took_is_not_listed(rnncc, model):
    done = rnncc("inspect", model, "--state=sound=loud", "--state=x=soft")
    assert 'has no input "x"; it has "lengths"\n' in done.stderr
    done = rnncc("inspect", model, "--freeze=lengths=[[1]]", "--freeze=x=1")
    assert 'has no input "x"; it has "sound"\n' in done.stderr


@pytest.fixture(scope="module")
def modules(compile, model, many):
    return {"model": compile(model, "--target=x86-64"), "many": compile(many, "--target=x86-64")}


@pytest.mark.every_case
@pytest.mark.parametrize("module, words, message", [
    ("model", ["run", "--dim=Q=3"], '--dim Q: the module has no such dimension; it has "T", "Batch"'),
    ("model", ["run", "--input", "x=zeros"], '--input x: the module has no such input; it has "sound", "lengths"'),
    ("model", ["run", "--output", "y=@y.npy"], '--output y: the module has no such output; it has "loud", "soft"'),
    ("model", ["verify", "--expect", "y=@y.npy"], '--expect y: the module has no such output; it has "loud", "soft"'),
    ("many", ["bench", "--input", "x=zeros"], '"past.15" and 24 more'), ("many", ["bench", "--dim", "T=4"], "it has none")], ids=str)
def test_rnnrun_lists_them(rnnrun, modules, tmp_path, module, words, message):
    done = rnnrun(words[0], modules[module], *words[1:], cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr, done.stderr
