/* Sums a matrix column by column: each element is on a line, and nearly on a page, of its own. */
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) long mix(long value) { return value ^ value >> 3; }

__attribute__((noinline)) long column_sum(const long *m, long n)
{
	long sum = 0;

	for (long j = 0; j < n; j++)
		for (long i = 0; i < n; i++)
			sum += mix(m[i * n + j]);
	return sum;
}

int main(int argc, char **argv)
{
	long n = 4096, times = argc > 1 ? atol(argv[1]) : 1, sum = 0;
	long *m = calloc(n * n, sizeof(*m));

	for (long i = 0; i < n * n; i++)
		m[i] = i;
	for (long i = 0; i < times; i++) {
		m[0] = i;
		sum += column_sum(m, n);
	}
	printf("%ld\n", sum);
	free(m);
	return 0;
}
