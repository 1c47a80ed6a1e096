/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/model.c - what each sector of the disk may hold after a cut: what the last
 * operation left there that was durable, and what any later one leaves that had begun.
 *
 * Every sector that is written says which write it is of and which sector it is, all
 * over, so that what comes from elsewhere, or from before, is known as that.
 */
#include <stdio.h>
#include <stdlib.h>

#include "t/crash/crash.h"

#define TAG 16u

static const uint8_t zeroes[SECTOR];

void model_fill(uint32_t seq, uint64_t sector, uint8_t *buf)
{
	uint64_t mix = ((uint64_t)seq << 32 | sector) * 0x9e3779b97f4a7c15ull;

	thr_put_be32(buf, seq);
	thr_put_be32(buf + 4, (uint32_t)sector);
	thr_put_be64(buf + 8, mix ^ mix >> 29);
	for (unsigned at = TAG; at < SECTOR; at += TAG)
		memcpy(buf + at, buf, TAG);
}

void model_text(const struct model *m, uint32_t val, uint64_t sector, uint8_t *buf)
{
	if (!val)
		memset(buf, 0, SECTOR);
	else if (val >= VAL_BLOB)
		memcpy(buf, m->blob[val - VAL_BLOB], SECTOR);
	else
		model_fill(val, sector, buf);
}

int64_t model_value(const struct model *m, uint64_t sector, const uint8_t *buf)
{
	uint32_t seq = thr_be32(buf);
	uint8_t want[SECTOR];

	if (!memcmp(buf, zeroes, SECTOR))
		return 0;
	if (seq && seq < VAL_BLOB && thr_be32(buf + 4) == sector) {
		model_fill(seq, sector, want);
		if (!memcmp(buf, want, SECTOR))
			return seq;
	}
	for (unsigned i = 0; i < m->nblobs; i++)
		if (!memcmp(buf, m->blob[i], SECTOR))
			return VAL_BLOB + i;
	return -1;
}

static uint32_t blob_add(struct model *m, const uint8_t *buf)
{
	if (!(m->nblobs & (m->nblobs + 1))) {
		m->blob = realloc(m->blob, (size_t)(m->nblobs + 1) * 2 * SECTOR);
		THR_ASSERT(m->blob);
	}
	memcpy(m->blob[m->nblobs], buf, SECTOR);
	return VAL_BLOB + m->nblobs++;
}

void model_init(struct model *m, const struct crash_row *r)
{
	memset(m, 0, sizeof(*m));
	m->start_size = r->size;
	m->base = r->backing / SECTOR;
	for (uint64_t s = 0; s < m->base && s < SECTORS; s++)
		m->now[s] = s % 16 < 13 ? VAL_BASE : 0;
}

void model_free(struct model *m)
{
	for (unsigned i = 0; i < m->nops; i++)
		free(m->op[i].val);
	free(m->blob);
	free(m->touch);
}

static uint32_t splice(struct model *m, const struct op *o, uint64_t sector, uint32_t seq)
{
	uint64_t at = sector * SECTOR, lo = THR_MAX(o->off, at);
	uint64_t hi = THR_MIN(o->off + o->len, at + SECTOR);
	uint8_t buf[SECTOR], new[SECTOR];
	int64_t known;

	if (hi - lo == SECTOR)
		return seq;
	model_text(m, m->now[sector], sector, buf);
	model_text(m, seq, sector, new);
	memcpy(buf + (lo - at), new + (lo - at), hi - lo);
	known = model_value(m, sector, buf);
	return known >= 0 ? (uint32_t)known : blob_add(m, buf);
}

static void touch(struct op *o)
{
	o->sector = o->off / SECTOR;
	o->n = o->len ? (o->off + o->len + SECTOR - 1) / SECTOR - o->sector : 0;
	o->val = calloc(o->n + 1, sizeof(*o->val));
	THR_ASSERT(o->val && o->sector + o->n <= SECTORS);
}

void model_put(struct model *m, struct op *o, uint32_t seq)
{
	touch(o);
	for (uint64_t i = 0; i < o->n; i++) {
		o->val[i] = splice(m, o, o->sector + i, seq);
		m->now[o->sector + i] = o->val[i];
	}
}

int64_t model_take(struct model *m, struct op *o, const uint8_t *buf)
{
	touch(o);
	for (uint64_t i = 0; i < o->n; i++) {
		int64_t v = model_value(m, o->sector + i, buf + i * SECTOR);

		if (v < 0)
			return (int64_t)(o->sector + i);
		o->val[i] = (uint32_t)v;
		m->now[o->sector + i] = (uint32_t)v;
	}
	return -1;
}

/* ---- once all is recorded ---------------------------------------------------------- */

static bool flushes(const struct op *o)
{
	return o->kind == OP_FLUSH || o->kind == OP_COMMIT || o->kind == OP_REOPEN ||
	       o->kind == OP_REPAIR;
}

static uint64_t durable(const struct model *m, const struct crash_row *r, const struct op *o)
{
	if (flushes(o) || o->flags & BLK_FUA ||
		(o->kind == OP_RESIZE && r->flags & ROW_SYNC_SIZE))
		return o->ended;
	for (unsigned i = 0; i < m->nops; i++)
		if (flushes(&m->op[i]) && m->op[i].began > o->ended && m->op[i].ended != NEVER)
			return m->op[i].ended;
	return NEVER;
}

void model_settle(struct model *m, const struct crash_row *r)
{
	uint32_t at = 0;

	memset(m->first, 0, sizeof(m->first));
	for (unsigned i = 0; i < m->nops; i++) {
		m->op[i].durable = durable(m, r, &m->op[i]);
		for (uint64_t s = 0; s < m->op[i].n; s++)
			m->first[m->op[i].sector + s]++;
	}
	for (uint64_t s = 0; s <= SECTORS; s++) {
		at += m->first[s];
		m->first[s] = at;
	}
	free(m->touch);
	m->touch = malloc((at + 1) * sizeof(*m->touch));
	THR_ASSERT(m->touch);
	/* Backwards, so that each sector's come in order, and first[] ends at their start. */
	for (unsigned i = m->nops; i-- > 0;)
		for (uint64_t s = 0; s < m->op[i].n; s++)
			m->touch[--m->first[m->op[i].sector + s]] = (uint16_t)i;
}

static uint32_t value_at(const struct op *o, uint64_t sector)
{
	return o->val[sector - o->sector];
}

static uint32_t value_first(const struct model *m, uint64_t sector)
{
	return sector < m->base && sector % 16 < 13 ? VAL_BASE : 0;
}

bool model_allows(const struct model *m, uint64_t sector, uint32_t val, uint64_t at)
{
	uint32_t i = m->first[sector + 1];

	while (i-- > m->first[sector]) {
		const struct op *o = &m->op[m->touch[i]];

		if (o->began < at && value_at(o, sector) == val)
			return true;
		if (o->durable <= at)
			return false;
	}
	return value_first(m, sector) == val;
}

bool model_allows_size(
	const struct model *m, const struct crash_row *r, uint64_t size, uint64_t at)
{
	uint64_t least = m->start_size, most = m->start_size;
	bool found = size == m->start_size;

	for (unsigned i = 0; i < m->nops; i++) {
		const struct op *o = &m->op[i];

		if (!o->size || o->began >= at)
			continue;
		if (o->durable <= at) {
			found = false;
			least = most = o->size;
		}
		found |= o->size == size;
		least = THR_MIN(least, o->size);
		most = THR_MAX(most, o->size);
	}
	return found || (r->flags & ROW_ANY_SIZE && size >= least && size <= most);
}

static void explain_value(uint32_t val)
{
	if (!val)
		printf("zeroes");
	else if (val == VAL_BASE)
		printf("the base's");
	else if (val >= VAL_BLOB)
		printf("mixture %u", val - VAL_BLOB);
	else
		printf("write %u", val);
}

void model_explain(const struct model *m, uint64_t sector, uint64_t at)
{
	static const char *const names[] = {"write", "compressed write", "zero", "discard",
		"flush", "resize", "commit", "amend", "reopen", "cut", "repair"};

	printf("# sector %llu at %llu; at first ", (unsigned long long)sector,
		(unsigned long long)at);
	explain_value(value_first(m, sector));
	printf("\n");
	for (unsigned i = 0; i < m->nops; i++) {
		const struct op *o = &m->op[i];
		bool here = o->n && sector >= o->sector && sector < o->sector + o->n;

		if (!here && !flushes(o) && o->kind != OP_RESIZE && o->kind != OP_CUT)
			continue;
		printf("#   %u %s %llu+%llu flags %x, %llu to %llu, durable %lld", i + 1,
			names[o->kind], (unsigned long long)o->off, (unsigned long long)o->len,
			o->flags, (unsigned long long)o->began, (unsigned long long)o->ended,
			(long long)o->durable);
		if (here) {
			printf(": ");
			explain_value(value_at(o, sector));
		}
		printf("\n");
	}
}
