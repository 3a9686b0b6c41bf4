#!/usr/bin/env python3
"""Is every scenario in this folder a test?  listed_test.py NAME... (those that are)."""
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
present = {name[:-3] for name in os.listdir(here) if name.endswith(".bh")}
missing = sorted(present ^ set(sys.argv[1:]))
print("1..1")
print(f"{'not ' if missing else ''}ok 1 - every scenario is listed in meson.build")
for name in missing:
    print(f"# {name}.bh is {'not listed' if name in present else 'listed, but not there'}")
sys.exit(bool(missing))
