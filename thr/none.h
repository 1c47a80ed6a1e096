/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/none.h - thr for one thread of control (CONFIG_THR_NONE): everything is
 * direct. Included by thr/thr.h, which has the contracts.
 */
#ifndef THR_NONE_H
#define THR_NONE_H

#ifdef __cplusplus
extern "C" {
#endif

struct thr_exec;
struct thr_pool;

struct thr_mutex {
	bool held;
};

static inline void thr_mutex_init(struct thr_mutex *m)
{
	m->held = false;
}

static inline bool thr_mutex_trylock(struct thr_mutex *m)
{
	bool was = m->held;

	m->held = true;
	return !was;
}

static inline void thr_mutex_lock(struct thr_mutex *m)
{
	THR_ASSERT(thr_mutex_trylock(m));
}

static inline void thr_mutex_unlock(struct thr_mutex *m)
{
	THR_ASSERT(m->held);
	m->held = false;
}

struct thr_cond {
	char unused;
};

static inline void thr_cond_init(struct thr_cond *c)
{
	c->unused = 0;
}

static inline void thr_cond_wait(struct thr_cond *c, struct thr_mutex *m)
{
	(void)c;
	(void)m;
	thr_panic("a wait with nobody to end it");
}

static inline void thr_cond_signal(struct thr_cond *c)
{
	(void)c;
}

static inline void thr_cond_broadcast(struct thr_cond *c)
{
	(void)c;
}

struct thr_rwlock {
	uint16_t readers;
	bool writer;
};

static inline void thr_rwlock_init(struct thr_rwlock *l)
{
	l->readers = 0;
	l->writer = false;
}

static inline void thr_rwlock_rdlock(struct thr_rwlock *l)
{
	THR_ASSERT(!l->writer);
	l->readers++;
}

static inline void thr_rwlock_rdunlock(struct thr_rwlock *l)
{
	THR_ASSERT(l->readers);
	l->readers--;
}

static inline void thr_rwlock_wrlock(struct thr_rwlock *l)
{
	THR_ASSERT(!l->writer && !l->readers);
	l->writer = true;
}

static inline void thr_rwlock_wrunlock(struct thr_rwlock *l)
{
	THR_ASSERT(l->writer);
	l->writer = false;
}

struct thr_sem {
	uint64_t count;
};

static inline void thr_sem_init(struct thr_sem *s, uint64_t count)
{
	s->count = count;
}

static inline void thr_sem_down(struct thr_sem *s, uint64_t n)
{
	THR_ASSERT(s->count >= n);
	s->count -= n;
}

static inline void thr_sem_up(struct thr_sem *s, uint64_t n)
{
	s->count += n;
}

struct thr_budget {
	uint64_t left;
	uint64_t total;
};

static inline void thr_budget_init(struct thr_budget *b, uint64_t bytes)
{
	b->left = bytes;
	b->total = bytes;
}

static inline void thr_budget_take(struct thr_budget *b, uint64_t n)
{
	n = THR_MIN(n, b->total);
	THR_ASSERT(b->left >= n);
	b->left -= n;
}

static inline void thr_budget_give(struct thr_budget *b, uint64_t n)
{
	b->left += THR_MIN(n, b->total);
}

struct thr_seq {
	uint64_t next;
	uint64_t turn;
	bool cancelled;
};
#define THR_SEQ_WINDOW 256

static inline void thr_seq_init(struct thr_seq *s)
{
	s->next = 0;
	s->turn = 0;
	s->cancelled = false;
}

static inline uint64_t thr_seq_take(struct thr_seq *s)
{
	return s->next++;
}

static inline int thr_seq_enter(struct thr_seq *s, uint64_t ticket)
{
	THR_ASSERT(s->turn == ticket);
	return s->cancelled ? -THR_ECANCELED : 0;
}

static inline void thr_seq_pass(struct thr_seq *s, uint64_t ticket)
{
	THR_ASSERT(s->turn == ticket);
	s->turn++;
}

static inline void thr_seq_cancel(struct thr_seq *s)
{
	s->cancelled = true;
}

struct thr_group {
	int err;
};

static inline void thr_group_init(struct thr_group *g)
{
	g->err = 0;
}

static inline void thr_group_cancel(struct thr_group *g, int err)
{
	if (!g->err)
		g->err = err;
}

static inline bool thr_group_cancelled(struct thr_group *g)
{
	return g->err != 0;
}

static inline int thr_group_spawn(
	struct thr_group *g, struct thr_exec *e, int (*fn)(void *arg), void *arg)
{
	int err = fn(arg);

	(void)e;
	if (err)
		thr_group_cancel(g, err);
	return 0;
}

static inline int thr_group_wait(struct thr_group *g)
{
	return g->err;
}

static inline int thr_offload(int (*fn)(void *arg), void *arg)
{
	return fn(arg);
}

static inline struct thr_exec *thr_exec_self(void)
{
	return NULL;
}

static inline struct thr_pool *thr_pool_self(void)
{
	return NULL;
}

static inline unsigned thr_pool_count(const struct thr_pool *p)
{
	(void)p;
	return 1;
}

static inline struct thr_exec *thr_pool_exec(struct thr_pool *p, unsigned i)
{
	(void)p;
	(void)i;
	return NULL;
}

static inline bool thr_in_fiber(void)
{
	return false;
}

static inline void thr_yield(void)
{
}

/* Not in firmware, which has no clock that we know of. */
uint64_t thr_now(void);
void thr_sleep(uint64_t ns);

#define THR_NO_TICKET UINT64_MAX
static inline void thr_fiber_ticket(uint64_t ticket)
{
	(void)ticket;
}

static inline void thr_give_way(void)
{
}

#ifdef __cplusplus
}
#endif
#endif
