/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/say.h - numbers in print, and checksums.
 */
#ifndef T_FIRMWARE_SAY_H
#define T_FIRMWARE_SAY_H

#include "t/firmware/board.h"

/* A space, then the number: eight hexadecimal digits, or decimal. */
void say_hex(uint32_t v);
void say_number(int32_t v);
/* The CRC-32 of gzip, begun with 0xffffffff and inverted at the end by the caller. */
uint32_t crc_add(uint32_t crc, const uint8_t *p, size_t len);

#endif
