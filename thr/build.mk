# SPDX-License-Identifier: BSD-2-Clause
# thr-y: the objects of this room; thr-lib-SYMBOL: a library (scripts/libs) that CONFIG_SYMBOL needs.
thr-$(CONFIG_HOSTED) += heap.o panic.o clock.o
thr-$(CONFIG_HOSTED) += $(if $(CONFIG_THR_FIBERS),,sleep_none.o)

thr-$(CONFIG_THR_FIBERS) += exec.o fiber.o stack.o pool.o thread.o pq.o sleep.o remote.o
thr-$(CONFIG_THR_FIBERS) += wait.o mutex.o cond.o rwlock.o sem.o seq.o group.o offload.o fd.o

# How fibers are switched: assembly where there is some for the target.
thr-arch := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
thr-asm  := $(if $(CONFIG_THR_UCONTEXT),,$(filter x86_64 aarch64,$(thr-arch)))
thr-$(CONFIG_THR_FIBERS) += switch_$(or $(thr-asm),ucontext).o
