// SPDX-License-Identifier: MIT
/*
 * unit.c - a large file to compile: what stands here, UNITS times under other names
 *
 * It includes itself. Nothing is run, and no header is needed; it holds what compilers
 * have work with: tables, loops to unroll, calls to inline, a large switch.
 */
#ifndef NAME
#ifndef UNITS
#define UNITS 1
#endif
#define JOIN_AGAIN(a, b)	a##b
#define JOIN(a, b)		JOIN_AGAIN(a, b)
#define NAME(name)		JOIN(name, __INCLUDE_LEVEL__)

typedef unsigned long word;
extern void *obtain(word size);
extern void dispose(void *object);
extern int fetch(void);
#endif

struct NAME(entry) {
	struct NAME(entry) *next;
	word key;
	double weight;
	char text[24];
};

struct NAME(table) {
	struct NAME(entry) **buckets;
	word nr_buckets;
	word nr_entries;
};

static inline word NAME(mix)(word key)
{
	key ^= key >> 31;
	key *= 0x9e3779b97f4a7c15ul + __INCLUDE_LEVEL__;
	return key ^ key >> 29;
}

static struct NAME(entry) **NAME(find)(struct NAME(table) *table, word key)
{
	struct NAME(entry) **at = &table->buckets[NAME(mix)(key) % table->nr_buckets];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

static void NAME(grow)(struct NAME(table) *table)
{
	word nr = table->nr_buckets * 2;
	struct NAME(entry) **buckets = obtain(nr * sizeof(*buckets));
	word i;

	for (i = 0; i < nr; i++)
		buckets[i] = 0;
	for (i = 0; i < table->nr_buckets; i++) {
		struct NAME(entry) *entry = table->buckets[i];

		while (entry) {
			struct NAME(entry) *next = entry->next;
			word to = NAME(mix)(entry->key) % nr;

			entry->next = buckets[to];
			buckets[to] = entry;
			entry = next;
		}
	}
	dispose(table->buckets);
	table->buckets = buckets;
	table->nr_buckets = nr;
}

int NAME(insert)(struct NAME(table) *table, word key, const char *text)
{
	struct NAME(entry) **at = NAME(find)(table, key);
	struct NAME(entry) *entry = *at;
	unsigned int i;

	if (!entry) {
		entry = obtain(sizeof(*entry));
		*entry = (struct NAME(entry)){ .key = key };
		*at = entry;
		if (++table->nr_entries > 2 * table->nr_buckets)
			NAME(grow)(table);
	}
	for (i = 0; i < sizeof(entry->text) - 1 && text[i]; i++)
		entry->text[i] = text[i] >= 'a' && text[i] <= 'z' ? text[i] - 32 : text[i];
	entry->weight += (double)i / (1 + __INCLUDE_LEVEL__);
	return i == sizeof(entry->text) - 1;
}

int NAME(delete)(struct NAME(table) *table, word key)
{
	struct NAME(entry) **at = NAME(find)(table, key);
	struct NAME(entry) *entry = *at;

	if (!entry)
		return -1;
	*at = entry->next;
	dispose(entry);
	table->nr_entries--;
	return 0;
}

static void NAME(sift)(struct NAME(entry) **heap, word at, word nr)
{
	for (;;) {
		word child = 2 * at + 1;
		struct NAME(entry) *kept = heap[at];

		if (child >= nr)
			return;
		if (child + 1 < nr && heap[child]->weight < heap[child + 1]->weight)
			child++;
		if (kept->weight >= heap[child]->weight)
			return;
		heap[at] = heap[child];
		heap[child] = kept;
		at = child;
	}
}

void NAME(sort)(struct NAME(entry) **entries, word nr)
{
	word i;

	for (i = nr / 2; i-- > 0;)
		NAME(sift)(entries, i, nr);
	for (i = nr; i-- > 1;) {
		struct NAME(entry) *largest = entries[0];

		entries[0] = entries[i];
		entries[i] = largest;
		NAME(sift)(entries, 0, i);
	}
}

void NAME(multiply)(double (*restrict out)[32], double (*a)[32], double (*b)[32])
{
	unsigned int i, j, k;

	for (i = 0; i < 32; i++)
		for (j = 0; j < 32; j++) {
			double sum = 0;

			for (k = 0; k < 32; k++)
				sum += a[i][k] * b[k][j];
			out[i][j] = sum * (i == j ? __INCLUDE_LEVEL__ : 1);
		}
}

/* A machine with a stack. */
long NAME(execute)(const unsigned char *code, long *stack, unsigned int steps)
{
	long *top = stack;
	long kept = __INCLUDE_LEVEL__;

	while (steps--) {
		long value = *top;

		switch (*code++) {
		case 0: *++top = *code++; break;
		case 1: *--top += value; break;
		case 2: *--top -= value; break;
		case 3: *--top *= value; break;
		case 4: top--; *top = value ? *top / value : 0; break;
		case 5: top--; *top = value ? *top % value : 0; break;
		case 6: *--top &= value; break;
		case 7: *--top |= value; break;
		case 8: *--top ^= value; break;
		case 9: top--; *top = (long)((word)*top << (value & 63)); break;
		case 10: top--; *top >>= value & 63; break;
		case 11: top--; *top = *top < value; break;
		case 12: top--; *top = *top == value; break;
		case 13: *top = -value; break;
		case 14: *top = ~value; break;
		case 15: *top = !value; break;
		case 16: *++top = value; break;
		case 17: *top = top[-1]; top[-1] = value; break;
		case 18: top--; break;
		case 19: code += value ? 0 : (signed char)*code; code++; top--; break;
		case 20: code += (signed char)*code; break;
		case 21: kept = value; break;
		case 22: *++top = kept; break;
		case 23: *++top = fetch(); break;
		case 24: *top = __builtin_popcountl((word)value); break;
		case 25: *top = (long)NAME(mix)((word)value); break;
		default: return value;
		}
	}
	return *top;
}

/* Numbers, words and signs of a text, by kind. */
unsigned int NAME(scan)(const char *text, word *kinds, unsigned int max)
{
	unsigned int nr = 0;

	while (*text && nr < max) {
		word kind = (unsigned char)*text;

		if (*text >= '0' && *text <= '9') {
			kind = 0;
			while (*text >= '0' && *text <= '9')
				kind = kind * 10 + (word)(*text++ - '0');
		} else if ((*text | 32) >= 'a' && (*text | 32) <= 'z') {
			while ((*text | 32) >= 'a' && (*text | 32) <= 'z')
				kind = NAME(mix)(kind + (word)*text++);
		} else {
			text++;
		}
		if (kind != ' ')
			kinds[nr++] = kind;
	}
	return nr;
}

#if __INCLUDE_LEVEL__ + 1 < UNITS
#include "unit.c"
#endif
