SELECT
  *
FROM "step_queue"
