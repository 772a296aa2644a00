/* SPDX-License-Identifier: MIT */
/* watch.c - looking at a process again and again */
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND	1000000000u
#define MIN_SECONDS	0.05
#define MAX_SECONDS	86400.0
#define MAX_TRIES	3

/* The signal that came, if any; those of a window's size don't end anything. */
static volatile sig_atomic_t caught;
static volatile sig_atomic_t resized;
static sigset_t mask_outside;

static void catch(int number)
{
	if (number == SIGWINCH)
		resized = 1;
	else
		caught = number;
}

/* Held back but while waiting; what is ignored already stays so. */
static void hold_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = catch }, old;
	sigset_t held;
	size_t i;

	sigemptyset(&held);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sigaction(numbers[i], NULL, &old);
		if (old.sa_handler == SIG_IGN)
			continue;
		sigaction(numbers[i], &action, NULL);
		sigaddset(&held, numbers[i]);
	}
	sigaction(SIGWINCH, &action, NULL);
	sigaddset(&held, SIGWINCH);
	sigprocmask(SIG_BLOCK, &held, &mask_outside);
}

uint64_t watch_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

bool watch_open(struct watch *w, pid_t pid)
{
	w->choice = (struct target_choice) { .pid = pid };
	w->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	hold_signals();
	if (target_open(&w->target, &w->choice))
		return true;
	complain("%s", w->target.error);
	return false;
}

void watch_close(struct watch *w)
{
	target_close(&w->target);
	if (w->pidfd >= 0)
		close(w->pidfd);
	sigprocmask(SIG_SETMASK, &mask_outside, NULL);
}

static bool has_ended(const struct watch *w)
{
	struct pollfd poller = { .fd = w->pidfd, .events = POLLIN };

	/* A kernel without pidfd_open(): one that waits for its parent counts as there. */
	if (w->pidfd < 0)
		return kill(w->choice.pid, 0) && errno == ESRCH;
	return poll(&poller, 1, 0) == 1;
}

static bool try_sample(struct watch *w, struct sample *s)
{
	struct target *t = &w->target;

	memset(s, 0, sizeof(*s));
	t->error[0] = '\0';
	s->ns = watch_now();
	return snapshot_take(&s->snap, t) && groups_take(&s->groups, t, &s->snap) &&
	       rcu_take(&s->rcu, t, &s->snap) &&
	       ((s->order = order_by_name(&s->snap)) || target_fail(t, "out of memory"));
}

/* It may use the library by now, or be another program. */
static bool open_again(struct watch *w)
{
	target_close(&w->target);
	return target_open(&w->target, &w->choice);
}

enum watch_event watch_sample(struct watch *w, struct sample *s)
{
	bool again = !w->target.root.started;
	int tries;

	memset(s, 0, sizeof(*s));
	for (tries = 0; tries < MAX_TRIES; tries++) {
		if (has_ended(w))
			return WATCH_ENDED;
		if ((!again || open_again(w)) && try_sample(w, s))
			return WATCH_DONE;
		sample_free(s);
		again = true;
	}
	return has_ended(w) ? WATCH_ENDED : WATCH_FAILED;
}

void sample_free(struct sample *s)
{
	rcu_row_free(&s->rcu);
	groups_free(&s->groups);
	snapshot_free(&s->snap);
	free(s->order);
	memset(s, 0, sizeof(*s));
}

enum watch_event watch_wait(const struct watch *w, uint64_t until_ns, int fd)
{
	struct pollfd pollers[] = {
		{ .fd = w->pidfd, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	uint64_t now = watch_now(), left = until_ns > now ? until_ns - now : 0;
	struct timespec timeout = { (time_t)(left / NS_PER_SECOND),
				    (long)(left % NS_PER_SECOND) };
	int ready = ppoll(pollers, 2, &timeout, &mask_outside);

	if (caught)
		return WATCH_STOPPED;
	if (resized) {
		resized = 0;
		return WATCH_RESIZED;
	}
	if (ready > 0 && pollers[0].revents)
		return WATCH_ENDED;
	if (ready > 0)
		return WATCH_INPUT;
	/* Stopped and continued, say: the rest of the time is waited for. */
	if (ready < 0 && errno == EINTR)
		return watch_wait(w, until_ns, fd);
	return WATCH_DONE;
}

int watch_finish(const struct watch *w, enum watch_event event, bool missing)
{
	switch (event) {
	case WATCH_ENDED:
		complain("%s has ended", w->target.name);
		return missing ? EXIT_FAILED : EXIT_DONE;
	case WATCH_FAILED:
		complain("%s", w->target.error);
		return EXIT_FAILED;
	case WATCH_STOPPED:
		if (caught == SIGINT)
			return EXIT_DONE;
		/* As somebody who waits for this process expects. */
		fflush(stdout);
		signal(caught, SIG_DFL);
		raise(caught);
		sigprocmask(SIG_SETMASK, &mask_outside, NULL);
		return EXIT_FAILED;
	default:
		return EXIT_DONE;
	}
}

static void count(const struct cache_row *row, const struct snapshot *snap,
		  struct activity *a)
{
	uint64_t slow_allocs = row_counter(row, snap, "alloc_slowpath");
	uint64_t slow_frees = row_counter(row, snap, "free_slowpath");

	a->allocs = row_counter(row, snap, "alloc_fastpath") + slow_allocs;
	a->frees = row_counter(row, snap, "free_fastpath") + slow_frees;
	a->slow = slow_allocs + slow_frees;
	a->made = row_counter(row, snap, "alloc_slab");
	a->back = row_counter(row, snap, "free_slab");
	a->locked = row_counter(row, snap, "cmpxchg_double_fail");
	a->unlocked = row_counter(row, snap, "cmpxchg_double_cpu_fail");
}

/* Read at slightly different moments, a counter may seem to shrink. */
static uint64_t growth(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void subtract(struct activity *now, const struct activity *before)
{
	/* Another cache of this name: all it did was since then. */
	if (now->made < before->made || now->allocs < before->allocs / 2)
		return;
	now->allocs = growth(now->allocs, before->allocs);
	now->frees = growth(now->frees, before->frees);
	now->slow = growth(now->slow, before->slow);
	now->made = growth(now->made, before->made);
	now->back = growth(now->back, before->back);
	now->locked = growth(now->locked, before->locked);
	now->unlocked = growth(now->unlocked, before->unlocked);
}

void sample_flows(const struct sample *now, const struct sample *before,
		  struct activity *flows)
{
	struct activity past;
	size_t i, j = 0;

	for (i = 0; i < now->snap.nr_rows; i++) {
		const struct cache_row *row = &now->snap.rows[now->order[i]];
		struct activity *flow = &flows[now->order[i]];
		int result = -1;

		count(row, &now->snap, flow);
		for (; j < before->snap.nr_rows; j++) {
			const struct cache_row *old = &before->snap.rows[before->order[j]];

			result = strcmp(row->name, old->name);
			if (result > 0)
				continue;
			if (result == 0) {
				count(old, &before->snap, &past);
				subtract(flow, &past);
				j++;
			}
			break;
		}
	}
}

static void add_row(struct total *total, const struct cache_row *row,
		    const struct activity *flow)
{
	total->caches++;
	total->objects += row->objects;
	total->slabs += row->slabs;
	total->used += row_used(row);
	total->space += row_space(row);
	/* Counted up and down by many, it may dip below 0. */
	if ((int64_t)row->rcu_pending > 0)
		total->rcu_pending += row->rcu_pending;
	total->flow.allocs += flow->allocs;
	total->flow.frees += flow->frees;
	total->flow.slow += flow->slow;
	total->flow.made += flow->made;
	total->flow.back += flow->back;
	total->flow.locked += flow->locked;
	total->flow.unlocked += flow->unlocked;
}

void sample_total(struct total *total, const struct sample *now,
		  const struct sample *before, const struct activity *flows,
		  const regex_t *regex)
{
	size_t i;

	memset(total, 0, sizeof(*total));
	total->seconds = (double)growth(now->ns, before->ns) / NS_PER_SECOND;
	for (i = 0; i < now->snap.nr_rows; i++)
		if (matches_name(regex, &now->snap.rows[i]))
			add_row(total, &now->snap.rows[i], &flows[i]);
	if (!regex && now->rcu.known)
		total->rcu_pending = now->rcu.stats.pending_objects;
	/* The root's are those of all groups, of removed ones too. */
	for (i = 0; i < NR_GROUP_EVENTS && now->groups.nr_rows && before->groups.nr_rows; i++)
		total->events[i] = growth(now->groups.rows[0].events[i],
					  before->groups.rows[0].events[i]);
}

bool parse_interval(const char *text, uint64_t *ns)
{
	double seconds;
	char *end;

	if (!*text || strspn(text, "0123456789.") != strlen(text))
		return false;
	seconds = strtod(text, &end);
	if (*end || !(seconds >= MIN_SECONDS && seconds <= MAX_SECONDS))
		return false;
	*ns = (uint64_t)(seconds * NS_PER_SECOND);
	return true;
}
