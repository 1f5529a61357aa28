/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of GPUs; amounts are texts with at most six decimals, kept exactly in millionths. */
#include "api/money.h"

#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/order.h"
#include "base/parse.h"

const char *money_text(struct arena *arena, int64_t micro)
{
	return arena_printf(arena, "%lld.%06lld", (long long)(micro / 1000000),
			    (long long)(micro % 1000000));
}

static void money_add(struct buf *out, const char *key, int64_t micro)
{
	char text[48];

	snprintf(text, sizeof(text), "%lld.%06lld", (long long)(micro / 1000000),
		 (long long)(micro % 1000000));
	out_text(out, key, text);
}

static const char *price_by_name(enum price_by by)
{
	static const char *const names[] = { [PRICE_BY_LIMIT] = "limit",
					     [PRICE_BY_ESTIMATE] = "estimate",
					     [PRICE_BY_LIKES] = "like-jobs",
					     [PRICE_BY_DEFAULT] = "default" };

	return names[by];
}

void price_add(struct buf *out, const struct facts *f, struct queue_id queue,
	       const struct price_range *price)
{
	if (!price->known)
		return;
	out_object(out, "price");
	money_add(out, "per_hour", price->per_hour_micro);
	money_add(out, "likely", price->likely_micro);
	money_add(out, "safe", price->safe_micro);
	money_add(out, "most", price->most_micro);
	out_text(out, "most_by", price_by_name(price->by));
	out_text(out, "currency", facts_currency(f, queue));
	out_bool(out, "placed", price->placed);
	out_end(out, '}');
}

void transfer_add(struct buf *out, const struct facts *f, struct queue_id queue, int64_t ms,
		  int64_t micro)
{
	if (!ms && !micro)
		return;
	out_object(out, "transfer");
	out_bool(out, "known", ms >= 0);
	out_int(out, "ms", ms < 0 ? 0 : ms);
	money_add(out, "cost", micro);
	out_text(out, "currency", facts_currency(f, queue));
	out_end(out, '}');
}

int money_read(const struct conf *body, const char *key, int64_t *ret_micro, struct err *err)
{
	const struct conf *c = conf_find(body, key);

	if (!c)
		return err_set(err, ERR_INVALID, "%s is missing: an amount such as 12.50, or none",
			       key);
	*ret_micro = -1;
	if (c->type == CONF_SCALAR &&
	    (strcmp(c->text, "none") == 0 || parse_money(c->text, ret_micro)))
		return 0;
	return conf_error(err, body_file, c,
			  "%s must be an amount with at most six decimals, such as 12.50, or none",
			  key);
}

void handle_price_list(struct call *call)
{
	const struct facts *f = call->facts;
	struct named *order = arena_new_array(call->arena, struct named, f->prices.count + 1);
	struct buf out = BUF_INIT;
	uint32_t count = 0;

	for (uint32_t row = 1; row <= f->prices.count; row++) {
		const struct price *price = table_get(&f->prices, row);

		if (price->micro_per_hour >= 0)
			order[count++] = (struct named){ facts_name(f, price->model), row };
	}
	named_sort(order, count);
	out_object(&out, NULL);
	out_list(&out, "prices");
	for (uint32_t i = 0; i < count; i++) {
		const struct price *price = table_get(&f->prices, order[i].id);

		out_object(&out, NULL);
		out_text(&out, "model", order[i].name);
		out_text(&out, "per_hour", money_text(call->arena, price->micro_per_hour));
		out_end(&out, '}');
	}
	out_end(&out, ']');
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

void handle_price_set(struct call *call)
{
	struct event event = call_event(call, EVENT_PRICE_SET);
	const struct conf *body;
	struct err err = { 0 };

	event.price_set.model = call->match.param[0];
	if (call_body(call, &body, &err) < 0 ||
	    money_read(body, "per_hour", &event.price_set.micro_per_hour, &err) < 0)
		call_fail(call, &err);
	else
		call_send(call, &event);
}
