/*
 * One of the libraries of libraries.c, compiled with -DNUMBER=N: library_N_outer calls
 * library_N_leaf, which touches memory, and then a function of the program. No two libraries have
 * frames of one size, or a function at the place where another has it, so that the table of another
 * one gives wrong frames.
 */
#define JOIN(a, b, c) a##b##c
#define NAME(number, what) JOIN(library_, number, what)
#define TEXT(code) #code
#define SKIP(bytes) __asm__(".text\n.skip " TEXT(bytes) ", 0x90\n")
#define NI __attribute__((noinline, noclone))
SKIP(48 + NUMBER * 48);
static NI void NAME(NUMBER, _leaf)(volatile char *memory, long bytes, long step) {
    volatile char frame[40 + NUMBER * 32];
    frame[0] = 0;
    for (long at = 0; at < bytes; at += step) memory[at] = memory[at] + 1 + frame[0];
}
void NAME(NUMBER, _outer)(volatile char *memory, long bytes, long step, void (*back)(volatile char *, long, long)) {
    volatile char frame[24 + (11 - NUMBER) * 48];
    frame[0] = 0;
    NAME(NUMBER, _leaf)(memory, bytes, step);
    back(memory + bytes + frame[0], bytes, step);
    __asm__ volatile("" ::: "memory");
}
