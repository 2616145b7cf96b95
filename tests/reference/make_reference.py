#!/usr/bin/env python3
"""Makes the reference results of tests/reference/*.txt with PyTorch.

    python3 make_reference.py [FAMILY...]

Each family is a module of this folder with a function `write(file)`; its results go to FAMILY.txt.
"""

import importlib
import pathlib
import sys

from write import File

here = pathlib.Path(__file__).parent
others = ("make_reference", "write", "checkpoint")
families = sys.argv[1:] or sorted(p.stem for p in here.glob("*.py") if p.stem not in others)
for family in families:
    importlib.import_module(family).write(File(here / f"{family}.txt"))
