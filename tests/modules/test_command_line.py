# SPDX-License-Identifier: MIT
"""The command lines of rnncc and rnnrun: what is made from their tables of options, and the messages for wrong lines."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from conftest import build_directory
from support import pages

PAGES = build_directory() / "tools" / "pages"
PROGRAMS = ["rnncc", "rnnrun"]
VERBS = {"rnncc": ["compile", "bundle", "inspect", "tune", "quantize", "schedules", "targets"],
         "rnnrun": ["run", "verify", "bench", "profile", "inspect", "measure"]}


@pytest.fixture
def run(rnncc, rnnrun):
    return {"rnncc": rnncc, "rnnrun": rnnrun}


def options_in(text):
    return re.findall(r"^ {2,7}(?:-\w, )?--([\w-]+)", text, re.MULTILINE)


# ---- help ----


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_of_a_verb_has_its_options_and_an_example_and_help_has_all(run, program):
    whole = run[program]("--help=all").stdout
    found = set()
    for verb in VERBS[program]:
        for flag in ("-h", "--help"):
            done = run[program](verb, flag)
            assert done.returncode == 0 and f"\nexample: {program if verb != 'measure' else 'rnncc'} " in done.stdout
        found |= set(options_in(done.stdout))
        assert re.search(rf"^  {verb} ", whole, re.MULTILINE)
    assert found == set(options_in(whole)) and "help" in found


def sections(text):
    """{title: the options that stand under it}."""
    parts = re.split(r"^(\w[^\n]*)$", text, flags=re.MULTILINE)
    return {title: options_in(body) for title, body in zip(parts[1::2], parts[2::2])}


def test_help_is_short_and_shows_common_options_first(rnncc, rnnrun):
    short, whole = rnncc("--help").stdout, rnncc("--help=all").stdout
    assert len(short.splitlines()) <= 70 < len(whole.splitlines()) and rnncc("tune", "--help=all").stdout == whole
    assert sections(short)["common options of compile"][:4] == ["output", "dim", "state", "freeze"]
    assert "exit codes" not in short and "exit codes" in whole and "--help=all" in short
    assert len(rnnrun("--help").stdout.splitlines()) <= 40


@pytest.mark.parametrize(("program", "verb", "first"), [
    ("rnncc", "compile", "output"), ("rnncc", "bundle", "output"), ("rnncc", "inspect", "dim"), ("rnncc", "tune", "output"),
    ("rnncc", "quantize", "output"), ("rnnrun", "run", "input"), ("rnnrun", "verify", "input"), ("rnnrun", "bench", "threads"),
    ("rnnrun", "profile", "dim")])
def test_help_of_a_verb_shows_its_common_options_first_and_each_once(run, root, program, verb, first):
    text = run[program](verb, "--help").stdout
    title, common = next((title, names) for title, names in sections(text).items() if names)
    assert title == "common options" and common[0] == first
    table = root / {"rnncc": "compiler/driver", "rnnrun": "tools/rnnrun"}[program] / "options.def"
    (listed,) = re.findall(rf'^COMMON\({verb}, "(.*)"\)$', table.read_text(), re.MULTILINE | re.IGNORECASE)
    assert common == listed.split()
    assert len(options_in(text)) == len(set(options_in(text)))


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_takes_all_or_nothing(run, program):
    done = run[program](VERBS[program][0], "--help=some")
    assert done.returncode == 2 and '--help: expected all, or nothing, found "some"' in done.stderr
    assert run[program](VERBS[program][0], "-h", "x").returncode == 0


def test_help_of_tune_is_of_tune(rnncc):
    told = options_in(rnncc("tune", "--help").stdout)
    assert "budget" in told and "target" in told and "conv" not in told and "explain" not in told


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_fits_a_line_of_100_columns(run, program):
    for words in ([], ["--help=all"], *([verb] for verb in VERBS[program])):
        assert max(map(len, run[program](*words, "--help").stdout.splitlines())) <= 100


def test_completion_offers_the_existing_targets(rnncc):
    rows = [line.split() for line in rnncc("targets").stdout.split("\n\n")[0].splitlines()[1:]]
    there = [row[0] for row in rows] + [row[4] for row in rows if row[4] != "-"]
    assert bash("rnncc", "rnncc --target ''") == ["native", *there]


# ---- messages for wrong lines ----


@pytest.mark.parametrize("line, told", [
    ("--tagret=x m", "unknown option --tagret; did you mean --target?"),
    ("--xyzzy m", "unknown option --xyzzy\n"),
    ("-q m", "unknown option -q"),
    ("-vq m", "unknown option -q"),
    ("--t=1 m", "--t may be --tool-timeout, --target, --threads, --train or --time-passes"),
    ("m --budget=3", "--budget goes with rnncc tune and rnncc targets, not with rnncc compile"),
    ("inspect m -o x", "-o goes with rnncc compile, rnncc bundle, rnncc tune, rnncc quantize, rnncc schedules and rnncc targets, not with rnncc inspect"),
    ("m --emit", "--emit: expected KIND, found nothing"),
    ("m -o", "--output: expected PATH, found nothing"),
    ("m --emit=exe", '--emit: expected so, c, h, wheel, graph or dot, found "exe"'),
    ("m --threads=0", '--threads: expected a whole number from 1 to 1024, found "0"'),
    ("m --threads=1025", "from 1 to 1024"),
    ("m --threads=2x", '"2x"'),
    ("m --tool-timeout=0", '--tool-timeout: expected a number of seconds above 0, found "0"'),
    ("m --no-winograd=1", '--no-winograd: expected no value, found "1"'),
    ("m --machine=", '--machine: expected MACHINE, found ""'),
    ("m --target=pdp-11", '--target: expected "x86-64", "native", '),
    ("m --dim T", "--dim: expected NAME=MIN..OPT..MAX, NAME=MIN..MAX or NAME=N"),
    *((f"m --dim T={range}", f'of numbers from 1 to 2147483647, with :STEP behind it where all are multiples of STEP, found "T={range}"')
      for range in ("0..4", "1..2147483648", "1..4:0")),
    ("m --dim T=8..4", '--dim: expected MIN <= OPT <= MAX, all multiples of STEP, found "T=8..4"'),
    ("m --dim T=4..6..10:4", "--dim: expected MIN <= OPT <= MAX, all multiples of STEP"),
    ("m --state h0", "--state: expected INPUT=OUTPUT"),
    ("m --freeze sr", "--freeze: expected NAME=VALUE"),
    ("m --rnn", "--rnn: expected KEY=N,..., found nothing"),
    ("m --rnn=spin=1", "--rnn: expected KEY=N"),
    ("m --conv=fft", "--conv: expected depthwise, direct"),
    ("m --layout-search=all", "--layout-search: expected greedy, none, wide, dp, pbqp or auto"),
    ("m --dump-after=fold", "--dump-after: expected a step"),
    ("m --color=blue", "--color: expected auto, always or never"),
    ("inspect m --memory=", '--memory: expected a path, found ""'),
    ("inspect m --explain=pool", "--explain: expected rnn, conv, layout or int8"),
    ("tune m --only=pool", '--only: expected conv or rnn, found "pool"'),
    ("tune m --trials=0", "--trials: expected all, or a whole number"),
    ("tune m --shard=3/2", "--shard: expected K/N, with K from 1 to N"),
    ("tune m --only=rnn --runner=true", "--runner measures convolutions"),
    ("targets --budget=1", "--budget goes with --calibrate"),
    ("targets m", "targets: expected no model"),
    ("schedules", "schedules: expected merge, check or show, found nothing"),
    ("schedules shwo a", "unknown schedules verb shwo; did you mean show?"),
    ("schedules merge -o a", "schedules merge: expected files of records"),
    ("schedules merge a", "schedules merge: expected -o RECORDS"),
    ("", "expected a model, found none"),
    ("a b", 'expected one model, found a second: "b"'),
    ("--threads 2 -v tune --emit=c m", "--emit goes with rnncc compile and rnncc bundle, not with rnncc tune"),
    ("inspcet m", "unknown verb inspcet; did you mean inspect?"),
    ("m -o -", "only --emit=h and --emit=dot go to stdout"),
])
def test_rnncc_says_what_was_expected(rnncc, tmp_path, line, told):
    done = rnncc(*line.split(), cwd=tmp_path)
    assert done.returncode == 2 and f"rnncc: error: {told}" in done.stderr or told in done.stderr, done.stderr
    assert done.returncode == 2 and done.stdout == "" and not os.listdir(tmp_path)


@pytest.mark.parametrize("line, told", [
    ("", "expected a verb: run, verify, bench, profile, inspect or measure"),
    ("fly m", "unknown verb fly; expected run, verify, bench, profile, inspect or measure"),
    ("run", "run: expected one MODULE.so, found none"),
    ("run a.so b.so", 'run: expected one MODULE.so, found a second: "b.so"'),
    ("measure m", 'measure: expected no MODULE.so, found "m"'),
    ("run m --wings", "unknown option --wings; expected --network, --input, --output, --dim, --threads, --weights, --steps or --help"),
    ("run m --runs 3", "--runs goes with rnnrun bench and rnnrun profile, not with rnnrun run"),
    ("run m --input", "--input: expected NAME=FILL, found nothing"),
    ("run m --input x", '--input: expected NAME=VALUE, found "x"'),
    ("bench m --threads 1,x", '--threads: expected whole numbers from 1, found "1,x"'),
    ("verify m --rtol -1", '--rtol: expected a number that is not negative, found "-1"'),
    ("bench m --signal-ms 0", '--signal-ms: expected a number above 0, found "0"'),
    ("bench m --signal-ms inf", '--signal-ms: expected a number above 0, found "inf"'),
    ("run m --input x=zeros --input x=zeros", "x is given twice"),
])
def test_rnnrun_says_what_was_expected(rnnrun, line, told):
    done = rnnrun(*line.split())
    assert done.returncode == 2 and told in done.stderr and done.stdout == "", done.stderr


# ---- manual ----


@pytest.mark.skipif(not shutil.which("man"), reason="no man")
@pytest.mark.parametrize("program", PROGRAMS)
def test_manual_renders_without_warnings_and_has_all_options(run, program):
    page = PAGES / f"{program}.1"
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0 and done.stderr == ""
    text = re.sub(".\b", "", done.stdout)
    assert set(options_in(text)) == set(options_in(run[program]("--help=all").stdout))
    assert not re.search(r"\.(TP|SS|SH|br)\b|\\f", text)
    for title in ("NAME", "SYNOPSIS", "VERBS", "OPTIONS", "EXIT STATUS", "EXAMPLES"):
        assert f"\n{title}\n" in text


# ---- completion ----


def bash(program, line, breaks="\"'><=;|&(:"):
    """The completions of the last word of the line, split as bash splits it."""
    done = subprocess.run(
        ["bash", "--norc", "-c", f'source "$1"; COMP_WORDBREAKS=$3; COMP_WORDS=({line}); '
         "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _$2; printf '%s\\n' \"${COMPREPLY[@]}\"", "bash", PAGES / f"{program}.bash",
         program, breaks], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    return [word for word in done.stdout.splitlines() if word]


@pytest.mark.parametrize("program, line, words", [
    ("rnncc", "rnncc --ta", ["--target="]),
    ("rnncc", "rnncc --no-w", ["--no-winograd"]),
    ("rnncc", "rnncc tune --bu", ["--budget="]),
    ("rnncc", "rnncc --bu", []),
    ("rnncc", "rnncc model.json --emit = ", ["so", "c", "h", "wheel", "graph", "dot"]),
    ("rnncc", "rnncc model.json --emit = gr", ["graph"]),
    ("rnncc", "rnncc model.json --emit gr", ["graph"]),
    ("rnncc", "rnncc model.json --emit=gr", ["--emit=graph"]),
    ("rnncc", "rnncc m --dump-after = fold_c", ["fold_constants"]),
    ("rnncc", "rnncc inspect --explain = ''", ["rnn", "conv", "layout", "int8"]),
    ("rnncc", "rnncc insp", ["inspect"]),
    ("rnncc", "rnncc schedules ''", ["merge", "check", "show"]),
    ("rnncc", "rnncc m --threads ''", []),
    ("rnnrun", "rnnrun be", ["bench"]),
    ("rnnrun", "rnnrun run --st", ["--steps="]),
    ("rnnrun", "rnnrun bench --st", []),
])
def test_bash_completes(program, line, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert bash(program, line) == words


def test_bash_completes_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my model.json").touch()
    for line in ("rnncc my", "rnncc -o my", "rnncc inspect my", "rnncc inspect --memory my", "rnncc inspect --memory = my",
                 "rnncc schedules show my", "rnncc m --schedules = my"):
        assert bash("rnncc", line) == ["my model.json"], line


@pytest.mark.parametrize("program", PROGRAMS)
def test_bash_is_offered_all_options_of_each_verb(run, program):
    for verb in VERBS[program]:
        offered = [word[2:].rstrip("=") for word in bash(program, f"{program} {verb} --")]
        assert set(offered) == set(options_in(run[program](verb, "--help").stdout))


class Terminal:
    """zsh as a person uses it."""

    def __init__(self, folder):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": "> "})
        self.type(f"fpath=({PAGES.resolve()} $fpath); autoload -U compinit; compinit -u -D; print rea''dy\n")
        self.read_until("ready")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, text, seconds=60):
        read, end = "", time.monotonic() + seconds
        while text not in read and time.monotonic() < end:
            if select.select([self.terminal], [], [], 1)[0]:
                read += os.read(self.terminal, 65536).decode(errors="replace").replace("\a", "")
        assert text in read, read

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh")
def test_zsh_completes(tmp_path):
    terminal = Terminal(tmp_path)
    for line, completed in [("rnncc --ta", "--target="), ("rnncc tune --bu", "--budget="), ("rnncc insp", "inspect "),
                            ("rnncc m --emit=gr", "--emit=graph "), ("rnncc schedules me", "merge "),
                            ("rnnrun bench --js", "--json "), ("rnnrun pr", "profile ")]:
        terminal.type(line + "\t")
        terminal.read_until(line.split()[-1] + completed.removeprefix(line.split()[-1]))
        terminal.type("\x15")  # deletes the line
    terminal.close()


# ---- the page of options ----


@pytest.mark.parametrize("program", PROGRAMS)
def test_page_lists_the_options(program):
    (listed,) = re.findall(rf"^<!-- options of {program} -->\n(.*?)^<!-- end -->$", pages.text("options"), re.MULTILINE | re.DOTALL)
    made = PAGES / f"{program}.md"
    assert listed == made.read_text(), "tools/docs/update writes it anew"
