# SPDX-License-Identifier: MIT
"""kmemtest - what the tests of the command kmem share

They are called with KMEM TARGET STATIC STRIPPED SANITIZER first: the command, and
tests/tools/target.c as a user links it, statically, and stripped. KMEM_TEST_CASES=part
chooses cases by name.
"""
import contextlib
import glob
import json
import mmap
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tap import Skip, main  # the tests' too

KMEM, TARGET, STATIC, STRIPPED, SANITIZER = sys.argv[1:6]
# Nothing moves by itself, and no core is made by accident.
ENV = dict(os.environ, KMEM_HOUSEKEEPER='0')
SECONDS = 60
TOOL_SECONDS = 60


class Result:
    """What a run of kmem came to."""

    def __init__(self, run):
        self.code = run.returncode
        self.out = run.stdout.decode('utf-8', 'strict')
        self.err = run.stderr.decode('utf-8', 'strict')

    def json(self):
        assert self.code == 0, (self.code, self.err)
        return json.loads(self.out)

    def lines(self):
        assert self.code == 0, (self.code, self.err)
        return self.out.splitlines()

    def fails(self, pattern, code=1):
        """One line that says why, and nothing else."""
        assert self.code == code, (self.code, self.out, self.err)
        assert self.out == '', self.out
        assert re.fullmatch(r'kmem: [^\n]*\n', self.err), self.err
        assert re.search(pattern, self.err), self.err


def kmem(*args, **kwargs):
    return Result(subprocess.run([KMEM, *map(str, args)], capture_output=True,
                                 stdin=subprocess.DEVNULL, timeout=SECONDS,
                                 check=False, **kwargs))


class Target:
    """A running target; .json is what it says of itself, .pid whom to ask."""

    def __init__(self, state, program=TARGET, prepare=None, env=None):
        self.process = subprocess.Popen([program, *state.split()],
                                        env=dict(ENV, **(env or {})),
                                        preexec_fn=prepare,
                                        stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        text = []
        for line in self.process.stdout:
            if line.startswith(b'ready '):
                break
            text.append(line)
        else:
            raise AssertionError(f'target {state} ended: {self.process.wait()}')
        self.pid = int(line.split()[1])
        self.json = json.loads(b''.join(text)) if text else None

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@contextlib.contextmanager
def running(state, program=TARGET, prepare=None, env=None):
    target = Target(state, program, prepare, env)
    try:
        yield target
    finally:
        target.end()


def same(seen, said):
    """What kmem read is what the process said of itself."""
    assert seen['mode'] == said['mode'], (seen['mode'], said['mode'])
    seen = {cache['name']: cache for cache in seen['caches']}
    assert len(seen) == len(said['caches']), (list(seen), said['caches'])
    for cache in said['caches']:
        other = seen[cache['name']]
        assert other == cache, \
            {key: (other.get(key), cache[key]) for key in cache
             if other.get(key) != cache[key]}


def small_space():
    """With little address space the library reserves less, and cores are small."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def kernel_core(folder, program, prepare=small_space):
    """The core of a target that crashed, and what it had said of itself."""
    with open('/proc/sys/kernel/core_pattern', encoding='utf-8') as file:
        if file.read()[0] in '|/':
            raise Skip('core files go elsewhere here')
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard != resource.RLIM_INFINITY:
        raise Skip('core files are limited')

    def before():
        prepare()
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    run = subprocess.run([os.path.abspath(program), 'crash'], cwd=folder, env=ENV,
                         capture_output=True, check=False, preexec_fn=before)
    assert run.returncode == -signal.SIGABRT, run
    cores = glob.glob(os.path.join(folder, '*core*'))
    if not cores:
        raise Skip('no core file was written')
    return cores[0], json.loads(run.stdout[:run.stdout.rindex(b'ready ')])


def need_plain_build():
    if SANITIZER != 'none':
        raise Skip('a sanitizer keeps its memory out of core files')


class Core:
    """A core file that is damaged in place, and made whole again."""

    MAGIC = struct.pack('=Q', 0x6d656d6b62696c01)
    # Places in struct kmem_abi_root, and how much of it there was before 1.2.
    GROUPS, RCU, CHILDREN, SIBLING, SIZE_1_1 = 2928, 2992, 3028, 3032, 2912

    def __init__(self, path):
        self.path = path
        with open(path, 'r+b') as file:
            self.map = mmap.mmap(file.fileno(), 0)
        offset, = struct.unpack_from('=Q', self.map, 32)
        self.nr_segments, = struct.unpack_from('=H', self.map, 56)
        self.headers = (0, offset + 56 * self.nr_segments)
        self.segments = [struct.unpack_from('=6Q', self.map, offset + 56 * i + 8)
                         for i in range(self.nr_segments)]
        self.root = self.find_root()
        note = self.map.find(b'libkmem\0')
        assert note >= 0
        self.note = (note - 12, note + 16)

    def find_root(self):
        """The record that has started; the magic number may stand in code too."""
        at = self.map.find(self.MAGIC)
        while at >= 0:
            if struct.unpack_from('=I', self.map, at + 16)[0] == 1:
                return at
            at = self.map.find(self.MAGIC, at + 1)
        raise AssertionError('no record')

    def at(self, addr):
        """Place in the file of an address."""
        for offset, start, _, filled, _, _ in self.segments:
            if start <= addr < start + filled:
                return offset + addr - start
        return None

    def word(self, place):
        return struct.unpack_from('=Q', self.map, place)[0]

    def caches(self):
        """Places of the links of all caches, the head's first."""
        head = self.word(self.root + 24)
        addr, found = head, []
        while not found or addr != head:
            found.append(self.at(addr))
            addr = self.word(found[-1])
        return found

    def field(self, place):
        """Offset of a field that the record describes there."""
        return struct.unpack_from('=H', self.map, self.root + place)[0]

    def groups(self):
        """Places of the structures of the root group and of its children."""
        root = self.word(self.root + self.GROUPS)
        head = root + self.field(self.CHILDREN)
        addr, found = self.word(self.at(head)), [self.at(root)]
        while addr != head:
            found.append(self.at(addr - self.field(self.SIBLING)))
            addr = self.word(self.at(addr))
        return found

    def rcu(self):
        """Place of kfree_rcu's structure."""
        return self.at(self.word(self.root + self.RCU))

    @contextlib.contextmanager
    def damaged(self, changes):
        before = [(at, self.map[at:at + len(data)]) for at, data in changes]
        for at, data in changes:
            self.map[at:at + len(data)] = data
        try:
            yield
        finally:
            for at, data in reversed(before):
                self.map[at:at + len(data)] = data


def a_value(rng, core, caches):
    """Eight bytes that may hurt."""
    return struct.pack('=Q', rng.choice([
        0, 1, 0xff, 0xffff, 1 << 31, 1 << 32, 1 << 47, 1 << 63, (1 << 64) - 1,
        rng.getrandbits(64), core.word(rng.choice(caches)),
        core.word(core.root + 24) + rng.randrange(-64, 64),
        core.word(core.root + rng.randrange(24, 48, 8))]))


def some_changes(rng, core, caches):
    """A few words or bytes overwritten, most of them where it matters."""
    areas = [core.headers, core.note, (core.root, core.root + 112),
             (core.root, core.root + 3400), (0, len(core.map)),
             (core.root + core.SIZE_1_1, core.root + 3400),
             (core.rcu(), core.rcu() + 2048)] + \
        [(place, place + 256) for place in core.groups()] + \
        [(place - 2048, place + 2048) for place in caches]
    low, high = rng.choice(areas)
    changes = []
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = max(0, min(rng.randrange(low, high), len(core.map) - 8))
        if rng.random() < 0.7:
            changes.append((at & ~7, a_value(rng, core, caches)))
        else:
            changes.append((at, bytes([rng.getrandbits(8)])))
    return changes


def unshared(script, **kwargs):
    """Runs a script of the shell in a mount namespace of its own."""
    user = [] if os.geteuid() == 0 else ['--map-root-user']
    if subprocess.run(['unshare', '-m', *user, 'true'], capture_output=True,
                      check=False).returncode:
        raise Skip('mount namespaces are refused')
    return subprocess.run(['unshare', '-m', *user, 'sh', '-ec', script],
                          capture_output=True, text=True, check=False,
                          timeout=TOOL_SECONDS, **kwargs)


def slabinfo_source(folder):
    given = os.environ.get('KMEM_SLABINFO_SOURCE')
    if given:
        return given
    archives = sorted(glob.glob('/usr/src/linux-source-*.tar.xz'))
    if not archives:
        raise Skip('no /usr/src/linux-source-*.tar.xz (package linux-source)')
    with tarfile.open(archives[-1], 'r|xz') as archive:
        for member in archive:
            if re.fullmatch(r'[^/]+/tools/(vm|mm)/slabinfo\.c', member.name):
                path = os.path.join(folder, 'slabinfo.c')
                with open(path, 'wb') as file:
                    shutil.copyfileobj(archive.extractfile(member), file)
                return path
    raise Skip(f'{archives[-1]} has no slabinfo.c')


def slabinfo_of(tree, folder, *options):
    """What the kernel's tool prints of a tree, for each of the options."""
    tool = os.path.join(folder, 'slabinfo')
    if not os.path.exists(tool):
        subprocess.run(['gcc', '-O1', '-w', '-o', tool, slabinfo_source(folder)],
                       check=True)
    if not os.path.isdir('/sys/kernel/slab'):
        raise Skip('no /sys/kernel/slab to mount over')
    end = '@@@\n'
    script = f'mount --bind {tree} /sys/kernel/slab\n' + \
        ''.join(f'{tool} {option}\necho @@@\n' for option in options)
    run = unshared(script)
    assert run.returncode == 0, (run.stdout, run.stderr)
    return run.stdout.split(end)[:-1]
