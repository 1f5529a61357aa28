/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What stands behind code.h: files (code_files.c), or a database (postgres/postgres_code.c). */
#include "store/code.h"

struct code_ops {
	void (*destroy)(struct code_store *store);
	int (*put)(struct code_store *store, const char *account, enum code_kind kind,
		   const char *name, const void *data, size_t size, struct err *err);
	int (*get)(struct code_store *store, const char *account, enum code_kind kind,
		   const char *name, struct buf *out, struct err *err);
	int (*name)(struct code_store *store, const char *account, enum code_kind kind,
		    const char *const *names, size_t count, int64_t *ret_sizes, struct err *err);
	int (*bytes)(struct code_store *store, const char *account, int64_t *ret, struct err *err);
	int (*accounts)(struct code_store *store, struct code_names *ret, struct err *err);
	int (*list)(struct code_store *store, const char *account, enum code_kind kind,
		    struct code_names *ret, struct err *err);
	int (*remove)(struct code_store *store, const char *account, enum code_kind kind,
		      int64_t before_s, const struct code_names *keep, struct err *err);
};

/* The first member of each. */
struct code_store {
	const struct code_ops *ops;
};

int code_none(const char *name, struct err *err);
