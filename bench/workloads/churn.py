#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""churn.py THREADS OPS IDLE-SECONDS - objects of Python made and dropped

The same arguments and output as the programs in C beside it (workload.h); THREADS
is 1, since the interpreter runs one at a time. Lists, dictionaries, strings and
instances live in a table whose entries are replaced at random, two of them for each
that the table has room for.
"""
import gc
import sys
import time

OPS_PER_SLOT = 2
KINDS = 4


class Node:
    """A small instance with a dictionary of its own."""

    def __init__(self, number):
        self.number = number
        self.name = f'node {number}'
        self.links = [number, number + 1]


def make(number):
    kind = number % KINDS
    if kind == 0:
        return Node(number)
    if kind == 1:
        return {f'key {i}': i * 1.5 for i in range(number % 24)}
    if kind == 2:
        return list(range(number % 200))
    return 'text ' * (number % 150)


def status_bytes(key):
    with open('/proc/self/status', encoding='ascii') as file:
        for line in file:
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    sys.exit('churn.py: /proc/self/status: cannot be read')


def work(ops):
    table = [None] * (ops // OPS_PER_SLOT + 1)
    number = 12345
    for _ in range(ops):
        number = (number * 1103515245 + 12345) & 0x7fffffff
        table[(number >> 8) % len(table)] = make(number >> 4)


def arguments():
    try:
        threads, ops, idle = map(int, sys.argv[1:])
    except ValueError:
        threads = 0
    if threads != 1 or ops < 1 or idle < 0:
        print('usage: churn.py 1 OPS IDLE-SECONDS', file=sys.stderr)
        sys.exit(2)
    return ops, idle


def main():
    ops, idle = arguments()
    start = time.monotonic_ns()
    work(ops)
    gc.collect()
    took = time.monotonic_ns() - start
    print(took, status_bytes('VmHWM:'), end=' ', flush=True)
    time.sleep(idle)
    print(status_bytes('VmRSS:'))


if __name__ == '__main__':
    main()
