# SPDX-License-Identifier: MIT
"""What rnnrun inspect says of a module, loaded and read as a file."""


def noted(loaded):
    """The lines of a loaded module that its note has, too: what calls need of the stack is found when all is compiled."""
    lines = loaded.stdout.splitlines()
    stack = [line for line in lines if line.startswith("stack ")]
    assert stack
    return [line for line in lines if line not in stack]
