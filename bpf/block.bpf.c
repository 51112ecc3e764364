// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Trace mode: block I/O of the whole machine, because a disk is shared: who handed it to the block layer, how long it
 * was queued there and how long the device had it.  The wake-ups in its completion name it by its complete_ts.
 */
#include "follow.h"
#include "oncpu.h"
#include "segment.h"
#include "thread.h"

#define REQ_OP_MASK  0xff
#define REQ_OP_WRITE 1
/* A selected interval that has waited for a disk that long ago may do so again. */
#define RIVAL_REACH_NS 1000000000ULL

struct gendisk___numbers {
	int major;
	int first_minor;
} __attribute__((preserve_access_index));

struct block_device___disk {
	struct gendisk___numbers *bd_disk;
} __attribute__((preserve_access_index));

struct bio___request {
	struct block_device___disk *bi_bdev;
	u32 bi_opf;
	void *bi_private;
} __attribute__((preserve_access_index));

struct request___block {
	struct bio___request *bio;
	u64 __sector;
	u32 __data_len;
	u32 cmd_flags;
} __attribute__((preserve_access_index));

/* A bio that is under way. */
struct block_io {
	u64 queue_ts, issue_ts;
	u32 pid, tid;
};

/* LRU: a bio may end where nobody looks, or be merged into another one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct block_io);
} block_ios SEC(".maps");

/* What else uses a disk may be why intervals wait for it: what it is at is wanted then. */
static __always_inline struct thread *follow_rival(struct task_struct *task, u64 now)
{
	u64 disk_ts = *(volatile u64 *)&controls.disk_ts;
	struct cpu_context *cpu = this_cpu();

	return cpu && cfg_knobs.stacks && task->mm && now < disk_ts + RIVAL_REACH_NS ? follow_current(cpu) : NULL;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queue, void *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct block_io io = {.queue_ts = bpf_ktime_get_ns(), .pid = task->tgid, .tid = task->pid};
	struct thread *thread = thread_of(task);
	u64 key = (u64)bio;

	if (at_rest())
		return 0;
	if (!thread)
		thread = follow_rival(task, io.queue_ts);
	if (thread)
		io.tid = thread->tid;
	bpf_map_update_elem(&block_ios, &key, &io, BPF_ANY);
	if (!thread)
		task__name(io.pid, io.tid, task->comm);
	return 0;
}

/*
 * Of a bio that is more than the device takes at once the front goes off under an address of its own, time and again,
 * chained to what is left, which keeps the address that was queued.
 */
SEC("tp_btf/block_split")
int BPF_PROG(on_bio_split, void *bio)
{
	u64 key = (u64)bio, parent = (u64)BPF_CORE_READ((struct bio___request *)bio, bi_private);
	struct block_io *queued = parent ? bpf_map_lookup_elem(&block_ios, &parent) : NULL, front;

	if (!queued)
		return 0;
	/* A copy: making room for the front may take the other one's away. */
	front = *queued;
	bpf_map_update_elem(&block_ios, &key, &front, BPF_ANY);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_rq_issue, void *request)
{
	u64 key = (u64)BPF_CORE_READ((struct request___block *)request, bio);
	struct block_io *io = key ? bpf_map_lookup_elem(&block_ios, &key) : NULL;

	if (io && !io->issue_ts)
		io->issue_ts = bpf_ktime_get_ns();
	return 0;
}

static __always_inline u32 device_of(struct bio___request *bio)
{
	struct gendisk___numbers *disk = BPF_CORE_READ(bio, bi_bdev, bd_disk);

	return disk ? BPF_CORE_READ(disk, major) << 20 | (BPF_CORE_READ(disk, first_minor) & 0xfffff) : 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_rq_complete, void *rq, int error, unsigned int bytes)
{
	struct request___block *request = (void *)rq;
	struct trace_cpu *cpu = this_trace_cpu();
	struct bio___request *bio = BPF_CORE_READ(request, bio);
	u64 key = (u64)bio, now = bpf_ktime_get_ns();
	struct wl_block_record *record;
	struct block_io *io;

	if (!bio || !cpu || at_rest())
		return 0;
	/* Whoever is woken until the interrupt ends, or the next one completes, waited for this one. */
	cpu->io.complete_ts = now;
	io = bpf_map_lookup_elem(&block_ios, &key);
	record = ring__reserve(WL_LOSS_EDGE, WL_RECORD_BLOCK, sizeof(*record));
	if (!record)
		return 0;
	record->queue_ts = io ? io->queue_ts : 0;
	record->issue_ts = io ? io->issue_ts : 0;
	record->complete_ts = now;
	record->sector = BPF_CORE_READ(request, __sector);
	record->bytes = bytes;
	record->dev = device_of(bio);
	record->pid = io ? io->pid : 0;
	record->tid = io ? io->tid : 0;
	record->is_write = (BPF_CORE_READ(request, cmd_flags) & REQ_OP_MASK) == REQ_OP_WRITE;
	record->zero = 0;
	ring__submit(record);
	if (io)
		bpf_map_delete_elem(&block_ios, &key);
	return 0;
}
