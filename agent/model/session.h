/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys of the session table (all values are text; the newest row of a key holds):
 *   version            of whylate
 *   host               node name
 *   kernel             release
 *   machine            architecture and number of CPUs
 *   pid, comm, cmdline of the target
 *   begin_ts, end_ts   CLOCK_MONOTONIC, ns; end_ts moves on while the recording runs
 *   mono_anchor_ns, wall_anchor_ns  CLOCK_MONOTONIC and CLOCK_REALTIME at the same moment
 *   source             "sockets" or "functions"
 *   listeners          where the target listens, comma separated
 *   symbols            file of the symbol list
 *   protocols          by which requests have types, per listener: "tcp:80 http, tcp:81 unknown"; absent: none was
 * asked for hooks              feature:kind, comma separated hooks_missing      feature names, comma separated
 *   categories_unmeasured  category names, comma separated
 *   rate               selection, a fraction of 1, as it is now
 *   tail, baseline     retention
 *   windows, windows_selecting_ns, windows_attached_ns  of a recording in observation windows: how many, and for how
 *                      long in all, the time before the first one included if hooks were attached; intervals_seen is
 *                      then an estimate
 *   intervals_censored, censored_weight, censored_longest_ns  selected ones that were open when their hooks were
 *                      detached, at the end or before; what they stand for; the age of the oldest one picked up
 *   intervals_seen, intervals_selected, intervals_abandoned  counted in the kernel
 *   replies, replies_held, replies_held_window  replies of selected intervals over TCP; of them those whose last bytes
 *                      stayed in the socket after send(), as "NS:COUNT …", and how many of these met a closed window
 *   asks, asks_unsure  on connections that the target opened; those of which it was not certain which request asked
 *   records_received, rows_kept  counted by the agent: received = kept + passed over by retention
 *   agent_pids         the recorder's own processes, separated by spaces;
 *   cost_bpf_ns, cost_agent_ns, target_cpu_ns  what the recording cost and what the target used meanwhile;
 *                      no cost_bpf_ns where it could not be measured
 *   mode               "counters" or "trace"
 *   segment_records, wakeup_records, edge_records  trace: records that came out of the rings: emitted = these + lost
 *   segments_received, segments_written, wakeups_…, handoffs_…  trace: made of them and true; rows
 *   detail_forgotten, detail_impossible  trace: received = written + forgotten, for the three together
 *   stacks_hz          user stacks were sampled so often a second on each CPU
 *   stack_records, stack_waits, stack_python  records of stacks, of ends of waits, and of Python frames of a stack,
 *                      that came out of the rings
 *   stack_python_missed  stacks of Python interpreters without Python frames: of threads that run none, and of
 *                      processes before their interpreter was found
 *   stacks_complete, stacks_guessed  of the stacks: those up to the beginning of the thread, those with guessed frames
 *   invocation_records, invocations_written, invocations_forgotten, invocations_impossible  where functions are probed:
 *                      records that came out of the rings: emitted = these + lost; records = written + forgotten,
 *                      of which the impossible ones cannot be true
 *   probe_unreadable   hits at which an expression of the symbol list could not be read
 *   graph_height       of the highest function of the target that was met while probes were chosen, probed or not
 *   hw_rotations       sets of hardware counters that take turns
 *   hw_epoch_ns        how long one of them is on, on average so far; absent where there is only one
 *   round.N            of `diagnose --rounds`: its begin and end, CLOCK_MONOTONIC ns, with a blank between; round 0 is
 *                      before functions were probed
 *   round.N.intervals_per_s, round.N.probes, round.N.cost_share  rate of requests in it, functions probed, share of
 *                      the target's CPU time that their probes cost meanwhile
 *   setting.NAME, cgroup.NAME, cpu_model  settings of the host, limits of the target's cgroup (session/settings.c)
 *   note.N             a line for the reader
 */
#ifndef WHYLATE_MODEL_SESSION_H
#define WHYLATE_MODEL_SESSION_H

/* Table `probe`, column `why`: the function was let go because it was called too often for the budget. */
#define PROBE_OVER_BUDGET "over the budget"

/* Likewise: a library was loaded that makes return probes unsafe, and its end cannot be seen otherwise. */
#define PROBE_UNSAFE "its return probe is no longer safe"

#define SESSION_GRAPH_HEIGHT "graph_height"

#define SESSION_REPLIES        "replies"
#define SESSION_REPLIES_HELD   "replies_held"
#define SESSION_HELD_BY_WINDOW "replies_held_window"
#define SESSION_RESENT         "replies_resent"

#define SESSION_HW_ROTATIONS "hw_rotations"
#define SESSION_HW_EPOCH_NS  "hw_epoch_ns"

#define SESSION_TEXT_MAX 4096

#endif
