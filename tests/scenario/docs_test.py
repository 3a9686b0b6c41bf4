#!/usr/bin/env python3
"""Do the examples in docs/scenarios.md run, and does it name every statement?

docs_test.py BULKHEAD-REPLAY PAGE
"""
import re
import subprocess
import sys
import tempfile


def examples(page):
    """The page's ```bh blocks; one that is marked `bh fails` must fail."""
    return re.findall(r"^```bh( fails)?\n(.*?)^```$", page, re.M | re.S)


def play(program, text):
    with tempfile.NamedTemporaryFile("w", suffix=".bh") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([program, "scenario", file.name], capture_output=True, text=True)
    return done.returncode, done.stdout


def undocumented(program, page):
    usage = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    statements = usage.split("Statements of a scenario")[1].splitlines()[1:]
    return [word for word in (line.split()[0] for line in statements) if f"`{word}" not in page]


def main():
    program, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        page = file.read()
    results = []
    for number, (fails, text) in enumerate(examples(page), 1):
        status, said = play(program, text)
        results.append((status == (1 if fails else 0), f"example {number} of the page", said))
    missing = undocumented(program, page)
    results.append((not missing, "the page names every statement", " ".join(missing)))
    results.append((len(results) > 2, "there are examples", ""))
    print(f"1..{len(results)}")
    for number, (well, name, said) in enumerate(results, 1):
        print(f"{'' if well else 'not '}ok {number} - {name}")
        if not well:
            print("# " + said.replace("\n", "\n# "))
    return not all(well for well, _, _ in results)


if __name__ == "__main__":
    sys.exit(main())
