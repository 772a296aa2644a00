# SPDX-License-Identifier: MIT
"""probes.gdb.py - for gdb: run the program, and write down each probe it comes by

KMEM_TEST_PROBES says which, "name:SIGNS ...", a sign for each argument: s text, p a
pointer, u a number. A line of JSON for each: its name and its arguments.
"""
import json
import os

import gdb

LOG = open(os.environ['KMEM_TEST_LOG'], 'w', encoding='utf-8')


class Probe(gdb.Breakpoint):
    """Does not stop the program."""

    def __init__(self, name, signs):
        super().__init__(f'-probe-stap libkmem:{name}')
        self.name, self.signs = name, signs

    def stop(self):
        got = int(gdb.parse_and_eval('$_probe_argc'))
        values = [gdb.parse_and_eval(f'$_probe_arg{i}') for i in range(got)]
        text = gdb.lookup_type('char').pointer()
        words = gdb.lookup_type('unsigned long')
        LOG.write(json.dumps([self.name] + [
            value.cast(text).string('utf-8', 'replace') if sign == 's'
            else int(value.cast(words))
            for sign, value in zip(self.signs, values)]) + '\n')
        return False


gdb.execute('set pagination off')
gdb.execute('set debuginfod enabled off')
gdb.execute('set breakpoint pending off')
# The library is there, and has not been used yet.
gdb.execute(f"start >{os.environ['KMEM_TEST_OUT']}")
for entry in os.environ['KMEM_TEST_PROBES'].split():
    Probe(*entry.split(':'))
gdb.execute('continue')
LOG.close()
