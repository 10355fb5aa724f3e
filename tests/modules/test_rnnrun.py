# SPDX-License-Identifier: MIT
"""rnnrun with a module written by hand (fake_module.c): y = 2 x + (runs before), z = k + 1."""
import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from conftest import build_directory

X = np.arange(6, dtype=np.float32).reshape(2, 3)
K = np.array([5, -7], dtype=np.int64)


@pytest.fixture
def module():
    return build_directory() / "tests" / "modules" / "fake_module.so"


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "k.npy", K)
    return tmp_path


def refuses(done, exit_code, *words):
    assert done.returncode == exit_code, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("rnnrun: error: "), done.stderr
    for word in words:
        assert str(word) in lines[0]


def given(files):
    return "--input", f"x=@{files}/x.npy", "--input", f"k=@{files}/k.npy"


def test_run_writes_npy_that_numpy_reads(rnnrun, module, files):
    done = rnnrun("run", module, *given(files), "--output", f"y=@{files}/y.npy", "--output", f"z=@{files}/z.npy")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    y, z = np.load(files / "y.npy"), np.load(files / "z.npy")
    assert y.dtype == np.float32 and np.array_equal(y, 2 * X)
    assert z.dtype == np.int64 and np.array_equal(z, K + 1)
    assert sorted(path.name for path in files.iterdir()) == ["k.npy", "x.npy", "y.npy", "z.npy"]


def test_run_prints_outputs_without_a_file(rnnrun, module, files):
    done = rnnrun("run", *given(files), module)
    assert done.stdout == "y f32 2x3: 0 2 4 6 8 10\nz i64 2: 6 -6\n"


def test_steps_keep_the_state(rnnrun, module, files):
    rnnrun("run", module, *given(files), "--steps", 4, "--output", f"y=@{files}/y.npy")
    assert np.array_equal(np.load(files / "y.npy"), 2 * X + 3)


def test_raw_input_and_output(rnnrun, module, files):
    X.tofile(files / "x.bin")
    K.tofile(files / "k.bin")
    done = rnnrun("run", module, "--input", f"x=2x3xf32=@{files}/x.bin", "--input", f"k=2xi64=@{files}/k.bin",
                  "--output", f"y=@{files}/y.bin")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.fromfile(files / "y.bin", np.float32), 2 * X.ravel())


def test_fills_take_their_length_from_dim_then_optimum(rnnrun, module):
    assert rnnrun("run", module, "--input", "x=zeros", "--input", "k=zeros", "--dim", "T=2").stdout.startswith(
        "y f32 2x3: 0 0 0 0 0 0\n")
    assert rnnrun("run", module, "--input", "x=random", "--input", "k=zeros").stdout.startswith("y f32 4x3:")


def test_random_fill_depends_on_the_seed_only(rnnrun, module):
    def y(fill):
        return rnnrun("run", module, "--input", f"x={fill}", "--input", "k=zeros").stdout

    assert y("random") == y("random:0") != y("random:1") == y("random:1")


def test_version_2_header_is_read(rnnrun, module, files):
    with open(files / "x.npy", "wb") as file:
        np.lib.format.write_array(file, X, version=(2, 0))
    assert rnnrun("run", module, *given(files)).stdout.startswith("y f32 2x3: 0 2 4")


@pytest.mark.parametrize("array, word", [
    (X.astype(np.complex64), "<c8"),
    (X.astype(np.float64), "must be f32"),
    (X.astype(">f4"), ">f4"),
    (np.asfortranarray(X), "Fortran"),
    (X[0], "must have rank 2"),
    (np.zeros((2, 4), np.float32), "axis 1 must be 3 long"),
    (np.zeros((9, 3), np.float32), "T = 9, but this module takes 1 to 8"),
    (np.zeros((0, 3), np.float32), "T = 0"),
    (np.zeros((1,) * 9, np.float32), "rank above 8"),
    (np.zeros(2, [("a", "<f4")]), "structured"),
])
def test_unfit_npy_is_refused_with_the_reason(rnnrun, module, files, array, word):
    np.save(files / "x.npy", array)
    refuses(rnnrun("run", module, *given(files)), 2, word)


@pytest.mark.parametrize("header", [b"(+2, 3), }", b"(02, 3), }", b"(2, 3), } import os", b"(2, 3), }\0", b"(2, 3), }}"])
def test_a_header_that_numpy_would_not_write_is_refused(rnnrun, module, files, header):
    whole = (files / "x.npy").read_bytes()
    (files / "x.npy").write_bytes(re.sub(rb"\(2, 3\), } {%d}" % (len(header) - 9), header, whole))
    refuses(rnnrun("run", module, *given(files)), 2, "not a .npy header that NumPy writes")


def test_a_fifo_does_not_wait_for_its_writer(rnnrun, module, files):
    (files / "x.npy").unlink()
    os.mkfifo(files / "x.npy")
    refuses(rnnrun("run", module, *given(files), timeout=60), 2, "x.npy: not a regular file")


def test_truncated_npy_is_refused_at_every_length(rnnrun, module, files):
    whole = (files / "x.npy").read_bytes()
    for length in [*range(0, 20), 60, 100, *range(120, len(whole))]:
        (files / "x.npy").write_bytes(whole[:length])
        refuses(rnnrun("run", module, *given(files)), 2, "x.npy")
    (files / "x.npy").write_bytes(whole + b"\0")
    refuses(rnnrun("run", module, *given(files)), 2, "needs 24 bytes of data, it has 25")


def test_npy_that_claims_a_huge_shape_is_refused_before_allocating(rnnrun, module, files):
    whole = (files / "x.npy").read_bytes()
    for shape in (b"(999999999999, 3), }", b"(9223372036854775807, 9), }"):
        (files / "x.npy").write_bytes(re.sub(rb"\(2, 3\), } {%d}" % (len(shape) - 9), shape, whole))
        refuses(rnnrun("run", module, *given(files)), 2, "x.npy")


def test_usage_errors_name_the_argument(rnnrun, module, files):
    refuses(rnnrun("fly", module), 2, "fly")
    refuses(rnnrun("run"), 2, "MODULE.so")
    refuses(rnnrun("run", module, "--wings"), 2, "--wings")
    refuses(rnnrun("run", module, "--input"), 2, "--input")
    refuses(rnnrun("run", module, "--input", "x"), 2, "NAME=VALUE")
    refuses(rnnrun("run", module, "--input", "x=ones"), 2, "x=ones")
    refuses(rnnrun("run", module, "--input", "x=random:y", "--input", "k=zeros"), 2, "random:")
    refuses(rnnrun("run", module, "--input", "q=zeros"), 2, "q")
    refuses(rnnrun("run", module, "--input", "x=zeros"), 2, "input k is missing")
    refuses(rnnrun("run", module, *given(files), "--dim", "T=4"), 2, "T = 2, but 4 by --dim")
    refuses(rnnrun("run", module, *given(files), "--dim", "U=4"), 2, "U")
    refuses(rnnrun("run", module, *given(files), "--threads", "0"), 2, "--threads: expected")
    refuses(rnnrun("run", module, *given(files), "--threads", "1,2"), 2, "--threads")
    refuses(rnnrun("run", module, *given(files), "--output", "w=@w.npy"), 2, "w")


def test_an_output_may_have_the_longest_name_there_is(rnnrun, module, files):
    path = files / ("y" * 255)
    assert rnnrun("run", module, *given(files), "--output", f"y=@{path}").returncode == 0
    assert path.read_bytes() == (2 * X).tobytes() and len(list(files.iterdir())) == 3


def test_a_run_that_fails_writes_nothing_and_says_what_the_module_said(rnnrun, module, files):
    np.save(files / "k.npy", np.array([99, 0]))
    refuses(rnnrun("run", module, *given(files), "--output", f"y=@{files}/y.npy"), 2, "99 at [0] is out of range")
    assert not (files / "y.npy").exists()


def test_unwritable_output_is_an_environment_error(rnnrun, module, files):
    refuses(rnnrun("run", module, *given(files), "--output", f"y=@{files}/none/y.npy"), 5, "none/y.npy")


@pytest.mark.parametrize("words, output, read", [
    ("run {m} --input x=@x.npy --input k=@k.npy --output y=@m.so", "--output y=@m.so", "the module"),
    ("profile {m} --input x=2x3xf32=@x.bin --input k=zeros --html=link", "--html=link", "--input x=@x.bin"),
    ("run {m} --input x=zeros --input k=zeros --output y=@y.npy --output z=@here/y.npy", "--output z=@here/y.npy",
     "--output y=@y.npy"),
    ("run {m} --input x=zeros --input k=zeros --weights=w --output y=@w", "--output y=@w", "--weights=w"),
    ("profile {m} --html=m.so", "--html=m.so", "the module"),
    ("profile {m} --input x=@x.npy --html=x.npy", "--html=x.npy", "--input x=@x.npy"),
    ("profile {m} --weights=w --trace=./w", "--trace=./w", "--weights=w"),
    ("profile {m} --trace=page --html=here/page", "--html=here/page", "--trace=page"),
])
def test_an_output_that_would_replace_a_file_of_the_command_line_is_refused(rnnrun, module, files, words, output, read):
    """Also by another name or through a link, and two outputs before there is a file."""
    shutil.copy(module, files / "m.so")
    X.tofile(files / "x.bin")
    (files / "w").write_bytes(b"weights")
    (files / "link").symlink_to("x.bin")
    (files / "here").symlink_to(".")
    before = contents(files)
    refuses(rnnrun(*words.format(m=files / "m.so").split(), cwd=files), 2, f"{output} would replace the file of {read}")
    assert contents(files) == before


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_device_is_of_no_one_alone(rnnrun, module, files):
    """Nor is stdout, also if it is a file."""
    words = ["run", module, "--input", "x=zeros", "--input", "k=zeros"]
    done = rnnrun(*words, "--output", "y=@/dev/null", "--output", "z=@/dev/null")
    assert (done.returncode, done.stderr) == (0, "")
    with open(files / "both", "wb") as both:
        subprocess.run([rnnrun.path, *map(str, words), "--output", "y=@/dev/stdout", "--output", "z=@/dev/stdout"], stdout=both, check=True)
    assert (files / "both").stat().st_size > X.nbytes


def test_an_output_takes_the_place_of_its_input(rnnrun, module, files):
    """As a state that is carried from call to call."""
    done = rnnrun("run", module, "--input", "x=@x.npy", "--input", "k=@k.npy", "--output", "y=@x.npy", cwd=files)
    assert (done.returncode, done.stderr) == (0, "")
    assert np.load(files / "x.npy").tolist() == (2 * X).tolist()


def test_a_pipe_is_written_to_and_stays_one(rnnrun, module, files):
    os.mkfifo(files / "y")
    reader = subprocess.Popen(["cat", files / "y"], stdout=subprocess.PIPE)
    try:
        done = rnnrun("run", module, *given(files), "--output", f"y=@{files}/y")
        assert (done.returncode, done.stderr) == (0, "") and (files / "y").is_fifo()
        assert reader.communicate(timeout=20)[0] == (2 * X).tobytes()
    finally:
        reader.kill()


def test_a_device_is_written_to_and_stays_one(rnnrun, module, files):
    """Through a link, so that a failure as root does no harm."""
    for name in ("null", "full"):
        (files / name).symlink_to(f"/dev/{name}")
    assert rnnrun("run", module, *given(files), "--output", f"y=@{files}/null").returncode == 0
    refuses(rnnrun("run", module, *given(files), "--output", f"y=@{files}/full"), 5, "full: No space left on device")
    assert all((files / name).is_char_device() for name in ("null", "full"))


def test_a_link_is_written_through(rnnrun, module, files):
    (files / "link").symlink_to(files / "target.npy")
    rnnrun("run", module, *given(files), "--output", f"y=@{files}/link")
    assert (files / "link").is_symlink() and (files / "target.npy").read_bytes() == (2 * X).tobytes()


def test_stdout_is_appended_to(rnnrun, module, files):
    """Also if it is a file: what is printed comes after the output."""
    words = [*rnnrun.prefix, "run", module, *given(files), "--output", f"y=@{files}/stdout"]
    (files / "stdout").symlink_to("/dev/stdout")
    with open(files / "out", "wb") as out:
        out.write(b"before ")
        out.flush()
        assert subprocess.run(words, stdout=out, timeout=120).returncode == 0
    assert (files / "out").read_bytes() == b"before " + (2 * X).tobytes() + b"z i64 2: 6 -6\n"


@pytest.mark.parametrize("words", [["--help"], ["inspect", "{}"], ["run", "{}", "--input=x=random", "--input=k=random"], ["profile", "{}"], ["bench", "{}", "--runs=2"], ["bench", "{}", "--runs=2", "--json"]],
                         ids=" ".join)
def test_what_does_not_fit_on_stdout_is_an_error(rnnrun, module, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([rnnrun.path, *(word.format(module) for word in words)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 5 and done.stderr.endswith("rnnrun: error: cannot write to stdout\n")
    assert done.stderr.count("error") == 1


def test_a_file_that_cannot_be_loaded_exits_5(rnnrun, module, files, tmp_path):
    (tmp_path / "text.so").write_text("not an object")
    refuses(rnnrun("inspect", tmp_path / "text.so"), 5, "text.so")
    refuses(rnnrun("inspect", tmp_path / "absent.so"), 5, "absent.so")
    os.mkfifo(tmp_path / "pipe.so")
    refuses(rnnrun("inspect", tmp_path / "pipe.so", timeout=20), 5, "pipe.so: expected a file, found a folder, a pipe or a device")
    refuses(rnnrun("inspect", "/lib/x86_64-linux-gnu/libm.so.6"), 5, "no symbol rnncc_module_query")
    refuses(rnnrun("inspect", module, env={"FAKE_MODULE_REFUSES": "1"}), 5, "this CPU lacks avx512f")


def test_a_module_in_this_directory_needs_no_slash(rnnrun, module):
    assert rnnrun("inspect", "fake_module.so", cwd=module.parent).returncode == 0


def test_verify_accepts_within_and_reports_beyond_tolerance(rnnrun, module, files):
    np.save(files / "y.npy", 2 * X + np.float32(1e-6))
    done = rnnrun("verify", module, *given(files), "--expect", f"y=@{files}/y.npy", "--rtol", 0, "--atol", 2e-6)
    assert done.returncode == 0 and done.stdout.startswith("y: ok, 0 of 6"), done.stdout + done.stderr
    wrong = 2 * X
    wrong[1, 2] += 0.5
    np.save(files / "y.npy", wrong)
    done = rnnrun("verify", module, *given(files), "--expect", f"y=@{files}/y.npy")
    assert done.returncode == 1
    assert done.stdout == "y: MISMATCH, 1 of 6 elements differ; worst error 0.5 at [1,2]: got 10, expected 10.5\n"


def test_verify_compares_integers_exactly_and_nan_with_nan(rnnrun, module, files):
    np.save(files / "z.npy", K + 2)
    assert rnnrun("verify", module, *given(files), "--expect", f"z=@{files}/z.npy", "--atol", 100).returncode == 1
    x = X.copy()
    x[0, 1] = np.nan
    np.save(files / "x.npy", x)
    np.save(files / "y.npy", 2 * x)
    assert rnnrun("verify", module, *given(files), "--expect", f"y=@{files}/y.npy").returncode == 0
    np.save(files / "y.npy", 2 * X)
    assert rnnrun("verify", module, *given(files), "--expect", f"y=@{files}/y.npy").returncode == 1


def test_verify_reports_another_shape(rnnrun, module, files):
    np.save(files / "y.npy", X[:1])
    done = rnnrun("verify", module, *given(files), "--expect", f"y=@{files}/y.npy")
    assert (done.returncode, done.stdout) == (1, "y: MISMATCH, shape 2x3, expected 1x3\n")


def test_bench_json_is_an_object_a_line_with_the_promised_fields(rnnrun, module):
    done = rnnrun("bench", module, "--threads", "1,2", "--runs", 50, "--json")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["threads"] for record in records] == [1, 2]
    for record in records:
        assert list(record) == ["threads", "runs", "load_us", "first_us", "p50_us", "p90_us", "p99_us", "p999_us",
                                "max_us", "peak_rss_bytes"]
        assert record["runs"] == 50 and record["peak_rss_bytes"] > 100_000
        assert 0 <= record["p50_us"] <= record["p90_us"] <= record["p99_us"] <= record["p999_us"] <= record["max_us"]


def test_bench_passes_on_the_exit_code_of_a_failing_run(rnnrun, module, files):
    np.save(files / "k.npy", np.array([99, 0]))
    refuses(rnnrun("bench", module, *given(files), "--json"), 2, "out of range")


def test_profile_has_a_row_a_kernel_and_the_sum_of_all(rnnrun, module):
    done = rnnrun("profile", module, "--runs", 10)
    _, row, total = (line.split() for line in done.stdout.splitlines())
    assert row[:5] + row[6:] == ["0.10", "0.10", "100.0", "0.24", "0.96", "double_plain", "y"]
    assert total[:5] + total[6:] == ["0.10", "0.10", "100.0", "0.24", "0.96", "total"]


def test_profile_tells_the_median_from_the_mean(rnnrun, module):
    """Of ten runs the last takes 100 times as long."""
    done = rnnrun("profile", module, "--runs", 10, env={**os.environ, "FAKE_MODULE_RUN": "late"})
    _, row, total = (line.split() for line in done.stdout.splitlines())
    assert row[:4] == total[:4] == ["0.10", "1.09", "100.0", "0.24"]


def test_profile_says_what_part_of_the_measured_peak_a_kernel_reaches(rnnrun, module):
    done = rnnrun("profile", module, "--runs", 10, "--threads", 2)
    peak = float(re.fullmatch(r"peak: (\S+) GFLOP/s, plain multiply-adds in registers on 2 threads\n", done.stderr)[1])
    assert peak > 0.5
    share = float(done.stdout.splitlines()[1].split()[5])
    assert share == pytest.approx(100 * 0.24 / peak, abs=0.06)


def test_the_rates_are_those_of_the_extents_that_ran(rnnrun, module):
    """At T=4 it does 24 operations in 100 ns, at T=8 twice as many."""
    done = rnnrun("profile", module, "--runs", 2, "--dim", "T=8")
    row, total = (line.split() for line in done.stdout.splitlines()[1:])
    assert row[3:5] == total[3:5] == ["0.48", "1.92"] and "do not have" not in done.stderr


def test_profile_of_an_older_module_says_for_which_extents_its_rates_are(rnnrun, module):
    older = {**os.environ, "FAKE_MODULE_RUN": "old"}
    assert "do not have" not in rnnrun("profile", module, "--runs", 2, env=older).stderr
    done = rnnrun("profile", module, "--runs", 2, "--dim", "T=8", env=older)
    assert "GFLOP/s, GB/s and % peak are for T=4, which these runs do not have (8): --dim T=4" in done.stderr
    assert done.stdout.splitlines()[1].split()[3:5] == ["0.24", "0.96"]


def test_products_of_integers_are_compared_with_their_own_peak(rnnrun, module):
    done = rnnrun("profile", module, "--runs", 10, env={**os.environ, "FAKE_MODULE_RUN": "int8"})
    peaks = re.findall(r"peak: (\S+) GFLOP/s, plain multiply-adds( of 8-bit integers)? in registers", done.stderr)
    shares = [line.split()[5] for line in done.stdout.splitlines()[1:]]
    if len(peaks) == 1:  # not known of these vectors
        assert shares == ["-", "-"]
    else:
        assert [float(share) for share in shares] == [pytest.approx(24 / float(peaks[1][0]), abs=0.06)] * 2


def test_a_trace_has_the_kernels_of_a_run_one_after_the_other(rnnrun, module, tmp_path):
    done = rnnrun("profile", module, "--runs", 3, "--trace", tmp_path / "trace.json")
    assert done.returncode == 0, done.stderr
    process, _, _, node, kernel = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert process["args"]["name"] == "fake\x1b[1m"
    assert (node["ph"], node["name"], node["cat"], node["ts"], node["dur"]) == ("X", "y", "node", 0, 0.1)
    assert (kernel["ph"], kernel["name"], kernel["ts"], kernel["dur"]) == ("X", "double_plain", 0, 0.1)


def test_a_trace_that_cannot_be_written_is_an_error_of_the_environment(rnnrun, module, tmp_path):
    refuses(rnnrun("profile", module, "--runs", 1, "--trace", tmp_path / "no" / "trace.json"), 5, "no/trace.json")


def test_inspect_lists_the_interface_with_control_characters_escaped(rnnrun, module):
    text = rnnrun("inspect", module).stdout
    for line in ("model    fake\\x1b[1m", "dim      T 1 to 8, optimum 4", "input    x f32 [T, 3]", "input    k i64 [2]",
                 "output   y f32 [T, 3]", "state    s f32 [1], 1 slot", "isa      plain", "build    by hand"):
        assert line in text.splitlines()
