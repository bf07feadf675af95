/* Fills a table of its own, and then memory from malloc. */
#include <stdio.h>
#include <stdlib.h>

#define PAGE 4096
#define PAGES 100

char table[PAGES * PAGE] __attribute__((aligned(PAGE)));

__attribute__((noinline)) void load_table(void)
{
	for (long i = 0; i < PAGES; i++)
		*(volatile char *)&table[i * PAGE] = 1;
}

__attribute__((noinline)) void fill(volatile char *memory)
{
	for (long i = 0; i < PAGES; i++)
		memory[i * PAGE] = 1;
}

int main(void)
{
	char *memory = malloc(PAGES * PAGE);

	load_table();
	if (memory)
		fill(memory);
	puts("filled");
	free(memory);
	return 0;
}
