/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What space.c and space_build.c know of each other. */
#include "core/placement/space.h"

struct traits_named space_named(const struct space *space);
uint32_t space_data_index(const struct space *space, struct name_id name);
void moves_build(struct space *space, const struct facts *facts); /* moves.c; after data_build */
void space_node_count_in(struct space *space, uint32_t rank, bool in);
void space_odd_follow(struct space *space, uint32_t rank);
struct space_undo space_node_now(const struct space *space, uint32_t rank);
struct space_undo *space_node_log(struct space *space, uint32_t rank);
/* `parts`: what is held or promised of its GPUs in parts has changed. */
void space_node_put(struct space *space, uint32_t rank, const struct space_undo *to, bool parts);
