/*
 * libraries FOLDER WAIT SECONDS BYTES STEP SLOW: maps, calls and unmaps the libraries
 * FOLDER/library_N.so (libraries/library.c), as fast as it can. Each touches BYTES, one in STEP.
 * Before that it maps each of them once, and waits, so that a recorder can make their tables.
 * Prints "maps N ms M", the number of mappings and the time.
 *
 *   libraries 0 to 3    each at a place of its own
 *   libraries 4 to 7    at one place, another one each time
 *   libraries 8 and 9   at one place, another one after SLOW seconds
 *
 * As `steady`, it maps nothing, and sleeps half of the time.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define NI __attribute__((noinline, noclone))
#define AFTER __asm__ volatile("" ::: "memory")
enum { LIBRARIES = 10, PAGE = 4096, MEMORY = 64 * PAGE };
typedef void (*back_t)(volatile char *, long, long);
typedef void (*outer_t)(volatile char *, long, long, back_t);
static struct library { int file; size_t length; off_t offset; long entry; } libraries[LIBRARIES];
static volatile char *memory;
static long bytes, step, maps;

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static void die(const char *what) { perror(what); exit(2); }
NI void touches(volatile char *from, long count, long by) { for (long at = 0; at < count; at += by) from[at] = from[at] + 1; AFTER; }
NI void called_back(volatile char *from, long count, long by) { touches(from, count, by); AFTER; }
/* The callers have frames of several sizes too. */
#define CALL(number) \
    NI void call_library_##number(outer_t outer) { \
        volatile char frame[16 + number * 16]; \
        frame[0] = 0; \
        outer(memory + frame[0], bytes, step, called_back); \
        AFTER; \
    }
CALL(0) CALL(1) CALL(2) CALL(3) CALL(4) CALL(5) CALL(6) CALL(7) CALL(8) CALL(9)
static void (*const calls[LIBRARIES])(outer_t) = { call_library_0, call_library_1, call_library_2, call_library_3, call_library_4,
    call_library_5, call_library_6, call_library_7, call_library_8, call_library_9 };

/* Finds the code and the entry of a library, whose mapping begins at the page of its code. */
static void prepare(const char *folder, int number) {
    struct library *library = &libraries[number];
    char path[4096];
    Elf64_Ehdr header;
    Elf64_Phdr segment = { 0 };
    snprintf(path, sizeof path, "%s/library_%d.so", folder, number);
    library->file = open(path, O_RDONLY | O_CLOEXEC);
    if (library->file < 0 || pread(library->file, &header, sizeof header, 0) != sizeof header) die(path);
    for (int at = 0; at < header.e_phnum && !(segment.p_type == PT_LOAD && segment.p_flags & PF_X); at++)
        if (pread(library->file, &segment, sizeof segment, header.e_phoff + at * sizeof segment) != sizeof segment) die(path);
    long skew = segment.p_offset % PAGE;
    library->offset = segment.p_offset - skew;
    library->length = segment.p_filesz + skew;
    library->entry = header.e_entry - segment.p_vaddr + skew;
}

/* Page faults need pages that are not there. */
static void fresh(void) { if (step >= PAGE) madvise((void *)memory, MEMORY, MADV_DONTNEED); }

NI void churn(int number, int place) {
    struct library *library = &libraries[number];
    char *at = (char *)0x200000000000 + place * 0x100000L;
    if (mmap(at, library->length, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, library->file, library->offset) != at) die("mmap");
    calls[number]((outer_t)(at + library->entry));
    munmap(at, library->length);
    maps++;
    fresh();
}

NI void steady_leaf(void) { volatile char frame[72]; frame[0] = 0; touches(memory + frame[0], bytes, step); AFTER; }
NI void steady_middle(void) { volatile char frame[280]; frame[0] = 0; steady_leaf(); AFTER; }
NI void steady_outer(void) { volatile char frame[24]; frame[0] = 0; steady_middle(); fresh(); AFTER; }

int main(int count, char **arguments) {
    if (count < 7) return 2;
    int is_steady = !strcmp(basename(arguments[0]), "steady");
    double slow = atof(arguments[6]);
    bytes = atol(arguments[4]);
    step = atol(arguments[5]);
    memory = mmap(0, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)memory, MEMORY, MADV_NOHUGEPAGE);
    for (int number = 0; number < LIBRARIES && !is_steady; number++) {
        prepare(arguments[1], number);
        churn(number, 6 + number);
    }
    usleep(1e6 * atof(arguments[2]));
    double begin = now(), end = begin + atof(arguments[3]);
    for (double turn = begin; is_steady && turn < end; turn = now()) {
        while (now() < turn + 0.002)
            for (int rounds = 0; rounds < 20; rounds++) steady_outer();
        usleep(2000);
    }
    if (is_steady) return 0;
    maps = 0;
    for (long turn = 0; now() < end; turn++) {
        churn(turn % 4, turn % 4);
        churn(4 + turn % 4, 4);
        churn(8 + (long)((now() - begin) / slow) % 2, 5);
    }
    printf("maps %ld ms %.0f\n", maps, (now() - begin) * 1000);
    return 0;
}
