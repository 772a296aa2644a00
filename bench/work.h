/* SPDX-License-Identifier: MIT */
/*
 * work.h - the scenarios that are grids (grid.h): parameters, values, arguments
 *
 * The drivers (*_run.c) turn the command line into cases; what a worker is told is an
 * allocator's args, as text.
 */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

/* Senders, and as many receivers, of a group. */
#define HACKBENCH_SIDE		20u
#define HACKBENCH_MAX_GROUPS	200u
#define DIRTREE_MAX_LEVELS	12u
#define DIRTREE_MAX_WIDTH	100000u
#define DIRTREE_MAX_READERS	64u
#define SCALE_MAX_THREADS	1000u

/**
 * struct work_params - the command line; 0: by --quick and --full
 * @groups:  of hackbench
 * @loops:   messages of each sender to each receiver
 * @turns:   of socks
 * @levels:  of directories, below the top; @dirs in each, and @files
 * @readers: while the directories are deleted
 * @from:    a directory to take the shape from, or NULL
 */
struct work_params {
	unsigned int groups;
	unsigned int loops;
	unsigned int turns;
	unsigned int levels;
	unsigned int dirs;
	unsigned int files;
	unsigned int readers;
	const char *from;
};

enum work_option { WORK_GROUPS, WORK_LOOPS, WORK_TURNS, WORK_LEVELS, WORK_DIRS,
		   WORK_FILES, WORK_READERS, WORK_FROM };

/** work_params_init() - the defaults */
void work_params_init(struct work_params *params);
/** work_params_set() - one option; NULL, or what is wrong with @text */
const char *work_params_set(struct work_params *params, enum work_option option,
			    const char *text);
/** work_params_help() - the options' part of --help */
void work_params_help(void);

/* Who passes messages: job->args of hackbench is "%u %u %u": this, the kind of the
 * passage, groups. n: loops. */
enum hackbench_who { HACKBENCH_THREADS, HACKBENCH_PROCESSES };

enum hackbench_value {
	HACKBENCH_MS,		/* until the last message is received */
	HACKBENCH_CPU_MS,	/* of all senders and receivers */
	HACKBENCH_VOLUNTARY,	/* context switches */
	HACKBENCH_INVOLUNTARY,
	HACKBENCH_FAULTS,	/* page faults */
	HACKBENCH_FREES,	/* of libkmem; all below: per million of these */
	HACKBENCH_REDOS,	/* exchanges that were tried again */
	HACKBENCH_ABORTS,	/* sequences that were interrupted */
	HACKBENCH_LIST_LOCKS,	/* holds of a node's list lock */
	NR_HACKBENCH_VALUES
};

/*
 * job->args of socks is "%u %u %llu": whether there are real sockets, who runs
 * callbacks, bytes that may be resident. n: turns.
 */
#define SOCKS_PER_TURN		10u
#define SOCKS_SOCKET_BYTES	768u
#define SOCKS_FILE_BYTES	256u
#define SOCKS_DENTRY_BYTES	192u

enum socks_value {
	SOCKS_NS,		/* per socket, until all is freed */
	SOCKS_CLOSED_NS,	/* until the last one is closed */
	SOCKS_CPU_NS,		/* of all threads */
	SOCKS_PERIODS,		/* grace periods that were waited for */
	SOCKS_PEAK,		/* MiB resident at most, less those before */
	SOCKS_WAITS,		/* times that memory ran short */
	NR_SOCKS_VALUES
};

/*
 * job->args of dirtree is "%d %u %u %u": the file of the shape (shape.h), readers, who
 * runs callbacks, trees that are made and deleted. n: entries of a tree.
 */
#define DIRTREE_NODE_BYTES	64u

enum dirtree_value {
	DIRTREE_NS,		/* of deletion per entry, until all is freed */
	DIRTREE_REMOVED_NS,	/* until the last one is removed */
	DIRTREE_CREATE_NS,
	DIRTREE_CPU_NS,		/* of both, of all threads but the readers */
	DIRTREE_LOOKUPS,	/* of all readers, per second */
	DIRTREE_PERIODS,	/* grace periods that were waited for */
	NR_DIRTREE_VALUES
};

/* Of scale: ns of the machine per object; of its parts on memory: KiB resident. */
enum scale_value { SCALE_NS };
enum scale_memory_value { SCALE_KIB };

/* Of bulk-slabs: ns per object. */
enum slabs_value { SLABS_NS };

/*
 * job->args of observe is "%u %u %u": has the reader a CPU of its own, pairs of halves,
 * readings in a half. n: caches. The programs are named in the environment.
 */
#define OBSERVE_READER		"OBSERVE_READER"
#define OBSERVE_KMEM		"OBSERVE_KMEM"
#define OBSERVE_EVERY_MS	100u

enum observe_value {
	OBSERVE_READ_MS,	/* of a reading by who is attached */
	OBSERVE_READ_CPU_MS,	/* its CPU time */
	OBSERVE_INFO_MS,	/* of `kmem info --json`, the whole process */
	OBSERVE_SLOWER,		/* percent, that the target is while it is read */
	OBSERVE_NS,		/* per object of the target while it isn't */
	NR_OBSERVE_VALUES
};

/* The case of malloc and malloc-peak that sums the others up. */
#define MALLOC_MEAN	"geometric mean"

enum malloc_value {
	MALLOC_MS,
	MALLOC_CPU_MS,		/* of all threads, start and end included */
	MALLOC_FAULTS,		/* page faults */
	MALLOC_KIB,		/* resident at most */
	NR_MALLOC_VALUES
};

/* Of malloc-burst. */
enum malloc_burst_value {
	MALLOC_SHARE,		/* of the two below */
	MALLOC_AFTER_KIB,
	MALLOC_BURST_KIB,	/* resident at most */
	NR_MALLOC_BURST_VALUES
};

#endif /* BENCH_WORK_H */
