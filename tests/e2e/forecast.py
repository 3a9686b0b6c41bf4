#!/usr/bin/env python3
"""Forecasts on a running site: a guarantee is lent when its use is known, and what was seen
outlives the daemon."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from tap import contains, equal

# acme is guaranteed the one GPU for its vision department; bob borrows from outside.
SITE = tap.SITE.replace("kind: organization}", 'kind: organization, guarantee: "1"}').replace(
    'limit: "8"}', 'limit: "8", guarantee: "1"}') .replace(
    "  - {name: acme/speech/asr,", "  - {name: guest, kind: organization}\n  - {name: acme/speech/asr,").replace(
    "principal: bob, tenant: acme/speech/asr", "principal: bob, tenant: guest") + "\nscheduling: {lending: forecast}\n"
HOLD_ON = ("sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait")


def forecast(site, person=None):
    return json.loads(site.cli(person, "forecast", "-o", "json", check=0).stdout)


def near(site, of, name):
    """The nearest bound of a tenant or pool."""
    key = "name" if of == "tenants" else "model"
    found = [row for row in forecast(site)[of] if row[key] == name]
    return found[0]["bounds"]["near"] if found else {}


@tap.test(topology="1x H100-80GB", site=SITE, daemon_conf="forecast_slot = 1s")
def lent(site):
    "an idle guarantee is lent once its use is known, over a kill -9 of the daemon"
    bob = site.client("bob")
    job = site.submit(*HOLD_ON, tenant="guest", sku="large", client=bob)
    site.until(lambda: site.job(job)["reason"] == "kept_forecast", what="kept_forecast")
    why = bob.get(f"/v1/jobs/{job}/why")
    contains("why", why["sentence"], "is expected to need it back soon")  # bob does not see vision
    contains("why, as an administrator", site.client("erin").get(f"/v1/jobs/{job}/why")["sentence"],
             "kept for acme, which is expected to need 1 GPU of its guarantee soon")
    site.until(lambda: near(site, "tenants", "acme/vision")["changes"] >= 4, what="some history")
    before = near(site, "tenants", "acme/vision")["changes"]
    site.kill(site.daemon)
    site.start_daemon()
    after = near(site, "tenants", "acme/vision")["changes"]
    assert after >= before, f"history: {after} changes after, {before} before"
    site.await_state(job, "running")
    bound = near(site, "tenants", "acme/vision")
    assert bound["firm"] and bound["changes"] >= 19, bound
    equal("recorded", site.cli("dave", "audit", "tail", "--all", check=0).stdout.count("outlook") >= 2, True)


@tap.test(topology="1x H100-80GB", site=SITE, daemon_conf="forecast_slot = 1s")
def shown(site):
    "bulkhead forecast shows visible tenants, and pools and nodes to users of the whole site"
    job = site.submit(*HOLD_ON, sku="large", client=site.client("alice"))
    site.await_state(job, "running")
    site.until(lambda: near(site, "pools", "H100-80GB").get("parts") == 4200, what="the pool's demand")
    text = site.cli("dave", "forecast", check=0).stdout
    for part in ("TENANT", "acme/vision", "POOL", "H100-80GB", "PROFILE", "1g.10gb", "NODE", "lending forecast"):
        contains("all", text, part)
    seen = forecast(site, "carol")  # an operator of acme
    equal("carol's tenants", [t["name"] for t in seen["tenants"]], ["acme", "acme/vision"])
    equal("carol's pools", seen["pools"], [])
    pool = forecast(site)["pools"][0]
    equal("proposal", pool["proposal"]["move"], "grow")  # one GPU in use, and 5 % on top
    equal("grain", pool["proposal"]["grain"], 1)
    node = forecast(site)["nodes"][0]
    equal("hot", (node["hot"], node["level_permille"]), (True, 1000))


if __name__ == "__main__":
    tap.main()
