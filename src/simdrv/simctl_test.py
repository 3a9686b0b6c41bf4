#!/usr/bin/env python3
"""What bulkhead-simctl refuses: what would never be met, with what there is.  usage: simctl_test.py SIMCTL"""
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
    ("a call of all GPUs", ("hang", "nvmlInit_v2"), ""),
)


def main():
    print(f"1..{len(CASES)}")
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
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
