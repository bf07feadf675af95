/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For each function of unexported.h: a symbol of that name that jumps through a pointer. unit.c fills the pointers by
 * kallsyms, from the table lab_stubs of (name, where the pointer is), which ends with zeros.
 */
#include <linux/linkage.h>
#include <asm/nospec-branch.h>

.macro STUB name
	.pushsection .bss
	.balign 8
lab_pointer_\name:
	.quad 0
	.popsection

	.pushsection .rodata.str1.1, "aMS", @progbits, 1
lab_name_\name:
	.asciz "\name"
	.popsection

	.pushsection .data
	.quad lab_name_\name, lab_pointer_\name
	.popsection

	.text
SYM_FUNC_START(\name)
	ANNOTATE_RETPOLINE_SAFE
	jmp *lab_pointer_\name(%rip)
SYM_FUNC_END(\name)
.endm

	.data
	.balign 8
	.globl lab_stubs
lab_stubs:
#define X(name) STUB name;
#include "unexported.h"
	.data
	.quad 0, 0
