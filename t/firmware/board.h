/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/board.h - what the self-test needs of the machine that it runs on: a way
 * to say something, files of the host, memory, and an end. semihost.c has it for a
 * Cortex-M3 under a debugger (or QEMU), native.c for a process.
 */
#ifndef T_FIRMWARE_BOARD_H
#define T_FIRMWARE_BOARD_H

#include "thr/base.h"

/* The work of the self-test; its result is what board_exit() is called with. */
int selftest(void);

void board_print(const char *text);
_Noreturn void board_exit(int code);

/* Files of the host, for reading: a handle, or -1; 0, or -1 where not all was read. */
int board_open(const char *name);
int board_read(int handle, uint32_t off, void *buf, size_t len);
int64_t board_size(int handle);
void board_close(int handle);
/* Writes a file of the host anew. */
int board_save(const char *name, const void *p, size_t len);

/* Memory that the test may use as it likes, and how much. */
extern uint8_t *const board_memory;
extern const size_t board_memory_size;

/* A qcow2 image in read-only memory; length 0 where there is none. */
extern const uint8_t board_flash[];
extern const size_t board_flash_size;

#endif
