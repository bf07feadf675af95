/*
 * word N PROCS: moves into the cgroup of the file PROCS (…/cgroup.procs), then reads word N (0 to 7) of each line of an array, over and
 * over, until it is killed, for a minute at most. Nearly all that it loads in that cgroup is at the same place of a 64-byte line, which is
 * what the lab's units make latencies of.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE 8
#define LINES 4096

static long lines[LINES * LINE] __attribute__((aligned(64)));

int main(int argc, char **argv)
{
	const volatile long *word = lines + (argc > 1 ? atol(argv[1]) & 7 : 0);
	FILE *procs = argc > 2 ? fopen(argv[2], "w") : NULL;

	if (!procs || fputs("0", procs) < 0 || fclose(procs) != 0) {
		perror("word: cgroup.procs");
		return 1;
	}
	alarm(60);
	for (;;)
		for (int i = 0; i < LINES * LINE; i += 4 * LINE) {
			(void)word[i];
			(void)word[i + LINE];
			(void)word[i + 2 * LINE];
			(void)word[i + 3 * LINE];
		}
}
