/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What both emulated PMUs need and neither should write twice: unexported symbols, timers of two APIs, the access that an
 * instruction is about to make, single-stepping, and the device. Included by the one main file of each module.
 */
#ifndef LAB_KERNEL_H
#define LAB_KERNEL_H

#include <linux/hrtimer.h>
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <asm/apic.h>
#include <asm/debugreg.h>
#include <asm/insn.h>
#include <asm/irq_regs.h>
#include "lab_pmu.h"

/* The kernel's names are not exported, but a kprobe on kallsyms_lookup_name() gives its address, and that gives the rest. */
static unsigned long (*lab_symbol)(const char *name);

static int lab_find_symbols(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	int err = register_kprobe(&probe);

	if (err)
		return err;
	lab_symbol = (void *)probe.addr;
	unregister_kprobe(&probe);
	return 0;
}

static void lab_timer_init(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *))
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer->function = fn;
#else
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#endif
}

/*
 * Sends this CPU a real NMI and waits until *pending was cleared by its handler. TCG delivers it at the next block of
 * instructions. Interrupts are off.
 */
static void lab_nmi_self(bool *pending)
{
	int i;

	barrier();
	WRITE_ONCE(*pending, true);
	apic->send_IPI_mask(cpumask_of(smp_processor_id()), NMI_VECTOR);
	for (i = 0; i < 1000000 && READ_ONCE(*pending); i++)
		cpu_relax();
	if (WARN_ONCE(READ_ONCE(*pending), "lab: the NMI did not arrive"))
		WRITE_ONCE(*pending, false);
}

/* ---- what is the interrupted user instruction about to access? ---- */

enum lab_access_kind { LAB_NO_ACCESS, LAB_READS, LAB_WRITES };

struct lab_access {
	enum lab_access_kind kind;
	unsigned long addr;
	bool hitm;	/* a load of a line that another CPU has modified, as far as lab_coherence() knows */
};

static int (*lab_insn_decode)(struct insn *, const void *, int, enum insn_mode);
static void __user *(*lab_insn_addr)(struct insn *, struct pt_regs *);

static int lab_decode_init(void)
{
	lab_insn_decode = (void *)lab_symbol("insn_decode");
	lab_insn_addr = (void *)lab_symbol("insn_get_addr_ref");
	return lab_insn_decode && lab_insn_addr ? 0 : -ENOENT;
}

static bool lab_is_store(const struct insn *insn)
{
	u8 op = insn->opcode.bytes[0], op2 = insn->opcode.bytes[1];

	switch (op) {
	case 0x88: case 0x89:	/* mov to memory */
	case 0xc6: case 0xc7:	/* mov of a constant */
		return true;
	case 0x0f:		/* movups, movaps, movq to memory */
		return op2 == 0x11 || op2 == 0x29 || op2 == 0x7f;
	}
	return false;
}

static bool lab_is_no_access(const struct insn *insn)
{
	u8 op = insn->opcode.bytes[0], op2 = insn->opcode.bytes[1];

	if (!insn->modrm.nbytes || X86_MODRM_MOD(insn->modrm.value) == 3)
		return true;		/* registers only; push, pop, call and ret are left out too */
	if (op == 0x8d)			/* lea */
		return true;
	return op == 0x0f && (op2 == 0x1f || op2 == 0x18 || op2 == 0x0d);	/* long nop, prefetches */
}

/*
 * Which CPU has which cache line modified, by the accesses that the unit decodes and no others: a store makes the line that CPU's,
 * a load from another CPU finds it modified (HITM) and leaves it to none. A line is forgotten when another one needs its slot.
 * A process is known by the number of its address space, which is never used again, and its memory by virtual addresses.
 */
static bool hitm;
module_param(hitm, bool, 0644);
MODULE_PARM_DESC(hitm, "1: the timer's loads of a line that another CPU was last seen to store to find it modified there");

#define LAB_LINES 4096

static struct lab_line {
	u64 space, line;
	int owner;	/* the CPU, + 1; 0: none */
} lab_lines[LAB_LINES];
static DEFINE_RAW_SPINLOCK(lab_lines_lock);

/* Interrupts are off. Says whether the access is a load that finds its line modified. */
static bool lab_coherence(const struct lab_access *access)
{
	u64 line = access->addr / 64, space = current->mm ? current->mm->context.ctx_id : 0;
	int cpu = smp_processor_id() + 1;
	struct lab_line *slot = &lab_lines[line % LAB_LINES];
	bool found;

	raw_spin_lock(&lab_lines_lock);
	if (slot->space != space || slot->line != line)
		*slot = (struct lab_line){ space, line, 0 };
	found = access->kind == LAB_READS && slot->owner && slot->owner != cpu;
	if (access->kind == LAB_WRITES)
		slot->owner = cpu;
	else if (found)
		slot->owner = 0;
	raw_spin_unlock(&lab_lines_lock);
	return found;
}

static struct lab_access lab_access_at(struct pt_regs *regs)
{
	struct lab_access access, none = { LAB_NO_ACCESS };
	int len = MAX_INSN_SIZE;
	u8 code[MAX_INSN_SIZE];
	unsigned long addr;
	struct insn insn;

	if (!user_mode(regs))
		return none;
	if (copy_from_user_nmi(code, (void __user *)regs->ip, len)) {
		/* the next page may be missing where the instruction ends on this one */
		len = min_t(int, len, PAGE_SIZE - offset_in_page(regs->ip));
		if (copy_from_user_nmi(code, (void __user *)regs->ip, len))
			return none;
	}
	if (lab_insn_decode(&insn, code, len, INSN_MODE_64) < 0 || lab_is_no_access(&insn))
		return none;
	addr = (unsigned long)lab_insn_addr(&insn, regs);
	if (addr == -1UL)
		return none;
	access = (struct lab_access){ lab_is_store(&insn) ? LAB_WRITES : LAB_READS, addr };
	access.hitm = hitm && lab_coherence(&access);
	return access;
}

/*
 * ---- single-stepping ----
 * TCG takes timer interrupts only where a block of instructions begins, so a sample at the interrupt itself would always
 * be a loop's first instruction. Instead the timer sets the trap flag, and each #DB asks lab_stepped() whether it had enough.
 */
static bool lab_stepped(struct pt_regs *regs, int nth);	/* the PMU's; interrupts off; true ends the stepping */

static DEFINE_PER_CPU(struct task_struct *, lab_step_task);
static DEFINE_PER_CPU(int, lab_step_nth);

static bool lab_step_start(struct pt_regs *regs)
{
	if (!user_mode(regs) || regs->flags & X86_EFLAGS_TF)
		return false;
	this_cpu_write(lab_step_task, current);
	this_cpu_write(lab_step_nth, 0);
	regs->flags |= X86_EFLAGS_TF;
	return true;
}

static int lab_on_debug(struct notifier_block *nb, unsigned long what, void *arg)
{
	struct die_args *die = arg;
	struct pt_regs *regs = die->regs;
	unsigned long flags;
	bool enough;

	if (what != DIE_DEBUG || !user_mode(regs) || !(*(unsigned long *)die->err & DR_STEP) ||
	    test_thread_flag(TIF_SINGLESTEP))
		return NOTIFY_DONE;
	if (this_cpu_read(lab_step_task) != current) {
		/* it migrated or forked between two steps: let it run, the sample is forgotten */
		regs->flags &= ~X86_EFLAGS_TF;
		return NOTIFY_STOP;
	}
	local_irq_save(flags);
	enough = lab_stepped(regs, this_cpu_inc_return(lab_step_nth));
	local_irq_restore(flags);
	if (enough) {
		this_cpu_write(lab_step_task, NULL);
		regs->flags &= ~X86_EFLAGS_TF;
	}
	return NOTIFY_STOP;
}

static struct notifier_block lab_debug_block = { .notifier_call = lab_on_debug, .priority = INT_MAX };

/* ---- /dev/lab-pmu ---- */

static atomic64_t lab_records, lab_interrupts, lab_lost;

/* The PMU's: fire->count times, keeping fire->done and fire->taken. Called with interrupts on. */
static int lab_fire(struct lab_fire *fire);

static long lab_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct lab_fire __user *user = (void __user *)arg;
	struct lab_fire fire;
	int err;

	if (cmd != LAB_FIRE)
		return -ENOTTY;
	if (copy_from_user(&fire, user, sizeof(fire)))
		return -EFAULT;
	if (fire.size != sizeof(fire))
		return -EINVAL;
	fire.done = fire.taken = 0;
	err = lab_fire(&fire);
	if (copy_to_user(user, &fire, sizeof(fire)))
		return -EFAULT;
	return err;
}

/* The PMU's: how many precise events sample on this CPU. Called with interrupts off. */
static int lab_sampling(void);

static ssize_t lab_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	char text[128];
	unsigned long flags;
	int n, sampling;

	local_irq_save(flags);
	sampling = lab_sampling();
	local_irq_restore(flags);
	n = scnprintf(text, sizeof(text), "records %lld interrupts %lld lost %lld sampling %d\n", atomic64_read(&lab_records),
		      atomic64_read(&lab_interrupts), atomic64_read(&lab_lost), sampling);

	return simple_read_from_buffer(to, len, pos, text, n);
}

static const struct file_operations lab_fops = {
	.owner = THIS_MODULE,
	.read = lab_read,
	.unlocked_ioctl = lab_ioctl,
};

static struct miscdevice lab_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "lab-pmu",
	.fops = &lab_fops,
	.mode = 0666,
};

static int lab_device_init(void)
{
	int err = misc_register(&lab_device);

	return err ?: register_die_notifier(&lab_debug_block);
}

/* Between two firings: true when the caller should stop. */
static bool lab_interrupted(void)
{
	cond_resched();
	return signal_pending(current);
}

#endif
