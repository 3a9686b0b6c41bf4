#!/usr/bin/env python3
"""What bulkhead-simctl refuses: what would never be met, with what there is; two of it at once.  usage: simctl_test.py SIMCTL"""
import pathlib
import subprocess
import sys
import tempfile

CASES = (  # what, words, a part of what it says; "": it is done
    ("a GPU that is there", ("xid", "7", "79"), ""),
    ("one that is not", ("xid", "9", "79"), "no GPU 9: there are 8, counted from 0"),
    ("one past the last", ("lose", "8"), "no GPU 8: there are 8, counted from 0"),
    ("of a call", ("hang", "nvmlDeviceGetName", "9"), "no GPU 9: there are 8"),
    ("of any rule", ("inject", "gpu=9", "remap-pending"), "no GPU 9: there are 8"),
    ("memory errors", ("ecc", "9", "1"), "no GPU 9: there are 8"),
    ("no number", ("lose", "first"), "this is no rule of a control file"),
    ("an XID in a run", ("xid", "0", "40"), ""),
    ("an XID that means nothing", ("xid", "0", "5"), "no XID 5: there are 8, 11, 13,"),
    ("which can be reported all the same", ("inject", "gpu=0", "xid=5"), ""),
    ("no XID at all", ("xid", "0", "x"), "no XID x: there are 8, 11, 13,"),
    ("a count and a model in one", ("check", "8xH100"), "GPUs are written COUNTx MODEL, as 8x H100-80GB, 1 to 32 of them"),
    ("no such model", ("check", "8x H200"), "models: A30-24GB A100-40GB"),
    ("none", ("check", "0x H100-80GB"), "line 1 is wrong"),
    ("fewer than none", ("--", "check", "-1x"), "topology -1x: line 1 is wrong"),
    ("too many", ("init", "33x H100-80GB"), "1 to 32 of them"),
    ("a call of all GPUs", ("hang", "nvmlInit_v2"), ""),
)


AT_ONCE = 40


def loses_no_rule(simctl, control):
    """Rules that are written while GPUs are reset, which takes lines out of the same file."""
    words = [("reset", "1"), ("xid", "6", "48")] * AT_ONCE
    running = [subprocess.Popen([*simctl, *of], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for of in words]
    ends = {one.wait() for one in running}
    return ends == {0} and control.read_text().count("gpu=6 xid=48") == AT_ONCE


def main():
    print(f"1..{len(CASES) + 1}")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="bulkhead-simctl-") as folder:
        simctl = [sys.argv[1], "--state", folder]
        control = pathlib.Path(folder) / "control"
        subprocess.run([*simctl, "init", "8x H100-80GB"], check=True, stdout=subprocess.DEVNULL)
        for number, (what, words, said) in enumerate(CASES, 1):
            before = control.read_text()
            done = subprocess.run([*simctl, *words], capture_output=True, text=True, check=False)
            well = done.returncode == (1 if said else 0) and said in done.stderr
            well = well and (control.read_text() == before) == bool(said)
            failed += not well
            print(f"{'ok' if well else 'not ok'} {number} - {what}: {' '.join(words)}")
            if not well:
                print(f"# status {done.returncode}: {done.stderr}")
            control.write_text("")
        well = loses_no_rule(simctl, control)
        failed += not well
        print(f"{'ok' if well else 'not ok'} {len(CASES) + 1} - rules at once with resets: each is there")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
