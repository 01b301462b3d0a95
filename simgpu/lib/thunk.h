// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * thunk.h: an exported name. While no call is to fail, two loads and a jump to
 * the function behind it; else the number of the name and that function go to
 * sg_thunk_slow, which asks sg_fault_before (fault.c) what to do.
 *
 * struct sg_frame in fault.h describes what is saved.
 */

#if defined(__x86_64__)

.macro THUNK name, number
	.text
	.p2align 4
	.globl	\name
	.type	\name, @function
	.weak	sgi_\name
	.hidden	sgi_\name
	.set	sgi_\name, sg_unsupported
\name:
	.cfi_startproc
	movq	sg_faults_word(%rip), %r11
	cmpl	$0, (%r11)
	jne	1f
	jmp	sgi_\name
1:	leaq	sgi_\name(%rip), %r10
	movl	$\number, %r11d
	jmp	sg_thunk_slow
	.cfi_endproc
	.size	\name, . - \name
.endm

	.text
	.hidden	sg_faults_word
	.hidden	sg_fault_before
	.hidden	sg_fault_after
	.type	sg_unsupported, @function
sg_unsupported:
	.cfi_startproc
	movl	$UNSUPPORTED, %eax
	ret
	.cfi_endproc
	.size	sg_unsupported, . - sg_unsupported

	.type	sg_thunk_slow, @function
sg_thunk_slow:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq	$240, %rsp
	movq	%rdi, (%rsp)
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	movq	%rcx, 24(%rsp)
	movq	%r8, 32(%rsp)
	movq	%r9, 40(%rsp)
	leaq	16(%rbp), %rdi
	movq	%rdi, 64(%rsp)
	movl	%r11d, 72(%rsp)
	movl	$0, 76(%rsp)
	movq	%r10, 80(%rsp)
	movups	%xmm0, 96(%rsp)
	movups	%xmm1, 112(%rsp)
	movups	%xmm2, 128(%rsp)
	movups	%xmm3, 144(%rsp)
	movups	%xmm4, 160(%rsp)
	movups	%xmm5, 176(%rsp)
	movups	%xmm6, 192(%rsp)
	movups	%xmm7, 208(%rsp)
	movq	%rsp, %rdi
	call	sg_fault_before
	cmpl	$1, %eax
	je	2f
	movq	(%rsp), %rdi
	movq	8(%rsp), %rsi
	movq	16(%rsp), %rdx
	movq	24(%rsp), %rcx
	movq	32(%rsp), %r8
	movq	40(%rsp), %r9
	movq	80(%rsp), %r10
	movups	96(%rsp), %xmm0
	movups	112(%rsp), %xmm1
	movups	128(%rsp), %xmm2
	movups	144(%rsp), %xmm3
	movups	160(%rsp), %xmm4
	movups	176(%rsp), %xmm5
	movups	192(%rsp), %xmm6
	movups	208(%rsp), %xmm7
	testl	%eax, %eax
	jne	1f
	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	jmp	*%r10
1:	/* Call it with a copy of the arguments on the stack, then say something else. */
	.cfi_restore_state
	subq	$128, %rsp
	movl	$15, %r11d
3:	movq	16(%rbp, %r11, 8), %rax
	movq	%rax, (%rsp, %r11, 8)
	subl	$1, %r11d
	jns	3b
	call	*%r10
	addq	$128, %rsp
	movq	%rsp, %rdi
	movl	%eax, %esi
	call	sg_fault_after
2:	movl	76(%rsp), %eax
	leave
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	sg_thunk_slow, . - sg_thunk_slow

#elif defined(__aarch64__)

.macro THUNK name, number
	.text
	.p2align 4
	.globl	\name
	.type	\name, %function
	.weak	sgi_\name
	.hidden	sgi_\name
	.set	sgi_\name, sg_unsupported
\name:
	.cfi_startproc
	hint	#34 /* bti c */
	adrp	x16, sg_faults_word
	ldr	x16, [x16, :lo12:sg_faults_word]
	ldr	w16, [x16]
	cbnz	w16, 1f
	b	sgi_\name
1:	adrp	x16, sgi_\name
	add	x16, x16, :lo12:sgi_\name
	mov	w17, #\number
	b	sg_thunk_slow
	.cfi_endproc
	.size	\name, . - \name
.endm

	.text
	.hidden	sg_faults_word
	.hidden	sg_fault_before
	.type	sg_unsupported, %function
sg_unsupported:
	.cfi_startproc
	mov	w0, #UNSUPPORTED
	ret
	.cfi_endproc
	.size	sg_unsupported, . - sg_unsupported

	.type	sg_thunk_slow, %function
sg_thunk_slow:
	.cfi_startproc
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	mov	x29, sp
	.cfi_def_cfa_register x29
	sub	sp, sp, #240
	stp	x0, x1, [sp]
	stp	x2, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	stp	x6, x7, [sp, #48]
	add	x0, x29, #16
	str	x0, [sp, #64]
	stp	w17, wzr, [sp, #72]
	stp	x16, x8, [sp, #80]
	stp	q0, q1, [sp, #96]
	stp	q2, q3, [sp, #128]
	stp	q4, q5, [sp, #160]
	stp	q6, q7, [sp, #192]
	mov	x0, sp
	bl	sg_fault_before
	mov	w17, w0
	cmp	w17, #1
	b.eq	2f
	ldp	x0, x1, [sp]
	ldp	x2, x3, [sp, #16]
	ldp	x4, x5, [sp, #32]
	ldp	x6, x7, [sp, #48]
	ldp	x16, x8, [sp, #80]
	ldp	q0, q1, [sp, #96]
	ldp	q2, q3, [sp, #128]
	ldp	q4, q5, [sp, #160]
	ldp	q6, q7, [sp, #192]
	cbnz	w17, 1f
	.cfi_remember_state
	mov	sp, x29
	ldp	x29, x30, [sp], #16
	.cfi_def_cfa sp, 0
	br	x16
1:	/* Call it with a copy of the arguments on the stack, then say something else. */
	.cfi_restore_state
	sub	sp, sp, #128
	mov	x17, #120
3:	add	x9, x29, #16
	ldr	x10, [x9, x17]
	str	x10, [sp, x17]
	subs	x17, x17, #8
	b.pl	3b
	blr	x16
	add	sp, sp, #128
	mov	w1, w0
	mov	x0, sp
	bl	sg_fault_after
2:	ldr	w0, [sp, #76]
	mov	sp, x29
	ldp	x29, x30, [sp], #16
	.cfi_def_cfa sp, 0
	ret
	.cfi_endproc
	.size	sg_thunk_slow, . - sg_thunk_slow

#else
#error "no thunks for this architecture"
#endif
