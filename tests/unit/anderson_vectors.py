#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""SciPy's statistics, k-sample Anderson-Darling and Kolmogorov-Smirnov, as the oracle of test_value_stats.c.

    anderson_vectors.py > anderson_vectors.def     a fixed set (needs python3-scipy)
    anderson_vectors.py answer                   of sets on stdin
    anderson_vectors.py uniform                  of sets on stdin, against the uniform distribution over 0 to 1
"""
import random
import sys
import warnings

warnings.simplefilter("ignore")


def draw(rng):
    spread = rng.choice([1, 2, 5, 20, 1000, 10**6])
    sets = []
    for _ in range(rng.choice([2, 2, 2, 3, 5])):
        shift = rng.choice([0, 0, 1, spread // 2])
        sets.append([rng.randint(0, spread) + shift for _ in range(rng.choice([1, 3, 8, 20, 60]))])
    return sets if len({v for s in sets for v in s}) > 1 and sum(map(len, sets)) >= 4 else draw(rng)


def oracle(sets, midrank):
    from scipy.stats import anderson_ksamp
    result = anderson_ksamp(sets, midrank=midrank)
    return result.statistic, result.statistic > result.critical_values[2]


def vectors():
    rng = random.Random(20230508)
    print("/* SPDX-License-Identifier: GPL-2.0-or-later */")
    print("/* Made by anderson_vectors.py with SciPy: {sets, {values}, {sizes}, midrank, statistic, differs at 5 %}. */")
    for _ in range(24):
        sets = draw(rng)
        values = ", ".join(str(v) for s in sets for v in s)
        sizes = ", ".join(str(len(s)) for s in sets)
        for midrank in (True, False):
            statistic, differs = oracle(sets, midrank)
            print(f"{{{len(sets)}, {{{values}}}, {{{sizes}}}, {int(midrank)}, {float(statistic)!r}, {int(differs)}}},")


def answer():
    """Reads `MIDRANK SETS SIZE VALUES SIZE VALUES ...` a line, prints `STATISTIC DIFFERS`."""
    for line in sys.stdin:
        numbers = list(map(int, line.split()))
        sets, at = [], 2
        for _ in range(numbers[1]):
            sets.append(numbers[at + 1:at + 1 + numbers[at]])
            at += 1 + numbers[at]
        statistic, differs = oracle(sets, bool(numbers[0]))
        print(repr(float(statistic)), int(differs))


def uniform():
    """Reads the values of a set a line, prints `STATISTIC`."""
    from scipy.stats import kstest
    for line in sys.stdin:
        print(repr(float(kstest(list(map(float, line.split())), "uniform").statistic)))


if __name__ == "__main__":
    {"answer": answer, "uniform": uniform}.get("".join(sys.argv[1:2]), vectors)()
