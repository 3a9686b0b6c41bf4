"""Programs on a terminal of their own, as a person has one: /dev/tty, questions without echo."""
import os
import pty
import select
import time

from bulkhead import PATIENCE_S


def talk(argv, turns, env, status=0):
    """Run argv; `turns` are (question, answer): wait for the one, type the other and Enter.
    All that was seen, to the program's end."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, env)
    seen, at = "", 0
    try:
        for question, answer in turns:
            seen = await_text(fd, seen, at, question)
            at = seen.index(question, at) + len(question)
            os.write(fd, (answer + "\n").encode())
        seen = await_text(fd, seen, at, None)
    finally:
        os.close(fd)  # hangs up on a program that still runs
        _, how = os.waitpid(pid, 0)
    got = os.waitstatus_to_exitcode(how)
    assert got == status, f"status of {argv}: {got} is not {status}: {seen}"
    return seen.replace("\r\n", "\n")


def await_text(fd, seen, at, question):
    """What was seen, with more of it until the question stands there; None: until the end."""
    deadline = time.monotonic() + PATIENCE_S
    while question is None or question not in seen[at:]:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            raise AssertionError(f"no {question!r} in {seen!r}")
        try:
            got = os.read(fd, 4096)
        except OSError:  # the program ended
            got = b""
        if not got:
            assert question is None, f"ended without {question!r}: {seen!r}"
            return seen
        seen += got.decode(errors="replace")
    return seen
