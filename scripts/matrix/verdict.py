# SPDX-License-Identifier: GPL-2.0-or-later
"""What the self-tests of one kernel amount to: does each tier see what happened, and do the tiers agree?"""
import json

# How far two tiers may be apart, for what there was: counts, times whose true value is known, and lengths of events.  Those are
# only compared in size: what a hook costs is part of them, and on an emulated CPU that is anything (fexit on 7.2: 70 µs).
COUNT_SHARE = 0.1
TIME_FACTOR = 1.5
LENGTH_FACTOR = 20.0
DISK_FACTOR = 500.0  # an emulated disk answers now in 0.4 ms and now in 15; a wrong unit is a thousand


def plan(kernel):
    """{run: {feature: tier that is forced}}: the tiers of different features are independent, so they share runs."""
    runs = {"default": {}}
    for depth in range(1, max(len(tiers) for tiers in kernel.tiers.values())):
        runs["forced%d" % depth] = {feature: tiers[depth] for feature, tiers in kernel.tiers.items() if depth < len(tiers)}
    return runs


def command(forced):
    return " ".join(["whylate doctor --self-test --json"] + ["--force-tier %s=%d" % item for item in sorted(forced.items())])


class Verdict:
    def __init__(self, kernel):
        self.kernel = kernel
        self.failures, self.skips = [], {}  # {check: why no run could make it}
        self.checks = {}  # {run: {check: its JSON}}
        self.tiers = {}   # {feature: {tier: [hook, held]}}

    @property
    def passed(self):
        return not self.failures


def judge(kernel, outcome):
    verdict = Verdict(kernel)
    for name, forced in plan(kernel).items():
        _judge_run(verdict, name, forced, outcome.runs.get(name))
    _compare(verdict)
    _note_skips(verdict)
    if outcome.timed_out:
        verdict.failures.insert(0, "not done after %.0f s" % outcome.seconds)
    elif not outcome.finished:
        verdict.failures.insert(0, "the guest ended early" if outcome.release else "it did not boot")
    if outcome.kernel_says:
        verdict.failures.append("the kernel complains: " + outcome.kernel_says.split("\n", 1)[0].strip())
    return verdict


def _judge_run(verdict, name, forced, run):
    words = " ".join("%s=%d" % item for item in sorted(forced.items())) or "default tiers"
    if not run or run.status is None:
        verdict.failures.append("%s: no result" % words)
        return
    try:
        result = json.loads(run.output)
        checks = {check["name"]: check for check in result["checks"]}
        if result["schema"] != "whylate.selftest/1" or not checks:
            raise ValueError("not a self-test's result")
    except (ValueError, KeyError, TypeError) as error:
        said = run.stderr.strip().splitlines()
        verdict.failures.append("%s: exit %d, %s" % (words, run.status, said[-1] if said else error))
        return
    verdict.checks[name] = checks
    failed = [check for check in checks.values() if not check["skipped"] and not check["ok"]]
    for check in failed:
        verdict.failures.append("%s: %s (%s:%s): %s" % (words, check["name"], check["feature"], check["hook"], check["why"]))
    if not failed and (run.status or not result["passed"]):
        verdict.failures.append("%s: exit %d, but no check failed" % (words, run.status))
    _note_tiers(verdict, words, forced, checks.values())


def _note_tiers(verdict, words, forced, checks):
    """Which tier each feature took, and did all its checks hold?"""
    for feature, tiers in verdict.kernel.tiers.items():
        due = forced.get(feature, tiers[0])
        own = [check for check in checks if check["feature"] == feature and not check["skipped"]]
        if not own:
            verdict.failures.append("%s: nothing was checked of %s" % (words, feature))
        for check in own:
            if check["tier"] != due:
                verdict.failures.append("%s: %s took tier %s of %s, not %d" %
                                        (words, check["name"], check["tier"], feature, due))
                continue
            state = verdict.tiers.setdefault(feature, {}).setdefault(due, [check["hook"], True])
            state[1] &= bool(check["ok"])


def _note_skips(verdict):
    """What one run cannot check another may; what none could is a failure unless it is known of that kernel."""
    runs = verdict.checks.values()
    for name in dict.fromkeys(name for checks in runs for name in checks):
        made = [checks[name] for checks in runs if name in checks]
        if all(check["skipped"] for check in made):
            verdict.skips[name] = made[0]["why"]
            if name not in verdict.kernel.unchecked:
                verdict.failures.append("%s was never checked: %s" % (name, made[0]["why"]))


def _shares(check, key):
    """What was seen, as a share of what there was: the least and the most that it may be, since the witness of a time knows it
    only within bounds, and those are wide on a machine that has much else to do.  None: there is nothing to compare."""
    if check.get(key) is None or not check["witness"]:
        return None
    least = check[key] / check["witness"]
    if key != "seen" or check["unit"] != "ns":
        return least, least
    return least, check[key] / check["low"] if check["low"] else float("inf")


def _apart(check, key, one, two):
    if key == "seen" and check["unit"] != "ns":
        return abs(one[0] - two[0]) > COUNT_SHARE
    length_factor = DISK_FACTOR if check["name"] == "fault.major" else LENGTH_FACTOR
    return max(one[0], two[0]) > (TIME_FACTOR if key == "seen" else length_factor) * min(one[1], two[1])


def _compare(verdict):
    """The same deed by another tier must give the same numbers, for what there was."""
    first = verdict.checks.get("default", {})
    for name, checks in verdict.checks.items():
        for check in checks.values():
            other = first.get(check["name"])
            if not other or check["tier"] == other["tier"] or check["skipped"] or other["skipped"]:
                continue
            for key in ("seen", "length_ns"):
                one, two = _shares(other, key), _shares(check, key)
                if one is not None and two is not None and _apart(check, key, one, two):
                    verdict.failures.append("%s: tiers %s and %s of %s disagree: %s is %.4g and %.4g times the witness" %
                                            (check["name"], other["tier"], check["tier"], check["feature"], key, one[0], two[0]))
