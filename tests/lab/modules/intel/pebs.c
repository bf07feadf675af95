// SPDX-License-Identifier: GPL-2.0
/*
 * PEBS: which counter takes which instruction, and the records in the buffer that the driver set up.
 */
#include "unit.h"

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

enum lab_written lab_write_record(struct unit *unit, u64 counters, struct pt_regs *regs, const struct lab_fire *sample)
{
	struct debug_store *ds = (void *)unit->ds_area;
	u64 cfg = unit->data_cfg & (PEBS_DATACFG_MEMINFO | PEBS_DATACFG_GP | PEBS_DATACFG_XMMS | PEBS_DATACFG_LBRS |
				    0xffULL << PEBS_DATACFG_LBR_SHIFT);
	u64 size = this_model->pebs_format < 4 ? sizeof(struct record_skl) : adaptive_size(cfg);
	u64 ip = sample->ip ?: regs->ip;
	void *to;
	int i;

	if (!ds)
		return LAB_NO_ROOM;
	for_active(unit, i)
		if (counters >> i & 1)
			unit->counter[i] = ds->pebs_event_reset[i < FIXED_BASE ? i : MAX_PEBS_EVENTS_FMT4 + i - FIXED_BASE];
	if (ds->pebs_index + size > ds->pebs_absolute_maximum)
		return LAB_NO_ROOM;
	to = (void *)ds->pebs_index;
	memset(to, 0, size);
	if (this_model->pebs_format < 4)
		write_record_skl(to, counters, regs, sample, ip);
	else
		write_record_adaptive(to, cfg, counters, regs, sample, ip);
	ds->pebs_index += size;
	if (ds->pebs_index < ds->pebs_interrupt_threshold)
		return LAB_WRITTEN;
	unit->status |= GLOBAL_STATUS_BUFFER_OVF;
	return LAB_WANTS_PMI;
}

enum lab_kind kind_of(const struct unit *unit, int i)
{
	switch (event_of(unit, i)) {
	case ALL_LOADS:
		return LAB_LOAD;
	case ALL_STORES:
		return LAB_STORE;
	case LOADS:
		return unit->small ? LAB_PRECISE : LAB_LOAD;
	case STORES:
		return unit->small ? LAB_PRECISE : LAB_STORE;
	case SMALL_LOADS:
		return unit->small ? LAB_LOAD : LAB_PRECISE;
	case SMALL_STORES:
		return unit->small ? LAB_STORE : LAB_PRECISE;
	}
	return LAB_PRECISE;
}

/* Would counter i, having overflowed, take this instruction? */
bool qualifies(const struct unit *unit, int i, enum lab_kind kind, u64 latency)
{
	bool has_threshold = event_of(unit, i) == (unit->small ? SMALL_LOADS : LOADS) &&
			     (this_model->arch_version >= 5 || unit->pebs_enable >> (i + 32) & 1);

	if (kind_of(unit, i) != kind)
		return false;
	return !has_threshold || latency > unit->ldlat;
}
