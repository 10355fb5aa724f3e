# SPDX-License-Identifier: MIT
"""tools/hyphenate, the application: which parts of a text it changes, and its errors."""
import subprocess

import pytest


@pytest.fixture(scope="module")
def hyphenate(root, rnnrun, compile):
    def run(*arguments, model="hyphenate", **options):
        module = compile(root / "models" / f"{model}.json")
        return subprocess.run([rnnrun.path.parent / "hyphenate", module, *arguments], capture_output=True, text=True,
                              timeout=60, **options)

    return run


def test_text_that_is_not_a_word_passes_unchanged(hyphenate):
    done = hyphenate("The Compilation's 2nd\tcompilation: naïve, (x86-64)!")
    assert done.returncode == 0
    assert done.stdout == "The Com-pi-la-tion's 2nd\tcom-pi-la-tion: naïve, (x86-64)!\n"


def test_words_up_to_the_longest_the_network_takes_are_hyphenated(hyphenate):
    longest, too_long = "compilation" * 5 + "compiling", "compilation" * 5 + "compilings"
    assert (len(longest), len(too_long)) == (64, 65)
    assert "-" in hyphenate(longest).stdout
    assert hyphenate(too_long).stdout == too_long + "\n"


def test_standard_input_gives_what_an_argument_gives(hyphenate):
    text = "ahead of time compilation\n"
    done = hyphenate(input=text)
    assert done.stdout == hyphenate(text.strip()).stdout
    assert done.stderr == ""


def test_the_time_of_a_word_is_separate_from_the_text(hyphenate):
    assert hyphenate("ahead of time").stderr.startswith("3 words, ")


def test_another_model_is_refused(hyphenate):
    done = hyphenate("word", model="digits_rnn")
    assert done.returncode == 5 and done.stdout == ""
    assert "not the module of models/hyphenate.json" in done.stderr
