/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/switch_aarch64.S - contexts on aarch64, AAPCS64. A resting context has on
 * its stack, from its sp: x19-x30, d8-d15 (20 doublewords). x30 is where to go on;
 * `br` and not `ret`, which would be predicted from the calls of the context that
 * is being left.
 */
	.text

	.globl	thr_ctx_swap
	.type	thr_ctx_swap, %function
	.p2align 4
thr_ctx_swap:
	.cfi_startproc
	stp	x19, x20, [sp, #-160]!
	.cfi_adjust_cfa_offset 160
	stp	x21, x22, [sp, #16]
	stp	x23, x24, [sp, #32]
	stp	x25, x26, [sp, #48]
	stp	x27, x28, [sp, #64]
	stp	x29, x30, [sp, #80]
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	mov	x9, sp
	str	x9, [x0]
	ldr	x9, [x1]
	mov	sp, x9
	ldp	x21, x22, [sp, #16]
	ldp	x23, x24, [sp, #32]
	ldp	x25, x26, [sp, #48]
	ldp	x27, x28, [sp, #64]
	ldp	x29, x30, [sp, #80]
	ldp	d8, d9, [sp, #96]
	ldp	d10, d11, [sp, #112]
	ldp	d12, d13, [sp, #128]
	ldp	d14, d15, [sp, #144]
	ldp	x19, x20, [sp], #160
	.cfi_adjust_cfa_offset -160
	mov	x16, x30
	br	x16
	.cfi_endproc
	.size	thr_ctx_swap, . - thr_ctx_swap

	.globl	thr_ctx_make
	.type	thr_ctx_make, %function
	.p2align 4
thr_ctx_make:
	.cfi_startproc
	sub	x9, x1, #160
	stp	x2, x3, [x9]
	adr	x10, begin
	stp	xzr, x10, [x9, #80]
	str	x9, [x0]
	ret
	.cfi_endproc
	.size	thr_ctx_make, . - thr_ctx_make

/* x19 is the function, x20 its argument. */
	.type	begin, %function
	.p2align 4
begin:
	.cfi_startproc
	.cfi_undefined x30
	mov	x0, x20
	blr	x19
	brk	#1
	.cfi_endproc
	.size	begin, . - begin

	.section .note.GNU-stack,"",%progbits
