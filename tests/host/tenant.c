/* What a tenant can do to whoever records the whole machine. The name of the program says what:
 *
 *   pages N               touches N pages
 *   brief N               the same; started by "starts"
 *   starts N              starts "brief 3" N times, one after the other
 *   maps N                maps code N times, starts N / 20 children, and touches 7 pages
 *   libraries N OFFSET    copies /library to N names, and touches one page from each, by the
 *                         function at that offset of the file; lives on for a minute
 *   shrinks N OFFSET      touches N pages from a copy of /library, and then cuts the copy and
 *                         writes it again for a second
 *   compiles N            touches N pages from code in memory, which its perf map names in its
 *                         first line; 8 TiB of nothing follow
 *   vsyscall N            calls the vsyscall page N times
 *   web-ANY N             touches N pages; lives on for a minute
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void touch(volatile char *p, long pages);

static char *const none[] = { NULL };
static char image[1 << 16];

__attribute__((noinline)) void touch_pages(volatile char *p, long pages)
{
    long i;
    for (i = 0; i < pages; i++)
        p[i * 4096] = 1;
}

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

/* Returns new pages where the tests look for them. */
static char *new_pages(long pages)
{
    char *p = mmap((void *)0x500000000000, pages * 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p != (char *)0x500000000000)
        fail("pages");
    madvise(p, pages * 4096, MADV_NOHUGEPAGE);
    return p;
}

static void starts(long times)
{
    char *const brief[] = { "brief", "3", NULL };
    int status;
    while (times--) {
        pid_t child = vfork();
        if (child == 0) {
            execve("/brief", brief, none);
            _exit(3);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            fail("brief");
    }
}

static void maps(long times)
{
    char *const at = (char *)0x300000000000;
    int file = open("/maps", O_RDONLY);
    long i;
    /* Each at the start of the file, so that no two become one. */
    for (i = 0; i < times; i++)
        if (mmap(at + i * 4096, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0)
            == MAP_FAILED)
            fail("mappings");
    for (i = 0; i < times / 20; i++) {
        pid_t child = vfork();
        if (child == 0)
            _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child)
            fail("children");
    }
    touch_pages(new_pages(7), 7);
}

/* Writes the bytes of the library to a file, and returns how many there are. */
static long copy(int to)
{
    int from = open("/library", O_RDONLY);
    long length = read(from, image, sizeof(image));
    if (length <= 0 || pwrite(to, image, length, 0) != length || close(from) != 0)
        fail("copy");
    return length;
}

static void libraries(long number, long offset)
{
    char *pages = new_pages(number), name[64], *code;
    long i, length;
    for (i = 0; i < number; i++) {
        int file;
        snprintf(name, sizeof(name), "/library-%ld", i);
        file = open(name, O_RDWR | O_CREAT | O_EXCL, 0755);
        length = copy(file);
        code = mmap(NULL, length, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
        if (file < 0 || code == MAP_FAILED)
            fail(name);
        ((touch *)(code + offset))(pages + i * 4096, 1);
        close(file);
    }
}

static void shrinks(long number, long offset)
{
    int file = open("/shrinking", O_RDWR | O_CREAT | O_EXCL, 0755);
    long length = copy(file);
    char *code = mmap(NULL, length, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    time_t end;
    if (file < 0 || code == MAP_FAILED)
        fail("shrinking");
    ((touch *)(code + offset))(new_pages(number), number);
    for (end = time(NULL) + 2; time(NULL) < end; copy(file))
        if (ftruncate(file, 0) != 0)
            fail("cut");
}

static void compiles(long number)
{
    /* for (; rsi > 0; rsi--, rdi += 4096) *rdi = 1; */
    static const unsigned char bytes[] = { 0x48, 0x85, 0xf6, 0x74, 0x0f, 0xc6, 0x07, 0x01, 0x48, 0x81,
        0xc7, 0x00, 0x10, 0x00, 0x00, 0x48, 0xff, 0xce, 0xeb, 0xec, 0xc3 };
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    char name[64], *code = mmap(NULL, 4096, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FILE *map;
    memcpy(code, bytes, sizeof(bytes));
    snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
    map = fopen(name, "w");
    if (!map || fprintf(map, "%lx 1000 compiled\n", (long)code) < 0 || fflush(map) != 0)
        fail(name);
    if (ftruncate(fileno(map), 8L << 40) != 0)
        fail("holes");
    ((touch *)code)(new_pages(number), number);
}

static void vsyscall(long times)
{
    while (times--)
        ((time_t (*)(time_t *))0xffffffffff600400)(NULL);
}

int main(int argc, char **argv)
{
    const char *kind = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    long number = argc > 1 ? atol(argv[1]) : 0, offset = argc > 2 ? strtol(argv[2], NULL, 16) : 0;
    if (!strcmp(kind, "starts"))
        starts(number);
    else if (!strcmp(kind, "maps"))
        maps(number);
    else if (!strcmp(kind, "libraries"))
        libraries(number, offset);
    else if (!strcmp(kind, "shrinks"))
        shrinks(number, offset);
    else if (!strcmp(kind, "compiles"))
        compiles(number);
    else if (!strcmp(kind, "vsyscall"))
        vsyscall(number);
    else
        touch_pages(new_pages(number), number);
    /* The files of a jail can be found while one of its processes lives; the files of many
     * libraries and programs, of which not all are open at one time, until they are asked for. */
    if (!strcmp(kind, "libraries") || !strncmp(kind, "web-", 4))
        sleep(60);
    else if (strcmp(kind, "brief"))
        usleep(700000);
    return 0;
}
