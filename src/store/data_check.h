/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a start would find damaged in a data folder. */
#include "base/err.h"

struct io;
struct losses;

/* Adds to `found` what is damaged and not accepted. Reads only; a database of the journal is read too. Negative: no journal
 * could be opened, and the error says why. */
int data_check(const char *folder, struct io *io, struct losses *found, struct err *err) MUST_CHECK;
