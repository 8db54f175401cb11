/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause */
/*
 * What user space and the kernel module ompi_wake share. See ompi_wake(4).
 *
 * A process opens OMPI_WAKE_DEVICE and joins a space with OMPI_WAKE_JOIN. A
 * space belongs to one user (the effective user id that opened the file) and
 * one job; it has at most one sleeper for each rank.
 *
 *   read   one __u64: how often this rank was woken since the last read;
 *          sleeps while that is 0
 *   write  an array of __u32: the ranks to wake, all of the writer's space
 *   poll   readable while the count is not 0
 */
#ifndef OMPI_WAKE_H
#define OMPI_WAKE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define OMPI_WAKE_DEVICE "/dev/ompi_wake"

/* Raised by every change that a program of the version before would notice. */
#define OMPI_WAKE_VERSION 1

/* Join without a rank: may wake others and cannot be woken. rank must be 0. */
#define OMPI_WAKE_OBSERVER 0x1u

/* A write takes at most so many ranks; a longer one returns short. */
#define OMPI_WAKE_BATCH 1024

/**
 * struct ompi_wake_join - argument of OMPI_WAKE_JOIN
 * @version:	OMPI_WAKE_VERSION
 * @bytes:	sizeof(struct ompi_wake_join)
 * @job:	number of the job, any value
 * @rank:	number of this process among those of the job on this node
 * @flags:	0 or OMPI_WAKE_OBSERVER
 *
 * The first two members stay where they are in every version.
 */
struct ompi_wake_join {
	__u32 version;
	__u32 bytes;
	__u64 job;
	__u32 rank;
	__u32 flags;
};

#define OMPI_WAKE_JOIN _IOW(0xE7, 0x01, struct ompi_wake_join)

#endif
