#!/usr/bin/env python3
"""What the closing audit says of memory that changes tenants, from records alone, pruned ones too. Prints TAP."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import closing
from report import Report

GPU = {"verb": "node.gpu", "ev": {"gpu": {"gpu": 1, "model": 1}}}


def submitted(job, tenant):
    return {"verb": "job.submit", "ev": {"submit": {"job": job, "tenant": tenant}}}


def ran(job, profile=closing.WHOLE, start=0):
    """The job's lease, which has its number, gets the whole GPU or that piece, starts and ends."""
    return [{"verb": "node.carved", "do": [{"lease": job, "job": job,
                                            "pieces": [{"partition": 9, "gpu": 1, "profile": profile, "start": start}]}]},
            {"verb": "node.started", "res": "ok", "obj": {"id": job}}, {"verb": "node.ended", "ev": {"ended": {"lease": job}}}]


RECEIPT = {"verb": "node.scrubbed", "res": "ok", "obj": {"id": 9}}
TWO = [GPU, submitted(1, 3), submitted(2, 4), *ran(1), RECEIPT, RECEIPT, *ran(2)]  # their records are 6 and 7
SMALL = closing.FIRST_PROFILE
RESHAPED = [GPU, submitted(1, 3), *ran(1), RECEIPT, *ran(1, SMALL)]
CASES = [
    ("one tenant", [GPU, submitted(1, 3), submitted(2, 3), *ran(1), *ran(2)], 0),
    ("one tenant, a piece of it", [GPU, submitted(1, 3), submitted(2, 3), *ran(1), *ran(2, SMALL)], 1),
    ("one tenant, a piece of it with a receipt", [GPU, submitted(1, 3), submitted(2, 3), *ran(1), RECEIPT, *ran(2, SMALL)], 0),
    ("one tenant, the same piece", [GPU, submitted(1, 3), submitted(2, 3), *ran(1, SMALL), *ran(2, SMALL)], 0),
    ("one tenant, another beside it", [GPU, submitted(1, 3), submitted(2, 3), *ran(1, SMALL), *ran(2, SMALL, 1)], 0),
    ("one tenant, the whole of a piece", [GPU, submitted(1, 3), submitted(2, 3), *ran(1, SMALL, 1), *ran(2)], 1),
    ("a receipt that its own tenant does not see", RESHAPED, 1, {5: ({4}, [])}),
    ("and one that it does", RESHAPED, 0, {5: ({3}, [])}),
    ("another without a receipt", [GPU, submitted(1, 3), submitted(2, 4), *ran(1), *ran(2)], 1),
    ("another with one", [GPU, submitted(1, 3), submitted(2, 4), *ran(1), RECEIPT, *ran(2)], 0),
    ("the GPU's record is pruned", [submitted(1, 3), submitted(2, 4), *ran(1), *ran(2)], 1),
    ("a submission is pruned", [GPU, submitted(1, 3), *ran(1), *ran(2)], 0),
    ("the next one's is not", [GPU, submitted(1, 3), submitted(4, 4), *ran(1), *ran(2), *ran(4)], 1),
    ("and has a receipt", [GPU, submitted(1, 3), submitted(4, 4), *ran(1), RECEIPT, *ran(2), *ran(4)], 0),
    ("its own tenant sees it", TWO, 0, {6: ({4}, []), 7: ({4}, [])}),
    ("who had it and a third see it, and its own tenant does not", TWO, 1, {6: ({3, 5}, []), 7: ({3, 5}, [])}),
    ("nobody sees it", TWO, 1, {}),
    ("one of its own refers to it", TWO, 0, {6: ({5}, []), 7: ({4}, [6])}),
    ("its own refers to one of before that memory was used", TWO, 1, {6: ({5}, []), 7: ({4}, [2])}),
    ("its own refers to one that is not there", TWO, 1, {6: ({5}, []), 7: ({4}, [-1])}),
]


def main():
    report = Report(len(CASES))
    for what, records, wanted, *receipts in CASES:
        custody = closing.Custody(*receipts)
        for seq, record in enumerate(records):
            custody.take({"seq": seq, "res": "ok", **record})
        report.line(len(custody.wrong) == wanted, what, custody.wrong)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
