/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/serpent_box.h - the eight S-boxes of Serpent and their inverses as logic, of
 * cz/serpent.c alone. x->w[i] holds bit i of the inputs and then of the outputs. The
 * expressions, 14 to 18 operations each, were found by a search of our own from the
 * tables in the paper (appendix A.5) and checked against them for all inputs.
 */
#ifndef CZ_SERPENT_BOX_H
#define CZ_SERPENT_BOX_H

#include "cz/private.h"

typedef uint32_t lane __attribute__((vector_size(16)));

struct quad {
	lane w[4];
};

static inline void box0(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = b ^ (a & d);
	lane t2 = c ^ (a ^ d);
	lane t3 = t1 ^ t2;
	lane t4 = ~t3;
	lane t5 = c & t2;
	lane t6 = (t1 | t5) ^ (d | t4);
	lane t7 = (~a & t4) ^ (~t5 & t1);

	x->w[0] = t7;
	x->w[1] = t6;
	x->w[2] = (t6 | t7) ^ (c ^ t4);
	x->w[3] = t3;
}

static inline void box1(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = ~(a ^ b);
	lane t2 = a | t1;
	lane t3 = (c ^ d) ^ t2;
	lane t4 = d | t1;
	lane t5 = (a ^ (~b & c)) ^ (t3 & t4);
	lane t6 = b ^ t4;
	lane t7 = (t2 ^ t6) ^ (c ^ t5);

	x->w[0] = (~t5 & t7) ^ t6;
	x->w[1] = t7;
	x->w[2] = t3;
	x->w[3] = t5;
}

static inline void box2(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = d ^ (a & c);
	lane t2 = (b ^ c) ^ t1;
	lane t3 = a ^ t2;
	lane t4 = ~(~b & t1);
	lane t5 = t3 ^ t4;
	lane t6 = ~t1 & c;
	lane t7 = t6 | (~(t1 ^ t5) & t4);

	x->w[0] = t2;
	x->w[1] = t7;
	x->w[2] = (t3 | t7) ^ t6;
	x->w[3] = t5;
}

static inline void box3(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = a & b;
	lane t2 = a | d;
	lane t3 = t1 ^ t2;
	lane t4 = (b ^ (a & d)) ^ (c | t3);
	lane t5 = (t2 & t4) ^ (c ^ t1);
	lane t6 = (t3 | t4) ^ (a ^ t5);

	x->w[0] = (~t5 & t6) ^ t3;
	x->w[1] = t6;
	x->w[2] = t5;
	x->w[3] = t4;
}

static inline void box4(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = a ^ d;
	lane t2 = ~t1;
	lane t3 = c ^ (d | t2);
	lane t4 = (b | t1) ^ t3;
	lane t5 = (~b & t4) ^ t2;
	lane t6 = a ^ t3;
	lane t7 = t4 & t6;

	x->w[0] = t4;
	x->w[1] = (~t5 & t7) ^ (b ^ t6);
	x->w[2] = t7 ^ (b ^ t2);
	x->w[3] = t5;
}

static inline void box5(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = a ^ b;
	lane t2 = ~t1;
	lane t3 = ~d & t2;
	lane t4 = c ^ (~b & a);
	lane t5 = t3 ^ t4;
	lane t6 = d ^ t2;
	lane t7 = t6 ^ (~(b ^ t3) & t5);

	x->w[0] = t5;
	x->w[1] = (~d & t5) ^ t1;
	x->w[2] = t7;
	x->w[3] = (t6 & t7) ^ (a ^ t4);
}

static inline void box6(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = a ^ d;
	lane t2 = c ^ (a & d);
	lane t3 = t2 ^ ~b;
	lane t4 = ~t2 & a;
	lane t5 = ~(~t1 & b) & t3;
	lane t6 = (d ^ t4) ^ t5;
	lane t7 = (b ^ t4) ^ (t1 | t5);

	x->w[0] = t6;
	x->w[1] = t3;
	x->w[2] = t7;
	x->w[3] = (~t6 & t7) ^ t2;
}

static inline void box7(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = ~d & a;
	lane t2 = ~a ^ (c | d);
	lane t3 = ~b & c;
	lane t4 = c ^ (b ^ t1);
	lane t5 = (a & t3) ^ t4;
	lane t6 = t2 | t4;
	lane t7 = t6 ^ (d ^ t3);
	lane t8 = ~t1 & t7;

	x->w[0] = t7;
	x->w[1] = (a ^ t6) ^ (b ^ t8);
	x->w[2] = (t2 ^ t5) ^ t8;
	x->w[3] = t5;
}

static inline void inv0(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = a ^ b;
	lane t2 = ~t1 & d;
	lane t3 = c ^ (~b & a);
	lane t4 = (b ^ ~d) ^ t3;
	lane t5 = (t1 ^ (b & c)) ^ (t2 | t4);
	lane t6 = t2 ^ t3;

	x->w[0] = t5;
	x->w[1] = (t5 | t6) ^ (d ^ t4);
	x->w[2] = t4;
	x->w[3] = t6 ^ t5;
}

static inline void inv1(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = c ^ d;
	lane t2 = t1 ^ (a ^ (b & d));
	lane t3 = ~(b ^ d) & a;
	lane t4 = t1 ^ t3;
	lane t5 = (t2 & t4) ^ (b ^ t3);
	lane t6 = ~(t4 ^ t5);

	x->w[0] = t6;
	x->w[1] = t5;
	x->w[2] = (t4 | t6) ^ (c ^ t2);
	x->w[3] = t2;
}

static inline void inv2(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = c & d;
	lane t2 = t1 ^ (b | d);
	lane t3 = b ^ (c ^ t1);
	lane t4 = (a & t2) ^ t3;
	lane t5 = a ^ t4;
	lane t6 = t5 ^ (~t2);
	lane t7 = (t2 | t3) ^ (a ^ d);

	x->w[0] = t7;
	x->w[1] = t4;
	x->w[2] = t6;
	x->w[3] = (~t7 & t6) ^ t5;
}

static inline void inv3(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = c ^ d;
	lane t2 = a | b;
	lane t3 = a ^ (~c & b);
	lane t4 = ~d & t3;
	lane t5 = b ^ t1;
	lane t6 = t4 ^ t5;
	lane t7 = d ^ t2;
	lane t8 = (t6 | (t2 ^ t4)) ^ t3;

	x->w[0] = t6;
	x->w[1] = t8;
	x->w[2] = (t1 ^ t8) ^ (~t6 & t7);
	x->w[3] = (~t7 & t5) ^ t3;
}

static inline void inv4(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = c & d;
	lane t2 = a & (b | d);
	lane t3 = b ^ t1;
	lane t4 = t3 ^ (c ^ t2);
	lane t5 = d ^ t4;
	lane t6 = t5 ^ (~a | t3);

	x->w[0] = t6;
	x->w[1] = (~a & t5) ^ t3;
	x->w[2] = (~t4 & t6) ^ (t1 | t2);
	x->w[3] = t4;
}

static inline void inv5(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = ~b & c;
	lane t2 = d ^ t1;
	lane t3 = ~(b & d) & a;
	lane t4 = t3 ^ (c ^ t2);
	lane t5 = b ^ t4;
	lane t6 = (a & t2) ^ t5;

	x->w[0] = t4;
	x->w[1] = t6;
	x->w[2] = (~t6 & t4) ^ (t1 | t3);
	x->w[3] = (~t2) ^ (~a & t5);
}

static inline void inv6(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = d ^ (~a & c);
	lane t2 = ~b ^ t1;
	lane t3 = ~t1 & (a ^ c);
	lane t4 = (a ^ (b | c)) ^ (t2 | t3);
	lane t5 = (b ^ t3) ^ (c ^ t4);

	x->w[0] = t4;
	x->w[1] = t2;
	x->w[2] = (t4 & t5) ^ t1;
	x->w[3] = t5;
}

static inline void inv7(struct quad *x)
{
	lane a = x->w[0], b = x->w[1], c = x->w[2], d = x->w[3];
	lane t1 = c & d;
	lane t2 = c | d;
	lane t3 = b ^ t2;
	lane t4 = a & d;
	lane t5 = t3 | t4;
	lane t6 = (t1 | (~a & c)) ^ t5;
	lane t7 = (b & t5) ^ (a ^ (~t1));
	lane t8 = (t4 | t7) ^ t3;

	x->w[0] = t7;
	x->w[1] = t8;
	x->w[2] = t6;
	x->w[3] = (t2 ^ t4) ^ (~t8 & t6);
}

#endif
