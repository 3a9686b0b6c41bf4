#!/usr/bin/env python3
"""Is every scenario in this folder a test?  listed_test.py NAME... (those that are)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from report import Report

here = os.path.dirname(os.path.abspath(__file__))
present = {name[:-3] for name in os.listdir(here) if name.endswith(".bh")}
missing = sorted(present ^ set(sys.argv[1:]))
report = Report(1)
report.line(not missing, "every scenario is listed in meson.build",
            [f"{name}.bh is {'not listed' if name in present else 'listed, but not there'}" for name in missing])
sys.exit(report.close())
