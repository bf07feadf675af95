/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The emulated PMU, as our files share it: model.c says which CPU this is, registers.c keeps its registers and lets counters
 * move, pebs.c writes records, unit.c makes the samples and starts everything.
 */
#ifndef LAB_UNIT_H
#define LAB_UNIT_H

#include <linux/hrtimer.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include "lab_pmu.h"
#include "events/perf_event.h"

/* ---- the model ---- */

struct model {
	const char *name;
	u8 family_model, arch_version, general, fixed, pebs_format;
	u8 small_general, small_fixed;	/* of small cores, where there are some: the second half of the CPUs */
	bool instruction_latency;	/* the record's latency word holds two */
	u64 capabilities;		/* lbr format, trap, registers, PEBS format, full-width writes; baseline from icl on */
};

extern const struct model *this_model;

bool lab_is_small(int cpu);	/* a small core of a hybrid CPU */
int lab_model_init(void);	/* this_model, by the module's parameter, and the identity that the driver sees */

/* ---- registers and counters ---- */

#define FIXED_BASE 32		/* counter indexes as the status register has them: general from 0, fixed from 32 */
#define N_COUNTERS 48
#define COUNTER_MAX ((1ULL << 48) - 1)

struct unit {
	bool small;			/* core, of a hybrid CPU */
	u8 general, fixed;		/* counters of each kind */
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

extern struct unit __percpu *units;

/* event select | umask << 8; the fixed counters by the events that they are made for */
enum { INSTRUCTIONS = 0x00c0, CYCLES = 0x003c, REF_CYCLES = 0x0300, SLOTS = 0x0400, LOADS = 0x01cd, ALL_LOADS = 0x81d0,
       ALL_STORES = 0x82d0, STORES = 0x02cd, LOADS_AUX = 0x8203,
       SMALL_LOADS = 0x05d0, SMALL_STORES = 0x06d0 };	/* with latency, of small cores only */

u32 event_of(const struct unit *unit, int i);
bool is_active(const struct unit *unit, int i);
bool counts_in(const struct unit *unit, int i, struct pt_regs *regs);	/* user or kernel only, as the event asked */

#define for_active(unit, i) \
	for ((i) = 0; (i) < FIXED_BASE + (unit)->fixed; (i)++) if (is_active(unit, i))

static inline bool is_pebs(const struct unit *unit, int i)
{
	return unit->pebs_enable >> i & 1;
}

void count_time(struct unit *unit);	/* lets the time since the last look count */
u64 ns_to_overflow(struct unit *unit);	/* of the first counter; 0: none counts time */
void rearm(struct unit *unit);		/* the timer, by that */

/* ---- PEBS ---- */

enum lab_kind kind_of(const struct unit *unit, int i);	/* of sample that counter i takes */
bool qualifies(const struct unit *unit, int i, enum lab_kind kind, u64 latency);

enum lab_written { LAB_NO_ROOM, LAB_WRITTEN, LAB_WANTS_PMI };

/* `counters` overflowed at one instruction: reloads them and writes its record to the driver's buffer. */
enum lab_written lab_write_record(struct unit *unit, u64 counters, struct pt_regs *regs, const struct lab_fire *sample);

#endif
