// SPDX-License-Identifier: GPL-2.0
/*
 * An emulated Intel PMU with PEBS under the kernel's own driver.
 *
 * arch/x86/events/{core,utils,intel/core,intel/ds,intel/lbr}.c of the running kernel (copied from Debian's linux-source
 * when this is built) see our files where they think to see a CPU: shim.h, unit.h. MSRs, CPUID leaf 0xA and the CPU's model are
 * memory; PEBS records go to the buffer that the driver set up; the PMI is a real NMI to ourselves.
 *
 * Counters move in one of two ways. With ns_per_event > 0 each active counter counts one per that many nanoseconds, and a
 * PEBS counter that overflows takes the next user instruction that qualifies. With 0 only LAB_FIRE moves them, exactly.
 * For guests that are thrown away: there is no module exit.
 */
#include "lab_kernel.h"
#include "unit.h"

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("emulated Intel PMU under the kernel's own driver (test rig)");

static uint step = 9;
module_param(step, uint, 0644);
MODULE_PARM_DESC(step, "a PEBS counter of the timer waits 1 to this many instructions before it takes one; 0: none");

#define DSE_HITM 0x7	/* another core of the socket had it modified */

static uint dse = 0xc;
module_param(dse, uint, 0644);
MODULE_PARM_DESC(dse, "data source encoding of the timer's loads");

int *lab_paranoid;
u64 *lab_clock_offset;

/* ---- interrupts and hotplug ---- */

void lab_apic_write(u32 reg, u32 value)
{
	if (reg == APIC_LVTPC)
		this_cpu_ptr(units)->masked = value & APIC_LVT_MASKED;
}

static void call_up(void *up)
{
	((int (*)(unsigned int))up)(smp_processor_id());
}

int lab_hotplug(int state, int (*up)(unsigned int cpu))
{
	int cpu, err = 0;

	if (state == CPUHP_AP_PERF_X86_STARTING) {	/* this one must run on its CPU */
		on_each_cpu(call_up, up, 1);
		return 0;
	}
	for_each_online_cpu(cpu)
		err = err ?: up(cpu);
	return err;
}

static nmi_handler_t driver_nmi;

static int on_nmi(unsigned int cmd, struct pt_regs *regs)
{
	struct unit *unit = this_cpu_ptr(units);

	if (!unit->pending)
		return NMI_DONE;
	unit->masked = true;
	driver_nmi(cmd, &unit->regs);
	unit->pending = false;
	return NMI_HANDLED;
}

int lab_take_nmi(nmi_handler_t fn)
{
	driver_nmi = fn;
	return register_nmi_handler(NMI_LOCAL, on_nmi, 0, "lab_intel");
}

/* The performance monitoring interrupt. Interrupts are off. */
static void send_pmi(struct unit *unit, struct pt_regs *regs)
{
	if (unit->masked)
		return;
	unit->regs = *regs;
	atomic64_inc(&lab_interrupts);
	lab_nmi_self(&unit->pending);
}

/* Writes a record, counts it, and says whether the buffer wants a PMI. */
static bool write_record(struct unit *unit, u64 counters, struct pt_regs *regs, const struct lab_fire *sample)
{
	enum lab_written written = lab_write_record(unit, counters, regs, sample);

	atomic64_inc(written == LAB_NO_ROOM ? &lab_lost : &lab_records);
	return written == LAB_WANTS_PMI;
}

/* ---- the timer's samples ---- */

/* The waiting counters that the user instruction at regs satisfies take it. */
static bool take_instruction(struct unit *unit, struct pt_regs *regs)
{
	struct lab_access access = lab_access_at(regs);
	struct lab_fire sample = { .ip = regs->ip };
	u64 taken = 0;
	int i;

	if (access.kind != LAB_NO_ACCESS) {
		sample.addr = access.addr;
		sample.latency = 200 + (access.addr & 63);
		sample.source = access.kind == LAB_WRITES ? 1 : access.hitm ? DSE_HITM : dse;
	}
	for_active(unit, i) {
		if (!(unit->waiting >> i & 1))
			continue;
		if ((access.kind == LAB_READS && qualifies(unit, i, LAB_LOAD, sample.latency)) ||
		    (access.kind == LAB_WRITES && qualifies(unit, i, LAB_STORE, 0)) ||
		    qualifies(unit, i, LAB_PRECISE, 0))
			taken |= BIT_ULL(i);
	}
	if (!taken)
		return false;
	unit->waiting &= ~taken;
	if (write_record(unit, taken, regs, &sample))
		send_pmi(unit, regs);
	return true;
}

#define MAX_STEPS 64	/* then the counters wait for the next tick */

static DEFINE_PER_CPU(int, steps_skipped);

static bool lab_stepped(struct pt_regs *regs, int nth)
{
	struct unit *unit = this_cpu_ptr(units);
	int skip = this_cpu_read(steps_skipped);

	if (nth < skip)
		return false;
	if (unit->waiting && !take_instruction(unit, regs) && nth < skip + MAX_STEPS)
		return false;
	unit->waiting = 0;
	rearm(unit);
	return true;
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct unit *unit = this_cpu_ptr(units);
	struct pt_regs *regs = get_irq_regs();
	bool interrupt = false;
	u64 ns;
	int i;

	count_time(unit);
	for_active(unit, i) {
		if (!regs || unit->counter[i] < COUNTER_MAX - 1 || !counts_in(unit, i, regs))
			continue;
		if (!is_pebs(unit, i)) {
			unit->counter[i] = 0;
			unit->status |= BIT_ULL(i);
			interrupt = true;
		} else if (user_mode(regs)) {
			unit->waiting |= BIT_ULL(i);
		} else if (kind_of(unit, i) == LAB_PRECISE) {
			struct lab_fire here = { };

			interrupt |= write_record(unit, BIT_ULL(i), regs, &here);
		}
	}
	if (interrupt)
		send_pmi(unit, regs);
	if (unit->waiting && lab_step_start(regs))
		this_cpu_write(steps_skipped, step ? 1 + get_random_u32() % step : 0);
	ns = ns_to_overflow(unit);
	if (!ns)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(ns));
	return HRTIMER_RESTART;
}

/* ---- LAB_FIRE ---- */

/* One sample of a PEBS event. Interrupts are off. */
static int fire_sample(struct unit *unit, struct pt_regs *regs, const struct lab_fire *sample, u64 *taken)
{
	bool armed = false;
	u64 counters = 0;
	int i;

	for_active(unit, i) {
		if (!is_pebs(unit, i))
			continue;
		armed = true;
		if (qualifies(unit, i, sample->kind, sample->latency) && counts_in(unit, i, regs))
			counters |= BIT_ULL(i);
	}
	if (!armed)
		return -EAGAIN;
	if (counters) {
		(*taken)++;
		if (write_record(unit, counters, regs, sample))
			send_pmi(unit, regs);
	}
	return 1;
}

/* Up to n occurrences of an event, at most to the next overflow; says how many. Interrupts are off. */
static s64 fire_event(struct unit *unit, struct pt_regs *regs, const struct lab_fire *fire, u64 n, u64 *taken)
{
	u64 counters = 0, records = 0;
	bool interrupt = false, counting = false;
	int i;

	n = min_t(u64, n, S64_MAX);
	for_active(unit, i) {
		if (event_of(unit, i) != fire->event)
			continue;
		counting = true;
		if (!counts_in(unit, i, regs))
			continue;
		counters |= BIT_ULL(i);
		n = min(n, COUNTER_MAX + 1 - unit->counter[i]);
	}
	if (!counting)
		return -EAGAIN;
	for_active(unit, i) {
		if (!(counters >> i & 1))
			continue;
		unit->counter[i] += n;
		if (unit->counter[i] <= COUNTER_MAX)
			continue;
		unit->counter[i] = 0;
		(*taken)++;
		if (is_pebs(unit, i)) {
			records |= BIT_ULL(i);
		} else {
			unit->status |= BIT_ULL(i);
			interrupt = true;
		}
	}
	if (records)
		interrupt |= write_record(unit, records, regs, fire);
	if (interrupt)
		send_pmi(unit, regs);
	return n;
}

static int lab_sampling(void)
{
	struct unit *unit = this_cpu_ptr(units);
	int i, n = 0;

	for_active(unit, i)
		n += is_pebs(unit, i);
	return n;
}

static int lab_fire(struct lab_fire *fire)
{
	struct lab_fire sample = *fire;

	if (fire->kind < LAB_LOAD || fire->kind > LAB_EVENT)
		return -EINVAL;
	while (fire->done < fire->count) {
		struct pt_regs regs = *task_pt_regs(current);
		unsigned long flags;
		struct unit *unit;
		s64 done;

		if (fire->ip)
			regs.ip = fire->ip;
		local_irq_save(flags);
		unit = this_cpu_ptr(units);
		count_time(unit);
		done = fire->kind == LAB_EVENT ? fire_event(unit, &regs, &sample, fire->count - fire->done, &fire->taken) :
						 fire_sample(unit, &regs, &sample, &fire->taken);
		rearm(unit);
		local_irq_restore(flags);
		if (done < 0)
			return done;
		fire->done += done;
		sample.addr += sample.stride;
		if (lab_interrupted())
			return -EINTR;
	}
	return 0;
}

/* ---- start ---- */

extern struct {
	const char *name;
	void **pointer;
} lab_stubs[];
int lab_call_init_hw_perf_events(void);

static int find_driver_symbols(void)
{
	int i, err = lab_find_symbols() ?: lab_decode_init();

	if (err)
		return err;
	for (i = 0; lab_stubs[i].name; i++) {
		*lab_stubs[i].pointer = (void *)lab_symbol(lab_stubs[i].name);
		if (!*lab_stubs[i].pointer)
			pr_info("lab_intel: this kernel has no %s\n", lab_stubs[i].name);
	}
	lab_paranoid = (void *)lab_symbol("sysctl_perf_event_paranoid");
	lab_clock_offset = (void *)lab_symbol("__sched_clock_offset");
	return lab_paranoid && lab_clock_offset ? 0 : -ENOENT;
}

/*
 * Before 6.2, a CPU's context of counters names the PMU that is on it. The driver sets that as each CPU comes up, and for the
 * boot CPU behind the registration: here all CPUs are up before it.
 */
static void lab_enter_contexts(void)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	int cpu;

	for_each_online_cpu(cpu)
		if (this_model->small_general)
			x86_pmu_update_cpu_context(per_cpu(cpu_hw_events, cpu).pmu, cpu);
#endif
}

static int lab_intel_init(void)
{
	int cpu, err;

	err = lab_model_init() ?: find_driver_symbols();
	if (err)
		return err;
	units = __alloc_percpu(sizeof(struct unit), 64);	/* not static: modules share 8 KB of those */
	if (!units)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct unit *unit = per_cpu_ptr(units, cpu);

		unit->small = lab_is_small(cpu);
		unit->general = unit->small ? this_model->small_general : this_model->general;
		unit->fixed = unit->small ? this_model->small_fixed : this_model->fixed;
		lab_timer_init(&unit->timer, on_timer);
	}
	err = lab_device_init() ?: lab_call_init_hw_perf_events();
	lab_enter_contexts();
	x86_pmu.attr_rdpmc = 0;		/* the guest's RDPMC instruction does not know this PMU */
	return err;
}
module_init(lab_intel_init);
