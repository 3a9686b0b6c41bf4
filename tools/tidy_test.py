#!/usr/bin/env python3
"""Every rule of tools/tidy is shown to fire, and to keep quiet, on small trees."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/lib"))
from report import Report  # noqa: E402

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import importlib.machinery  # noqa: E402
import importlib.util  # noqa: E402

loader = importlib.machinery.SourceFileLoader("tidy", os.path.join(HERE, "tidy"))
tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
loader.exec_module(tidy)


def header(folder, name, body=""):
    guard = f"BH_{folder}_{name}_H".upper()
    return f"#ifndef {guard}\n#define {guard}\n{body}#endif\n"


def unit(folder, code, name="place"):
    """A folder that keeps every rule, but for `code`."""
    place = folder if folder.split("/")[0] in ("sim", "lab") else f"src/{folder}"
    room = folder.split("/")[0] if place == folder else place
    return {
        f"{room}/README.md": "what lives here\n",
        f"{place}/meson.build": f"files('{name}.c', '{name}_test.c')\n",
        f"{place}/{name}.h": header(folder.replace("/", "_"), name),
        f"{place}/{name}_test.c": "static void one(void)\n{\n}\n",
        f"{place}/{name}.c": code,
    }


def function(body, signature="int\nbh_place(int a)"):
    return f"{signature}\n{{\n{body}\n}}\n"


def include(folder, line):
    return unit(folder, f"#include {line}\n")


LONG = "\n" * 150
FIND = function("", "static int\nfind(int a)")
FIND_ALL = function("", "static int\nfind_all(int a)")
NESTED_4 = function("if (a) { for (;;) { while (a) { if (a) { a++; } } } }")
NESTED_3 = function("if (a) { for (;;) { while (a) { int x[] = { 1, 2 }; a++; } } }")
ELSE_IFS = function("if (a) a++; else if (a) a++; else if (a) a++; else if (a) a++; else if (a) a++;")
BRACELESS = function("if (a) for (;;) while (a) if (a) a++;")

BOTH = "files('place.c', 'place_test.c', 'low.c', 'low_test.c')\n"
LOW = function("return (int)(long)ops.place + a;", "int\nbh_low(int (*of)(int), int a)")
CIRCLE = {**unit("api", function("return bh_low(a);")),
          **unit("api", function("return bh_place(a);", "int\nbh_low(int a)"), "low"),
          "src/api/meson.build": BOTH}
NAMED = [{"adr": "docs/adr/0001-x.md", "units": {"src/api/low", "src/api/place"}}]

# (what, tree, findings as "rule name"[, law.CIRCLES])
CASES = [
    ("a clean folder", unit("engine", function("return a;")), []),

    # includes
    ("a fake of the tests in the product", include("api", '"tests/fakes/store.h"'), ["include tests/fakes/store.h"]),
    ("a fake of the tests in a test", {**unit("api", ""), "src/api/place_test.c": '#include "tests/fakes/store.h"\n'}, []),
    ("down is right", include("engine", '"model/gpu.h"'), []),
    ("own folder", include("engine", '"engine/gpu/ledger.h"'), []),
    ("a table", include("engine", '"tables/mig.tbl"'), []),
    ("up", include("base", '"model/gpu.h"'), ["include model/gpu.h"]),
    ("pure beside pure", include("engine", '"policy/verb.h"'), ["include policy/verb.h"]),
    ("adapter beside adapter", include("store", '"crypto/hash.h"'), ["include crypto/hash.h"]),
    ("adapter to engine", include("store", '"engine/step/step.h"'), ["include engine/step/step.h"]),
    ("port to engine", include("ports", '"engine/step/step.h"'), ["include engine/step/step.h"]),
    ("api to adapter", include("api", '"http_server/http.h"'), ["include http_server/http.h"]),
    ("api to engine", include("api", '"engine/step/step.h"'), []),
    ("main to adapter", include("daemon", '"http_server/http.h"'), []),
    ("a main is never included", include("node", '"daemon/owner/owner.h"'), ["include daemon/owner/owner.h"]),
    ("shim to base", include("shim", '"base/err.h"'), ["include base/err.h"]),
    ("shim to base/num", include("shim", '"base/num.h"'), []),
    ("a bare name", include("engine", '"place.h"'), ["include place.h"]),
    ("a parent folder", include("engine", '"../model/gpu.h"'), ["include ../model/gpu.h"]),
    ("no such layer", include("engine", '"utils/misc.h"'), ["include utils/misc.h"]),
    ("another's internals", include("api", '"engine/place_internal.h"'), ["include engine/place_internal.h"]),
    ("own internals", include("engine", '"engine/place_internal.h"'), []),
    ("test.h outside tests", include("model", '"base/test.h"'), ["include base/test.h"]),
    ("a helper of tests", include("model", '"model/test_zoo.h"'), ["include model/test_zoo.h"]),
    ("test.h in a test", {**unit("model", ""), "src/model/place_test.c": '#include "base/test.h"\n'}, []),
    ("pure and stdio", include("policy", "<stdio.h>"), ["include stdio.h"]),
    ("pure and stdint", include("policy", "<stdint.h>"), []),
    ("jansson in its adapter", unit("base", "#include <jansson.h>\n", "json"), []),
    ("jansson elsewhere", include("api", "<jansson.h>"), ["include jansson.h"]),
    ("sqlite in store", include("store", "<sqlite3.h>"), []),
    ("sqlite elsewhere", include("daemon", "<sqlite3.h>"), ["include sqlite3.h"]),
    ("microhttpd elsewhere", include("api", "<microhttpd.h>"), ["include microhttpd.h"]),
    ("gnutls elsewhere", include("crypto", "<gnutls/gnutls.h>"), ["include gnutls/gnutls.h"]),
    ("openssl elsewhere", include("http_server", "<openssl/evp.h>"), ["include openssl/evp.h"]),
    ("curl in fetch", include("fetch", "<curl/curl.h>"), []),
    ("curl elsewhere", include("store", "<curl/curl.h>"), ["include curl/curl.h"]),
    ("yaml elsewhere", include("daemon", "<yaml.h>"), ["include yaml.h"]),
    ("nvml in device", include("device", '"bulkhead/nvml_abi.h"'), []),
    ("nvml elsewhere", include("node", '"bulkhead/nvml_abi.h"'), ["include bulkhead/nvml_abi.h"]),
    ("a library in a port", include("ports", "<zlib.h>"), ["include zlib.h"]),
    ("a library without a row", include("daemon", "<zlib.h>"), ["include zlib.h"]),
    ("an include in a comment", unit("engine", '/* #include "daemon/x.h" */\n'), []),

    # sizes
    ("function of 70 lines", unit("engine", function("a++;\n" * 67 + "a++;")), []),
    ("function of 71 lines", unit("engine", function("a++;\n" * 68 + "a++;")), ["size bh_place"]),
    ("file too long", unit("engine", "\n" * 801), ["size file"]),
    ("header too long", {**unit("engine", ""), "src/engine/place.h": header("engine", "place", "\n" * 250)},
     ["size file"]),
    ("five parameters", unit("engine", function("", "int bh_f(int a, int b, int (*c)(int, int), int d, int e)")), []),
    ("a slot's self is not counted", unit("engine", function("", "int bh_f(void *self, int b, int c, int d, int e, int f)")), []),
    ("six parameters", unit("engine", function("", "int bh_f(int a, int b, int c, int d, int e, int f)")),
     ["size bh_f"]),
    ("six of the vendor's", unit("sim", function("", "int nvmlGet(int a, int b, int c, int d, int e, int f)")), []),
    ("five and an ellipsis", unit("engine", function("", "int bh_f(int a, int b, int c, int d, int e, ...)")), []),
    ("nested three deep", unit("engine", NESTED_3), []),
    ("nested four deep", unit("engine", NESTED_4), ["size bh_place"]),
    ("nested four deep, no braces", unit("engine", BRACELESS), ["size bh_place"]),
    ("else if is flat", unit("engine", ELSE_IFS), []),

    # floors
    ("a lower floor", {**unit("sim/machine", ""), **unit("sim/nvml", '#include "sim/machine/place.h"\n')}, []),
    ("a higher floor", {**unit("sim/nvml", ""), **unit("sim/machine", '#include "sim/nvml/place.h"\n')},
     ["include sim/nvml/place.h"]),
    ("the top may include any floor", {**unit("sim/nvml", ""), **unit("sim", '#include "sim/nvml/place.h"\n', "main")}, []),

    # words
    *((f"banned {call}", unit("api", function(f"{call}(a);")), [f"banned-call {call}"]) for call in
      ("strcpy strcat strncpy strncat sprintf vsprintf gmtime localtime ctime asctime atoi atol strtok system "
       "popen rand random srand time alloca gets setjmp pthread_mutex_lock pthread_cond_wait pthread_rwlock_init").split()),
    ("time at home", unit("base", function("time(0);"), "time"), []),
    ("srand in a test", {"tests/meson.build": "'x.c'", "tests/x.c": function("srand(1);")}, []),
    ("a member of that name", unit("api", function("ops->time(a); ops.system(a);")), []),
    ("in a string", unit("api", function('f("strcpy(a)");')), []),
    ("a system call's number", unit("api", function("syscall(SYS_clone, 0);")), ["banned-call SYS_clone"]),
    ("a path of /proc", unit("api", function('stat("/proc/self/stat", 0);')), ["proc /proc/self/stat"]),
    ("in a comment", unit("api", function('/* as "/proc/self/stat" says */')), []),
    ("in another text", unit("api", function('stat("/srv/proc/self", 0);')), []),
    ("where it is at home", unit("runtime", function('stat("/proc/kcore", 0);'), "oci"), []),
    ("in a macro", unit("api", "#define COPY(a, b) strcpy(a, b)\n"), ["banned-call strcpy"]),
    ("an open that may wait", unit("node", function("int fd = open(path, O_RDONLY | O_CLOEXEC);")), ["open open"]),
    ("a stream that may wait", unit("cli", function('FILE *in = fopen(path, "re");')), ["open fopen"]),
    ("an open that finds no FIFO", unit("node", function("openat(fd, path, O_PATH | O_CLOEXEC);")), []),
    ("a slot that is called open", unit("node", function("ops->open(self, path);")), []),
    ("do_", unit("api", function("do_it(a);")), ["banned-name do_it"]),
    ("handle_", unit("api", function("handle_it(a);")), ["banned-name handle_it"]),
    ("a field that begins so", unit("api", function("a->do_json = handle_index;")), []),
    ("tmp2", unit("api", function("int tmp2;")), ["banned-name tmp2"]),
    ("_1", unit("api", function("place_1(a);")), ["banned-name place_1"]),
    ("do while", unit("api", function("do { a++; } while (a);")), []),
    ("a product word in base", unit("base", function("", "int bh_tenant_find(int a)")),
     ["product-word bh_tenant_find"]),
    ("a float in the engine", unit("engine", function("double x;")), ["float double"]),
    ("goto out", unit("api", function("goto out; out: return a;")), []),
    ("goto elsewhere", unit("api", function("goto again;")), ["goto again"]),

    # files
    ("no header", {k: v for k, v in unit("api", "").items() if k != "src/api/place.h"}, ["pair header"]),
    ("a main has no header", {"src/cli/README.md": "x\n", "src/cli/meson.build": "'x.c'",
                              "src/cli/x.c": function("", "int main(void)")}, []),
    ("no test", {k: v for k, v in unit("audit", "").items() if k != "src/audit/place_test.c"}, ["pair test"]),
    ("a part shares header and test", {**unit("audit", ""), "src/audit/place_score.c": "",
                                       "src/audit/meson.build": "files('place.c', 'place_test.c', 'place_score.c')"}, []),
    ("a part of nothing", {**unit("audit", ""), "src/audit/order_score.c": "",
                           "src/audit/meson.build": "files('place.c', 'place_test.c', 'order_score.c')"},
     ["pair header", "pair test"]),
    ("no test needed in net", {k: v for k, v in unit("http_server", "").items() if "_test" not in k}, []),
    ("a contract", {**unit("api", ""), "src/api/place.h":
                    header("api", "place", "/* What it does.\n *\n * And when it fails. */\nint bh_a(int (*f)(int),\n    int b);\n")}, []),
    ("no contract", {**unit("api", ""), "src/api/place.h":
                     header("api", "place", "/* Of another. */\n\nint bh_a(void);\n")}, ["contract bh_a"]),
    ("a type needs none", {**unit("api", ""), "src/api/place.h":
                           header("api", "place", "typedef int (*bh_f)(int);\nstruct bh_s { int (*f)(int); };\n")}, []),
    ("wrong guard", {**unit("api", ""), "src/api/place.h": "#ifndef PLACE_H\n#define PLACE_H\n#endif\n"},
     ["guard guard"]),
    ("guard not defined", {**unit("api", ""),
                           "src/api/place.h": "#ifndef BH_API_PLACE_H\n#define BH_API_PLACE\n#endif\n"},
     ["guard guard"]),
    ("installed guard", {"include/bulkhead/x.h": "/* x */\n#ifndef BULKHEAD_X_H\n#define BULKHEAD_X_H\n#endif\n"}, []),
    ("not in meson", {**unit("api", ""), "src/api/meson.build": "files('place_test.c')"}, ["meson meson"]),
    ("a script of tests not in meson", {"tests/e2e/site.py": 'if __name__ == "__main__":\n    main()\n',
                                        "tests/e2e/meson.build": "foreach n : ['story']\nfiles(n + '.py')\n"}, ["meson meson"]),
    ("a script of tests in meson by a loop", {"tests/e2e/site.py": 'if __name__ == "__main__":\n    main()\n',
                                              "tests/e2e/meson.build": "foreach n : ['site']\nfiles(n + '.py')\n"}, []),
    ("a library of tests", {"tests/lib/gpu.py": "x = 1\n"}, []),
    ("in meson by a loop", {**unit("api", ""),
                            "src/api/meson.build": "files('place.c')\nforeach t : ['place']\nx(t + '_test.c')\nendforeach"}, []),
    ("no README", {k: v for k, v in unit("api", "").items() if "README" not in k}, ["document readme"]),
    ("long README", {**unit("api", ""), "src/api/README.md": "x\n" * 31}, ["document file"]),
    ("long ARCHITECTURE", {"ARCHITECTURE.md": "x\n" * 301}, ["document file"]),
    ("long ADR", {"docs/adr/0001-x.md": "x\n" * 61}, ["document file"]),

    # calls
    ("a call down", {**unit("api", function("return bh_low(a);")), **unit("api", function("return a;", "int\nbh_low(int a)"), "low"),
                     "src/api/meson.build": BOTH}, []),
    ("a circle", CIRCLE, ["circle src/api/low"]),
    ("a circle by a callback handed on", {**unit("api", function("return bh_low(bh_place, a);")),
                                          **unit("api", f"static const struct bh_ops ops = {{ .place = bh_place }};\n{LOW}", "low"),
                                          "src/api/meson.build": BOTH}, ["circle src/api/low"]),
    ("a member of the same name", {**unit("api", function("return bh_low(a);")),
                                   **unit("api", function("a += x->bh_place(a); x.bh_place = NULL; return a;", "int\nbh_low(int a)"), "low"),
                                   "src/api/meson.build": BOTH}, []),
    ("a function of a file's own", {**unit("sim", function("return bh_low(a);")),
                                    **unit("sim", function("", "static int\nbh_place(int a)") + function("return bh_place(a);", "int\nbh_low(int a)"), "low"),
                                    "sim/meson.build": BOTH}, []),
    ("a circle of rooms that the law keeps apart", {**unit("sim", function("return bh_other(a);")),
                                                    **unit("shim", function("return bh_place(a);", "int\nbh_other(int a)"), "other")}, []),
    ("a name that a macro pastes", {**unit("sim/nvml", function("", "int\nnvmlInit(int a)")),
                                    **unit("sim/machine", "#define BOTH(s) int nvmlInit##s(int a) { return a; }\n")}, []),
    ("a circle that an ADR names", {**CIRCLE, "docs/adr/0001-x.md": "x\n"}, [], NAMED),
    ("a circle that names a missing ADR", CIRCLE, ["circle adr"], NAMED),
    ("a circle wider than the ADR's", {**CIRCLE, "docs/adr/0001-x.md": "x\n"}, ["circle src/api/low"],
     [{"adr": "docs/adr/0001-x.md", "units": {"src/api/low", "src/api/other"}}]),
    ("a call of a lower floor", {**unit("sim/nvml", function("return sim_low(a);", "int\nnvmlInit(int a)")),
                                 **unit("sim/machine", function("return a;", "int\nsim_low(int a)"))}, []),
    ("a call of a higher floor", {**unit("sim/nvml", function("", "int\nnvmlInit(int a)")),
                                  **unit("sim/machine", function("return nvmlInit(a);", "int\nsim_low(int a)"))}, ["floor nvmlInit"]),

    # linkage
    ("exported without prefix", unit("api", function("", "int place(int a)")), ["prefix place"]),
    ("static without prefix", unit("api", function("", "static int place(int a)")), []),
    ("inline in a header", {**unit("api", ""), "src/api/place.h":
                            header("api", "place", function("", "static inline int place(int a)"))}, []),
    ("a variable without prefix", unit("api", "const int limits[] = { 1 };\n"), ["prefix limits"]),
    ("a constant in an enum", unit("api", "enum { LIMIT = 1 };\n"), []),
    ("nvml in sim", unit("sim", function("", "int nvmlInit_v2(void)")), []),
    ("nvml elsewhere", unit("device", function("", "int nvmlInit_v2(void)")), ["prefix nvmlInit_v2"]),
    ("extern in a .c file", unit("api", "extern int bh_count;\n"), ["extern extern"]),

    # names
    ("a static of a long file without its noun", unit("api", LONG + function("", "static int\nfind_all(int a)")),
     ["noun find_all"]),
    ("with its noun", unit("api", LONG + function("", "static int\nplace_find_all(int a)")), []),
    ("with its noun in the plural", unit("api", LONG + function("", "static int\nfind_places(int a)")), []),
    ("of a short file", unit("api", function("", "static int\nfind_all(int a)")), []),
    ("one word in two files", {**unit("api", FIND), **unit("web", FIND)}, ["noun find", "noun find"]),
    ("three files", {**unit("api", FIND_ALL), **unit("web", FIND_ALL), **unit("store", FIND_ALL)}, []),
    ("four files", {**unit("api", FIND_ALL), **unit("web", FIND_ALL), **unit("store", FIND_ALL), **unit("crypto", FIND_ALL)},
     ["noun find_all"] * 4),
    ("a tag in two files", {**unit("api", "struct place {\n};\n"), **unit("web", "struct place {\n};\n")}, ["once place"]),
    ("exported in two files", {**unit("api", function("", "int bh_place(int a)")),
                               **unit("web", function("", "int bh_place(int a)"))}, ["once bh_place"]),
    ("the vendor's in two files", {**unit("sim/null", function("", "int cuInit(int a)")),
                                   **unit("sim/cuda", function("", "int cuInit(int a)"), "entry")}, []),

    # words
    ("a person for a program", unit("api", "/* Nobody reads\n * what it is told. */\n"), ["word Nobody", "word told"]),
    ("in a line comment", unit("api", "// whoever asks\n"), ["word whoever"]),
    ("in a page and a table", {"docs/a.md": "by whom\n", "tables/a.tbl": "/* ours */\n"}, ["word ours", "word whom"]),
    ("in code and texts of the program", unit("api", 'int nobody = sizeof "told";\n'), ["prefix nobody"]),
    ("a name in backticks, the Unix user", {"docs/a.md": "`whom`; user nobody\n"}, []),
    ("part of a word", unit("api", "/* hours, untold */\n"), []),
    ("an allowed word", {"docs/a.md": "by whom\n", "tools/tidy.allow": "docs/a.md:whom a title\n"}, []),

    # exceptions
    ("allowed", {**unit("engine", NESTED_4), "tools/tidy.allow": "src/engine/place.c:bh_place a flat table\n"}, []),
    ("allowed without reason", {**unit("engine", NESTED_4), "tools/tidy.allow": "src/engine/place.c:bh_place\n"},
     ["allow src/engine/place.c:bh_place"]),
    ("allowed for nothing", {**unit("engine", ""), "tools/tidy.allow": "src/engine/place.c:bh_place once\n"},
     ["allow src/engine/place.c:bh_place"]),
]


def findings_of(files, circles=()):
    tidy.rules.law.CIRCLES = circles
    with tempfile.TemporaryDirectory(prefix="tidy-test-") as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return sorted(f"{f.rule} {f.name}" for f in tidy.check(root, tidy.rules.STRICT)[1])


def main():
    report = Report(len(CASES))
    for what, files, expected, *circles in CASES:
        found = findings_of(files, *circles)
        report.line(found == sorted(expected), what, f"expected {expected}, found {found}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
