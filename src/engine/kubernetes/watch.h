/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All objects of one kind, followed: a list in pages, then a watch from where the list was taken; when that is too old (410), a list again.
 * A list also comes each WATCH_LIST_MS, so that a stream that keeps something back is found out. All of it is told on the client's thread.
 *
 *	begin	a list begins
 *	object	an object as it is now (of the list, or because it changed), or deleted: then as it was last
 *	listed	the list is complete: what was not told since `begin` is no longer there
 *
 * A list that is older than what was told before is not told: another one is asked for.
 *
 * An object may be told twice, and older than it was told before: its resourceVersion says nothing of order to us, so a handler takes
 * what it is told. Between `begin` and `listed` no change is told.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kube_client;
struct watch;

enum { WATCH_PAGE = 500, WATCH_S = 290, WATCH_LIST_MS = 10 * 60 * 1000, WATCH_VERSION_MAX = 64 };

struct watch_options {
	const char *path; /* "/api/v1/pods"; static */
	void *context;
	void (*begin)(void *context);
	void (*object)(void *context, const char *json, size_t size, bool deleted);
	void (*listed)(void *context);
	void (*pause)(
		void *context); /* what came together was told: a page, a change; may be NULL */
	void (*absent)(
		void *context); /* the server has no such objects, or does not show them; asked again each minute. NULL = that is a failure like others */
};

struct watch *watch_create(struct kube_client *client, const struct watch_options *options);
void watch_destroy(struct watch *watch); /* when the client is gone */
