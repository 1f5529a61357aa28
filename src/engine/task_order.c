/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/task_order.h"

void task_order_init(struct task_order *order, int folder, uint32_t rank, uint64_t end)
{
	order->last = -1;
	task_log_init(&order->log, folder, rank, TASK_ORDER, TASK_ORDER_CAP);
	order->log.offset = (end + TASK_ORDER_RECORD - 1) / TASK_ORDER_RECORD * TASK_ORDER_RECORD;
}

void task_order_deinit(struct task_order *order)
{
	task_log_deinit(&order->log);
}

void task_order_note(struct task_order *order, enum task_stream stream, uint64_t offset)
{
	const uint64_t record = offset << 1 | (stream == TASK_STDERR);

	if (order->last == (int)stream)
		return;
	order->last = (int)stream;
	task_log_write(&order->log, &record, sizeof(record));
}
