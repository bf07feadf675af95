// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's own IBS driver over an emulated IBS unit.
 *
 * arch/x86/events/amd/ibs.c of the running kernel (copied from Debian's linux-source when this is built) is compiled
 * into this file with its hardware access redirected: rdmsr and wrmsr go to a register file in memory, CPUID to a
 * module parameter. A timer plays the counter, and the sample's interrupt is a real NMI. So every rule, every refusal,
 * every decoded data source is the real driver's. For guests that are thrown away: there is no module exit.
 */
#include <linux/module.h>
#include <linux/version.h>
#include <linux/perf_event.h>
#include <linux/cpu.h>
#include <linux/hardirq.h>
#include <linux/pci.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>
#include <linux/syscore_ops.h>
#include <asm/cpu_device_id.h>
#include <asm/msr.h>
#include <asm/nmi.h>
#if __has_include(<asm/cpuid/api.h>)
#include <asm/cpuid/api.h>
#endif
#include "lab_kernel.h"
#include "events/perf_event.h"

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("emulated IBS unit under the kernel's own driver (test rig)");

static char *model = "zen4";
module_param(model, charp, 0444);
MODULE_PARM_DESC(model, "zen3, zen4 (L3 miss filter) or zen5 (load latency filter)");

static uint ibs_cpuid;
module_param(ibs_cpuid, uint, 0444);
MODULE_PARM_DESC(ibs_cpuid, "CPUID 8000_001B EAX, where the model's is not wanted");

static ulong ns_per_event = 10;
module_param(ns_per_event, ulong, 0644);
MODULE_PARM_DESC(ns_per_event, "how long one counted cycle or op takes; 0: only LAB_FIRE makes samples");

static ulong min_ns = 100000;
module_param(min_ns, ulong, 0644);
MODULE_PARM_DESC(min_ns, "shortest time between two samples of the timer");

static uint step = 9;
module_param(step, uint, 0644);
MODULE_PARM_DESC(step, "a sample is 1 to this many instructions behind the timer's interrupt; 0: at the interrupt");

/* ---- what the driver calls of the kernel and a module may not ---- */

static typeof(perf_event_overflow) *real_overflow;
static typeof(perf_callchain) *real_callchain;
static typeof(perf_sample_event_took) *real_event_took;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)	/* the software user/kernel filter */
static typeof(perf_exclude_event) *real_exclude_event;
static typeof(perf_event_account_interrupt) *real_account_interrupt;
#define perf_exclude_event(...) real_exclude_event(__VA_ARGS__)
#define perf_event_account_interrupt(...) real_account_interrupt(__VA_ARGS__)
#endif

/* an inline function of the headers that calls one that is not exported */
static inline void lab_save_callchain(struct perf_sample_data *data, struct perf_event *event, struct pt_regs *regs)
{
	data->callchain = real_callchain(event, regs);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	data->dyn_size += (1 + data->callchain->nr) * sizeof(u64);
#endif
	data->sample_flags |= PERF_SAMPLE_CALLCHAIN;
}

/* ---- the driver, its hands on our registers ---- */

static u64 ibs_read(u32 msr);
static void ibs_write(u32 msr, u64 value);
static int ibs_take_nmi(nmi_handler_t fn);

#undef rdmsrl
#undef wrmsrl
#undef rdmsrq
#undef wrmsrq
#define rdmsrl(msr, value) ((value) = ibs_read(msr))
#define wrmsrl(msr, value) ibs_write(msr, value)
#define rdmsrq(msr, value) ((value) = ibs_read(msr))
#define wrmsrq(msr, value) ibs_write(msr, value)
#undef boot_cpu_has
#define boot_cpu_has(feature) 1
#define cpuid_eax(leaf) ((leaf) == 0x80000000u ? (u32)IBS_CPUID_FEATURES : ibs_cpuid)
#define setup_APIC_eilvt(...) 0
#undef cpuhp_setup_state
#define cpuhp_setup_state(state, name, up, down) ((void)(up), (void)(down), 0)
#define register_syscore_ops(ops) ((void)(ops))
#define register_syscore(ops) ((void)(ops))
#define perf_event_overflow real_overflow
#define perf_callchain real_callchain
#define perf_sample_save_callchain lab_save_callchain
#define perf_sample_event_took real_event_took
#undef inc_irq_stat
#define inc_irq_stat(counter) do { } while (0)
#pragma push_macro("register_nmi_handler")
#undef register_nmi_handler
#define register_nmi_handler(type, fn, ...) ibs_take_nmi(fn)
#undef EXPORT_SYMBOL
#define EXPORT_SYMBOL(name)
#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(name)
#undef NOKPROBE_SYMBOL
#define NOKPROBE_SYMBOL(name)
#undef device_initcall
#define device_initcall(fn)
#undef __init
#define __init
#undef pr_fmt
#define pr_fmt(fmt) "lab_amd: " fmt
/* the kernel has functions of these names */
#define get_ibs_caps lab_get_ibs_caps
#define forward_event_to_ibs lab_forward_event_to_ibs
#include "events/amd/ibs.c"
#pragma pop_macro("register_nmi_handler")

/* ---- the emulated unit ---- */

/* registers by their distance from the first */
#define REG(msr) ((msr) - MSR_AMD64_IBSFETCHCTL)
#define N_REGS (REG(MSR_AMD64_IBSOPDATA4) + 1)

enum { OP, FETCH, N_UNITS };

struct ibs_unit {
	u64 reg[N_REGS];
	struct hrtimer timer;
	struct pt_regs regs;	/* of the sampled instruction, for the NMI */
	bool armed;		/* the driver has enabled it */
	bool pending;		/* our NMI is on its way */
};

static DEFINE_PER_CPU(struct ibs_unit[N_UNITS], ibs_units);
static nmi_handler_t driver_nmi;
static u64 (*virt_to_phys_of)(u64);

static struct ibs_unit *this_unit(int which)
{
	return &(*this_cpu_ptr(&ibs_units))[which];
}

static int unit_of(u32 msr)
{
	return msr < MSR_AMD64_IBSOPCTL || msr == MSR_AMD64_ICIBSEXTDCTL ? FETCH : OP;
}

static u64 ibs_read(u32 msr)
{
	if (msr == MSR_AMD64_IBSCTL)
		return IBSCTL_LVT_OFFSET_VALID;
	return this_unit(unit_of(msr))->reg[REG(msr)];
}

static u64 period_ns(struct ibs_unit *unit, int which)
{
	u64 ctl = unit->reg[which == OP ? REG(MSR_AMD64_IBSOPCTL) : 0], max = (ctl & IBS_OP_MAX_CNT) << 4;

	if (which == OP)
		max |= ctl & IBS_OP_MAX_CNT_EXT_MASK;
	return max_t(u64, min_ns, max * ns_per_event);
}

static void ibs_write(u32 msr, u64 value)
{
	int which = unit_of(msr);
	struct ibs_unit *unit = this_unit(which);

	unit->reg[REG(msr)] = value;
	if (msr != MSR_AMD64_IBSOPCTL && msr != MSR_AMD64_IBSFETCHCTL)
		return;
	unit->armed = value & (which == OP ? IBS_OP_ENABLE : IBS_FETCH_ENABLE);
	if (in_nmi())
		return;		/* timers are out of reach, and tick() keeps its own going */
	if (unit->armed && ns_per_event)
		hrtimer_start(&unit->timer, ns_to_ktime(period_ns(unit, which)), HRTIMER_MODE_REL_PINNED_HARD);
	else
		hrtimer_try_to_cancel(&unit->timer);
}

static int on_nmi(unsigned int cmd, struct pt_regs *regs)
{
	int which, handled = NMI_DONE;

	for (which = 0; which < N_UNITS; which++) {
		struct ibs_unit *unit = this_unit(which);

		if (!unit->pending)
			continue;
		driver_nmi(cmd, &unit->regs);
		unit->pending = false;
		handled = NMI_HANDLED;
	}
	return handled;
}

static int ibs_take_nmi(nmi_handler_t fn)
{
	driver_nmi = fn;
	return register_nmi_handler(NMI_LOCAL, on_nmi, 0, "lab_amd");
}

/* What the unit would drop and tag anew: with IbsOpL3MissOnly, an op that the L3 or something nearer answered. */
static bool passes_filter(struct ibs_unit *unit, const struct lab_fire *sample)
{
	union ibs_op_data2 data2 = { .val = sample->op.data2 };
	union ibs_op_data3 data3 = { .val = sample->op.data3 };
	u32 source = data2.data_src_hi << 3 | data2.data_src_lo;

	if (!(unit->reg[REG(MSR_AMD64_IBSOPCTL)] & IBS_OP_L3MISSONLY))
		return true;
	return data3.ld_op && data3.l2_miss && source > 1;
}

/* Latches one sample and delivers its interrupt. Interrupts are off and the unit is armed. */
static bool take_sample(int which, struct pt_regs *regs, const struct lab_fire *sample)
{
	struct ibs_unit *unit = this_unit(which);
	u64 *reg = unit->reg, ip = sample->ip ?: regs->ip;

	if (which == OP && !passes_filter(unit, sample))
		return false;
	if (which == FETCH) {
		/* the driver sees an overflow only where the count has reached its maximum */
		reg[REG(MSR_AMD64_IBSFETCHCTL)] |= IBS_FETCH_VAL | sample->fetch.ctl | (reg[0] & IBS_FETCH_MAX_CNT) << 16;
		reg[REG(MSR_AMD64_IBSFETCHLINAD)] = ip;
		reg[REG(MSR_AMD64_IBSFETCHPHYSAD)] = sample->fetch.phys;
		reg[REG(MSR_AMD64_ICIBSEXTDCTL)] = sample->fetch.ctl_ext;
	} else {
		reg[REG(MSR_AMD64_IBSOPCTL)] |= IBS_OP_VAL;
		reg[REG(MSR_AMD64_IBSOPRIP)] = ip;
		reg[REG(MSR_AMD64_IBSOPDATA)] = sample->op.data;
		reg[REG(MSR_AMD64_IBSOPDATA2)] = sample->op.data2;
		reg[REG(MSR_AMD64_IBSOPDATA3)] = sample->op.data3;
		reg[REG(MSR_AMD64_IBSDCLINAD)] = sample->addr;
		reg[REG(MSR_AMD64_IBSDCPHYSAD)] = sample->op.phys;
		reg[REG(MSR_AMD64_IBSBRTARGET)] = sample->op.target;
		reg[REG(MSR_AMD64_IBSOPDATA4)] = sample->op.data4;
	}
	unit->regs = *regs;
	atomic64_inc(&lab_records);
	atomic64_inc(&lab_interrupts);
	lab_nmi_self(&unit->pending);
	return true;
}

/*
 * The sample that a tag on the instruction at regs would give: every access is a miss that DRAM answers, or another core's cache
 * where that has modified the line.
 */
static void take_real_sample(int which, struct pt_regs *regs)
{
	struct lab_fire sample = { };

	if (which == OP) {
		struct lab_access access = lab_access_at(regs);
		union ibs_op_data2 data2 = { };
		union ibs_op_data3 data3 = { };

		sample.op.data = 0x0005000a;	/* retired 5 cycles after completion, 10 after the tag */
		if (access.kind != LAB_NO_ACCESS) {
			data3.ld_op = access.kind == LAB_READS;
			data3.st_op = access.kind == LAB_WRITES;
			data3.dc_miss = data3.l2_miss = data3.dc_lin_addr_valid = 1;
			data3.dc_miss_lat = 200 + (access.addr & 63);
			data3.op_mem_width = 4;
			data2.data_src_lo = access.hitm ? 1 : 3;
			sample.addr = access.addr;
			sample.op.phys = virt_to_phys_of ? virt_to_phys_of(access.addr) : 0;
			data3.dc_phy_addr_valid = sample.op.phys != 0;
		}
		sample.op.data2 = data2.val;
		sample.op.data3 = data3.val;
	}
	take_sample(which, regs, &sample);
}

static DEFINE_PER_CPU(int, steps_wanted);

static bool lab_stepped(struct pt_regs *regs, int nth)
{
	if (nth < this_cpu_read(steps_wanted))
		return false;
	if (this_unit(OP)->armed)
		take_real_sample(OP, regs);
	return true;
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct ibs_unit *unit = container_of(timer, struct ibs_unit, timer);
	int which = unit == this_unit(FETCH) ? FETCH : OP;
	struct pt_regs *regs = get_irq_regs();

	if (!unit->armed || !ns_per_event)
		return HRTIMER_NORESTART;
	if (regs && which == OP && step && lab_step_start(regs))
		this_cpu_write(steps_wanted, 1 + get_random_u32() % step);
	else if (regs)
		take_real_sample(which, regs);
	if (!unit->armed)	/* the handler may have been told to throttle */
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(period_ns(unit, which)));
	return HRTIMER_RESTART;
}

static int lab_sampling(void)
{
	return this_unit(OP)->armed + this_unit(FETCH)->armed;
}

static int lab_fire(struct lab_fire *fire)
{
	int which = fire->kind == LAB_IBS_FETCH ? FETCH : OP;
	struct lab_fire sample = *fire;
	unsigned long flags;

	if (fire->kind != LAB_IBS_OP && fire->kind != LAB_IBS_FETCH)
		return -EINVAL;
	while (fire->done < fire->count) {
		bool armed;

		local_irq_save(flags);
		armed = this_unit(which)->armed;
		if (armed)
			fire->taken += take_sample(which, task_pt_regs(current), &sample);
		local_irq_restore(flags);
		if (!armed)
			return -EAGAIN;
		fire->done++;
		sample.addr += sample.stride;
		if (sample.kind == LAB_IBS_OP && sample.op.phys)
			sample.op.phys += sample.stride;
		if (lab_interrupted())
			return -EINTR;
	}
	return 0;
}

static const struct {
	const char *name;
	u32 ibs_cpuid;
} models[] = {
	{ "zen3", 0x3ff },
	{ "zen4", 0xbff },	/* + IbsL3MissFiltering */
	{ "zen5", 0x81bff },	/* + IbsLoadLatencyFiltering, IbsUpdtdDtlbStats */
};

static int lab_amd_init(void)
{
	int i, cpu, err;

	for (i = 0; i < ARRAY_SIZE(models) && strcmp(models[i].name, model); i++)
		;
	if (i == ARRAY_SIZE(models))
		return -EINVAL;
	ibs_cpuid = ibs_cpuid ?: models[i].ibs_cpuid;

	err = lab_find_symbols() ?: lab_decode_init();
	if (err)
		return err;
	real_overflow = (void *)lab_symbol("perf_event_overflow");
	real_callchain = (void *)lab_symbol("perf_callchain");
	real_event_took = (void *)lab_symbol("perf_sample_event_took");
	virt_to_phys_of = (void *)lab_symbol("perf_virt_to_phys");
	if (!real_overflow || !real_callchain || !real_event_took)
		return -ENOENT;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	real_exclude_event = (void *)lab_symbol("perf_exclude_event");
	real_account_interrupt = (void *)lab_symbol("perf_event_account_interrupt");
	if (!real_exclude_event || !real_account_interrupt)
		return -ENOENT;
#endif
	for_each_possible_cpu(cpu)
		for (i = 0; i < N_UNITS; i++)
			lab_timer_init(&(*per_cpu_ptr(&ibs_units, cpu))[i].timer, on_timer);
	return lab_device_init() ?: amd_ibs_init();
}
module_init(lab_amd_init);
