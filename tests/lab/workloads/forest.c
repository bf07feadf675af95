/*
 * A program without frame pointers that waits until its unwind tables are there, then faults pages in
 * touch(), through frames that are hard to unwind: variable stack space, pushed registers, a callback
 * of the C library, the handler of a signal, a function that is left by longjmp, a thread, recursion,
 * a child that borrows the stack (vfork), and a library that is loaded later. With -DFRAMES, and
 * -fno-omit-frame-pointer, every function of it has a frame: gcc gives none to a function that calls
 * no other, unless it uses its frame.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define NI __attribute__((noinline, noclone))
#define AFTER __asm__ volatile("" ::: "memory")
#ifdef FRAMES
#define FRAME __asm__ volatile("" ::"r"(__builtin_frame_address(0)))
#else
#define FRAME
#endif
static char *next;
NI void touch(long pages) { FRAME; for (long i = 0; i < pages; i++, next += 4096) *(volatile char *)next = 1; AFTER; }
NI void leaf(long pages) { volatile char room[200]; room[pages & 127] = 1; touch(pages); AFTER; }
NI void variable(long pages) {
    char *room = alloca(16 + (pages & 7) * 16);
    memset(room, 1, 16);
    __asm__ volatile("" ::"r"(room) : "memory");
    leaf(pages);
    AFTER;
}
NI long pushed(long pages, long a, long b, long c) {
    long d = a * b, e = b * c, f = c * a, g = a ^ c;
    variable(pages);
    return a * b + c * d + e * f + g * pages;
}
static int compare(const void *a, const void *b) { (void)a; (void)b; leaf(1); return 0; }
NI void callback(void) { int two[2] = { 2, 1 }; qsort(two, 2, sizeof *two, compare); AFTER; }
static void handler(int signal) { (void)signal; leaf(7); AFTER; }
NI void interrupted(void) { signal(SIGUSR1, handler); raise(SIGUSR1); AFTER; }
static jmp_buf place;
NI void jumps(void) { longjmp(place, 1); }
NI void jumped(void) { if (!setjmp(place)) jumps(); leaf(9); AFTER; }
static void *thread(void *no) { leaf(11); AFTER; return no; }
NI void threads(void) { pthread_t id; pthread_create(&id, 0, thread, 0); pthread_join(id, 0); AFTER; }
NI void recursive(int depth) { if (depth) recursive(depth - 1); else leaf(13); AFTER; }
NI void vforked(long wait) {
    volatile long waited = wait;
    pid_t child = vfork();
    if (!child) {
        usleep(waited);
        leaf(5);
        _exit(0);
    }
    waitpid(child, 0, 0);
    AFTER;
}
NI void loaded(const char *library) {
    void *handle = dlopen(library, RTLD_NOW);
    if (!handle) { puts(dlerror()); exit(1); }
    void (*call)(void (*)(long)) = (void (*)(void (*)(long)))dlsym(handle, "calls_back");
    usleep(1000000);
    call(leaf);
    dlclose(handle);
    AFTER;
}
int main(int count, char **arguments) {
    next = mmap(0, 4096 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(next, 4096 * 4096, MADV_NOHUGEPAGE);
    const char *wait = getenv("FOREST_WAIT_MS");
    long wait_us = 1000 * (wait ? atoi(wait) : 1000);
    usleep(wait_us);
    pushed(100, count, 3, 5);
    callback();
    interrupted();
    jumped();
    threads();
    recursive(60);
    vforked(wait_us);
    if (count > 1) loaded(arguments[1]);
    return 0;
}
