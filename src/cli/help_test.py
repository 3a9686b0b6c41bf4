#!/usr/bin/env python3
"""The texts made from tables/commands.tbl: --help of every command, the manual page, the
completion; and exit statuses of wrong command lines.  TAP on standard output.

usage: help_test.py BULKHEAD GENDOCS GOLDEN [--update]
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

count = 0


def check(what, good, why=""):
    global count
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {what}")
    if not good and why:
        print("\n".join("# " + line for line in str(why).splitlines()[:40]))


def run(*argv, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("BULKHEAD_")}
    return subprocess.run(argv, capture_output=True, text=True, env=env, **more)


def commands(table):
    return re.findall(r'^BH_COMMAND\(\w+, "([a-z ]+)"', table, re.M)


def main():
    bulkhead, gendocs, golden = sys.argv[1:4]
    table = (pathlib.Path(__file__).parents[2] / "tables" / "commands.tbl").read_text()
    names = commands(table)
    check("the table has commands", len(names) > 20)

    texts = [run(bulkhead, "--help").stdout]
    for name in names:
        words = name.split()
        by_option, by_help = run(bulkhead, *words, "--help"), run(bulkhead, "help", *words)
        check(f"{name}: --help and help agree", by_option.returncode == 0 and
              by_option.stdout == by_help.stdout and by_option.stdout.startswith(f"usage: bulkhead {name}"),
              by_option.stderr + by_help.stderr)
        wide = [line for line in by_option.stdout.splitlines() if len(line) > 80]
        check(f"{name}: no line over 80 columns", not wide, "\n".join(wide))
        texts.append(by_option.stdout)
    text = "\n----\n".join(texts)
    path = pathlib.Path(golden)
    if "--update" in sys.argv:
        path.write_text(text)
    check("help is as golden (help_test.py ... --update makes it anew)", path.read_text() == text)

    with tempfile.TemporaryDirectory() as folder:
        check("documents are written", run(gendocs, folder).returncode == 0)
        manual = pathlib.Path(folder, "bulkhead.1").read_text()
        for name in names:
            check(f"{name}: has a section in the manual", f'.SS "bulkhead {name}' in manual)
        which = run(bulkhead, "describe", "node")
        check("describe of a kind asks which", which.returncode == 3 and "the name is missing" in which.stderr
              and "bulkhead get nodes" in which.stderr, which.stderr)
        site = pathlib.Path(folder, "bulkhead-site.5").read_text()
        check("the manual of the site file says what a role allows",
              re.search(r"fBauditor.*\n.*record\.view", site) is not None, site[-2000:])
        bad = [page.name for page in pathlib.Path(folder).glob("*.[158]")
               if not page.read_text().startswith(".\\\"") or ".SH NAME\n" not in page.read_text()]
        check("manual pages begin as such", not bad, bad)

    script = run(bulkhead, "completion", "bash").stdout
    parsed = run("bash", "-n", input=script)
    check("completion is a bash script", parsed.returncode == 0, parsed.stderr)
    for typed, wanted in (("bulkhead ", "ps"), ("bulkhead audit ", "verify"), ("bulkhead ps --al", "--all"),
                          ("bulkhead -o ", "json"), ("bulkhead run --pri", "--priority"),
                          ("bulkhead get ", "tenants"), ("bulkhead completion ", "bash"),
                          ("bulkhead account ", "passkey"), ("bulkhead account passkey re", "remove"), ("bulkhead token create --n", "--note")):
        words = typed.split(" ")
        ask = f'COMP_WORDS=({" ".join(w or chr(39) * 2 for w in words)}); COMP_CWORD={len(words) - 1}; ' \
              '_bulkhead; printf "%s\\n" "${COMPREPLY[@]}"'
        offered = run("bash", input=script + "\n" + ask).stdout.split()
        check(f"completion of '{typed}' offers {wanted}", wanted in offered, offered)
    for name in names:
        check(f"{name}: completed", name.split()[0] in script)

    for what, argv, status in (
            ("no command", [], 2), ("help of no command", ["help", "foo"], 2), ("a limit of nothing", ["ps", "-n", "0"], 2), ("unknown command", ["frob"], 2), ("unknown option", ["ps", "--frob"], 2),
            ("missing argument", ["why"], 2), ("no server", ["--socket", "/proc/nonexistent", "ps"], 8),
            ("a job id that is none", ["why", "abc"], 3), ("a file that is not there", ["apply", "-f", "/proc/nonexistent"], 5),
            ("plain http is refused", ["--server", "http://x", "ps"], 3), ("version", ["version"], 0)):
        got = run(bulkhead, *argv)
        check(f"{what}: status {status}", got.returncode == status and (status == 0 or got.stderr.startswith("bulkhead: ")),
              f"{got.returncode} {got.stderr}")
    print(f"1..{count}")


main()
