/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/native.c - the board: a process of the host, so that what the firmware says
 * can be compared with what the same code says where sanitizers run.
 */
#include <stdio.h>
#include <stdlib.h>

#include "t/firmware/board.h"

static FILE *files[16];
static uint8_t memory[BOARD_MEMORY] __attribute__((aligned(512)));

uint8_t *const board_memory = memory;
const size_t board_memory_size = sizeof(memory);

void board_print(const char *text)
{
	fputs(text, stdout);
}

_Noreturn void board_exit(int code)
{
	exit(code);
}

int board_open(const char *name)
{
	for (int i = 0; i < (int)THR_ARRAY_SIZE(files); i++) {
		if (files[i])
			continue;
		files[i] = fopen(name, "rb");
		return files[i] ? i : -1;
	}
	return -1;
}

int board_read(int handle, uint32_t off, void *buf, size_t len)
{
	if (fseek(files[handle], (long)off, SEEK_SET))
		return -1;
	return fread(buf, 1, len, files[handle]) == len ? 0 : -1;
}

int64_t board_size(int handle)
{
	return fseek(files[handle], 0, SEEK_END) ? -1 : ftell(files[handle]);
}

void board_close(int handle)
{
	fclose(files[handle]);
	files[handle] = NULL;
}

int board_save(const char *name, const void *p, size_t len)
{
	FILE *f = fopen(name, "wb");
	int err = !f || fwrite(p, 1, len, f) != len;

	if (f && fclose(f))
		err = 1;
	return err ? -1 : 0;
}

int main(void)
{
	board_exit(selftest());
}
