# SPDX-License-Identifier: MIT
"""clang missing, failing, hanging, or a file of rnncc's own missing: exit 5 in time, the old output intact, nothing left
behind."""
import os
import re
import shutil
import signal
import stat
import subprocess
import time

import pytest

from support.clang import BUILD, clang_name
from support.preloaded import preloaded

EXIT_ENVIRONMENT = 5
HONEST = BUILD.resolve() / "tests" / "support" / "cached_clang"  # what a clang does that lies only after it


@pytest.fixture
def attempt(rnncc, root, tmp_path):
    """attempt(clang) compiles over an old output and checks the promises of every failure."""

    def run(clang, *options):
        output = tmp_path / "out" / "model.so"
        output.parent.mkdir()
        output.write_text("old")
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        environment = {**os.environ, "RNNCC_CLANG": str(clang), "TMPDIR": str(temporary)}
        done = rnncc(root / "models" / "digits_rnn.json", "-o", output, *options, env=environment)
        assert done.returncode == EXIT_ENVIRONMENT, done.stderr
        assert output.read_text() == "old"
        assert os.listdir(output.parent) == ["model.so"]
        assert os.listdir(temporary) == []
        return done.stderr

    return run


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_missing_clang_says_how_to_get_it(attempt, tmp_path):
    assert attempt(tmp_path / "no-such-clang").count(f"apt-get install {clang_name()}") == 1


@pytest.fixture
def changed(rnncc, root, tmp_path):
    """changed(pattern, text) makes a program whose bytes differ so; returns what compiles the digits to a form with it."""

    def make(pattern, text):
        program = tmp_path / "rnncc"
        program.write_bytes(re.sub(pattern, text, rnncc.path.read_bytes()))
        program.chmod(0o755)
        model, environment = root / "models" / "digits_rnn.json", {**os.environ, "RNNCC_DATA": os.environ.get("RNNCC_DATA", str(root))}
        return lambda emit: subprocess.run([program, model, f"--emit={emit}", "-o", tmp_path / emit], capture_output=True,
                                           text=True, timeout=60, env=environment)

    return make


@pytest.mark.unsanitized
def test_missing_libclang_says_how_to_get_it(changed, tmp_path):
    """Here a program that looks for one of another name. What parses no template does without."""
    llvm = clang_name().removeprefix("clang-")
    run = changed(rb"libclang(?=[-.][^\0/]*\0)", b"libclown")
    assert run("graph").returncode == 0
    done = run("so")
    assert done.returncode == EXIT_ENVIRONMENT and not (tmp_path / "so").exists()
    assert "error: cannot load libclang" in done.stderr
    assert re.search(r"templates of kernels: libclown\S+: .*; \S+/lib/libclown\S+: ", done.stderr), "what the loader says of both places"
    assert f"apt-get install libclang1-{llvm} {clang_name()} lld-{llvm}" in done.stderr


@pytest.mark.unsanitized
def test_a_libclang_without_one_of_the_functions_is_told(changed, tmp_path):
    """Here a program that looks for one that no libclang has."""
    done = changed(rb"\0clang_tokenize\0", rb"\0clang_tokenise\0")("so")
    assert done.returncode == EXIT_ENVIRONMENT and not (tmp_path / "so").exists()
    assert re.search("error: cannot load libclang, .*undefined symbol: clang_tokenise; install it", done.stderr), done.stderr


@pytest.mark.parametrize("target", ["x86-64", "powerpc64le-linux-gnu"])
@pytest.mark.parametrize("name, told", [("no-such-clang", "not found; install it"), ("", "cannot be started: Permission denied")])
def test_a_clang_that_is_no_program_is_told_for_every_target(attempt, tmp_path, name, told, target):
    """Of a triple that has no row of its own clang is asked for its macros first."""
    assert attempt(tmp_path / name, f"--target={target}").count(told) == 1


@pytest.mark.parametrize("absent, told", [
    ("templates/[a-z]*.c", "error: cannot read this file of rnncc's own: No such file or directory; install rnncc again, whole"),
    ("templates/simd/simd.h", "error: 'simd/simd.h' file not found, which is rnncc's own, or clang's; install that again"),
    ("runtime/*.c", "runtime: error: expected the runtime's sources, found none (is rnncc installed whole?)")])
def test_what_is_missing_of_its_own_files_is_told(attempt, root, tmp_path, monkeypatch, absent, told):
    """Without the runtime's sources the module would have no symbol."""
    for folder in ("templates", "runtime", "schedules"):
        shutil.copytree(root / folder, tmp_path / "data" / folder)
    for file in (tmp_path / "data").glob(absent):
        file.unlink()
    monkeypatch.setenv("RNNCC_DATA", str(tmp_path / "data"))
    assert told in attempt(clang_name())


def test_a_wheel_without_its_loader_is_not_made(rnncc, root, tmp_path):
    for folder in ("templates", "runtime", "schedules"):
        shutil.copytree(root / folder, tmp_path / "data" / folder, ignore=shutil.ignore_patterns("bindings"))
    done = rnncc(root / "models" / "digits_rnn.json", "--emit=wheel", "-o", tmp_path / "out",
                 env={**os.environ, "RNNCC_DATA": str(tmp_path / "data")})
    assert done.returncode == EXIT_ENVIRONMENT and "rnncc: error: cannot list: No such file or directory (is" in done.stderr
    assert not any((tmp_path / "out").glob("*"))


@pytest.mark.unsanitized
def test_a_file_of_its_own_that_changes_while_it_is_read_is_told(rnncc, root, tmp_path):
    """Another rnncc is installed meanwhile."""
    environment = {**os.environ, "LD_PRELOAD": preloaded("file_grows", tmp_path), "GROWING_FILE": "rnncc.h"}
    done = rnncc(root / "models" / "digits_rnn.json", "--emit=c", "-o", tmp_path / "out", env=environment)
    assert done.returncode == EXIT_ENVIRONMENT, done.stderr
    assert f"error: a file of rnncc's own changed while it was read: file '{tmp_path}/out/rnncc.h' modified" in done.stderr


def test_failing_clang_is_quoted(attempt, tmp_path):
    message = attempt(script(tmp_path / "clang", "echo the reason >&2; exit 7\n"))
    assert "status 7" in message and message.count("the reason") == 1, "of several sources it is said once"


def test_sources_that_fail_for_reasons_of_their_own_have_each_told(attempt, tmp_path):
    message = attempt(script(tmp_path / "clang", 'case "$*" in *network.c*) echo one ;; *) echo other ;; esac >&2; exit 7\n'))
    assert message.count("status 7: one") == 1 and message.count("status 7: other") == 1


@pytest.mark.parametrize("macro, target, told", [
    ("#define __clang_major__ 14", "x86-64", "expected clang 15 or newer, found clang 14; install one (Debian: apt-get"),
    ("#define __clang_major__ 16", "riscv64-linux-gnu+rvv256", "expected clang 17 or newer, found clang 16; install one"),
    ("#define __GNUC__ 12", "x86-64", "expected clang 15 or newer, found another compiler; install one"),
    ("#define __clang_major__ 99", "x86-64", "failed with status 1: the reason"),
])
def test_a_clang_that_is_too_old_is_told_once_it_fails(attempt, tmp_path, macro, target, told):
    clang = script(tmp_path / "clang", f'case "$*" in *-dM*) echo "{macro}" ;; *) echo the reason >&2; exit 1 ;; esac\n')
    assert told in attempt(clang, f"--target={target}")


EXTRA = "void *rnncc_module_query(void) { return 0; } "
LIES = {
    "an empty file": (": > module.so", "is no shared object of ELF: it has 0 bytes"),
    "another file": ("cp /etc/passwd module.so", "is no shared object of ELF"),
    "an object": ("cp runtime.o module.so", "is no shared object of ELF"),
    "a part": ("truncate -s 5000 module.so", "is cut short: of 5000 bytes"),
    "for another machine": (r"printf '\026' | dd of=module.so bs=1 seek=18 conv=notrunc 2>&1", "is for machine 22 of ELF, not for x86_64"),
    "without the symbol": ("link 'static int x; int *y(void); int *y(void) { return &x; }' -fvisibility=hidden",
                           "does not export rnncc_module_query"),
    "with a second symbol": (f"link '{EXTRA} int more = 1;'", "exports more, not rnncc_module_query alone"),
    "with a constructor": (f"link '{EXTRA} __attribute__((constructor)) static void f(void) {{}}'", "has a constructor"),
    "with an executable stack": (f"link '{EXTRA}' -Wl,-z,execstack", "has an executable stack"),
    "with relocations of code": (
        f"link '{EXTRA} extern int e; __asm__(\".text; .quad rnncc_module_query\");' -Wl,-z,notext", "(TEXTREL)"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_a_clang_has_written_is_read_before_it_is_the_output(lie, attempt, tmp_path):
    """It ends with status 0, and links something else than it was asked for."""
    command, told = LIES[lie]
    clang = script(tmp_path / "clang", f"""
        link() {{ echo "$1" | {clang_name()} -x c - -shared -nostartfiles -fPIC -fuse-ld=lld $2 -o module.so; }}
        {HONEST} "$@" || exit
        case "$*" in *-shared*) {command} ;; esac\n""")
    message = attempt(clang, "--target=x86-64-v2")
    assert f"{clang}: error: ended well, but what it wrote " in message and told in message


def test_an_object_without_the_modules_table_is_told(attempt, tmp_path):
    """Into which rnncc writes what calls need of the stack."""
    clang = script(tmp_path / "clang", f"""
        case "$*" in *" -c network.c "*) sed -i 's/^const Module rnncc_module/const Module other/' network.c ;; esac
        exec {HONEST} "$@"\n""")
    assert "network.o: error: expected the symbol rnncc_module in what clang wrote" in attempt(clang)


@pytest.mark.parametrize("broken, expected", [("undeclared", "error: use of undeclared identifier 'undeclared'"),
                                              ("1 / 0", "warning: division by zero is undefined")])
def test_what_clang_dislikes_is_told_of_the_node(rnncc, root, tmp_path, broken, expected):
    """A unit with a bad line, as a mistake in an emitter would make it: libclang knows whose line it is."""
    clang = script(tmp_path / "clang", f"""
        case "$*" in *" -c runtime.c "*) exec {HONEST} "$@" ;; esac
        [ ! -f network.c ] || grep -q '{broken};$' network.c || sed -i '/^static void k[0-9]*_run_steps/s,{{$,&{broken};,' network.c
        exec clang-19 "$@"\n""")
    done = rnncc(root / "models" / "digits_rnn.json", "-o", tmp_path / "m.so", env={**os.environ, "RNNCC_CLANG": str(clang)})
    assert "digits_rnn.json: nodes[1]: " in done.stderr and "in generated code: " in done.stderr and expected in done.stderr
    assert done.returncode == (EXIT_ENVIRONMENT if "error" in expected else 0)
    assert (tmp_path / "m.so").exists() == (done.returncode == 0)


def test_the_data_folder_may_be_relative(rnncc, root, tmp_path):
    """clang runs in another folder than rnncc, and finds its headers."""
    data = os.path.relpath(os.environ.get("RNNCC_DATA", root), root)
    model = root / "models" / "digits_rnn.json"
    done = rnncc(model, "-o", tmp_path / "m.so", cwd=root, env={**os.environ, "RNNCC_DATA": data})
    assert done.returncode == 0, done.stderr


@pytest.mark.unsanitized
@pytest.mark.parametrize("emit", ["h", "c"])
def test_rnncc_needs_no_thread(rnncc, root, tmp_path, emit):
    """Nor does libclang, where the system has none to give. (lld does, and fails as any tool may.)"""
    output = tmp_path / "out"
    environment = {**os.environ, "LD_PRELOAD": preloaded("no_threads", tmp_path)}
    done = rnncc(root / "models" / "digits_rnn.json", f"--emit={emit}", "-o", output, env=environment)
    assert done.returncode == 0 and output.exists(), done.stderr


@pytest.mark.parametrize("folder", ["-x", "a b;$(touch x)"])
def test_temporaries_go_where_tmpdir_says(rnncc, root, tmp_path, folder):
    """A relative one, too, whose name begins like an option."""
    environment = {**os.environ, "TMPDIR": folder}
    missing = rnncc(root / "models" / "digits_rnn.json", "-o", tmp_path / "m.so", env=environment, cwd=tmp_path)
    assert missing.returncode == EXIT_ENVIRONMENT and f"cannot create {folder}/" in missing.stderr
    (tmp_path / folder).mkdir()
    done = rnncc(root / "models" / "digits_rnn.json", "-o", tmp_path / "m.so", env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path)) == sorted([folder, "m.so"]) and os.listdir(tmp_path / folder) == []


def test_crashing_clang_is_a_failure(attempt, tmp_path):
    assert "status 139" in attempt(script(tmp_path / "clang", "kill -SEGV $$\n"))


@pytest.mark.parametrize("before", ["", "exec >&- 2>&-; "], ids=["", "with its output closed"])
def test_hanging_clang_ends_at_the_timeout(attempt, tmp_path, before):
    assert "within 1 s" in attempt(script(tmp_path / "clang", before + "sleep infinity\n"), "--tool-timeout=1")


def test_of_a_clang_that_says_100_mb_the_begin_is_quoted(attempt, tmp_path):
    message = attempt(script(tmp_path / "clang", "yes 'a line that clang says' | head -c 100000000 >&2; exit 1\n"))
    assert "failed with status 1" in message and "a line that clang says" in message and len(message) < 1 << 18


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing_behind(rnncc, root, tmp_path, number):
    """Nor its clang, which has closed its output and runs on."""
    clang = script(tmp_path / "clang", f"exec >&- 2>&-; echo $$ >>{tmp_path}/begun; touch {tmp_path}/started; exec sleep 100\n")
    folder, temporary = tmp_path / "out", tmp_path / "temporary"
    folder.mkdir(), temporary.mkdir()
    environment = {**os.environ, "RNNCC_CLANG": str(clang), "TMPDIR": str(temporary)}
    command = [*rnncc.prefix, root / "models" / "digits_rnn.json", "-o", folder / "m.so"]
    # Under nohup the tests ignore SIGHUP, and so would rnncc.
    compiler = subprocess.Popen(command, env=environment, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    while not (tmp_path / "started").exists():
        assert compiler.poll() is None
        time.sleep(0.01)
    compiler.send_signal(number)
    assert compiler.wait(timeout=20) == -number
    assert os.listdir(folder) == [] and os.listdir(temporary) == []
    begun = (tmp_path / "begun").read_text().split()
    assert begun and not any(os.path.exists(f"/proc/{pid}") for pid in begun)


@pytest.fixture
def network(root, tmp_path):
    for part in ["digits_rnn.json", "digits_rnn.safetensors"]:
        (tmp_path / part).write_bytes((root / "models" / part).read_bytes())
    return tmp_path / "digits_rnn.json"


WRITING = [["--emit=so", "-o"], ["--emit=graph", "-o"], ["-o", "m.so", "--depfile"], ["inspect", "--html"], ["inspect", "--memory"],
           ["quantize", "-o"], ["quantize", "--data=digits_rnn.json", "--plot"]]


@pytest.mark.parametrize("name", ["digits_rnn.json", "digits_rnn.safetensors"])
@pytest.mark.parametrize("words", WRITING, ids=" ".join)
def test_an_output_that_is_read_is_refused(rnncc, root, tmp_path, network, words, name):
    """The model itself, or its weights, under another name too."""
    (tmp_path / "output").hardlink_to(tmp_path / name)
    *words, option = words
    done = rnncc(*words, network.name, *([option, "output"] if option == "-o" else [f"{option}=output"]), cwd=tmp_path)
    assert done.returncode == 2 and f'{name}" is read, and the output would replace it; expected another path' in done.stderr
    assert (tmp_path / name).read_bytes() == (root / "models" / name).read_bytes()


@pytest.mark.parametrize("words, code, said", [
    (["--emit=graph", "-o", "digits_rnn.other"], 2, 'digits_rnn.safetensors" is read, and the output would replace it'),
    (["--emit=graph", "-o", "other.safetensors"], 2, "two outputs would be written to this file"),
    (["-o", "m.so", "--depfile=m.so"], 2, "m.so: error: two outputs would be written to this file"),
    (["-o", "m.so", "--depfile=./m.so"], 2, "./m.so: error: two outputs would be written to this file"),
    (["-o", "link/m.so", "--depfile=m.so"], 2, "m.so: error: two outputs would be written to this file"),
    (["--static", "-o", "libm.a", "--depfile=./digits_rnn.h"], 2, "/digits_rnn.h: error: two outputs would be written to this file"),
    (["bundle", "-o", "libm.a", "--static", "--depfile=./m.h"], 2, "/m.h: error: two outputs would be written to this file"),
    (["-o", "m.so", "--depfile=m.d"], 0, "")], ids=str)
def test_each_output_has_a_file_of_its_own(rnncc, root, tmp_path, network, words, code, said):
    """The weights that are written beside a model and the header beside a library, too, and before there is a file."""
    (tmp_path / "link").symlink_to(".")
    bundle = words[0] == "bundle"
    done = rnncc(*(["bundle", f"a={network.name}", *words[1:]] if bundle else [network.name, *words]), cwd=tmp_path)
    assert done.returncode == code and said in done.stderr, done.stderr
    assert (tmp_path / "digits_rnn.safetensors").read_bytes() == (root / "models" / "digits_rnn.safetensors").read_bytes()
    assert (tmp_path / "m.so").exists() == (code == 0)


@pytest.mark.parametrize("words, code, said", [
    (["-o", "m.so", "--depfile=absent/m.d"], 5, "absent/m.d: error: cannot write in its folder"),
    (["-o", "m.so", "--depfile=folder"], 2, "folder: error: cannot write: expected a regular file, or none"),
    (["--emit=h", "-o", "m.h", f"--depfile={'n' * 300}"], 5, "n: error: cannot write: File name too long"),
    (["--static", "-o", "m.a", f"--name={'n' * 300}"], 5, "n.h: error: cannot write: File name too long"),
    (["--emit=graph", "-o", "m", "--depfile=absent/m.d"], 5, "absent/m.d: error: cannot write in its folder"),
    (["quantize", "--data=digits_rnn.json", "-o", "m", "--plot=absent/m.svg"], 5, "absent/m.svg: error: cannot write in its folder")], ids=str)
def test_where_one_output_cannot_be_written_there_is_none(rnncc, network, words, code, said):
    folder = network.parent
    (folder / "folder").mkdir()
    (folder / "m.so").write_bytes(b"of before")
    before = contents(folder)
    verb = words[:1] if words[0] == "quantize" else []
    done = rnncc(*verb, network.name, *words[len(verb):], cwd=folder)
    assert done.returncode == code and said in done.stderr, done.stderr
    assert contents(folder) == before


def test_a_depfile_has_names_as_make_reads_them(rnncc, network):
    folder = network.parent
    model, module = folder / "a #1 of 12:30 for 5$.json", folder / "m #1 of 12:30 for 5$.h"
    network.rename(model)
    done = rnncc(model.name, "--emit=h", "-o", module.name, "--depfile=m.d", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "Makefile").write_text(r"m\ \#1\ of\ 12\:30\ for\ 5$$.h:" + "\n\t@echo made anew\ninclude m.d\n")
    os.utime(folder / "digits_rnn.safetensors", (100, 100))
    os.utime(module, (200, 200))
    for model_time, said in [(100, "is up to date"), (300, "made anew")]:
        os.utime(model, (model_time, model_time))
        made = subprocess.run(["make", module.name], cwd=folder, capture_output=True, text=True, timeout=60)
        assert made.returncode == 0 and said in made.stdout, made


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# As files of somebody else may begin, of the same licence, too; of an older rnncc; or a header that rnncc wrote.
NOT_OF_EMITTED_C = ["# Builds mine.\n", "/* SPDX-License-Identifier: MIT */\nint mine;\n", "# Builds with no rnncc at hand, by clang or gcc\n",
                    "/* Generated by rnncc: what a module takes, returns and keeps. */\n", ""]


@pytest.mark.parametrize("name", ["Makefile", "CMakeLists.txt", "network.c", "run.c", "simd/plain.h"])
def test_emitted_c_replaces_no_file_that_rnncc_did_not_write(rnncc, network, name):
    """Its own it does, which each tells by its first line."""
    folder = network.parent / "c"
    emit = [network.name, "--emit=c", "-o", "c"]
    (folder / name).parent.mkdir(parents=True)
    (folder / "mine.c").write_text("int mine;\n")
    for _ in range(2):
        for begins in NOT_OF_EMITTED_C:
            (folder / name).write_text(begins)
            before = contents(folder)
            done = rnncc(*emit, cwd=network.parent)
            assert done.returncode == 2 and f"c/{name}: error: --emit=c would replace this file" in done.stderr, done.stderr
            assert contents(folder) == before
        (folder / name).unlink()
        for _ in range(2):
            done = rnncc(*emit, "--target=x86-64-v3", cwd=network.parent)
            assert (done.returncode, done.stderr) == (0, "") and (folder / "mine.c").exists()


def test_emitted_c_replaces_weights_beside_its_own_files_alone(rnncc, network):
    """Weights have no first line."""
    folder = network.parent / "c"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(b"mine")
    done = rnncc(network.name, "--emit=c", "-o", "c", cwd=network.parent)
    assert done.returncode == 2 and "c/weights.bin: error: --emit=c would replace this file" in done.stderr, done.stderr
    assert contents(folder) == {"weights.bin": b"mine"}


def test_emitted_c_needs_a_folder_or_none(rnncc, network):
    folder = network.parent
    (folder / "file").write_text("mine")
    (folder / "link").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    for name, code, said in [("file", 2, "file: error: expected a folder, or none\n"), ("pipe", 2, "pipe: error: expected a folder"),
                             ("link", 5, "link: error: cannot create the folder: No such file")]:
        done = rnncc(network.name, "--emit=c", "-o", name, cwd=folder)
        assert done.returncode == code and done.stderr.startswith(said), done.stderr
    assert (folder / "file").read_text() == "mine"


@pytest.mark.parametrize("options", [[], ["--target=x86-64-v3,x86-64"], ["--profile=edge", "--dim=B=1"]], ids=str)
def test_each_text_of_emitted_c_tells_whose_it_is(rnncc, root, tmp_path, options):
    done = rnncc(root / "models" / "digits_rnn.json", "--emit=c", "-o", tmp_path / "c", *options)
    assert done.returncode == 0, done.stderr
    texts = {path: text for path, text in contents(tmp_path / "c").items() if path != "weights.bin"}
    assert len(texts) > 20
    assert [path for path, text in texts.items() if not text.startswith((b"/* Generated: rnncc ", b"# Generated: rnncc "))] == []


def test_emitted_c_replaces_no_model_beside_it(rnncc, network):
    """Nor its weights: of the folder of an earlier --emit=c, `weights.bin` is one of the files."""
    folder = network.parent / "c"
    assert rnncc(network.name, "--emit=c", "-o", "c", cwd=network.parent).returncode == 0
    weights = network.with_suffix(".safetensors").name
    (folder / "weights.bin").write_bytes((network.parent / weights).read_bytes())
    (folder / "m.json").write_text(network.read_text().replace(weights, "weights.bin"))
    before = contents(folder)
    done = rnncc("c/m.json", "--emit=c", "-o", "c", cwd=network.parent)
    assert done.returncode == 2 and "c/weights.bin: error: this file is read, and the output would replace it" in done.stderr, done.stderr
    assert contents(folder) == before


@pytest.mark.parametrize("depfile, code", [("c/Makefile", 2), ("./c//network.c", 2), ("link/c/weights.bin", 2), ("c/simd/plain.h", 2),
                                           ("c/simd", 2), ("c/m.d", 0)])
def test_no_output_is_a_file_of_another_ones_folder(rnncc, network, depfile, code):
    """Also before there is a folder."""
    (network.parent / "link").symlink_to(".")
    done = rnncc(network.name, "--emit=c", "-o", "c", f"--depfile={depfile}", cwd=network.parent)
    assert done.returncode == code and ("two outputs would be written to this file" in done.stderr) == (code == 2), done.stderr
    assert (network.parent / "c").exists() == (code == 0)


@pytest.mark.parametrize("line", ["inspect digits_rnn.json", "--emit=h -o - digits_rnn.json", "--emit=dot -o - digits_rnn.json", "--help", "--version",
                                  "targets", "schedules show ../schedules/x86-64-v3.jsonl", "schedules check ../schedules/x86-64-v3.jsonl"])
def test_what_does_not_fit_on_stdout_is_an_error(rnncc, root, line):
    with open("/dev/full", "w") as full:
        done = subprocess.run([rnncc.path, *line.split()], cwd=root / "models", stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=120)
    assert done.returncode == EXIT_ENVIRONMENT
    assert done.stderr == "stdout: error: cannot write all of the output\n"


def test_output_in_a_missing_folder_is_named(rnncc, root, tmp_path):
    output = tmp_path / "absent" / "m.so"
    done = rnncc(root / "models" / "digits_rnn.json", "-o", output)
    assert done.returncode == EXIT_ENVIRONMENT and str(output) in done.stderr


def test_output_named_like_shell_syntax_is_just_a_name(rnncc, root, tmp_path):
    output = tmp_path / "$(touch injected);`id` x\ny.so"
    done = rnncc(root / "models" / "digits_rnn.json", "-o", output, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path) == [output.name]


def test_an_output_that_is_a_link_stays_one(rnncc, root, tmp_path):
    """Also /dev/stdout if stdout is a file: as root it would be replaced."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (tmp_path / "m.h").symlink_to(folder / "m.h")
    (tmp_path / "stdout").symlink_to("/dev/stdout")
    (folder / "m.h").write_text("old")
    model = root / "models" / "digits_rnn.json"
    assert rnncc(model, "--emit=h", "-o", tmp_path / "m.h").returncode == 0
    with open(folder / "redirected.h", "w") as out:
        subprocess.run([*rnncc.prefix, model, "--emit=h", "-o", tmp_path / "stdout"], stdout=out, timeout=120, check=True)
    assert (tmp_path / "m.h").is_symlink() and (tmp_path / "stdout").is_symlink()
    assert (folder / "m.h").read_text() == (folder / "redirected.h").read_text() != "old"
