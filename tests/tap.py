# SPDX-License-Identifier: MIT
"""tap - the loop of test programs that are written in Python: cases to TAP

KMEM_TEST_CASES=part chooses cases by name.
"""
import os
import sys
import time


class Skip(Exception):
    """The case can't be tested here."""


def chosen(cases):
    """All cases, or those that KMEM_TEST_CASES is in the names of."""
    part = os.environ.get('KMEM_TEST_CASES', '')
    return [case for case in cases if part in case.__name__]


def main(cases):
    """Run them, print TAP, return an exit code."""
    cases = chosen(cases)
    failed = False
    print(f'1..{len(cases)}', flush=True)
    for number, case in enumerate(cases, 1):
        started = time.monotonic()
        try:
            case()
            print(f'ok {number} - {case.__name__}')
            print(f'# {time.monotonic() - started:.1f} s')
        except Skip as why:
            print(f'ok {number} - {case.__name__} # SKIP {why}')
        except Exception as fault:
            failed = True
            print(f'not ok {number} - {case.__name__}')
            for line in f'{type(fault).__name__}: {fault}'.splitlines():
                print(f'# {line[:2000]}')
        sys.stdout.flush()
    return 1 if failed else 0
