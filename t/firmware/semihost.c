/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/semihost.c - the board: a Cortex-M3 whose host answers semihosting
 * (Arm's specification "Semihosting for AArch32 and AArch64"; breakpoint 0xab).
 */
#include "t/firmware/board.h"
#include "t/firmware/say.h"

#define PAINT 0x57ac57acu

enum {
	SYS_OPEN = 0x01,
	SYS_CLOSE,
	SYS_WRITE0 = 0x04,
	SYS_WRITE,
	SYS_READ = 0x06,
	SYS_SEEK = 0x0a
};
enum { SYS_FLEN = 0x0c, SYS_EXIT_EXTENDED = 0x20, EXIT_APPLICATION = 0x20026 };

/* From the linker script. */
extern uint32_t link_stack_top, link_data_from, link_data, link_data_end, link_bss,
	link_bss_end;
extern uint8_t link_memory;
extern uint32_t link_stack_low;

void board_reset(void);

static uint32_t call(uint32_t op, const void *arg)
{
	register uint32_t r0 __asm__("r0") = op;
	register const void *r1 __asm__("r1") = arg;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
	return r0;
}

void board_print(const char *text)
{
	call(SYS_WRITE0, text);
}

_Noreturn void board_exit(int code)
{
	uint32_t arg[2] = {EXIT_APPLICATION, (uint32_t)code};

	for (;;)
		call(SYS_EXIT_EXTENDED, arg);
}

enum { MODE_RB = 1, MODE_WB = 5 };

static int open_mode(const char *name, uint32_t mode)
{
	uint32_t arg[3] = {(uint32_t)name, mode, 0};

	while (name[arg[2]])
		arg[2]++;
	return (int)call(SYS_OPEN, arg);
}

int board_open(const char *name)
{
	return open_mode(name, MODE_RB);
}

int board_read(int handle, uint32_t off, void *buf, size_t len)
{
	uint32_t seek[2] = {(uint32_t)handle, off};
	uint32_t read[3] = {(uint32_t)handle, (uint32_t)buf, len};

	return call(SYS_SEEK, seek) || call(SYS_READ, read) ? -1 : 0;
}

int64_t board_size(int handle)
{
	uint32_t arg = (uint32_t)handle;

	return (int32_t)call(SYS_FLEN, &arg);
}

void board_close(int handle)
{
	uint32_t arg = (uint32_t)handle;

	call(SYS_CLOSE, &arg);
}

int board_save(const char *name, const void *p, size_t len)
{
	int handle = open_mode(name, MODE_WB);
	uint32_t arg[3] = {(uint32_t)handle, (uint32_t)p, len};
	uint32_t left = handle < 0 ? 1 : call(SYS_WRITE, arg);

	if (handle >= 0)
		board_close(handle);
	return left ? -1 : 0;
}

uint8_t *const board_memory = &link_memory;
const size_t board_memory_size = BOARD_MEMORY;

static _Noreturn void fault(void)
{
	board_print("processor fault\n");
	board_exit(3);
}

static uint32_t *stack_pointer(void)
{
	uint32_t *sp;

	__asm__ volatile("mov %0, sp" : "=r"(sp));
	return sp;
}

/* How deep the stack has been: what has been painted and is so no more. */
static void say_stack(void)
{
	uint32_t *p = &link_stack_low;

	while (*p == PAINT)
		p++;
	board_print("stack used:");
	say_number((int32_t)((uint8_t *)&link_stack_top - (uint8_t *)p));
	board_print("\n");
}

void board_reset(void)
{
	uint32_t *from = &link_data_from;
	int code;

	for (uint32_t *to = &link_data; to < &link_data_end; to++)
		*to = *from++;
	for (uint32_t *to = &link_bss; to < &link_bss_end; to++)
		*to = 0;
	for (uint32_t *p = &link_stack_low; p < stack_pointer() - 16; p++)
		*p = PAINT;
	code = selftest();
	say_stack();
	board_exit(code);
}

typedef void (*vector)(void);

__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
	(vector)&link_stack_top,
	board_reset,
	fault,
	fault,
	fault,
	fault,
	fault,
};
