#!/usr/bin/env python3
"""Networks of jobs on a running site, as a user meets them, in a network namespace of the test's own."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
import tap
from tap import contains, equal

BATCH, ASR = "acme/vision/batch", "acme/speech/asr"
OFFERS = "networks = tenant\nnetworks = egress\nnetwork_pool = 10.213.0.0/16\nnetwork_uplinks = lo\nnetwork_forwarding = 1"
NODE = {"topology": "1x H100-80GB", "node_conf": OFFERS}
LISTEN = """perl -e 'use IO::Socket::INET; $| = 1; $s = IO::Socket::INET->new(Listen => 1, LocalPort => 7000) or die $!;
print "listening\\n"; $c = $s->accept; print <$c>;'"""


def job(site, script, *more, person="alice", tenant=BATCH, verb="run", check=0):
    return site.cli(person, verb, "--tenant", tenant, "--sku", "small", *more, "--", "bash", "-c", script, check=check)


def with_policy(policy):
    return tap.SITE.replace("{name: acme/vision, ", f"{{name: acme/vision, policy: {{{policy}}}, ", 1)


def network_totals(site):
    text = site.cli("erin", "metrics", check=0).stdout
    return {tenant: int(n) for tenant, n in re.findall(r'^bulkhead_tenant_network_receive_bytes_total{tenant="(.*)"} (\d+)$', text, re.M)}


@tap.test(**NODE)
def peers(site):
    "jobs of one tenant find each other by name; another tenant's do not, nor does a job without a network"
    job(site, LISTEN, "--network", "tenant", "--name", "server", verb="submit")
    site.until(lambda: "listening" in site.cli("alice", "logs", "1").stdout, what="listening")
    job(site, ": > /dev/tcp/10.213.0.2/7000", "--network", "tenant", person="bob", tenant=ASR, check=None)
    equal("another tenant", site.job(2)["state"], "failed")
    job(site, ": > /dev/tcp/10.213.0.2/7000", check=None)
    equal("no network", site.job(3)["state"], "failed")
    job(site, "echo hello > /dev/tcp/server.acme.vision.batch/7000", "--network", "tenant")
    site.until(lambda: "hello" in site.cli("alice", "logs", "1").stdout, what="it heard")
    site.until(lambda: site.job(4).get("traffic"), what="counted")
    sent = site.job(4)["traffic"]
    assert sent["tx_bytes"] > 0 and sent["rx_bytes"] > 0, sent
    contains("describe", site.cli("alice", "describe", "4").stdout, "Tx bytes:")
    site.until(lambda: site.job(1)["state"] != "running", what="the first ended")
    sent = {n: site.job(n)["traffic"] for n in (1, 4)}
    totals = network_totals(site)
    equal("the tenant's total", totals[BATCH], sum(job["rx_bytes"] for job in sent.values()))
    assert totals[ASR] > 0, totals
    site.kill(site.daemon)
    site.start_daemon()
    equal("after a start of the daemon", {n: site.job(n)["traffic"] for n in (1, 4)}, sent)
    equal("its totals", network_totals(site), totals)


@tap.test(**NODE)
def policies(site):
    "which networks there are is the policies' to say, and a tenant's can only narrow"
    site.apply(with_policy("networks: [none, tenant]"))
    contains("denied", job(site, "true", "--network", "egress", verb="submit", check=4).stderr,
             "policy.networks of acme/vision: egress is not allowed, only none, tenant")
    job(site, "true", "--network", "tenant")
    path = pathlib.Path(site.dir) / "wide.yaml"
    path.write_text("policy: {egress: ['10.0.0.0/8 tcp 443']}\n" + with_policy("egress: ['0.0.0.0/0 tcp 443']"))
    contains("wider", site.cli("erin", "apply", "-f", str(path), check=3).stderr,
             "policy: egress: 0.0.0.0/0 tcp 443 is more than the policy above allows")


@tap.test(**NODE)
def outward(site):
    "egress has the resolvers of the policy, and nothing is reached that it does not say"
    site.apply(with_policy("egress: ['198.51.100.0/24 tcp 80', '198.51.100.53 udp 53'], resolvers: [198.51.100.53]"))
    said = job(site, "cat /etc/resolv.conf; : > /dev/tcp/198.51.100.1/81", "--network", "egress", check=None)
    contains("resolver", said.stdout, "nameserver 198.51.100.53")
    contains("at once", site.cli("alice", "logs", "1").stdout, "Connection refused")
    contains("bandwidth alone", job(site, "true", "--bandwidth", "1Mbit", verb="submit", check=3).stderr, "the job has no network")


@tap.test(topology="1x H100-80GB", node_conf=OFFERS + "\nnft = /nonexistent/nft")
def no_nft(site):
    "without nft a job with a network is refused with the cause and what to do, and others run"
    job(site, "true", "--network", "tenant", verb="submit")
    said = 'kind="start" why="network: /nonexistent/nft does not run: No such file or directory; install nftables, or set nft in node.conf"'
    site.until(lambda: said in (pathlib.Path(site.dir) / "node.log").read_text(), what="said")
    site.until(lambda: site.job(1)["state"] == "failed", what="ended")
    contains("to the submitter", site.cli("alice", "logs", "1").stdout, "bulkhead: cannot start: network: /nonexistent/nft does not run: "
             "No such file or directory; install nftables, or set nft in node.conf\n")
    contains("why", site.cli("alice", "why", "1").stdout, "it has ended: failed (start_failed): network: /nonexistent/nft does not run: "
             "No such file or directory\nnext: install nftables, or set nft in node.conf\n")
    job(site, "true")
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert "bhj" not in links, links


tap.in_own_network()
tap.main()
