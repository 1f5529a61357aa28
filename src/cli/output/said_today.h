/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Remarks that would be noise under each command. Said once a day on each terminal: a file in XDG_RUNTIME_DIR, else
 * XDG_CACHE_HOME, else ~/.cache, in the folder `fairlead`, remembers the day and the session for which that was.
 */
#include <stdbool.h>

/*
 * Whether the remark of this name was made on the terminal of stderr today, before this command. If not, it counts as made from
 * now on. False where stderr is no terminal, or where nothing can be remembered.
 */
bool said_today(const char *name);
