/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/refusal.h"

enum { AGAIN_MS = 500, ABSENT_MS = 60000, CONTINUE_MAX = 4096, OLD_MAX = 20 };

struct watch {
	struct kube_client *client;
	struct watch_options options;
	char version[WATCH_VERSION_MAX]; /* of the list, then of the newest change */
	int64_t listed_ms, followed_ms; /* boot clock */
	int64_t pause_ms;
	uint32_t
		page; /* objects asked for at once: fewer where a page was larger than an answer may be */
	uint32_t old; /* lists in a row that were older than what was told before */
	bool expired; /* the stream said that the version is too old */
	bool troubled; /* it was said that nothing comes */
};

static void list(struct watch *w, const char *go_on);
static void follow(struct watch *w);

/* --- reading --------------------------------------------------------------------------------------------------- */

struct list_head {
	char version[WATCH_VERSION_MAX], go_on[CONTINUE_MAX];
};

static void read_list_head(struct json_reader *r, struct list_head *head)
{
	struct json_slice key, text;

	pull_object(r);
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "resourceVersion")) {
			pull_string(r, &text);
			pull_copy(r, &text, head->version, sizeof(head->version));
		} else if (pull_key_is(&key, "continue")) {
			pull_string(r, &text);
			pull_copy(r, &text, head->go_on, sizeof(head->go_on));
		} else {
			pull_skip(r);
		}
	}
}

/* Where the value begins that comes next; behind it after pull_skip. */
static const char *value_at(struct json_reader *r)
{
	(void)pull_peek(r);
	return r->at;
}

static void read_items(struct watch *w, struct json_reader *r)
{
	if (pull_peek(r) == PULL_NULL) {
		pull_null(r);
		return;
	}
	pull_array(r);
	while (pull_element(r)) {
		const char *from = value_at(r);

		pull_skip(r);
		if (!r->problem)
			w->options.object(w->options.context, from, (size_t)(r->at - from), false);
	}
}

static int read_page(struct watch *w, const char *text, size_t size, struct list_head *head,
		     struct err *err)
{
	struct json_reader r;
	struct json_slice key;

	memset(head, 0, sizeof(*head));
	pull_init(&r, text, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "metadata"))
			read_list_head(&r, head);
		else if (pull_key_is(&key, "items"))
			read_items(w, &r);
		else
			pull_skip(&r);
	}
	return pull_finish(&r, err);
}

static void read_version(const char *text, size_t size, char out[WATCH_VERSION_MAX])
{
	struct list_head head = { 0 };
	struct json_reader r;
	struct json_slice key;

	pull_init(&r, text, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "metadata"))
			read_list_head(&r, &head);
		else
			pull_skip(&r);
	}
	if (!r.problem && head.version[0])
		memcpy(out, head.version, sizeof(head.version));
}

/* --- list ------------------------------------------------------------------------------------------------------------ */

static void list_later(void *context)
{
	list(context, NULL);
}

static void follow_later(void *context)
{
	follow(context);
}

static void pause_and(struct watch *w, void (*fn)(void *context))
{
	kube_later(w->client, w->pause_ms, fn, w);
	w->pause_ms = w->pause_ms * 2 > KUBE_PAUSE_MAX_MS ? KUBE_PAUSE_MAX_MS : w->pause_ms * 2;
}

/* Said once, and once when it is over: what is known of the cluster grows old meanwhile. */
static void trouble(struct watch *w, const char *what, const char *text)
{
	if (!w->troubled)
		log_line(LOG_WARN, "Kubernetes: %s of %s: %.300s; it is tried again", what,
			 w->options.path, text);
	w->troubled = true;
}

static void trouble_is_over(struct watch *w)
{
	if (w->troubled)
		log_line(LOG_INFO, "Kubernetes: %s is followed again", w->options.path);
	w->troubled = false;
}

static void page_is_refused(struct watch *w, const struct kube_answer *answer)
{
	struct kube_refusal refusal;

	if (answer->status == 0 && w->page > 1) {
		w->page /= 2; /* larger than an answer may be */
		list(w, NULL);
		return;
	}
	if (w->options.absent && (answer->status == 403 || answer->status == 404)) {
		w->options.absent(w->options.context);
		kube_later(w->client, ABSENT_MS, list_later, w);
		return;
	}
	refusal_read(answer, &refusal);
	if (answer->status == 0)
		trouble(w, "list", answer->problem);
	else if (answer->status != 410) /* a page's list is too old by now */
		trouble(w, "list", refusal.text);
	pause_and(w, list_later);
}

/* Versions are numbers that grow. Of others nothing is said. */
static bool is_older(const char *version, const char *than)
{
	size_t size = strlen(version), than_size = strlen(than);

	if (!size || strspn(version, "0123456789") != size ||
	    strspn(than, "0123456789") != than_size)
		return false;
	return size != than_size ? size < than_size : strcmp(version, than) < 0;
}

/*
 * A list from before what the watch told already would take objects for gone that have come since, and so run their work twice. The API
 * server does not answer so to our question; a cache on the way may, or one server of several whose store lags behind. A store that was set
 * back by a backup answers so for ever: then it is believed in the end.
 */
static bool is_old_list(struct watch *w, const struct kube_answer *answer)
{
	char version[WATCH_VERSION_MAX] = "";

	read_version(answer->body, answer->size, version);
	if (!is_older(version, w->version) || ++w->old > OLD_MAX) {
		w->old = 0;
		return false;
	}
	return true;
}

static void page_came(void *context, const struct kube_answer *answer)
{
	struct watch *w = context;
	struct list_head *head;
	struct err err = { 0 };
	int rc;

	if (kube_is_end(answer))
		return;
	if (answer->status != 200) {
		page_is_refused(w, answer);
		return;
	}
	if (is_old_list(w, answer)) {
		trouble(w, "list", "it is older than what came before");
		pause_and(w, list_later);
		return;
	}
	head = calloc(1, sizeof(*head));
	CHECK(head);
	rc = read_page(w, answer->body, answer->size, head, &err);
	if (rc == 0 && w->options.pause)
		w->options.pause(w->options.context);
	if (rc < 0) {
		trouble(w, "list", err.text);
		pause_and(w, list_later);
	} else if (head->go_on[0]) {
		list(w, head->go_on);
	} else {
		memcpy(w->version, head->version, sizeof(w->version));
		w->listed_ms = clock_boot_ms();
		w->pause_ms = AGAIN_MS;
		trouble_is_over(w);
		w->options.listed(w->options.context);
		follow(w);
	}
	free(head);
}

static void list(struct watch *w, const char *go_on)
{
	AUTO_BUF path = BUF_INIT;

	if (!go_on)
		w->options.begin(w->options.context);
	buf_addf(&path, "%s?limit=%u", w->options.path, w->page);
	if (go_on) {
		buf_adds(&path, "&continue=");
		kube_add_escaped(&path, go_on);
	}
	kube_call(w->client, &(struct kube_request){ .method = "GET",
						     .path = buf_text(&path),
						     .done = page_came,
						     .context = w });
}

/* --- watch ------------------------------------------------------------------------------------------------------------- */

static bool slice_is(const struct json_slice *slice, const char *text)
{
	return pull_key_is(slice, text);
}

static bool change_came(void *context, const char *line, size_t size)
{
	struct watch *w = context;
	struct json_slice key, type = { 0 };
	struct json_reader r;
	const char *object = NULL;
	size_t object_size = 0;

	pull_init(&r, line, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "type")) {
			pull_string(&r, &type);
		} else if (pull_key_is(&key, "object")) {
			object = value_at(&r);
			pull_skip(&r);
			object_size = (size_t)(r.at - object);
		} else {
			pull_skip(&r);
		}
	}
	if (pull_finish(&r, NULL) < 0 || !object || !type.data) {
		log_line(LOG_WARN, "Kubernetes: a change of %s can't be read; listing anew",
			 w->options.path);
		w->expired = true;
		return false;
	}
	if (slice_is(&type, "ERROR")) {
		w->expired = true;
		return false;
	}
	if (!slice_is(&type, "BOOKMARK")) {
		w->options.object(w->options.context, object, object_size,
				  slice_is(&type, "DELETED"));
		if (w->options.pause)
			w->options.pause(w->options.context);
	}
	read_version(object, object_size, w->version);
	w->pause_ms = AGAIN_MS;
	trouble_is_over(w);
	return true;
}

static void stream_ended(void *context, const struct kube_answer *answer)
{
	struct watch *w = context;
	struct kube_refusal refusal;

	if (kube_is_end(answer))
		return;
	if (answer->too_large) /* one object: a list shows whether it stays so */
		w->expired = true;
	refusal_read(answer, &refusal);
	if (answer->too_large)
		trouble(w, "watch", answer->problem);
	else if (answer->status != 0 && answer->status != 200 && answer->status != 410)
		trouble(w, "watch", refusal.text);
	if (w->expired || answer->status == 410 || answer->status == 400 ||
	    clock_boot_ms() - w->listed_ms > WATCH_LIST_MS) {
		w->expired = false;
		pause_and(w, list_later);
	} else if (answer->status == 200 && clock_boot_ms() - w->followed_ms > AGAIN_MS) {
		follow(w);
	} else {
		pause_and(w, follow_later);
	}
}

static void follow(struct watch *w)
{
	AUTO_BUF path = BUF_INIT;

	w->followed_ms = clock_boot_ms();
	buf_addf(&path, "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=",
		 w->options.path, WATCH_S);
	kube_add_escaped(&path, w->version);
	kube_call(w->client, &(struct kube_request){ .method = "GET",
						     .path = buf_text(&path),
						     .once = true,
						     .done = stream_ended,
						     .line = change_came,
						     .context = w });
}

struct watch *watch_create(struct kube_client *client, const struct watch_options *options)
{
	struct watch *w = calloc(1, sizeof(*w));

	CHECK(w);
	w->client = client;
	w->options = *options;
	w->pause_ms = AGAIN_MS;
	w->page = WATCH_PAGE;
	list(w, NULL);
	return w;
}

void watch_destroy(struct watch *watch)
{
	free(watch);
}
