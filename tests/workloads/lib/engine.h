/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The C++ part of the workload `cplusplus`: its request, for C. */
#ifndef WORKLOADS_LIB_ENGINE_H
#define WORKLOADS_LIB_ENGINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Answers one request; adds to *planted_ns what its slow part was to take. */
uint64_t engine_answer(uint64_t dice, double steps_per_ns, uint64_t *planted_ns);

#ifdef __cplusplus
}
#endif

#endif
