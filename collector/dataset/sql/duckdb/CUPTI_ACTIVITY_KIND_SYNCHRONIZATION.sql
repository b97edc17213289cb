SELECT
  "t0"."run",
  "t0"."rank",
  "t0"."step",
  "t0"."start_ns" AS "start",
  "t0"."start_ns" + "t0"."duration_ns" AS "end",
  "t0"."context_id" AS "contextId",
  "t0"."stream_id" AS "streamId",
  "t0"."correlation_id" AS "correlationId",
  "t0"."sync_kind" AS "syncType",
  "t0"."event_id" AS "eventId",
  "t0"."event_sync_id" AS "eventSyncId"
FROM "syncs" AS "t0"
