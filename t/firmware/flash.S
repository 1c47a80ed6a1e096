/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/flash.S - an image among the constants. FLASH_IMAGE is its file. */
	.section .rodata.flash, "a"
	.balign 8
	.global board_flash
board_flash:
#ifdef FLASH_IMAGE
	.incbin FLASH_IMAGE
#endif
flash_end:
	.balign 8
	.global board_flash_size
board_flash_size:
#ifdef __LP64__
	.quad flash_end - board_flash
#else
	.long flash_end - board_flash
#endif
	.section .note.GNU-stack, "", %progbits
