// SPDX-License-Identifier: GPL-2.0-or-later
#define SUBJECT o3
#include "section_subject.h"
