// SPDX-License-Identifier: GPL-2.0-or-later
#define SUBJECT o0
#include "section_subject.h"
