/*
 * Runs the guest of a virtual machine for a number of seconds: one CPU, whose program counts without an end. The time is the
 * guest's but for the interrupts that end its turns.
 */
#include <err.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL

static volatile sig_atomic_t over;

static void end(int signal)
{
	(void)signal;
	over = 1;
}

static int request(int fd, unsigned long what, const void *argument, const char *name)
{
	int result = ioctl(fd, what, argument);

	if (result < 0)
		err(1, "%s", name);
	return result;
}

#define REQUEST(fd, what, argument) request(fd, what, argument, #what)

int main(int argc, char **argv)
{
	/* In real mode: again: inc ax; jmp again */
	static const unsigned char program[] = { 0x40, 0xeb, 0xfd };
	struct sigaction action = { .sa_handler = end };
	struct kvm_userspace_memory_region memory = { .guest_phys_addr = PAGE, .memory_size = PAGE };
	struct kvm_regs registers = { .rip = PAGE, .rflags = 2 };
	struct kvm_sregs segments;
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), machine, cpu;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (kvm < 0)
		err(1, "/dev/kvm");
	if (page == MAP_FAILED)
		err(1, "mmap");
	memcpy(page, program, sizeof(program));
	memory.userspace_addr = (unsigned long)page;
	machine = REQUEST(kvm, KVM_CREATE_VM, NULL);
	REQUEST(machine, KVM_SET_USER_MEMORY_REGION, &memory);
	cpu = REQUEST(machine, KVM_CREATE_VCPU, NULL);
	if (mmap(NULL, REQUEST(kvm, KVM_GET_VCPU_MMAP_SIZE, NULL), PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0) == MAP_FAILED)
		err(1, "mmap of the CPU");
	REQUEST(cpu, KVM_GET_SREGS, &segments);
	segments.cs.base = 0;
	segments.cs.selector = 0;
	REQUEST(cpu, KVM_SET_SREGS, &segments);
	REQUEST(cpu, KVM_SET_REGS, &registers);
	sigaction(SIGALRM, &action, NULL);
	alarm(argc > 1 ? atoi(argv[1]) : 1);
	while (!over) {
		if (ioctl(cpu, KVM_RUN, NULL) == 0)
			errx(1, "the guest stopped by itself");
	}
	return 0;
}
