/*
 * Walks an array of 64-byte nodes and touches four known fields of each, for a number of seconds: for tests of where samples
 * land. The loop loads hot (offset 48), b (8) and d (24) and stores h (56), each by one instruction of its own.
 * Prints where the array and the loop are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct node {
	long a, b, c, d, e, f, hot, h;
};

#define NODES 4096

__attribute__((noinline)) static long walk(struct node *nodes, long count)
{
	long sum = 0;

	for (long i = 0; i < count; i++) {
		sum += nodes[i].hot;
		sum ^= nodes[i].b;
		nodes[i].h = sum;
		sum += nodes[i].d;
	}
	return sum;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 1 ? atof(argv[1]) : 1);
	struct node *nodes = aligned_alloc(64, NODES * sizeof(*nodes));
	long sum = 0;

	for (long i = 0; i < NODES; i++)
		nodes[i] = (struct node){ i, i, i, i, i, i, i, i };
	printf("nodes %p walk %p\n", (void *)nodes, (void *)walk);
	fflush(stdout);
	while (now() < end)
		for (int i = 0; i < 20; i++)
			sum += walk(nodes, NODES);
	return sum == 1;
}
