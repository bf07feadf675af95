/*
 * ledger PERIOD SECONDS: samples cycles on CPU 0 at a fixed period while it spins there, then compares the event's own count with
 * the samples in its ring, without perf in between. Prints "count N samples N throttled N lost N".
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING (4096UL * 1024)

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = argc > 1 ? atol(argv[1]) : 100000,
		.sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
	};
	time_t end = time(NULL) + (argc > 2 ? atol(argv[2]) : 1);
	long samples = 0, throttled = 0, lost = 0, count = 0;
	struct perf_event_mmap_page *page;
	cpu_set_t cpus;
	int fd;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
	page = mmap(NULL, 4096 + RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || page == MAP_FAILED) {
		perror("cycles");
		return 1;
	}
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	while (time(NULL) <= end)
		;
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		return 1;
	for (unsigned long at = 0; at < page->data_head;) {
		struct perf_event_header *header = (void *)((char *)page + 4096 + at % RING);

		samples += header->type == PERF_RECORD_SAMPLE;
		throttled += header->type == PERF_RECORD_THROTTLE;
		lost += header->type == PERF_RECORD_LOST;
		at += header->size;
	}
	printf("count %ld samples %ld throttled %ld lost %ld\n", count, samples, throttled, lost);
	return 0;
}
