// SPDX-License-Identifier: GPL-2.0
/*
 * An emulated Intel PMU with PEBS under the kernel's own driver.
 *
 * arch/x86/events/{core,utils,intel/core,intel/ds,intel/lbr}.c of the running kernel (copied from Debian's linux-source
 * when this is built) see this file where they think to see a CPU: see shim.h. MSRs, CPUID leaf 0xA and the CPU's model are
 * memory; PEBS records go to the buffer that the driver set up; the PMI is a real NMI to ourselves.
 *
 * Counters move in one of two ways. With ns_per_event > 0 each active counter counts one per that many nanoseconds, and a
 * PEBS counter that overflows takes the next user instruction that qualifies. With 0 only LAB_FIRE moves them, exactly.
 * For guests that are thrown away: there is no module exit.
 */
#include <linux/vmalloc.h>
#include "lab_kernel.h"
#include "events/perf_event.h"

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("emulated Intel PMU under the kernel's own driver (test rig)");

static char *model = "skl";
module_param(model, charp, 0444);
MODULE_PARM_DESC(model, "skl (PEBS format 3), icl or spr (format 4), all as servers");

static bool pebs = true;
module_param(pebs, bool, 0444);
MODULE_PARM_DESC(pebs, "0: a CPU without PEBS");

static ulong perf_cap;
module_param(perf_cap, ulong, 0444);
MODULE_PARM_DESC(perf_cap, "IA32_PERF_CAPABILITIES, where the model's is not wanted");

static ulong ns_per_event = 10;
module_param(ns_per_event, ulong, 0644);
MODULE_PARM_DESC(ns_per_event, "how long one event takes on every active counter; 0: only LAB_FIRE moves counters");

static ulong min_ns = 100000;
module_param(min_ns, ulong, 0644);
MODULE_PARM_DESC(min_ns, "shortest time between two overflows of the timer");

static uint step = 9;
module_param(step, uint, 0644);
MODULE_PARM_DESC(step, "a PEBS counter of the timer waits 1 to this many instructions before it takes one; 0: none");

static uint dse = 0xc;
module_param(dse, uint, 0644);
MODULE_PARM_DESC(dse, "data source encoding of the timer's loads");

/* ---- what the driver refers to and this PMU does not have ---- */

int p4_pmu_init(void) { return -ENODEV; }
int p6_pmu_init(void) { return -ENODEV; }
int knc_pmu_init(void) { return -ENODEV; }
int zhaoxin_pmu_init(void) { return -ENODEV; }
void intel_bts_enable_local(void) { }
void intel_bts_disable_local(void) { }
int intel_bts_interrupt(void) { return 0; }
void intel_pt_interrupt(void) { }
int is_intel_pt_event(struct perf_event *event) { return 0; }
u8 get_this_hybrid_cpu_type(void) { return 0; }
void hardlockup_detector_perf_stop(void) { }
void hardlockup_detector_perf_restart(void) { }
DEFINE_STATIC_CALL_RET0(__perf_guest_state, *perf_guest_cbs->state);
DEFINE_STATIC_CALL_RET0(__perf_guest_get_ip, *perf_guest_cbs->get_ip);
DEFINE_STATIC_CALL_RET0(__perf_guest_handle_intel_pt_intr, *perf_guest_cbs->handle_intel_pt_intr);
DEFINE_STATIC_CALL_RET0(perf_snapshot_branch_stack, perf_snapshot_branch_stack_t);

/* ---- the model ---- */

static const struct model {
	const char *name;
	u8 family_model, arch_version, general, fixed, pebs_format;
	bool instruction_latency;	/* the record's latency word holds two */
	u64 capabilities;		/* lbr format, trap, registers, PEBS format, full-width writes; baseline from icl on */
} models[] = {
	{ "skl", 0x55, 4, 4, 3, 3, false, 0x33c5 },
	{ "icl", 0x6a, 5, 8, 4, 4, false, 0x74c5 },
	{ "spr", 0x8f, 5, 8, 4, 4, true, 0x74c5 },
};

static const struct model *this_model;
struct cpuinfo_x86 lab_cpu_data;
int *lab_paranoid;
u64 *lab_clock_offset;

void lab_cpuid(u32 leaf, u32 *a, u32 *b, u32 *c, u32 *d)
{
	bool v5 = this_model->arch_version >= 5;

	*a = *b = *c = *d = 0;
	if (leaf != 0xa)
		return;
	*a = this_model->arch_version | this_model->general << 8 | 48 << 16 | 7 << 24;
	*c = v5 ? BIT(this_model->fixed) - 1 : 0;
	*d = this_model->fixed | 48 << 5 | v5 << 15;
}

/* ---- registers and counters ---- */

#define FIXED_BASE 32		/* counter indexes as the status register has them: general from 0, fixed from 32 */
#define N_COUNTERS 48
#define COUNTER_MAX ((1ULL << 48) - 1)

struct unit {
	u64 global_ctrl, status, fixed_ctrl, pebs_enable, ds_area, ldlat, data_cfg;
	u64 select[FIXED_BASE], counter[N_COUNTERS];
	struct { u32 msr; u64 value; } other[192];	/* every other MSR just keeps what was written */
	int n_other;
	u64 counted_at;			/* time up to which the counters are right */
	u64 waiting;			/* PEBS counters that overflowed and have not taken an instruction yet */
	struct hrtimer timer;
	struct pt_regs regs;		/* at the overflow, for the NMI */
	bool pending;			/* our NMI is on its way */
	bool masked;			/* LVTPC, by the hardware at a PMI until the driver unmasks it */
};

static struct unit __percpu *units;
static nmi_handler_t driver_nmi;

/* event select | umask << 8; the fixed counters by the events that they are made for */
enum { INSTRUCTIONS = 0x00c0, CYCLES = 0x003c, REF_CYCLES = 0x0300, SLOTS = 0x0400, LOADS = 0x01cd, ALL_LOADS = 0x81d0,
       ALL_STORES = 0x82d0, STORES = 0x02cd, LOADS_AUX = 0x8203 };

static u32 event_of(const struct unit *unit, int i)
{
	static const u32 fixed[] = { INSTRUCTIONS, CYCLES, REF_CYCLES, SLOTS };

	return i < FIXED_BASE ? unit->select[i] & 0xffff : fixed[i - FIXED_BASE];
}

static u32 fixed_bits(const struct unit *unit, int i)
{
	return unit->fixed_ctrl >> (i - FIXED_BASE) * 4;
}

static bool is_active(const struct unit *unit, int i)
{
	if (!(unit->global_ctrl >> i & 1))
		return false;
	return i < FIXED_BASE ? unit->select[i] & ARCH_PERFMON_EVENTSEL_ENABLE : fixed_bits(unit, i) & 3;
}

#define for_active(unit, i) \
	for ((i) = 0; (i) < FIXED_BASE + this_model->fixed; (i)++) if (is_active(unit, i))

/* user or kernel only, as the event asked */
static bool counts_in(const struct unit *unit, int i, struct pt_regs *regs)
{
	if (i < FIXED_BASE)
		return unit->select[i] & (user_mode(regs) ? ARCH_PERFMON_EVENTSEL_USR : ARCH_PERFMON_EVENTSEL_OS);
	return fixed_bits(unit, i) & (user_mode(regs) ? 2 : 1);
}

static bool is_pebs(const struct unit *unit, int i)
{
	return unit->pebs_enable >> i & 1;
}

/*
 * Lets the time since the last look count. A counter stops at its maximum until the timer finds it there, and at its overflow
 * until the driver has seen it: the emulator may lose the host's CPU for many periods at either place, and counting on would
 * make the event's count run ahead of samples * period.
 */
static void count_time(struct unit *unit)
{
	u64 now = ktime_get_mono_fast_ns(), n;
	int i;

	if (!ns_per_event) {
		unit->counted_at = now;
		return;
	}
	if (now < unit->counted_at)	/* this clock may step back a little */
		return;
	n = div64_ul(now - unit->counted_at, ns_per_event);
	if (!n)
		return;
	unit->counted_at = now;
	for_active(unit, i)
		if (!(unit->status >> i & 1) && event_of(unit, i) != LOADS_AUX)	/* the latter is rare: never */
			unit->counter[i] = min(COUNTER_MAX, unit->counter[i] + n);
}

static u64 ns_to_overflow(struct unit *unit)
{
	u64 best = 0;
	int i;

	if (!ns_per_event)
		return 0;
	for_active(unit, i) {
		u64 left = min_t(u64, COUNTER_MAX - unit->counter[i], 3600 * NSEC_PER_SEC);
		u64 ns = max_t(u64, min_ns, left * ns_per_event);

		if (!best || ns < best)
			best = ns;
	}
	return best;
}

static void rearm(struct unit *unit)
{
	u64 ns = ns_to_overflow(unit);

	if (in_nmi())
		return;		/* whoever sent the NMI rearms behind it */
	if (ns)
		hrtimer_start(&unit->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED_HARD);
	else
		hrtimer_try_to_cancel(&unit->timer);
}

static int counter_of(u32 msr)
{
	u32 n = this_model->general;

	if (msr - MSR_ARCH_PERFMON_PERFCTR0 < n)
		return msr - MSR_ARCH_PERFMON_PERFCTR0;
	if (msr - MSR_IA32_PMC0 < n)
		return msr - MSR_IA32_PMC0;
	if (msr - MSR_CORE_PERF_FIXED_CTR0 < (u32)this_model->fixed)
		return FIXED_BASE + msr - MSR_CORE_PERF_FIXED_CTR0;
	return -1;
}

static u64 *other_msr(struct unit *unit, u32 msr)
{
	int i;

	for (i = 0; i < unit->n_other; i++)
		if (unit->other[i].msr == msr)
			return &unit->other[i].value;
	if (WARN_ONCE(i == ARRAY_SIZE(unit->other), "lab_intel: too many MSRs"))
		i--;
	unit->other[i].msr = msr;
	unit->other[i].value = 0;
	unit->n_other = i + 1;
	return &unit->other[i].value;
}

static u64 *control_msr(struct unit *unit, u32 msr)
{
	if (msr - MSR_ARCH_PERFMON_EVENTSEL0 < (u32)this_model->general)
		return &unit->select[msr - MSR_ARCH_PERFMON_EVENTSEL0];
	switch (msr) {
	case MSR_CORE_PERF_GLOBAL_CTRL: return &unit->global_ctrl;
	case MSR_CORE_PERF_GLOBAL_STATUS: return &unit->status;
	case MSR_ARCH_PERFMON_FIXED_CTR_CTRL: return &unit->fixed_ctrl;
	case MSR_IA32_PEBS_ENABLE: return &unit->pebs_enable;
	case MSR_IA32_DS_AREA: return &unit->ds_area;
	case MSR_PEBS_LD_LAT_THRESHOLD: return &unit->ldlat;
	case MSR_PEBS_DATA_CFG: return &unit->data_cfg;
	}
	return other_msr(unit, msr);
}

static u64 unit_read(struct unit *unit, u32 msr)
{
	int i = counter_of(msr);

	if (i >= 0) {
		count_time(unit);
		return unit->counter[i];
	}
	if (msr == MSR_IA32_PERF_CAPABILITIES)
		return perf_cap ?: this_model->capabilities;
	return *control_msr(unit, msr);
}

static void unit_write(struct unit *unit, u32 msr, u64 value)
{
	int i = counter_of(msr);

	count_time(unit);
	if (i >= 0) {
		unit->counter[i] = value & COUNTER_MAX;
	} else if (msr == MSR_CORE_PERF_GLOBAL_OVF_CTRL) {
		unit->status &= ~value;
		return;
	} else {
		u64 *reg = control_msr(unit, msr);

		*reg = value;
		if (reg >= unit->select && reg < unit->select + FIXED_BASE)
			unit->waiting &= ~BIT_ULL(reg - unit->select);
		else if (reg != &unit->global_ctrl && reg != &unit->fixed_ctrl)
			return;
	}
	if (unit == this_cpu_ptr(units))
		rearm(unit);
}

u64 lab_rdmsr(u32 msr)
{
	unsigned long flags;
	u64 value;

	local_irq_save(flags);
	value = unit_read(this_cpu_ptr(units), msr);
	local_irq_restore(flags);
	return value;
}

void lab_wrmsr(u32 msr, u64 value)
{
	unsigned long flags;

	local_irq_save(flags);
	unit_write(this_cpu_ptr(units), msr, value);
	local_irq_restore(flags);
}

void lab_wrmsr_on(int cpu, u32 msr, u64 value)
{
	unit_write(per_cpu_ptr(units, cpu), msr, value);
}

u64 lab_rdpmc(u32 counter)
{
	if (counter & BIT(29))		/* PERF_METRICS, which this PMU does not have */
		return 0;
	if (counter & BIT(30))
		return lab_rdmsr(MSR_CORE_PERF_FIXED_CTR0 + (counter & 0xffff));
	return lab_rdmsr(MSR_ARCH_PERFMON_PERFCTR0 + counter);
}

/* ---- the rest of the machine that the driver wants ---- */

static struct cpu_entry_area *entry_areas[NR_CPUS];

struct cpu_entry_area *lab_entry_area(int cpu)
{
	if (!entry_areas[cpu])
		entry_areas[cpu] = vzalloc(sizeof(struct cpu_entry_area));
	return entry_areas[cpu];
}

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

/* ---- PEBS ---- */

/* format 3, Skylake's; the kernel's own definition is private to ds.c */
struct record_skl {
	u64 flags, ip, ax, bx, cx, dx, si, di, bp, sp, r8, r9, r10, r11, r12, r13, r14, r15;
	u64 status, addr, source, latency, eventing_ip, tsx, tsc;
};

static void write_record_skl(void *to, u64 counters, struct pt_regs *r, const struct lab_fire *s, u64 ip)
{
	*(struct record_skl *)to = (struct record_skl){
		r->flags, r->ip, r->ax, r->bx, r->cx, r->dx, r->si, r->di, r->bp, r->sp,
		r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15,
		counters, s->addr, s->source, s->latency, ip, 0, rdtsc(),
	};
}

/* format 4: the groups that MSR_PEBS_DATA_CFG asks for, in this order */
static u64 adaptive_size(u64 cfg)
{
	return sizeof(struct pebs_basic) +
	       (cfg & PEBS_DATACFG_MEMINFO ? sizeof(struct pebs_meminfo) : 0) +
	       (cfg & PEBS_DATACFG_GP ? sizeof(struct pebs_gprs) : 0) +
	       (cfg & PEBS_DATACFG_XMMS ? sizeof(struct pebs_xmm) : 0) +
	       (cfg & PEBS_DATACFG_LBRS ? ((cfg >> PEBS_DATACFG_LBR_SHIFT & 0xff) + 1) * sizeof(struct lbr_entry) : 0);
}

static void write_record_adaptive(void *to, u64 cfg, u64 counters, struct pt_regs *r, const struct lab_fire *s, u64 ip)
{
	/* as words: kernels differ in how they name the parts of the first group */
	u64 *word = to;

	word[0] = cfg | adaptive_size(cfg) << 48;
	word[1] = ip;
	word[2] = counters;
	word[3] = rdtsc();
	word = to + sizeof(struct pebs_basic);
	if (cfg & PEBS_DATACFG_MEMINFO) {
		word[0] = s->addr;
		word[1] = s->source;
		/* spr: the cache latency above, the instruction's whole latency below */
		word[2] = this_model->instruction_latency ? s->latency << 32 | ((s->latency + 5) & 0xffff) : s->latency;
		word = (void *)word + sizeof(struct pebs_meminfo);
	}
	if (cfg & PEBS_DATACFG_GP)
		*(struct pebs_gprs *)word = (struct pebs_gprs){
			r->flags, r->ip, r->ax, r->cx, r->dx, r->bx, r->sp, r->bp, r->si, r->di,
			r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15,
		};
}

/* `counters` overflowed at one instruction: reload them, write its record, say whether the buffer wants a PMI. */
static bool write_record(struct unit *unit, u64 counters, struct pt_regs *regs, const struct lab_fire *sample)
{
	struct debug_store *ds = (void *)unit->ds_area;
	u64 cfg = unit->data_cfg & (PEBS_DATACFG_MEMINFO | PEBS_DATACFG_GP | PEBS_DATACFG_XMMS | PEBS_DATACFG_LBRS |
				    0xffULL << PEBS_DATACFG_LBR_SHIFT);
	u64 size = this_model->pebs_format < 4 ? sizeof(struct record_skl) : adaptive_size(cfg);
	u64 ip = sample->ip ?: regs->ip;
	void *to;
	int i;

	if (!ds)
		return false;
	for_active(unit, i)
		if (counters >> i & 1)
			unit->counter[i] = ds->pebs_event_reset[i < FIXED_BASE ? i : MAX_PEBS_EVENTS_FMT4 + i - FIXED_BASE];
	if (ds->pebs_index + size > ds->pebs_absolute_maximum) {
		atomic64_inc(&lab_lost);
		return false;
	}
	to = (void *)ds->pebs_index;
	memset(to, 0, size);
	if (this_model->pebs_format < 4)
		write_record_skl(to, counters, regs, sample, ip);
	else
		write_record_adaptive(to, cfg, counters, regs, sample, ip);
	ds->pebs_index += size;
	atomic64_inc(&lab_records);
	if (ds->pebs_index < ds->pebs_interrupt_threshold)
		return false;
	unit->status |= GLOBAL_STATUS_BUFFER_OVF;
	return true;
}

static enum lab_kind kind_of(const struct unit *unit, int i)
{
	switch (event_of(unit, i)) {
	case LOADS: case ALL_LOADS:
		return LAB_LOAD;
	case STORES: case ALL_STORES:
		return LAB_STORE;
	}
	return LAB_PRECISE;
}

/* Would counter i, having overflowed, take this instruction? */
static bool qualifies(const struct unit *unit, int i, enum lab_kind kind, u64 latency)
{
	bool has_threshold = event_of(unit, i) == LOADS &&
			     (this_model->arch_version >= 5 || unit->pebs_enable >> (i + 32) & 1);

	if (kind_of(unit, i) != kind)
		return false;
	return !has_threshold || latency > unit->ldlat;
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
		sample.source = access.kind == LAB_WRITES ? 1 : dse;
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

static void become_model(void)
{
	static const u16 features[] = { X86_FEATURE_ARCH_PERFMON, X86_FEATURE_DS, X86_FEATURE_DTES64, X86_FEATURE_PDCM,
					X86_FEATURE_CONSTANT_TSC };
	int i;

	lab_cpu_data = boot_cpu_data;
	lab_cpu_data.x86_vendor = X86_VENDOR_INTEL;
	lab_cpu_data.x86 = 6;
	lab_cpu_data.x86_model = this_model->family_model;
	lab_cpu_data.x86_stepping = 7;
	lab_cpu_data.microcode = ~0u;	/* no erratum that an update mends */
	for (i = 0; i < ARRAY_SIZE(features); i++)
		set_cpu_cap(&lab_cpu_data, features[i]);
	if (pebs)
		set_cpu_cap(&lab_cpu_data, X86_FEATURE_PEBS);
	clear_bit(X86_FEATURE_HYPERVISOR, (unsigned long *)lab_cpu_data.x86_capability);
}

static int lab_intel_init(void)
{
	int i, cpu, err;

	for (i = 0; i < ARRAY_SIZE(models) && strcmp(models[i].name, model); i++)
		;
	if (i == ARRAY_SIZE(models))
		return -EINVAL;
	this_model = &models[i];
	err = find_driver_symbols();
	if (err)
		return err;
	become_model();
	units = __alloc_percpu(sizeof(struct unit), 64);	/* not static: modules share 8 KB of those */
	if (!units)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		lab_timer_init(&per_cpu_ptr(units, cpu)->timer, on_timer);
	err = lab_device_init() ?: lab_call_init_hw_perf_events();
	x86_pmu.attr_rdpmc = 0;		/* the guest's RDPMC instruction does not know this PMU */
	return err;
}
module_init(lab_intel_init);
