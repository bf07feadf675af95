/* Loaded into precise with LD_PRELOAD: fails reads and writes of regular files, and moves the
 * clock of the day, as a word in a file says. The process keeps its sockets and its events, and
 * the machine keeps its clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int64_t clock; /* seconds that are added to the clock of the day */
    volatile int32_t reads; /* errno of every read; 0: none fails */
    volatile int32_t writes;
};

static struct control none;
static struct control *control = &none;

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("CHAOS_CONTROL");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *at;
    if (file < 0)
        return;
    at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    if (at != MAP_FAILED)
        control = at;
    close(file);
}

static int fails(int file, int why)
{
    struct stat about;
    if (!why || fstat(file, &about) || !S_ISREG(about.st_mode))
        return 0;
    errno = why;
    return 1;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*next)(clockid_t, struct timespec *);
    int result;
    if (!next)
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    result = next(clock, time);
    if (result == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += control->clock;
    return result;
}

ssize_t read(int file, void *to, size_t size)
{
    return fails(file, control->reads) ? -1 : syscall(SYS_read, file, to, size);
}

ssize_t pread64(int file, void *to, size_t size, off64_t at)
{
    return fails(file, control->reads) ? -1 : syscall(SYS_pread64, file, to, size, at);
}

ssize_t write(int file, const void *from, size_t size)
{
    return fails(file, control->writes) ? -1 : syscall(SYS_write, file, from, size);
}

ssize_t writev(int file, const struct iovec *from, int count)
{
    return fails(file, control->writes) ? -1 : syscall(SYS_writev, file, from, count);
}

ssize_t pwrite64(int file, const void *from, size_t size, off64_t at)
{
    return fails(file, control->writes) ? -1 : syscall(SYS_pwrite64, file, from, size, at);
}

int fsync(int file)
{
    return fails(file, control->writes) ? -1 : syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
    return fails(file, control->writes) ? -1 : syscall(SYS_fdatasync, file);
}
