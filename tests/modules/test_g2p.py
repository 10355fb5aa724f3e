# SPDX-License-Identifier: MIT
"""tools/g2p, the application, with the network of the package g2p_en: it gives the same pronunciations as the package."""
import os
import subprocess
import sys
import types

import numpy
import pytest

from conftest import ROOT
from support.amount import long_tests
from support.beam_search import search
from support.quantised import quantise, rows

WORDS = 500
BEAM = 4
SEARCHED = slice(None, None, 1 if long_tests() else 5)  # NumPy's search of a word takes 30 ms

pytestmark = pytest.mark.optimised  # to run: hundreds of words take longer without clang's passes than these take
sys.path.insert(0, str(ROOT / "models"))


@pytest.fixture(scope="module")
def package():
    """The package's own network, in NumPy. For single words it does not use what it imports from other packages."""
    standing_in = {"nltk": {"pos_tag": None, "data": types.SimpleNamespace(find=lambda *_: None)}, "nltk.corpus": {
        "cmudict": types.SimpleNamespace(dict=dict)}, "nltk.tokenize": {
            "TweetTokenizer": lambda: types.SimpleNamespace(tokenize=str.split)}, "inflect": {"engine": lambda: None}}
    with pytest.MonkeyPatch.context() as patch:
        for name, content in standing_in.items():
            module = types.ModuleType(name)
            vars(module).update(content)
            patch.setitem(sys.modules, name, module)
        from g2p_en import G2p  # the stand-ins must be there first
        return G2p()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """By the number of hypotheses."""
    from pretrained import g2p
    folder = tmp_path_factory.mktemp("g2p")
    g2p.main(folder, 1, BEAM)
    return {beam: folder / f"g2p_{beam}.json" for beam in (1, BEAM)}


@pytest.fixture(scope="module")
def pronounce(rnnrun):
    """pronounce(module, words)."""
    seconds = 120 * (5 if "RNNCC_PROFILES" in os.environ else 1)

    def run(module, words):
        return subprocess.run([rnnrun.path.parent / "g2p", module], input="\n".join(words), capture_output=True, text=True,
                              timeout=seconds)

    return run


@pytest.fixture(scope="module")
def say_in(pronounce, compile, models):
    """say_in(options of rnncc) -> say(beam, words)."""
    return lambda *given: lambda beam, words: pronounce(compile(models[beam], *given), words)


@pytest.fixture(scope="module")
def say(say_in):
    return say_in()


def words_of(root):
    lines = (root / "models" / "held_out" / "hyphenate.txt").read_text().splitlines()
    return [line.split()[0] for line in lines if not line.startswith("#")]


@pytest.fixture(scope="module")
def words(root):
    return words_of(root)[:WORDS]


def best_of_beam(package, word, beam):
    """The same search on the package's own cells, in double precision from the logits on."""
    weights = package.dec_w_ih, package.dec_w_hh, package.dec_b_ih, package.dec_b_hh
    encoded = package.gru(package.encode(word), len(word) + 1, package.enc_w_ih, package.enc_w_hh, package.enc_b_ih,
                          package.enc_b_hh)

    def step(phoneme, hidden):
        hidden = package.grucell(package.dec_emb[[phoneme]], hidden, *weights)
        logits = (hidden @ package.fc_w.T + package.fc_b)[0].astype(numpy.float64)
        return logits - logits.max() - numpy.log(numpy.exp(logits - logits.max()).sum()), hidden

    (_, phonemes), = search(step, 2, [encoded[:, -1]], end=3, beam=beam, length=20)
    return [package.idx2p[phoneme] for phoneme in phonemes]


@pytest.mark.parametrize("precision, part", [("int8:32", 0.985), ("f16,*.W=int8:64", 0.998),
                                             *(pytest.param(*case, marks=pytest.mark.long) for case in (("f16", 0.999), ("bf16", 0.995)))])
def test_weights_of_fewer_bits_say_the_same_of_most_words(say, say_in, words, precision, part):
    """Words whose phonemes are all the same. A phoneme that is nearly another becomes that one."""
    wide, narrow = (one(1, words).stdout.splitlines() for one in (say, say_in(f"--precision={precision}")))
    assert len(wide) == len(narrow) == WORDS
    assert sum(a == b for a, b in zip(wide, narrow)) >= part * WORDS


@pytest.fixture
def said_otherwise(rnncc, say, pronounce, compile, models, tmp_path):
    """said_otherwise(samples, judged): words that weights of 8 bits, which the samples chose, say otherwise than f32. All
    weights, those in the decoder's body, too, with a scale for each 8."""
    def run(samples, judged):
        from pretrained import g2p
        folder = tmp_path / samples[0]
        folder.mkdir()
        for word in samples:
            numpy.save(folder / f"{word}.npy", numpy.array([*map(g2p.LETTERS.index, word), g2p.END_OF_WORD]))
        model = tmp_path / f"{samples[0]}.json"
        done = quantise(rnncc, models[1], model, "--feedback", "--group=8", "--threads=1", data=folder / "*.npy")
        assert [row[5] for row in rows(done).values()] == 3 * ["int8 weights"], done.stdout
        wide, narrow = (said.stdout.splitlines() for said in (say(1, judged), pronounce(compile(model), judged)))
        assert len(wide) == len(narrow) == len(judged)
        return [word for word, a, b in zip(judged, wide, narrow) if a != b]

    return run


def test_weights_of_8_bits_that_other_words_chose_say_the_same_of_most_words(said_otherwise, root):
    samples, judged = (words_of(root)[k::4] for k in (0, 2))
    assert len(samples) == len(judged) == 500
    others = said_otherwise(samples, judged)
    assert len(others) <= 4, others


@pytest.mark.long
def test_weights_of_8_bits_that_half_of_2000_words_chose_say_the_same_of_99_5_percent(said_otherwise, root):
    """Each half is judged by the weights that the other one chose."""
    halves = [words_of(root)[k::2] for k in (0, 1)]
    assert [len(half) for half in halves] == [1000, 1000]
    others = [word for samples, judged in (halves, halves[::-1]) for word in said_otherwise(samples, judged)]
    assert len(others) <= 0.005 * 2000, others


def test_greedy_decoding_says_what_the_package_says(say, package, words):
    done = say(1, words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [" ".join([word, *package.predict(word)]) for word in words]


def test_a_beam_search_finds_what_one_in_numpy_finds(say, package, words):
    searched = words[SEARCHED]
    done = say(BEAM, words)
    assert done.returncode == 0, done.stderr
    expected = [" ".join([word, *best_of_beam(package, word, BEAM)]) for word in searched]
    assert done.stdout.splitlines()[SEARCHED] == expected
    assert expected != say(1, searched).stdout.splitlines()  # else the test would not show that the beam matters


def test_a_word_without_end_is_refused(say):
    done = say(1, ["a" * 63])
    assert done.returncode == 0
    done = say(1, ["a" * 64])
    assert done.returncode == 2 and "at most 63 letters" in done.stderr
