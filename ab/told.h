/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the guest's PID 1 tells the plugin of ab/profile something: by reading from these
 * addresses. The n-th stands for a byte of value n. That takes no device, and a tenth of a second
 * for what would take ten on the console.
 */
#ifndef TOLD_H
#define TOLD_H

/* Far from all that static programs use, and below 39 bits, the fewest that arm64 has. */
#define TOLD		0x1000000000
#define TOLD_SIZE	256

#endif /* TOLD_H */
