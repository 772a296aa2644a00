#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_death.py PROGRAM - check that a misuse is caught (tests/death/die.h)

The program must end by SIGABRT. On its standard error there must be a line
that starts with "libkmem: ", and the text must have every address and match
every pattern that the program announced on its standard output.
"""
import os
import re
import shlex
import signal
import subprocess
import sys

SECONDS = 60
MISSED = 3              # exit code of a program that nobody stopped


def announced(stdout):
    """The patterns that the message has to match."""
    for line in stdout.splitlines():
        kind, _, value = line.partition(' ')
        if kind == 'address':
            digits = re.escape(value.lower().removeprefix('0x').lstrip('0'))
            yield value, rf'(?<![0-9a-f])(0x)?0*{digits}(?![0-9a-f])'
        elif kind == 'text':
            yield value, value
        else:
            yield f'a known announcement, not "{line}"', r'(?!)'


def faults(run):
    """What is wrong with how the program ended, in words."""
    if run.returncode == MISSED:
        yield 'the misuse went unnoticed'
    elif run.returncode != -signal.SIGABRT:
        yield f'status {run.returncode} instead of SIGABRT'
    if not run.stdout:
        yield 'nothing was announced'
    if not re.search(r'^libkmem: ', run.stderr, re.MULTILINE):
        yield 'no message of the library'
    for what, pattern in announced(run.stdout):
        if not re.search(pattern, run.stderr, re.IGNORECASE):
            yield f'the message lacks {what}'


def main():
    # Meson's name for the emulator of a cross build.
    emulator = shlex.split(os.environ.get('MESON_EXE_WRAPPER', ''))
    run = subprocess.run(emulator + sys.argv[1:], capture_output=True, text=True,
                         errors='replace', timeout=SECONDS, check=False)
    found = list(faults(run))
    sys.stderr.write(run.stderr)
    for fault in found:
        print(f'{sys.argv[1]}: {fault}')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
