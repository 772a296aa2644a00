#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do run-tests, results-table and the check scripts do what they say? Prints TAP."""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True


def load(name):
    """A script as a module."""
    loader = importlib.machinery.SourceFileLoader(
        name.replace('-', '_'), os.path.join(HERE, name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def limits_of(code):
    """[(rule, function)] that check-limits finds in C code."""
    with tempfile.NamedTemporaryFile('w', suffix='.c') as file:
        file.write(code)
        file.flush()
        return [found[:2] for found in
                load('check-limits').check_file(file.name)]


def counted(stdout, result='OK', returncode=0):
    """(passed, failures, skipped) of one program."""
    module = load('run-tests')
    count = module.Count()
    module.count_cases({'name': 'p', 'stdout': stdout, 'result': result,
                        'returncode': returncode, 'duration': 1.0}, count)
    return count.passed, [what for _, what in count.failed], count.skipped


def path_of(lines):
    """(counts, faults) of assembly in objdump's form, one line per address."""
    module = load('check-fastpath')
    body = [module.Instruction(address, text)
            for address, text in enumerate(lines)]
    path, faults = module.hot_path('f', body)
    return module.count(path), faults


def run_tests_counts_cases_of_a_program():
    assert counted('1..2\nok 1 - a\nok 2 - b\n') == (2, [], 0)


def run_tests_counts_a_silent_program_as_one():
    assert counted('hello\n') == (1, [], 0)
    assert counted('', 'FAIL', 3) == (0, ['exit code 3'], 0)
    assert counted('', 'SKIP', 77) == (0, [], 1)
    assert counted('', 'TIMEOUT', -15) == (0, ['timed out after 1 s'], 0)


def run_tests_names_the_failed_case():
    assert counted('1..2\nok 1 - a\nnot ok 2 - b\n', 'FAIL', 1) == \
        (1, ['b'], 0)


def run_tests_knows_cmockas_skip():
    assert counted('1..1\nnot ok 1 # SKIP a\n') == (0, [], 1)


def run_tests_fails_a_program_that_dies_between_cases():
    assert counted('1..3\nok 1 - a\n', 'FAIL', -6) == \
        (1, ['killed by signal 6 after 1 of 3 cases'], 0)


def run_tests_fails_a_program_that_dies_after_its_cases():
    assert counted('1..1\nok 1 - a\n', 'FAIL', 23) == \
        (1, ['exit code 23'], 0)


def run_tests_fails_missing_cases_in_spite_of_exit_0():
    assert counted('1..2\nok 1 - a\n') == \
        (1, ['exit code 0 after 1 of 2 cases'], 0)


def limits_find_a_long_function():
    body = '\tx();\n' * 58
    assert limits_of('void f(void)\n{\n' + body[:-5] + '}\n') == []
    assert limits_of('void f(void)\n{\n' + body + '}\n') == \
        [('function', 'f')]


def limits_find_a_long_line_and_file():
    assert limits_of('\t' + 'x' * 93 + '\n') == [('line', '')]
    assert limits_of('\n' * 801) == [('file', '')]


def limits_count_parameters():
    assert limits_of('void f(int a, void (*b)(int, int), int c, int d, '
                     'int e)\n{\n}\n') == []
    assert limits_of('void f(int a, int b, int c, int d, int e, int g)\n'
                     '{\n}\n') == [('parameters', 'f')]


def limits_see_nesting_without_braces():
    assert limits_of('void f(void)\n{ if (a) for (;;) while (b) c(); }\n') \
        == []
    assert limits_of('void f(void)\n{ if (a) for (;;) while (b) if (c) d();'
                     ' }\n') == [('nesting', 'f')]


def limits_take_else_if_for_one_level():
    chain = 'else if (b) c();\n' * 9
    assert limits_of('void f(void)\n{ if (a) b(); ' + chain + '}\n') == []


def limits_find_a_conditional_inside_a_function_only():
    assert limits_of('#if A\nvoid f(void)\n{\n}\n#endif\n') == []
    assert limits_of('void f(void)\n{\n#ifdef A\n#endif\n}\n') == \
        [('if', 'f')]


def limits_are_not_misled_by_strings_and_comments():
    assert limits_of('void f(void)\n{\n\tx("}", \'{\'); /* } */\n'
                     '#if A\n#endif\n}\n') == [('if', 'f')]


def layers_know_up_down_and_private():
    module = load('check-layers')
    exists = module.os.path.exists
    module.os.path.exists = lambda path: True
    try:
        assert module.check_src_include('slab', 'slab/private.h') is None
        assert module.check_src_include('slab', 'page/page.h') is None
        assert 'above' in module.check_src_include('slab', 'pcpu/pcpu.h')
        assert 'private' in module.check_src_include('slab', 'page/meta.h')
        assert 'no layer' in module.check_src_include('slab', 'sys/mman.h')
    finally:
        module.os.path.exists = exists


def fastpath_follows_the_path_to_its_return():
    counts, faults = path_of(['mov (%rdi),%rax', 'test %rax,%rax', 'je 9 <x>',
                              'jmp 5 <f+5>', 'call 7 <slow>',
                              'mov %rax,8(%rdi)', 'ret'])
    assert not faults
    assert counts['total'] == 6
    assert (counts['load'], counts['store'], counts['test'],
            counts['jump']) == (1, 1, 1, 3)


def fastpath_forbids_calls_locks_and_leaving():
    for line in ('call 9 <slow>', 'data16 rex.W call 9 <x>',
                 'lock addq $1,(%rdi)', 'xchg %rax,(%rdi)', 'jmp 99 <slow>',
                 'jmp *%rax'):
        assert path_of([line, 'ret'])[1], line
    assert path_of([])[1]


def symbols_are_found_in_declarations():
    module = load('check-symbols')
    assert module.strip_attributes(
        '__attribute__((alloc_size(1, 2))) void *f(int (*g)(int))').strip() \
        == 'void *f(int (*g)(int))'
    os.chdir(os.path.join(HERE, '..'))
    assert {'kmalloc', 'kmem_cache_create_args', 'kstrdup'} <= \
        module.declared(['slab'])


def rcu_row(name, freed, peak, **more):
    """A row of kmem-bench rcu, of three rounds."""
    return {'allocator': name, 'ns_per_object': freed[1], 'ns_rounds': freed,
            'queued_ns_per_object': freed[1], 'queued_ns_rounds': freed,
            'peak_bytes': peak, 'peak_bytes_rounds': [peak] * 3,
            'batches_rounds': [2, 2, 2], **more}


def rcu_result(*rows):
    return {'rows': list(rows), 'caller': [
        {'call': 'kfree_rcu', 'ns_rounds': [3, 3, 6]},
        {'call': 'kmem_cache_free', 'ns_rounds': [2, 6, 6]}],
        'kfree_nthreads': 2, 'kfree_loops': 8, 'kfree_alloc_num': 1000,
        'kfree_mult': 1, 'call_rcu': 'somebody',
        'machine': 'm', 'commit': 'c', 'mode': 'rseq'}


def table_takes_ratios_of_rcu_round_by_round():
    module = load('results-table')
    one = rcu_result(rcu_row('kmem-bulk', [2, 2, 2], 5 << 20, objects_per_grace_period=512.4),
                     rcu_row('kmem-no-bulk', [4, 5, 8], 4 << 20),
                     rcu_row('call_rcu+a', [10, 40, 20], 9 << 20),
                     rcu_row('call_rcu+b', [40, 10, 20], 9 << 20))
    lines = list(module.rcu_goal_lines('rcu.json', one))
    assert '| 2.00 | kmem-no-bulk | 0.40 | <= 0.50 |' in lines[0], lines
    assert '| best call_rcu | 0.20 | <= 0.20 |' in lines[1], lines
    assert '| kmem-no-bulk | 1.25 | <= 0.50 |' in lines[2], lines
    assert '| call_rcu+jemalloc | - |' in lines[3], 'it took no part'
    assert '| kmem_cache_free | 1.00 | <= 1.50 |' in lines[4], lines
    assert '| 512 | >= 500 |' in lines[5], lines


def table_judges_no_row_that_ran_out_of_memory():
    module = load('results-table')
    one = rcu_result(rcu_row('kmem-bulk', [2, 2, 2], 5 << 20),
                     rcu_row('kmem-no-bulk', [4, 5, 8], 4 << 20, out_of_memory_at_loop=7))
    assert '| kmem-no-bulk | - | <= 0.50 |' in list(module.rcu_goal_lines('f', one))[0]
    text = '\n'.join(module.rcu_lines(one))
    assert 'kmem-no-bulk (out of memory at loop 7)' in text, text
    assert '| bulk over none, memory | 34c881745549, HiKey-960, 8 CPUs | ' \
        '158 MB to 115 MB | 0.73 | - |' in text, text


def memcg_row(name, rounds, **more):
    """A row of kmem-bench memcg, of three rounds."""
    return {'allocator': name, 'n': 1, 'threads': 1, 'ns_per_object': rounds[1],
            'ns_rounds': rounds, 'spread': 0.5, **more}


def memcg_message_row(name, socket, rounds, **more):
    return {'allocator': name, 'socket': socket, 'allocator_share': 0.021,
            'total_ns_rounds': rounds, 'sendto_ns_rounds': [2e6] * 3,
            'recvfrom_ns_rounds': [1e6] * 3, 'object_ns_rounds': [90, 80, 70], **more}


def memcg_result():
    over = {'median': 1.2, 'low': 1.1, 'high': 1.3, 'verdict': 'slower'}
    return {
        'machine': 'm', 'commit': 'c', 'mode': 'rseq', 'rounds': 3,
        'loop': {'pairs': 1400000, 'rows': [
            memcg_row('plain', [4, 5, 10], size=256),
            memcg_row('accounted', [5, 6, 11], size=256, over_plain=over),
            memcg_row('no-stock', [20, 18, 11], size=256, over_plain=over)]},
        'batches': {'pairs': 40, 'batch': 4, 'switch_ns': 8.5, 'rows': [
            memcg_row(name, [base * size] * 3, size=size, n=n)
            for size in (32, 4096) for name, n, base in
            (('plain', 1, 1), ('groups-1', 1, 2), ('groups-8', 8, 3), ('kmalloc-accounted', 1, 9))]},
        'sendrecv': {'messages': 7, 'size': 512, 'rows': [
            memcg_message_row('plain', 'tcp', [1e6, 2e6, 4e6]),
            memcg_message_row('accounted', 'tcp', [2e6, 2e6, 3e6], over_plain=over)]},
        'published': [{'part': 'loop', 'what': 'pairs', 'unit': 'ms', 'figures': [110, 85]},
                      {'part': 'sendrecv', 'what': 'sendto', 'unit': 'ms',
                       'figures': [2576, 2989, 2984]}]}


def table_takes_ratios_of_groups_round_by_round():
    lines = list(load('results-table').memcg_goal_lines('memcg.json', memcg_result()))
    assert lines == [
        '| accounted pair, 256 B | 6.00 | plain | 1.20 | <= 1.25 | memcg.json |',
        '| accounted pair without stock, 256 B | 18.00 | accounted | 3.00 | >= 3.00 '
        '| memcg.json |',
        '| accounted, eight groups in turns, 32 B | 96.00 | groups-1 | 1.50 | <= 1.15 '
        '| memcg.json |',
        '| accounted, eight groups in turns, 4096 B | 12288.00 | groups-1 | 1.50 | <= 1.15 '
        '| memcg.json |',
        '| messages, buffers accounted | - | plain | 1.00 | <= 1.01 | memcg.json |',
    ], lines


def table_shows_what_is_published_of_groups():
    text = '\n'.join(load('results-table').memcg_lines(memcg_result()))
    assert '| accounted | 8.40 | 6.00 | 50.0 % | 1.200 [1.100 .. 1.300] slower |' in text, text
    assert '| groups-8 | 32 | 8 | 1 | 96.00 | 50.0 % | - | 1.50 |' in text, text
    assert '| kmalloc-accounted | 32 | 1 | 1 | 288.00 | 50.0 % | - | - |' in text, text
    assert '| batches of 4, 2021 series, patches 1 to 4, 4 KiB | 3.62 | 2.00 |' in text, text
    assert '| plain | loopback TCP | 2 | 2 | 1 | 80 | 2.10 % | - |' in text, text
    assert '| pairs | 110, 85 | ms |' in text and '| sendto | 2576, 2989, 2984 | ms |' in text


def index_says_what_is_missed_and_why():
    judged = load('results-table').judged
    row = '| pair, 256 B | 3.50 | best malloc | 0.90 | <= 0.70 | pair.json |'
    assert judged(row, {})[4:6] == ['**missed**', '**not explained**']
    assert judged(row, {'pair, 256 B over best malloc': 'so'})[4:6] == ['**missed**', 'so']
    assert judged(row.replace('0.90', '0.70'), {})[4:6] == ['met', '']
    more = '| objects | - | - | 512 | >= 500 | rcu.json |'
    assert judged(more, {})[4] == 'met' and judged(more.replace('512', '499'), {})[4] != 'met'
    assert judged(more.replace('512', '-'), {})[4] == 'not measured'


def plots_have_every_allocator_with_its_range():
    module = load('results-plots')
    one = grid_result()
    for row in one['parts'][0]['rows']:
        row['n'] = 1
    plot, = module.grid_plots(one)
    text = '\n'.join(module.script(plot, "m, `c'", 'out.svg'))
    rows = grid_result()['parts'][0]['rows']
    for row in rows:
        rounds = row['ns_rounds']
        point = f'{sorted(rounds)[len(rounds) // 2]!r} {min(rounds)!r} {max(rounds)!r}'
        assert point in text and f'title "{row["allocator"]}"' in text, (row, text)
    assert '`' not in text, 'gnuplot would execute it'


def plots_make_lines_of_many_sizes():
    module = load('results-plots')
    rows = [{'allocator': name, 'size': 64, 'n': n, 'ns_rounds': [1, 3, n]}
            for name in ('kmem', 'glibc') for n in (1, 8, 16, 32, 34, 250)]
    plot, = module.rows_plots({'scenario': 'bulk', 'rows': rows})
    text = '\n'.join(module.script(plot, 'm', 'out.svg'))
    assert 'yerrorlines' in text and 'boxes' not in text, text
    assert '\n250 3 1 250\n' in text, text
    assert '"32" 32' in text and '"34" 34' not in text, 'no room for it'


def grid_result():
    """As of a scenario of rows by cases."""
    def row(name, rounds, **more):
        return {'case': 'c', 'allocator': name, 'outside_share': 0.41, 'ns_rounds': rounds,
                'gps_rounds': [7, 8, 9], **more}
    over = {'median': 0.5, 'low': 0.25, 'high': 0.75, 'verdict': 'faster', 'over': 'old'}
    return {'scenario': 's', 'machine': 'm', 'commit': 'c', 'mode': 'rseq', 'parts': [{
        'part': 'p', 'title': 'what is done', 'parameters': '3 turns', 'legend': 'ns: time',
        'rounds': 3, 'rows': [row('new', [4, 5, 6], over_row=over), row('old', [8, 20, 9])],
        'columns': [{'key': 'ns', 'head': 'ns', 'digits': 1},
                    {'key': 'gps', 'head': 'gps', 'digits': 0}],
        'fit': 'thread', 'fits': [{'allocator': 'new', 'kib': 3.2, 'bytes': 177.4, 'low': 100,
                                   'high': 200}],
        'goals': [{'what': 'time', 'case': 'c', 'allocator': 'new', 'over': 'old',
                   'median': 0.5, 'low': 0.25, 'high': 0.75, 'limit': 0.4,
                   'verdict': 'missed, not for certain'}],
        'published': [{'what': 'mail', 'figures': '9 % less'}]}]}


def table_shows_rows_by_cases_as_they_describe_themselves():
    module = load('results-table')
    assert list(module.grid_goal_lines('s.json', grid_result())) == [
        '| p: time, c | - | old | 0.50 | <= 0.4 | s.json |']
    text = '\n'.join(module.grid_lines(grid_result()))
    assert '| case | row | ns | spread | gps | outside | ns, ratio |' in text, text
    assert '| c | new | 5.0 | 40.0 % | 8 | 41 % | 0.50 [0.25 .. 0.75] faster, old |' in text, text
    assert '| c | old | 9.0 | 133.3 % | 8 | 41 % | - |' in text, text
    assert 'Line of fit, new: 3 KiB and 177 [100 .. 200] bytes per thread.' in text, text
    assert '| time of new | c | old | 0.50 [0.25 .. 0.75] | <= 0.4 ' \
        '| missed, not for certain | 41 % |' in text, text
    assert '| mail | 9 % less |' in text, text


def main():
    cases = [(name, case) for name, case in globals().items()
             if name.startswith(('run_tests_', 'limits_', 'layers_',
                                 'fastpath_', 'symbols_', 'table_', 'index_', 'plots_'))
             and name != 'limits_of']
    print(f'1..{len(cases)}')
    failed = 0
    for number, (name, case) in enumerate(cases, 1):
        try:
            case()
            print(f'ok {number} - {name}')
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            line = error.__traceback__.tb_next.tb_lineno
            print(f'not ok {number} - {name}\n# line {line}: {error!r}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
