/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/inflate.h - a codec that an embedder brings along: inflate in the
 * embedder's own code, for images with compressed clusters.
 */
#ifndef T_FIRMWARE_INFLATE_H
#define T_FIRMWARE_INFLATE_H

#include "cz/cz.h"

#ifdef BOARD_INFLATE
/* Makes it the codec of zlib's streams. */
void inflate_register(void);
#else
static inline void inflate_register(void)
{
}
#endif

#endif
