"""What a report of precise says, in words that a shell script can compare: capture.py REPORT.json WHAT [NAME].

REPORT.json is the output of `precise report --json`; the first report and the first event of it are meant.

  ledger NAME     the count of a row of the ledger: seen, aggregated, "table full", lost, …
  trust NAME      a field of the trust: event_count, expected, closes, coverage, granted, precise, …
  findings        one per line
  groups          a line each: the values, then count, sum of periods, sum and maximum of latencies
  rejected        a line for each clause of the filter: the clause, the samples that it was the first to reject
  permille        the coverage
  drift           |seen * period / event_count - 1|, in millionths
"""

import json
import sys


def word(value):
    """A value of a group, as one word."""
    if not isinstance(value, dict):
        return str(value)
    (kind, inner), *_ = value.items()
    if kind == "address":
        return f"{inner:#x}" if isinstance(inner, int) else str(inner)
    if kind == "cycles":
        return f"{inner['low']}..{inner['high']}"
    return str(inner).replace(" ", "_")


def main(path, what, name=None):
    with open(path) as file:
        report = json.load(file)
    event = report.get("reports", [report])[0]["events"][0]
    trust = event["trust"]
    ledger = {row["what"]: row["count"] for row in trust["ledger"]}
    if what == "ledger":
        print(ledger.get(name, 0))
    elif what == "trust":
        value = trust[name]
        print(str(value).lower() if isinstance(value, bool) else value)
    elif what == "findings":
        print("\n".join(trust["findings"] + event["notes"]))
    elif what == "groups":
        for group in event["groups"]:
            measures = group["measures"]
            values = [word(value) for value in group["values"]]
            print(*values, *(measures[key] for key in ("count", "period_sum", "latency_sum", "latency_max")))
    elif what == "rejected":
        for row in trust["ledger"]:
            if row["what"] == "rejected":
                print(row["meaning"].removeprefix("did not pass: "), row["count"], sep=": ")
    elif what == "permille":
        print(round(trust["coverage"] * 1000))
    elif what == "drift":
        print(round(abs(ledger["seen"] * event["period"] / trust["event_count"] - 1) * 1e6))
    else:
        sys.exit(f"capture.py: nothing is called {what}")


main(*sys.argv[1:])
