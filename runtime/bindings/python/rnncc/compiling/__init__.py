# SPDX-License-Identifier: MIT
"""What needs the program rnncc. A module's own wheel (--emit=wheel) has all of the package but this folder."""
