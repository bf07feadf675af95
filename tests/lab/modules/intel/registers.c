// SPDX-License-Identifier: GPL-2.0
/*
 * The registers of the emulated PMU: memory, but for the counters, which move with time or, with ns_per_event 0, by LAB_FIRE only.
 */
#include <linux/module.h>
#include "unit.h"

static ulong perf_cap;
module_param(perf_cap, ulong, 0444);
MODULE_PARM_DESC(perf_cap, "IA32_PERF_CAPABILITIES, where the model's is not wanted");

static ulong ns_per_event = 10;
module_param(ns_per_event, ulong, 0644);
MODULE_PARM_DESC(ns_per_event, "how long one event takes on every active counter; 0: only LAB_FIRE moves counters");

static ulong min_ns = 100000;
module_param(min_ns, ulong, 0644);
MODULE_PARM_DESC(min_ns, "shortest time between two overflows of the timer");

struct unit __percpu *units;

u32 event_of(const struct unit *unit, int i)
{
	static const u32 fixed[] = { INSTRUCTIONS, CYCLES, REF_CYCLES, SLOTS };

	return i < FIXED_BASE ? unit->select[i] & 0xffff : fixed[i - FIXED_BASE];
}

static u32 fixed_bits(const struct unit *unit, int i)
{
	return unit->fixed_ctrl >> (i - FIXED_BASE) * 4;
}

bool is_active(const struct unit *unit, int i)
{
	if (!(unit->global_ctrl >> i & 1))
		return false;
	return i < FIXED_BASE ? unit->select[i] & ARCH_PERFMON_EVENTSEL_ENABLE : fixed_bits(unit, i) & 3;
}

bool counts_in(const struct unit *unit, int i, struct pt_regs *regs)
{
	if (i < FIXED_BASE)
		return unit->select[i] & (user_mode(regs) ? ARCH_PERFMON_EVENTSEL_USR : ARCH_PERFMON_EVENTSEL_OS);
	return fixed_bits(unit, i) & (user_mode(regs) ? 2 : 1);
}

/*
 * Lets the time since the last look count. A counter stops at its maximum until the timer finds it there, and at its overflow
 * until the driver has seen it: the emulator may lose the host's CPU for many periods at either place, and counting on would
 * make the event's count run ahead of samples * period.
 */
void count_time(struct unit *unit)
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

u64 ns_to_overflow(struct unit *unit)
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

void rearm(struct unit *unit)
{
	u64 ns = ns_to_overflow(unit);

	if (in_nmi())
		return;		/* whoever sent the NMI rearms behind it */
	if (ns)
		hrtimer_start(&unit->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED_HARD);
	else
		hrtimer_try_to_cancel(&unit->timer);
}

static int counter_of(const struct unit *unit, u32 msr)
{
	u32 n = unit->general;

	if (msr - MSR_ARCH_PERFMON_PERFCTR0 < n)
		return msr - MSR_ARCH_PERFMON_PERFCTR0;
	if (msr - MSR_IA32_PMC0 < n)
		return msr - MSR_IA32_PMC0;
	if (msr - MSR_CORE_PERF_FIXED_CTR0 < (u32)unit->fixed)
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
	if (msr - MSR_ARCH_PERFMON_EVENTSEL0 < (u32)unit->general)
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
	int i = counter_of(unit, msr);

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
	int i = counter_of(unit, msr);

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
