/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Each command's entry, defined in the file of its noun or verb. */
#include "cli/table/table.h"

#define COMMAND(id) extern const struct command command_##id;
#include "cli/table/commands.def"
#undef COMMAND
