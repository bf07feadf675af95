/*
 * Faults 300 pages in each of two calls of left(), 100 in right() and 50 in again(). Without
 * optimisation, every function has its frame from the first instruction to the last.
 */
#pragma GCC optimize("O0", "no-omit-frame-pointer")
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
static char *next;
void touch(long pages)
{
    for (long i = 0; i < pages; i++, next += 4096)
        *(volatile char *)next = 1;
}
void left(void) { touch(300); }
void right(void) { touch(100); left(); }
void again(int depth)
{
    if (depth) {
        touch(10);
        again(depth - 1);
    }
}
int main(void)
{
    next = mmap((void *)0x500000000000, 4096 * 4096, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    madvise(next, 4096 * 4096, MADV_NOHUGEPAGE);
    usleep(600000); /* precise learns of a new program some milliseconds after its start */
    left();
    right();
    again(5);
    return 0;
}
