/* What is sampled while faults are injected. All its pages are in one range of addresses. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void touch_pages(char *at, long pages)
{
    long page;
    for (page = 0; page < pages; page++)
        ((volatile char *)at)[page * 4096] = 1;
}

/* for (; rsi > 0; rsi--, rdi += 4096) *(char *)rdi = 1; */
static const unsigned char code[] = { 0x48, 0x85, 0xf6, 0x74, 0x0f, 0xc6, 0x07, 0x01, 0x48, 0x81,
    0xc7, 0x00, 0x10, 0x00, 0x00, 0x48, 0xff, 0xce, 0xeb, 0xec, 0xc3 };

static char *fresh(long pages)
{
    char *at = mmap((void *)0x680000000000, pages * 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    madvise(at, pages * 4096, MADV_NOHUGEPAGE);
    return at;
}

/* Runs code that only a perf map can name; the map grows meanwhile, or is no map at all. */
static void compile(const char *how, long pages)
{
    char map[64], *function;
    FILE *names;
    long number;
    snprintf(map, sizeof(map), "/tmp/perf-%d.map", getpid());
    function = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(function, code, sizeof(code));
    if (!strcmp(how, "pipe"))
        mkfifo(map, 0644);
    if (!strcmp(how, "folder"))
        mkdir(map, 0755);
    if (!strcmp(how, "device") && symlink("/dev/zero", map))
        exit(3);
    if (!strcmp(how, "secret") && symlink("/etc/shadow", map))
        exit(3);
    for (number = 0; number < 8; number++) {
        if (!strcmp(how, "grows") && (names = fopen(map, "a"))) {
            long line;
            fprintf(names, "%lx 1000 compiled_%ld\n", (long)function, number);
            for (line = 0; line < 5000; line++)
                fprintf(names, "%lx 10 other_%ld\n", line * 16, line);
            fclose(names);
        }
        if (!strcmp(how, "noise") && (names = fopen(map, "a"))) {
            long byte;
            for (byte = 0; byte < 100000; byte++)
                fputc(rand(), names);
            fclose(names);
        }
        ((void (*)(char *, long))function)(fresh(pages), pages);
        usleep(20000);
    }
    if (!strcmp(how, "folder"))
        rmdir(map);
    unlink(map);
}

int main(int argc, char **argv)
{
    long pages = argc > 2 ? atol(argv[2]) : 1, number;
    if (argc < 3)
        return 2;
    if (!strcmp(argv[1], "pages")) {
        touch_pages(fresh(pages), pages);
    } else if (!strcmp(argv[1], "wait")) {
        touch_pages(fresh(pages), pages);
        usleep(300000);
        touch_pages(fresh(pages), pages);
    } else if (!strcmp(argv[1], "storm")) {
        for (number = 0; number < pages; number++) {
            if (fork() == 0) {
                touch_pages(fresh(3), 3);
                _exit(0);
            }
        }
        while (wait(NULL) > 0)
            ;
    } else {
        compile(argv[1], pages);
    }
    return 0;
}
