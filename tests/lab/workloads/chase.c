/*
 * Loads whose dependences are known: walks a list, gathers by an array of indices, and scans an array, each over so many pages that
 * nobody has touched. list() faults once at each of its two loads for each node, gather() and scan() once for each page.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
/* The kernel maps what is in the page cache around a fault, up to 64 KiB: the two halves of a node are further from each other. */
#define HALF 65536
#define NODE (2 * HALF)

struct node {
	struct node *next;
	char half[HALF - sizeof(struct node *)];
	long value;
};

__attribute__((noinline)) static long list(const struct node *p)
{
	long sum = 0;

	for (; p; p = p->next)
		sum += p->value;
	return sum;
}

__attribute__((noinline)) static long gather(const long *data, const long *index, long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += data[index[i]];
	return sum;
}

__attribute__((noinline)) static long scan(const long *data, long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += data[i * (PAGE / 8)];
	return sum;
}

static void *map(long bytes, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		exit(3);
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 1000, sum = 0;
	const char *what = argc > 1 ? argv[1] : "all";
	int all = !strcmp(what, "all");

	if (all || !strcmp(what, "list")) {
		int fd = memfd_create("list", 0);
		char *nodes;

		if (fd < 0 || ftruncate(fd, n * NODE))
			return 4;
		nodes = map(n * NODE, fd);
		/* Into the page cache, not through the mapping. */
		for (long i = 0; i + 1 < n; i++) {
			char *next = nodes + (i + 1) * NODE;

			if (pwrite(fd, &next, sizeof(next), i * NODE) != sizeof(next))
				return 5;
		}
		sum += list((struct node *)nodes);
	}
	if (all || !strcmp(what, "gather")) {
		long *index = map(n * sizeof(*index), -1);

		for (long i = 0; i < n; i++)
			index[i] = (n - 1 - i) * (PAGE / 8);
		sum += gather(map(n * PAGE, -1), index, n);
	}
	if (all || !strcmp(what, "scan"))
		sum += scan(map(n * PAGE, -1), n);
	printf("%ld\n", sum);
	return 0;
}
