// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/ompi_wake: a process of a job sleeps, another process of the same job
 * and user on this node wakes exactly that one.
 *
 * Objects
 *   struct ompi_wake_file	one per open file. Once joined, the sleeper of
 *				one rank, or an observer without a rank.
 *   struct ompi_wake_space	one per user and job. Found by a join, kept by
 *				the files that joined, gone with the last.
 *
 * Ownership
 *   spaces, space->files	spaces_lock
 *   space->ranks		its own lock; lookups under RCU
 *   file->space		written once, under file->join_lock
 *   file->wakes		wakers add, readers take all of it
 *
 * Orders
 *   J1 file->space release -> acquire in read, write and poll: the rank and
 *      the space's members before the pointer.
 *   W1 wakes is raised before the wait queue's lock is taken; a reader looks
 *      at wakes after it has queued itself under that lock. So a waker finds
 *      the reader in the queue, or the reader finds the wake.
 *   R1 a file leaves space->ranks before it is given to call_rcu(): a waker
 *      that still sees it raises a count that nobody reads.
 *
 * A write takes no sleeping lock. A file needs nothing else to be released
 * than its last reference to go, in whatever way its process ends.
 */
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "ompi_wake.h"

static unsigned int ranks_max = 4096;
module_param(ranks_max, uint, 0644);
MODULE_PARM_DESC(ranks_max, "Ranks per job on this node (4096); for later joins");

static unsigned int jobs_max = 64;
module_param(jobs_max, uint, 0644);
MODULE_PARM_DESC(jobs_max, "Jobs per user on this node (64); for later joins");

struct ompi_wake_space {
	struct hlist_node node;
	kuid_t user;
	u64 job;
	unsigned int files;
	struct xarray ranks;	/* struct ompi_wake_file by rank */
};

struct ompi_wake_file {
	wait_queue_head_t sleepers;
	atomic64_t wakes;
	struct ompi_wake_space *space;
	bool observer;
	u32 rank;
	struct mutex join_lock;	/* one join at a time */
	struct rcu_head rcu;
};

/* By user alone, so that one chain holds all jobs that count for a user. */
static DEFINE_HASHTABLE(spaces, 6);
static DEFINE_MUTEX(spaces_lock);

/* Own caches: what is left in one at its end is reported by the kernel. */
static struct kmem_cache *file_cache;
static struct kmem_cache *space_cache;

/* Find the space of @user and @job or make it, and count one file more. */
static struct ompi_wake_space *space_get(kuid_t user, u64 job)
{
	struct ompi_wake_space *space, *fresh;
	unsigned int jobs = 0;

	fresh = kmem_cache_zalloc(space_cache, GFP_KERNEL);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	fresh->user = user;
	fresh->job = job;
	fresh->files = 1;
	xa_init_flags(&fresh->ranks, XA_FLAGS_ACCOUNT);

	mutex_lock(&spaces_lock);
	hash_for_each_possible(spaces, space, node, __kuid_val(user)) {
		if (!uid_eq(space->user, user))
			continue;
		if (space->job == job) {
			space->files++;
			goto found;
		}
		jobs++;
	}
	space = ERR_PTR(-EDQUOT);
	if (jobs < READ_ONCE(jobs_max)) {
		hash_add(spaces, &fresh->node, __kuid_val(user));
		space = fresh;
		fresh = NULL;
	}
found:
	mutex_unlock(&spaces_lock);
	if (fresh)
		kmem_cache_free(space_cache, fresh);
	return space;
}

static void space_put(struct ompi_wake_space *space)
{
	bool last;

	mutex_lock(&spaces_lock);
	last = --space->files == 0;
	if (last)
		hash_del(&space->node);
	mutex_unlock(&spaces_lock);
	if (!last)
		return;
	xa_destroy(&space->ranks);
	kmem_cache_free(space_cache, space);
}

static int ompi_wake_open(struct inode *inode, struct file *filp)
{
	struct ompi_wake_file *file;

	file = kmem_cache_zalloc(file_cache, GFP_KERNEL);
	if (!file)
		return -ENOMEM;
	init_waitqueue_head(&file->sleepers);
	mutex_init(&file->join_lock);
	filp->private_data = file;
	/*
	 * No file position, hence no lock of it: a write must not wait for a
	 * read that sleeps on the same, inherited descriptor.
	 */
	return stream_open(inode, filp);
}

static void file_free(struct rcu_head *rcu)
{
	kmem_cache_free(file_cache, container_of(rcu, struct ompi_wake_file, rcu));
}

static int ompi_wake_release(struct inode *inode, struct file *filp)
{
	struct ompi_wake_file *file = filp->private_data;
	struct ompi_wake_space *space = file->space;

	if (space) {
		if (!file->observer)
			xa_erase(&space->ranks, file->rank);
		space_put(space);
	}
	call_rcu(&file->rcu, file_free);	/* R1 */
	return 0;
}

/* Called with file->join_lock held, on a file that has not joined. */
static int join_locked(struct ompi_wake_file *file, kuid_t user,
		       const struct ompi_wake_join *join)
{
	struct ompi_wake_space *space;
	int error = 0;

	space = space_get(user, join->job);
	if (IS_ERR(space))
		return PTR_ERR(space);
	file->observer = join->flags & OMPI_WAKE_OBSERVER;
	file->rank = join->rank;
	if (!file->observer)
		error = xa_insert(&space->ranks, join->rank, file, GFP_KERNEL);
	if (error) {
		space_put(space);
		return error == -EBUSY ? -EEXIST : error;
	}
	smp_store_release(&file->space, space);	/* J1 */
	return 0;
}

static long join_from_user(struct ompi_wake_file *file, kuid_t user,
			   unsigned int bytes, const void __user *argument)
{
	const size_t head = offsetof(struct ompi_wake_join, job);
	struct ompi_wake_join join;
	int error;

	/* The rest may look different in another version: not read before. */
	if (bytes < head)
		return -EINVAL;
	if (copy_from_user(&join, argument, head))
		return -EFAULT;
	if (join.version != OMPI_WAKE_VERSION)
		return -EPROTO;
	if (join.bytes != sizeof(join) || bytes != sizeof(join))
		return -EINVAL;
	if (copy_from_user((void *)&join + head, argument + head, sizeof(join) - head))
		return -EFAULT;
	if (join.flags & ~OMPI_WAKE_OBSERVER)
		return -EINVAL;
	if (join.flags & OMPI_WAKE_OBSERVER ? join.rank != 0 :
					      join.rank >= READ_ONCE(ranks_max))
		return -ERANGE;

	error = mutex_lock_interruptible(&file->join_lock);
	if (error)
		return error;
	error = file->space ? -EBUSY : join_locked(file, user, &join);
	mutex_unlock(&file->join_lock);
	return error;
}

static long ompi_wake_ioctl(struct file *filp, unsigned int command,
			    unsigned long argument)
{
	/* The size is part of the number: another version's is another. */
	if (_IOC_TYPE(command) != _IOC_TYPE(OMPI_WAKE_JOIN) ||
	    _IOC_NR(command) != _IOC_NR(OMPI_WAKE_JOIN) ||
	    _IOC_DIR(command) != _IOC_DIR(OMPI_WAKE_JOIN))
		return -ENOTTY;
	/* Of the opener: a program with other rights may have inherited it. */
	return join_from_user(filp->private_data, filp->f_cred->euid,
			      _IOC_SIZE(command), (const void __user *)argument);
}

static void wake(struct ompi_wake_file *file, u64 times)
{
	atomic64_add(times, &file->wakes);	/* W1 */
	wake_up_interruptible_poll(&file->sleepers, EPOLLIN | EPOLLRDNORM);
}

static u64 take_wakes(struct ompi_wake_file *file)
{
	return atomic64_xchg(&file->wakes, 0);
}

static ssize_t ompi_wake_read(struct file *filp, char __user *buffer,
			      size_t bytes, loff_t *position)
{
	struct ompi_wake_file *file = filp->private_data;
	u64 wakes;
	int error;

	if (!smp_load_acquire(&file->space))	/* J1 */
		return -ENOTCONN;
	if (file->observer || bytes < sizeof(wakes))
		return -EINVAL;
	wakes = take_wakes(file);
	if (!wakes && filp->f_flags & O_NONBLOCK)
		return -EAGAIN;
	if (!wakes) {
		/* Several threads may share the file: one takes all wakes. */
		error = wait_event_interruptible_exclusive(file->sleepers,
							   (wakes = take_wakes(file)));
		if (error)
			return error;
	}
	if (copy_to_user(buffer, &wakes, sizeof(wakes))) {
		wake(file, wakes);	/* not lost: somebody else may read it */
		return -EFAULT;
	}
	return sizeof(wakes);
}

/* Returns how many of the ranks were woken: all before the first stranger. */
static unsigned int wake_ranks(struct ompi_wake_space *space, const u32 *ranks,
			       unsigned int count)
{
	struct ompi_wake_file *sleeper;
	unsigned int i;

	rcu_read_lock();
	for (i = 0; i < count; i++) {
		sleeper = xa_load(&space->ranks, ranks[i]);
		if (!sleeper)
			break;
		wake(sleeper, 1);
	}
	rcu_read_unlock();
	return i;
}

static ssize_t ompi_wake_write(struct file *filp, const char __user *buffer,
			       size_t bytes, loff_t *position)
{
	struct ompi_wake_file *file = filp->private_data;
	struct ompi_wake_space *space = smp_load_acquire(&file->space);	/* J1 */
	unsigned int count, woken, done = 0;
	int error = 0;
	u32 ranks[64];

	if (!space)
		return -ENOTCONN;
	if (bytes % sizeof(*ranks))
		return -EINVAL;
	count = min_t(size_t, bytes / sizeof(*ranks), OMPI_WAKE_BATCH);
	while (done < count && !error) {
		unsigned int part = min_t(size_t, count - done, ARRAY_SIZE(ranks));

		if (copy_from_user(ranks, buffer + done * sizeof(*ranks),
				   part * sizeof(*ranks))) {
			error = -EFAULT;
			break;
		}
		woken = wake_ranks(space, ranks, part);
		if (woken < part)
			error = -ESRCH;
		done += woken;
		cond_resched();
	}
	return done ? done * sizeof(*ranks) : error;
}

static __poll_t ompi_wake_poll(struct file *filp, poll_table *table)
{
	struct ompi_wake_file *file = filp->private_data;
	__poll_t mask = 0;

	poll_wait(filp, &file->sleepers, table);
	if (smp_load_acquire(&file->space))	/* J1 */
		mask |= EPOLLOUT | EPOLLWRNORM;
	if (atomic64_read(&file->wakes))
		mask |= EPOLLIN | EPOLLRDNORM;
	return mask;
}

static void ompi_wake_show_fdinfo(struct seq_file *out, struct file *filp)
{
	struct ompi_wake_file *file = filp->private_data;
	struct ompi_wake_space *space = smp_load_acquire(&file->space);	/* J1 */

	if (!space)
		return;
	seq_printf(out, "ompi_wake-job:\t%llu\n", space->job);
	if (file->observer)
		return;
	seq_printf(out, "ompi_wake-rank:\t%u\n", file->rank);
	seq_printf(out, "ompi_wake-count:\t%llu\n", (u64)atomic64_read(&file->wakes));
}

static const struct file_operations ompi_wake_operations = {
	.owner = THIS_MODULE,
	.open = ompi_wake_open,
	.release = ompi_wake_release,
	.read = ompi_wake_read,
	.write = ompi_wake_write,
	.poll = ompi_wake_poll,
	.unlocked_ioctl = ompi_wake_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.show_fdinfo = ompi_wake_show_fdinfo,
};

/* For root alone, until the site's udev rule opens it. */
static struct miscdevice ompi_wake_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ompi_wake",
	.fops = &ompi_wake_operations,
	.mode = 0600,
};

static int __init ompi_wake_init(void)
{
	int error = -ENOMEM;

	file_cache = KMEM_CACHE(ompi_wake_file, SLAB_ACCOUNT);
	if (!file_cache)
		return error;
	space_cache = KMEM_CACHE(ompi_wake_space, SLAB_ACCOUNT);
	if (!space_cache)
		goto no_space_cache;
	error = misc_register(&ompi_wake_device);
	if (error)
		goto no_device;
	return 0;

no_device:
	kmem_cache_destroy(space_cache);
no_space_cache:
	kmem_cache_destroy(file_cache);
	return error;
}

static void __exit ompi_wake_exit(void)
{
	misc_deregister(&ompi_wake_device);
	rcu_barrier();	/* file_free() of the last files */
	kmem_cache_destroy(space_cache);
	kmem_cache_destroy(file_cache);
}

module_init(ompi_wake_init);
module_exit(ompi_wake_exit);

MODULE_AUTHOR("the overlap developers");
MODULE_DESCRIPTION("Wake exactly one sleeping process of a job on this node");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
